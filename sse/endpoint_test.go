package sse_test

import (
	"net/http"
	"net/url"
	"strings"
	"testing"

	"github.com/gorilla/mux"

	"github.com/mcp-sse/mcp-sse/internal/ssetest"
	"github.com/mcp-sse/mcp-sse/sse"
)

// The path in the endpoint event is the one that reaches us through whatever is in
// front: each case posts to it as a client does.
func TestEndpoint(t *testing.T) {
	type wrap = func(http.Handler) http.Handler
	strip := func(prefix string) wrap {
		return func(h http.Handler) http.Handler { return http.StripPrefix(prefix, h) }
	}
	exact := func(pattern string) wrap {
		return func(h http.Handler) http.Handler {
			m := http.NewServeMux()
			m.Handle(pattern, h)
			return m
		}
	}
	subrouter := func(h http.Handler) http.Handler {
		r := mux.NewRouter()
		r.PathPrefix("/a").Subrouter().PathPrefix("/b").Handler(h)
		return r
	}
	const id, single = "/sse/ID/message", "?connectionId=ID"
	for _, test := range []struct {
		name, option string
		wraps        []wrap // innermost first
		target, want string
	}{
		{"none", "", nil, "/sse", id},
		{"another path", "", nil, "/a/b-c/d.e", "/a/b-c/d.e/ID/message"},
		{"root of all", "", nil, "/", "/ID/message"},
		{"StripPrefix and query", "", []wrap{strip("/tools")}, "/tools/sse?event=message&x=/sse", "/tools" + id},
		{"StripPrefix nested", "", []wrap{strip("/b"), strip("/a")}, "/a/b/sse", "/a/b" + id},
		{"StripPrefix escaped", "", []wrap{strip("/a ü")}, "/a%20%C3%BC/sse", "/a%20%C3%BC" + id},
		{"StripPrefix of a name like ours", "", []wrap{strip("/sse")}, "/sse/sse", "/sse" + id},
		{"ServeMux", "", []wrap{strip("/tools"), exact("/tools/")}, "/tools/sse", "/tools" + id},
		{"gorilla/mux subrouter", "", []wrap{subrouter}, "/a/b/sse", "/a/b" + id},

		{"one pattern", "single", []wrap{exact("/mcp")}, "/mcp", "/mcp" + single},
		{"a pattern with a query", "single", []wrap{exact("/sse")}, "/sse?x=1", "/sse" + single},
		{"root", "single", []wrap{exact("/")}, "/", "/" + single},
		{"any path", "single", []wrap{exact("/")}, "/a%20b", "/a%20b" + single},
		{"a path like that of a message", "single", []wrap{exact("/")}, "/a/b/message", "/a/b/message" + single},
		{"stripped", "single", []wrap{strip("/tools")}, "/tools/mcp", "/tools/mcp" + single},
		{"a path that is taken for a host", "single", nil, "//a.example/b", single},
	} {
		t.Run(test.name, func(t *testing.T) {
			f := newFixture(t, config{sse: sse.Options{SinglePath: test.option == "single"}})
			srv := start(t, f, test.wraps...)
			r := openStream(t, srv.Client(), srv.URL+test.target, f)
			defer r.Body.Close()
			endpoint := r.next().Data
			if want := strings.ReplaceAll(test.want, "ID", r.c.ID()); endpoint != want {
				t.Fatalf("got %s, want %s", endpoint, want)
			}
			base, err := url.Parse(srv.URL + test.target)
			ssetest.Must(t, err)
			at, err := base.Parse(endpoint)
			ssetest.Must(t, err)
			at.RawQuery += "&x=1"
			if res, body := post(t, srv.Client(), at.String(), `{"jsonrpc":"2.0","method":"x"}`); res.StatusCode != http.StatusAccepted {
				t.Errorf("POST %s: got %d %s", at, res.StatusCode, body)
			}
		})
	}
}
