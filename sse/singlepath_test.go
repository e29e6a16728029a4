package sse_test

import (
	"net/http"
	"net/http/httptest"
	"net/url"
	"testing"

	"github.com/mcp-sse/mcp-sse/front"
	"github.com/mcp-sse/mcp-sse/sse"
)

// With a single path the handler works wherever it is mounted, and the endpoint is that
// path: each case posts to it as a client does.
func TestSinglePath(t *testing.T) {
	exact := func(pattern string) func(http.Handler) http.Handler {
		return func(h http.Handler) http.Handler {
			m := http.NewServeMux()
			m.Handle(pattern, h)
			return m
		}
	}
	strip := func(h http.Handler) http.Handler { return http.StripPrefix("/tools", h) }
	for _, test := range []struct {
		name   string
		wrap   func(http.Handler) http.Handler
		target string
		want   string
	}{
		{"one pattern", exact("/mcp"), "/mcp", "/mcp?connectionId="},
		{"the pattern of the other transport", exact("/sse"), "/sse?x=1", "/sse?connectionId="},
		{"root", exact("/"), "/", "/?connectionId="},
		{"any path", exact("/"), "/a/b", "/a/b?connectionId="},
		{"escaped", exact("/"), "/a%20b", "/a%20b?connectionId="},
		{"stripped", strip, "/tools/mcp", "/tools/mcp?connectionId="},
		{"a path that is taken for a host", func(h http.Handler) http.Handler { return h }, "//a.example/b", "?connectionId="},
	} {
		t.Run(test.name, func(t *testing.T) {
			f := newFixture(t, config{sse: sse.Options{SinglePath: true}})
			srv := start(t, f, test.wrap)
			r := openStream(t, srv.Client(), srv.URL+test.target, f)
			defer r.Body.Close()
			endpoint := r.next().Data
			if endpoint != test.want+r.c.ID() {
				t.Fatalf("got %s, want %s and the id", endpoint, test.want)
			}
			base, err := url.Parse(srv.URL + test.target)
			if err != nil {
				t.Fatal(err)
			}
			at, err := base.Parse(endpoint)
			if err != nil {
				t.Fatal(err)
			}
			for _, extra := range []string{"", "&x=1"} {
				if res, body := post(t, srv.Client(), at.String()+extra, `{"jsonrpc":"2.0","method":"x"}`); res.StatusCode != http.StatusAccepted {
					t.Errorf("POST %s%s: got %d %s", at, extra, res.StatusCode, body)
				}
			}
		})
	}
}

func TestSinglePathRefuses(t *testing.T) {
	f := newFixture(t, config{sse: sse.Options{Options: front.Options{AllowedOrigins: []string{"https://a.example"}}, SinglePath: true}})
	for _, test := range []struct {
		method, query string
		header        [2]string
		status        int
		allow         string
	}{
		{"POST", "", [2]string{}, 404, ""},
		{"POST", "?connectionId=unknown", [2]string{}, 404, ""},
		{"POST", "?connectionId=%zz&;", [2]string{}, 404, ""},
		{"DELETE", "", [2]string{}, 405, "GET, POST"},
		{"OPTIONS", "", [2]string{"Access-Control-Request-Method", "POST"}, 204, ""},
		{"OPTIONS", "", [2]string{"Access-Control-Request-Method", "GET"}, 204, ""},
	} {
		r := httptest.NewRequest(test.method, "/mcp"+test.query, http.NoBody)
		r.Header.Set("Content-Type", "application/json")
		if test.header[0] != "" {
			r.Header.Set(test.header[0], test.header[1])
			r.Header.Set("Origin", "https://a.example")
		}
		w := httptest.NewRecorder()
		f.ServeHTTP(w, r)
		if w.Code != test.status || w.Header().Get("Allow") != test.allow {
			t.Errorf("%s %q: got %d, Allow %q: %s", test.method, test.query, w.Code, w.Header().Get("Allow"), w.Body)
		}
	}
}
