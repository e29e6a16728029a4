package diagnosis

import (
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"

	"github.com/modelcontextprotocol/go-sdk/oauthex"
)

// A server elsewhere cannot have an address of this machine or network asked for metadata.
func TestMetadataInsideAreForServersInside(t *testing.T) {
	asked := 0
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		asked++
		_, _ = io.WriteString(w, `{"resource":"https://gw.example.com","authorization_servers":["http://127.0.0.1:1"]}`)
	}))
	defer s.Close()
	for _, isInside := range []bool{true, false} {
		asked = 0
		r := &run{at: &url.URL{Scheme: "https", Host: "gw.example.com", Path: "/mcp"}, isInside: isInside, transport: new(http.Transport)}
		r.challenge = &oauthex.Challenge{Params: map[string]string{"resource_metadata": s.URL + "/meta"}}
		detail, err := r.readResource(t.Context())
		r.transport.CloseIdleConnections()
		switch {
		case isInside && (err != nil || asked != 1):
			t.Errorf("a server inside: got %q, %v, asked %d times", detail, err, asked)
		case !isInside && (err == nil || !strings.Contains(err.Error(), "(not asked: it is at an address of this machine or network") || asked != 0):
			t.Errorf("a server elsewhere: got %q, %v, asked %d times", detail, err, asked)
		}
	}
	// A name, or a redirect, leads there no more than an address does.
	client := (&run{transport: new(http.Transport)}).outside(&url.URL{Scheme: "https", Host: "127.0.0.1"}) // for which no environment has a proxy
	defer client.CloseIdleConnections()
	if response, err := client.Get(s.URL); err == nil || !strings.Contains(err.Error(), errInside.Error()) || asked != 0 {
		t.Errorf("connected: %v, %v, asked %d times", response, err, asked)
	}
	request := httptest.NewRequest(http.MethodGet, s.URL, nil)
	if err := client.CheckRedirect(request, nil); err != errInside {
		t.Errorf("a redirect: %v", err)
	}
}
