package gateway_test

import (
	"context"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/mcp-sse/mcp-sse/gateway"
	"github.com/mcp-sse/mcp-sse/internal/ssetest"
)

// Each transport is served at each address, below the prefix or at a single path. A request
// to one that is switched off is refused so that a client which tries both goes on to the
// other one, and starts no server.
func TestRoutes(t *testing.T) {
	const message = "/0d9f3a52-7a0f-4f6e-8f0a-5f3c2b1a0e77/message"
	for _, c := range []struct {
		name  string
		opts  gateway.Options
		paths []string // in place of ADDRESS
		want  map[string]string
	}{
		{"both", gateway.Options{Prefix: "/a"}, []string{"/a/mcp", "/a/sse"}, map[string]string{
			"POST ADDRESS":                                                         "200 session",
			"GET ADDRESS Accept=text/event-stream":                                 "200 event: endpoint\ndata: ADDRESS/ID/message",
			"GET ADDRESS/ Accept=text/event-stream":                                "200 event: endpoint\ndata: ADDRESS/ID/message",
			"GET ADDRESS Accept=text/event-stream Last-Event-ID=7":                 "200 event: endpoint\ndata: ADDRESS/ID/message",
			"GET ADDRESS Accept=text/event-stream Mcp-Protocol-Version=2025-11-25": "200 event: endpoint\ndata: ADDRESS/ID/message",
			"GET /a/sse":                                         "200 event: endpoint\ndata: /a/sse/ID/message",
			"GET /a/sse Accept=*/*":                              "200 event: endpoint\ndata: /a/sse/ID/message",
			"GET /a/mcp Accept=":                                 "405 GET, POST, DELETE",
			"GET /a/mcp Accept=*/*":                              "405 GET, POST, DELETE",
			"GET ADDRESS Accept=application/json":                "405 GET, POST, DELETE",
			"HEAD ADDRESS":                                       "405 ",
			"GET ADDRESS Mcp-Protocol-Version=2026-07-28":        "405 POST",
			"GET ADDRESS Mcp-Session-Id=unknown":                 "404 no such session",
			"DELETE ADDRESS Mcp-Session-Id=unknown":              "404 no such session",
			"POST ADDRESS" + message:                             "404 no such connection: open a new one with GET ADDRESS",
			"GET ADDRESS" + message:                              "405 POST",
			"PUT ADDRESS":                                        "405 GET, POST, DELETE",
			"OPTIONS ADDRESS Access-Control-Request-Method=x":    "204 GET, POST, DELETE",
			"GET ADDRESS Accept=text/html,*/*;q=0.8":             "200 <!doctype html>",
			"GET ADDRESS Accept=text/html,text/event-stream;q=0": "200 <!doctype html>",
			"GET ADDRESS Accept=text/event-stream;q=0":           "405 GET, POST, DELETE",
			"GET ADDRESS Accept=*/*;q=0":                         "405 GET, POST, DELETE",
			"GET ADDRESS Accept=text/event-stream;q=0,*/*":       "405 GET, POST, DELETE",
			"GET /a/sse Accept=text/html;q=0,*/*":                "200 event: endpoint\ndata: /a/sse/ID/message",
			"POST ADDRESS/x":                                     "404 MCP is at /a/mcp",
			"POST ADDRESS/x/y/message":                           "404 MCP is at /a/mcp",
			"GET /mcp":                                           "404 MCP is at /a/mcp",
		}},
		{"HTTP+SSE alone", gateway.Options{Transports: []gateway.Transport{gateway.TransportSSE}}, []string{"/mcp", "/sse"}, map[string]string{
			"POST ADDRESS":                                    "405 GET",
			"GET ADDRESS Mcp-Session-Id=unknown":              "200 event: endpoint",
			"OPTIONS ADDRESS Access-Control-Request-Method=x": "204 GET, POST",
			"GET /other":                                      "404 MCP is at /mcp",
		}},
		{"Streamable HTTP alone", gateway.Options{Transports: []gateway.Transport{gateway.TransportStreamable}}, []string{"/mcp", "/sse"}, map[string]string{
			"POST ADDRESS":           "200 session",
			"GET ADDRESS":            "405 POST",
			"POST ADDRESS" + message: "404 MCP is at /mcp",
		}},
		{"single path", gateway.Options{SinglePath: true}, []string{"/x"}, map[string]string{
			"POST ADDRESS":                 "200 session",
			"POST ADDRESS?connectionId=ID": "404 no such connection",
			"GET ADDRESS":                  "200 event: endpoint\ndata: ADDRESS?connectionId=ID",
		}},
		{"stdio", gateway.Options{Transports: []gateway.Transport{gateway.TransportStdio}}, []string{"/mcp"}, map[string]string{
			"POST ADDRESS": "404 this gateway serves no HTTP",
		}},
	} {
		t.Run(c.name, func(t *testing.T) {
			c.opts.AllowedOrigins = []string{"https://a.example"}
			u, opened := &server{}, 0
			inFakeTime(t, u, c.opts, func(t *testing.T, g *gateway.Gateway) {
				for _, address := range c.paths {
					for ask, want := range c.want {
						ask, want = strings.ReplaceAll(ask, "ADDRESS", address), strings.ReplaceAll(want, "ADDRESS", address)
						if got := answerTo(g, ask); !strings.HasPrefix(got, want) {
							t.Errorf("%s: got %s, want %s", ask, got, want)
						}
						if synctest.Wait(); strings.HasPrefix(want, "200") {
							opened++
						}
					}
				}
				if n := u.starts(); n > opened {
					t.Errorf("%d servers were started for %d sessions", n, opened)
				}
			})
		})
	}
}

// answerTo returns what a request "METHOD PATH NAME=VALUE…" gets: the status, and then the
// methods that are allowed, what opened, or why not.
func answerTo(g *gateway.Gateway, ask string) string {
	parts := strings.Fields(ask)
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	body := ""
	if parts[0] == http.MethodPost {
		body = initialize("0", "2025-11-25", "{}")
	}
	r := ssetest.Request(ctx, parts[0], parts[1], body, "Origin", "https://a.example")
	for _, header := range parts[2:] {
		name, value, _ := strings.Cut(header, "=")
		r.Header.Set(name, value)
	}
	w := httptest.NewRecorder()
	g.ServeHTTP(leaving{w, cancel}, r)
	header := w.Header()
	switch id := header.Get("X-Connection-ID"); {
	case strings.HasPrefix(header.Get("Content-Type"), "text/html"):
		return "200 " + w.Body.String()
	case header.Get("Allow") != "":
		return "405 " + header.Get("Allow")
	case id != "":
		_, first, _ := strings.Cut(strings.ReplaceAll(w.Body.String(), id, "ID"), "\n")
		return "200 " + first
	case header.Get("Mcp-Session-Id") != "":
		return "200 session"
	case w.Code == http.StatusNoContent:
		return "204 " + header.Get("Access-Control-Allow-Methods")
	}
	_, why, _ := strings.Cut(w.Body.String(), `"message":"`)
	return "404 " + strings.TrimPrefix(why, "no such route: ")
}

// leaving is a client that leaves a stream once it has its head.
type leaving struct {
	*httptest.ResponseRecorder
	leave func()
}

func (l leaving) Flush() { l.leave() }
