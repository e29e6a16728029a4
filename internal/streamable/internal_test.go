package streamable

import (
	"fmt"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/mcp-sse/mcp-sse/connstate"
	"github.com/mcp-sse/mcp-sse/internal/ssetest"
	"github.com/mcp-sse/mcp-sse/jsonrpc"
)

// kept returns the events that a store has after one.
func kept(m *store, s *streamSession, stream, number int64) string {
	var got []string
	for _, e := range m.after(s, eventID{stream: stream, number: number}) {
		got = append(got, e.String())
	}
	return strings.Join(got, " ")
}

// One session has its share, all together have the whole, and the oldest events go first.
func TestStoreIsBounded(t *testing.T) {
	const limit = 64 << 20
	const size = limit/8/4 - eventCost
	held := 0
	m := store{limit: limit, count: func(n int) { held += n }}
	sessions := make([]streamSession, 10)
	for i := range sessions {
		for n := range int64(6) {
			m.addEvent(&sessions[i], event{eventID: eventID{stream: 1, number: n + 1}, data: make([]byte, size)})
		}
	}
	ssetest.Want(t, "events of the newest session", kept(&m, &sessions[9], 1, 0), "1-3 1-4 1-5 1-6")
	if got := fmt.Sprint(kept(&m, &sessions[0], 1, 0), kept(&m, &sessions[1], 1, 0)); got != "" || m.bytes > limit || held != m.bytes {
		t.Errorf("the oldest sessions have %q, all together %d bytes", got, m.bytes)
	}
	m.addEvent(&sessions[9], event{eventID: eventID{stream: 1, number: 7}, data: make([]byte, limit/4)})
	ssetest.Want(t, "events beside a large one", kept(&m, &sessions[9], 1, 0), "1-7")
}

type nobody struct{}

func (nobody) Accept(*connstate.Connection) connstate.Handler { return nobody{} }
func (nobody) Receive(*jsonrpc.Message)                       {}
func (nobody) Refused(*connstate.Request, error)              {}
func (nobody) Drained()                                       {}
func (nobody) Closed()                                        {}
func (nobody) OnMemory() bool                                 { return false }

// A GET that has found its session just before that ended finds no stream.
func TestGETOfASessionThatEnds(t *testing.T) {
	registry := connstate.NewRegistry(connstate.Limits{}, connstate.Options{})
	h := New(nobody{}, registry, Options{})
	q := &request{w: httptest.NewRecorder(), r: httptest.NewRequest("POST", "/mcp", strings.NewReader(""))}
	s, _ := h.open(q, nil, openedByInitialize)
	s.releaseRequest()
	found := h.enter(s.c.Connection)
	s.c.Close(connstate.ClosedIdle)
	if refusal := found.resume(&response{h: h, s: found}, nil); refusal == nil || refusal.Status != 404 {
		t.Errorf("got %+v", refusal)
	}
	found.releaseRequest()
	if h.enter(s.c.Connection) != nil || registry.Len() != 0 {
		t.Error("the session is still there")
	}
}

// A stream moves as its table says.
func TestStatesOfAStream(t *testing.T) {
	h := New(nobody{}, connstate.NewRegistry(connstate.Limits{}, connstate.Options{}), Options{})
	q := &request{w: httptest.NewRecorder(), r: httptest.NewRequest("POST", "/mcp", strings.NewReader(""))}
	s, _ := h.open(q, nil, openedByInitialize)
	defer s.releaseRequest()
	for _, tc := range []struct{ from, begin, end streamState }{
		{undecided, eventsOpen, jsonEnded},
		{jsonAlone, jsonAlone, jsonEnded},
		{jsonEnded, jsonEnded, jsonEnded},
		{eventsOpen, eventsOpen, eventsEnded},
		{eventsEnded, eventsEnded, eventsEnded},
	} {
		begun := &stream{session: s, number: 1, state: tc.from}
		begun.beginEvents()
		ended := &stream{session: s, number: 2, state: tc.from}
		ended.markEnd()
		if begun.state != tc.begin || ended.state != tc.end {
			t.Errorf("%d: begin leads to %d, want %d; end leads to %d, want %d",
				tc.from, begun.state, tc.begin, ended.state, tc.end)
		}
	}
	s.c.Close(connstate.ClosedIdle)
}

// Version, headers and body tell which POSTs are of clients without sessions (MCP 2026-07-28, versioning).
func TestSpeaksModern(t *testing.T) {
	const (
		plain = `{"jsonrpc":"2.0","id":1,"method":"tools/list","params":{}}`
		meta  = `{"jsonrpc":"2.0","id":1,"method":"tools/list","params":{"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28"}}}`
		told  = `{"jsonrpc":"2.0","method":"n","params":{"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28"}}}`
	)
	for _, tc := range []struct {
		version, body string
		want          bool
	}{
		{"", plain, false},
		{"2025-11-25", plain, false},
		{"2026-07-28", plain, true},
		{"2027-01-01", plain, true},
		{"later", plain, false},
		{"", meta, true},
		{"2025-11-25", meta, true},
		{"", told, true},
		{"", "[" + meta + "," + meta + "]", false},
		{"2026-07-28", "[" + plain + "]", true},
	} {
		p := &post{request: &request{version: tc.version}}
		if refusal := p.parse([]byte(tc.body)); refusal != nil || p.speaksModern() != tc.want {
			t.Errorf("%+v: got %v, %v", tc, !tc.want, refusal)
		}
	}
}
