package gateway_test

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/gorilla/mux"

	"github.com/mcp-sse/mcp-sse/gateway"
	"github.com/mcp-sse/mcp-sse/jsonrpc"
	"github.com/mcp-sse/mcp-sse/upstream"
)

// echo answers initialize, and every other request with its own params.
func echo(_ context.Context, msg json.RawMessage) any {
	m, err := jsonrpc.Parse(msg)
	switch {
	case err != nil || m.Kind != jsonrpc.Request:
		return nil
	case m.Method == "initialize":
		return json.RawMessage(jsonrpc.NewResult(m.ID, json.RawMessage(serverResult)))
	case m.Method == "panic":
		panic("the handler is broken")
	case m.Params() == nil:
		return json.RawMessage(jsonrpc.NewResult(m.ID, json.RawMessage("{}")))
	}
	return json.RawMessage(jsonrpc.NewResult(m.ID, m.Params()))
}

var connectionID = regexp.MustCompile(`[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}`)

// The bytes on the wire until a client is served.
func TestWireOfAReadyConnection(t *testing.T) {
	base, c, _ := serve(t, upstream.Handle(echo), gateway.Options{})
	began := time.Now()
	s := open(t, c, base+"/sse", nil)
	id := s.header.Get("X-Connection-ID")
	if !connectionID.MatchString(id) || s.post != base+"/sse/"+id+"/message" {
		t.Errorf("connection id %q, endpoint %s", id, s.post)
	}
	for name, want := range map[string]string{
		"Content-Type": "text/event-stream", "Cache-Control": "no-cache, no-transform", "X-Accel-Buffering": "no",
	} {
		if got := s.header.Get(name); got != want {
			t.Errorf("%s: %q, want %q", name, got, want)
		}
	}
	want := []block{
		{Name: "connection", ID: "2", Retry: "1000", Data: `{"jsonrpc":"2.0","method":"notifications/connection","params":{"connectionId":"` + id + `","state":"initializing","heartbeatSeconds":15}}`},
		{Name: "mcp-response", ID: "3", Data: `{"jsonrpc":"2.0","id":"auto-initialize-` + id + `","result":` + serverResult + `}`},
	}
	for _, w := range want {
		w.Lines = 1
		got := s.next(t)
		if got.Raw = ""; got != w {
			t.Errorf("got %+v\nwant %+v", got, w)
		}
	}
	if waited := time.Since(began); waited < 100*time.Millisecond {
		t.Errorf("the announcement came after %s, want the announce delay to pass", waited)
	}
	s.must(t, `{"jsonrpc":"2.0","id":9007199254740993,"method":"tools/list","params":{"n":1.50,"s":"\u00e9"}}`)
	const data = `{"jsonrpc":"2.0","id":9007199254740993,"result":{"n":1.50,"s":"\u00e9"}}`
	for i, name := range []string{"message", "mcp-response"} {
		got, w := s.next(t), block{Name: name, ID: fmt.Sprint(4 + i), Data: data, Lines: 1}
		if got.Raw = ""; got != w {
			t.Errorf("got %+v, want %+v", got, w)
		}
	}
}

func TestWireOfAPlainTransport(t *testing.T) {
	base, c, _ := serve(t, upstream.Handle(echo), gateway.Settings{Options: gateway.Options{NoAutoInitialize: true}, AnnounceDelay: -1})
	s := open(t, c, base+"/sse", nil)
	s.must(t, request("1", "tools/list"), request("2", "tools/list"))
	seen := map[string]bool{}
	for range 2 {
		b := s.next(t)
		if b.Name != "message" {
			t.Errorf("got %+v, want events named message alone", b)
		}
		seen[b.Data] = true
	}
	if !seen[`{"jsonrpc":"2.0","id":1,"result":{}}`] || !seen[`{"jsonrpc":"2.0","id":2,"result":{}}`] {
		t.Errorf("got %v", seen)
	}
}

// The endpoint is correct wherever the gateway is mounted.
func TestMounted(t *testing.T) {
	router := func(h http.Handler) http.Handler {
		r := mux.NewRouter()
		r.PathPrefix("/tools/").Handler(http.StripPrefix("/tools", h))
		return r
	}
	strip := func(h http.Handler) http.Handler { return http.StripPrefix("/api/v1", h) }
	for name, tt := range map[string]struct {
		opts  gateway.Options
		mount []func(http.Handler) http.Handler
		at    string
	}{
		"at the root":      {gateway.Options{}, nil, ""},
		"prefix":           {gateway.Options{Prefix: "/mcp"}, nil, "/mcp"},
		"http.StripPrefix": {gateway.Options{}, []func(http.Handler) http.Handler{strip}, "/api/v1"},
		"both":             {gateway.Options{Prefix: "/mcp"}, []func(http.Handler) http.Handler{strip}, "/api/v1/mcp"},
		"gorilla/mux":      {gateway.Options{}, []func(http.Handler) http.Handler{router}, "/tools"},
	} {
		t.Run(name, func(t *testing.T) {
			base, c, _ := serve(t, upstream.Handle(echo), tt.opts, tt.mount...)
			s := open(t, c, base+tt.at+"/sse", nil)
			if !strings.HasPrefix(s.post, base+tt.at+"/sse/") {
				t.Errorf("endpoint %s, want it under %s", s.post, tt.at)
			}
			if b, err := s.call(request("1", "tools/list"), "1"); err != nil || b.Data != `{"jsonrpc":"2.0","id":1,"result":{}}` {
				t.Errorf("got %s (%v)", b.Data, err)
			}
		})
	}
}
