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
	s := h.open(httptest.NewRecorder(), httptest.NewRequest("POST", "/mcp", strings.NewReader("")), "", "", nil)
	s.leave()
	found := h.find(s.c.ID(), "")
	s.c.Close(connstate.ClosedIdle)
	if refusal := found.resume(&response{h: h, s: found}, nil); refusal == nil || refusal.Status != 404 {
		t.Errorf("got %+v", refusal)
	}
	found.leave()
	if h.find(s.c.ID(), "") != nil || registry.Len() != 0 {
		t.Error("the session is still there")
	}
}
