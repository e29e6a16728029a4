package gateway_test

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"regexp"
	"strings"
	"testing"

	"github.com/mcp-sse/mcp-sse/gateway"
	"github.com/mcp-sse/mcp-sse/internal/ssetest"
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

var connectionID = regexp.MustCompile(`^[\w-]+\.[A-Z2-7]{26}\.[\w-]{22}$`)

// The bytes on the wire until a client is served.
func TestWireOfAReadyConnection(t *testing.T) {
	base, c, _ := serve(t, upstream.Handle(echo), gateway.Options{})
	s := open(t, c, base+"/sse", nil)
	id := s.Header.Get("X-Connection-ID")
	if !connectionID.MatchString(id) || s.Post != base+"/sse/"+id+"/message" {
		t.Errorf("connection id %q, endpoint %s", id, s.Post)
	}
	for name, want := range map[string]string{
		"Content-Type": "text/event-stream", "Cache-Control": "no-cache, no-transform", "X-Accel-Buffering": "no",
	} {
		if got := s.Header.Get(name); got != want {
			t.Errorf("%s: %q, want %q", name, got, want)
		}
	}
	want := []ssetest.Event{
		{Name: "connection", ID: "2", Retry: "1000", Data: `{"jsonrpc":"2.0","method":"notifications/connection","params":{"connectionId":"` + id + `","state":"initializing","heartbeatSeconds":15}}`},
		{Name: "mcp-response", ID: "3", Data: `{"jsonrpc":"2.0","id":"auto-initialize-` + id + `","result":` + serverResult + `}`},
	}
	for _, w := range want {
		w.Lines = 1
		if got, err := s.Next(); got != w {
			t.Errorf("got %+v, %v\nwant %+v", got, err, w)
		}
	}
	if err := s.Send(`{"jsonrpc":"2.0","id":9007199254740993,"method":"tools/list","params":{"n":1.50,"s":"\u00e9"}}`); err != nil {
		t.Fatal(err)
	}
	const data = `{"jsonrpc":"2.0","id":9007199254740993,"result":{"n":1.50,"s":"\u00e9"}}`
	for i, name := range []string{"message", "mcp-response"} {
		w := ssetest.Event{Name: name, ID: fmt.Sprint(4 + i), Data: data, Lines: 1}
		if got, err := s.Next(); got != w {
			t.Errorf("got %+v, %v, want %+v", got, err, w)
		}
	}
}

func TestWireOfAPlainTransport(t *testing.T) {
	base, c, _ := serve(t, upstream.Handle(echo), gateway.Settings{Options: gateway.Options{NoAutoInitialize: true}, AnnounceDelay: -1})
	s := open(t, c, base+"/sse", nil)
	for _, id := range []string{"1", "2"} {
		if b, err := s.Call(request(id, "tools/list"), id); err != nil || b.Name != "message" || b.Data != `{"jsonrpc":"2.0","id":`+id+`,"result":{}}` {
			t.Errorf("got %+v, %v, want the answer as an event named message", b, err)
		}
	}
}

// The endpoint is correct wherever the gateway is mounted.
func TestMounted(t *testing.T) {
	strip := func(h http.Handler) http.Handler { return http.StripPrefix("/api/v1", h) }
	for name, tt := range map[string]struct {
		opts  gateway.Options
		mount []func(http.Handler) http.Handler
		at    string
	}{
		"at the root": {gateway.Options{}, nil, ""},
		"prefix":      {gateway.Options{Prefix: "/mcp"}, nil, "/mcp"},
		"both":        {gateway.Options{Prefix: "/mcp"}, []func(http.Handler) http.Handler{strip}, "/api/v1/mcp"},
	} {
		t.Run(name, func(t *testing.T) {
			base, c, _ := serve(t, upstream.Handle(echo), tt.opts, tt.mount...)
			s := open(t, c, base+tt.at+"/sse", nil)
			if !strings.HasPrefix(s.Post, base+tt.at+"/sse/") {
				t.Errorf("endpoint %s, want it under %s", s.Post, tt.at)
			}
			if b, err := s.Call(request("1", "tools/list"), "1"); err != nil || b.Data != `{"jsonrpc":"2.0","id":1,"result":{}}` {
				t.Errorf("got %s (%v)", b.Data, err)
			}
		})
	}
}
