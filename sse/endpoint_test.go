package sse_test

import (
	"net/http"
	"net/http/httptest"
	"net/netip"
	"net/url"
	"strings"
	"testing"

	"github.com/gorilla/mux"

	"github.com/mcp-sse/mcp-sse/front"
	"github.com/mcp-sse/mcp-sse/sse"
)

// The path in the endpoint event is the one that reaches us through whatever is
// in front: each case posts to it as a client does.
func TestEndpointUnderAPrefix(t *testing.T) {
	strip := func(prefix string) func(http.Handler) http.Handler {
		return func(h http.Handler) http.Handler { return http.StripPrefix(prefix, h) }
	}
	serveMux := func(h http.Handler) http.Handler {
		m := http.NewServeMux()
		m.Handle("/tools/", http.StripPrefix("/tools", h))
		return m
	}
	gorilla := func(h http.Handler) http.Handler {
		r := mux.NewRouter()
		r.PathPrefix("/tools/v1/").Handler(http.StripPrefix("/tools/v1", h))
		return r
	}
	subrouter := func(h http.Handler) http.Handler {
		r := mux.NewRouter()
		r.PathPrefix("/a").Subrouter().PathPrefix("/b").Handler(h)
		return r
	}
	type wrap = func(http.Handler) http.Handler
	for _, test := range []struct {
		name, option string
		wraps        []wrap // innermost first
		target, want string // want: what stands before /sse/<id>/message
	}{
		{"none", "", nil, "/sse", ""},
		{"option", "/mcp", nil, "/mcp/sse", "/mcp"},
		{"option with segments", "/a/b-c/d.e", nil, "/a/b-c/d.e/sse", "/a/b-c/d.e"},
		{"StripPrefix", "", []wrap{strip("/tools")}, "/tools/sse", "/tools"},
		{"StripPrefix and query", "", []wrap{strip("/tools")}, "/tools/sse?event=message&x=/sse", "/tools"},
		{"StripPrefix nested", "", []wrap{strip("/b"), strip("/a")}, "/a/b/sse", "/a/b"},
		{"StripPrefix and option", "/mcp", []wrap{strip("/tools")}, "/tools/mcp/sse", "/tools/mcp"},
		{"StripPrefix escaped", "", []wrap{strip("/a b")}, "/a%20b/sse", "/a%20b"},
		{"StripPrefix non-ASCII", "", []wrap{strip("/ü")}, "/%C3%BC/sse", "/%C3%BC"},
		{"StripPrefix of a name like ours", "", []wrap{strip("/sse")}, "/sse/sse", "/sse"},
		{"ServeMux", "", []wrap{serveMux}, "/tools/sse", "/tools"},
		{"gorilla/mux", "", []wrap{gorilla}, "/tools/v1/sse", "/tools/v1"},
		{"gorilla/mux subrouter and option", "/a/b", []wrap{subrouter}, "/a/b/sse", "/a/b"},
	} {
		t.Run(test.name, func(t *testing.T) {
			f := newFixture(t, config{sse: sse.Options{Options: front.Options{Prefix: test.option}}})
			srv := start(t, f, test.wraps...)
			r := openStream(t, srv.Client(), srv.URL+test.target, f)
			defer r.Body.Close()
			endpoint := r.next().Data
			if want := test.want + "/sse/" + r.c.ID() + "/message"; endpoint != want {
				t.Fatalf("got %s, want %s", endpoint, want)
			}
			base, err := url.Parse(srv.URL + test.target)
			if err != nil {
				t.Fatal(err)
			}
			at, err := base.Parse(endpoint)
			if err != nil {
				t.Fatal(err)
			}
			if res, body := post(t, srv.Client(), at.String(), `{"jsonrpc":"2.0","method":"x"}`); res.StatusCode != http.StatusAccepted {
				t.Errorf("POST %s: got %d %s", at, res.StatusCode, body)
			}
		})
	}
}

func TestForwardedPrefix(t *testing.T) {
	for _, test := range []struct {
		header  string
		trusted bool
		want    string
	}{
		{"/gw", false, ""},
		{"/gw", true, "/gw"},
		{"/gw/", true, "/gw"},
		{"/gw/a%20b", true, "/gw/a%20b"},
		{"/", true, ""},
		{"", true, ""},
		{"gw", true, ""},
		{"//evil.example", true, ""},
		{"///evil.example", true, ""},
		{`/\evil.example`, true, ""},
		{`\\evil.example`, true, ""},
		{"http://evil.example", true, ""},
		{"https:evil.example", true, ""},
		{"javascript:alert(1)", true, ""},
		{"/../", true, ""},
		{"/a/../../b", true, ""},
		{"/./x", true, ""},
		{"/%2e%2e/x", true, ""},
		{"/.%2E/x", true, ""},
		{"/%2e", true, ""},
		{"/%zz", true, ""},
		{"/a?b=c", true, ""},
		{"/a#b", true, ""},
		{"/a b", true, ""},
		{"/a\r\ndata: x", true, ""},
		{"/a\nevent: x", true, ""},
		{"/a\x00", true, ""},
		{"/a, /b", true, ""},
		{"/ü", true, ""},
		{"/" + strings.Repeat("x", 2000), true, ""},
	} {
		proxies := netip.MustParsePrefix("10.0.0.0/8")
		if test.trusted {
			proxies = netip.MustParsePrefix("192.0.2.0/24") // that of httptest.NewRequest
		}
		f := newFixture(t, config{sse: sse.Options{Options: front.Options{TrustedProxies: []netip.Prefix{proxies}}}})
		r := httptest.NewRequest(http.MethodGet, "/sse", nil)
		r.Header.Set("X-Forwarded-Prefix", test.header)
		got := f.Endpoint(r, "ID")
		if want := test.want + "/sse/ID/message"; got != want {
			t.Errorf("%q, trusted %v: got %q, want %q", test.header, test.trusted, got, want)
		}
	}
}

// Whatever the request line says, the endpoint is a path on the same host.
func TestEndpointIsNeverAnotherHost(t *testing.T) {
	base, _ := url.Parse("http://gateway.example/x/sse")
	for _, uri := range []string{
		"/sse", "//evil.example/sse", "///evil.example/sse", "/\\evil.example/sse", "http://evil.example/sse", "http://evil.example/a/sse?x",
		"*", "", "/a/../sse", "/..//sse", "/%2e%2e//sse", "/sse?x=/sse", "/a\r\nb/sse", "evil.example:443",
	} {
		for _, prefix := range []string{"", "//evil.example", "http://evil.example", "/ok"} {
			f := newFixture(t, config{sse: sse.Options{Options: front.Options{TrustedProxies: []netip.Prefix{netip.MustParsePrefix("192.0.2.0/24")}}}})
			r := httptest.NewRequest(http.MethodGet, "/sse", nil)
			r.RequestURI = uri
			r.Host = "evil.example"
			r.Header.Set("X-Forwarded-Prefix", prefix)
			r.Header.Set("X-Forwarded-Host", "evil.example")
			got := f.Endpoint(r, "ID")
			u, err := base.Parse(got)
			if err != nil || u.Host != base.Host || u.Scheme != base.Scheme ||
				!strings.HasSuffix(got, "/sse/ID/message") || strings.ContainsAny(got, "\r\n\\ ") || strings.Contains(u.Path, "..") {
				t.Errorf("request line %q, prefix %q: got %q", uri, prefix, got)
			}
		}
	}
}
