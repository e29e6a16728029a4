package streamable

import (
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/mcp-sse/mcp-sse/connstate"
	"github.com/mcp-sse/mcp-sse/jsonrpc"
)

type nobody struct{}

func (nobody) Accept(*connstate.Connection) connstate.Handler { return nobody{} }
func (nobody) Receive(*jsonrpc.Message)                       {}
func (nobody) Refused(*connstate.Request, error)              {}
func (nobody) Closed()                                        {}

// A GET that has found its session just before that ended finds no stream.
func TestGETOfASessionThatEnds(t *testing.T) {
	registry := connstate.NewRegistry(connstate.Limits{}, connstate.Options{})
	h := New(nobody{}, registry, Options{})
	q := &request{w: httptest.NewRecorder(), r: httptest.NewRequest("POST", "/mcp", strings.NewReader(""))}
	s := h.open(q, nil)
	s.leave()
	found := h.enter(s.c)
	s.c.Close(connstate.ClosedIdle)
	if refusal := found.resume(&response{h: h, s: found}, nil); refusal == nil || refusal.Status != 404 {
		t.Errorf("got %+v", refusal)
	}
	found.leave()
	if h.enter(s.c) != nil || registry.Len() != 0 {
		t.Error("the session is still there")
	}
}
