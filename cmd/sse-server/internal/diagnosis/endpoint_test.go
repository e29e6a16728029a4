package diagnosis

import (
	"io"
	"net/http"
	"net/url"
	"strings"
	"testing"
	"time"
)

// An endpoint has the scheme and the host of its stream, as the SDKs want it: what is posted there has the
// token of the user.
func TestEndpointIsOfTheSameOrigin(t *testing.T) {
	for endpoint, want := range map[string]string{
		"/post?session=1":               "https://gw.example.com/post?session=1",
		"https://gw.example.com/post":   "https://gw.example.com/post",
		"https://GW.example.com:443/":   "https://GW.example.com:443/",
		"http://gw.example.com/post":    "clients do not post to another scheme; have the proxy send X-Forwarded-Proto, and the server use it",
		"http://gw.example.com:443/":    "clients do not post to another scheme; have the proxy send X-Forwarded-Proto, and the server use it",
		"https://gw.example.com:8443/":  "another host, gw.example.com:8443, where clients do not post; have the proxy pass Host, and the server use it",
		"//evil.example.com/post":       "another host, evil.example.com, where clients do not post; have the proxy pass Host, and the server use it",
		"http://evil.example.com/post":  "another host, evil.example.com, where clients do not post; have the proxy pass Host, and the server use it",
		"file://gw.example.com/etc":     "clients do not post to another scheme; have the proxy send X-Forwarded-Proto, and the server use it",
		"mailto:someone@gw.example.com": "another host, , where clients do not post; have the proxy pass Host, and the server use it",
	} {
		r := &run{at: &url.URL{Scheme: "https", Host: "gw.example.com", Path: "/sse"}}
		stream := newEvents(io.NopCloser(strings.NewReader("event: endpoint\ndata: "+endpoint+"\n\n")), func() {})
		response := &http.Response{StatusCode: http.StatusOK, Header: http.Header{"Content-Type": {"text/event-stream"}}}
		got, err := r.endpointOf(t.Context(), response, stream, time.Minute)
		stream.close()
		if f, ok := err.(*fault); ok {
			got = f.what + "; " + f.remedy
		}
		if !strings.HasSuffix(got, want) || (err == nil) != (got == want) {
			t.Errorf("%s: got %q, want %q", endpoint, got, want)
		}
	}
}
