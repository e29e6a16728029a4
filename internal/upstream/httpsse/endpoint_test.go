package httpsse

import (
	"net/http"
	"net/url"
	"strings"
	"testing"

	"github.com/mcp-sse/mcp-sse/internal/ssetest"
)

// TypeScript's rule: credentials go to no other origin.
func TestEndpointIsRelativeToTheStreamAndHasItsOrigin(t *testing.T) {
	stream, err := url.Parse("http://u:p@h/a/sse")
	ssetest.Must(t, err)
	for data, want := range map[string]string{
		"/m?s=1": "http://u:p@h/m?s=1", "m?s=1": "http://u:p@h/a/m?s=1", "?s=1": "http://u:p@h/a/sse?s=1", " /m ": "http://u:p@h/m",
		"http://h:80/m": "http://u:p@h:80/m", "http://H/m": "http://u:p@H/m", "": "http://u:p@h/a/sse",
		"http://h:81/m": "another origin", "http://evil.example/m": "another origin", "https://h/m": "another origin",
		"//evil.example/m": "another origin", "file:///etc/passwd": "another origin", "http://[": "holds no URL",
	} {
		if got, err := resolveEndpoint(stream, []byte(data)); got != want && (err == nil || !strings.Contains(err.Error(), want)) {
			t.Errorf("%q leads to %q, %v, want %s", data, got, err, want)
		}
	}
	here, err := url.Parse("http://[::1]:8000/sse")
	ssetest.Must(t, err)
	for data, want := range map[string]string{
		"http://localhost:8000/m": "http://localhost:8000/m", "http://127.0.0.1:8000/m": "http://127.0.0.1:8000/m",
		"http://localhost:8001/m": "another origin", "https://localhost:8000/m": "another origin", "http://localhost.evil.example:8000/m": "another origin",
		"http://0.0.0.0:8000/m": "another origin, http://0.0.0.0:8000", "http://192.168.0.1:8000/m": "another origin",
	} {
		if got, err := resolveEndpoint(here, []byte(data)); got != want && (err == nil || !strings.Contains(err.Error(), want)) {
			t.Errorf("on this machine %q leads to %q, %v, want %s", data, got, err, want)
		}
	}
}

// FuzzEndpoint checks that nothing which a server names as its endpoint leads to
// another origin.
func FuzzEndpoint(f *testing.F) {
	for _, data := range []string{"/messages?s=1", "m", "//evil.example/m", "http://h:80/m", "http://user@h/", "HTTP://H/", "\\\\evil\\", "http:///m", "http:m", "http://h\t.evil/"} {
		f.Add([]byte(data))
	}
	stream, err := url.Parse("http://u:p@h/a/sse")
	ssetest.Must(f, err)
	f.Fuzz(func(t *testing.T, data []byte) {
		at, err := resolveEndpoint(stream, data)
		if err != nil {
			return
		}
		req, err := http.NewRequest(http.MethodPost, at, nil)
		if err != nil {
			return // nothing is sent
		}
		host := strings.ToLower(req.URL.Host)
		if req.URL.Scheme != "http" || host != "h" && host != "h:80" && host != "h:" {
			t.Errorf("%q leads to %s", data, at)
		}
		if password, _ := req.URL.User.Password(); req.URL.User.Username() != "u" || password != "p" {
			t.Errorf("%q changes the user: %s", data, at)
		}
	})
}
