package httpsse

import (
	"net/http"
	"net/url"
	"strings"
	"testing"
)

// FuzzEndpoint checks that nothing which a server names as its endpoint leads to
// another origin.
func FuzzEndpoint(f *testing.F) {
	for _, data := range []string{"/messages?s=1", "m", "//evil.example/m", "http://h:80/m", "http://user@h/", "HTTP://H/", "\\\\evil\\", "http:///m", "http:m", "http://h\t.evil/"} {
		f.Add([]byte(data))
	}
	stream, err := url.Parse("http://u:p@h/a/sse")
	if err != nil {
		f.Fatal(err)
	}
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
