package gateway

import (
	"bytes"
	"encoding/json"
	"errors"
	"slices"
	"time"

	"github.com/mcp-sse/mcp-sse/connstate"
	"github.com/mcp-sse/mcp-sse/handshake"
	"github.com/mcp-sse/mcp-sse/jsonrpc"
)

// errSuperseded is the reason of a session that the client's own initialize has
// replaced.
var errSuperseded = errors.New("the client has opened a session with capabilities of its own")

// maxParams bounds the initialize params of a client that are kept for the
// sessions to come, in bytes; with larger ones a client gets the stored result.
const maxParams = 64 << 10

// waitingInitialize is an initialize request of the client that waits for a session.
type waitingInitialize struct {
	m   *jsonrpc.Message // reduced
	due time.Time        // when the client is told that it takes too long
}

// initialize takes a client's own initialize request. As long as no initialize
// has gone to the server, the client's params do. Once there is a session, the
// request is answered from the stored result, unless the client declares more
// than the session's handshake did and has not used it: then it gets a fresh one.
func (s *start) initialize(m *jsonrpc.Message) {
	s.mu.Lock()
	a := s.current.Load()
	exceeds := s.exceedsLocked(m)
	fresh := a != nil && exceeds && !s.own && !s.refused && !s.b.used.Load()
	switch {
	case a != nil && !fresh:
		s.mu.Unlock()
		s.b.c.AnswerNow(m.ID, a.Result().Answer(m), "")
		return
	case s.state == over, s.b.c.State() == connstate.Draining:
		s.mu.Unlock()
		s.b.Refused(m, connstate.ErrDraining)
		return
	}
	s.waitLocked(m)
	switch {
	case fresh:
		s.adoptLocked(m)
		s.attempts = 0
		s.current.Store(nil)
	case s.state != initializing:
		s.adoptLocked(m)
	case exceeds && !s.own && !s.refused: // the server has been told less: it is asked anew
		s.adoptLocked(m)
		s.attempts, s.again = 1, true
		if s.cancel != nil { // else it is over, and about to be taken or counted
			s.cancel()
		}
	}
	s.wakeLocked()
	s.mu.Unlock()
	if fresh {
		a.leave(errSuperseded)
	}
}

// exceedsLocked reports whether a client declares more than the handshake does
// that goes out next, or went out last.
func (s *start) exceedsLocked(m *jsonrpc.Message) bool {
	return !s.b.g.supplier.Shares() && len(m.Params()) <= maxParams && handshake.Exceeds(m.Params(), s.params)
}

// isOwn reports whether the handshake is the client's own.
func (s *start) isOwn() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.own
}

// adoptLocked has the client's params be those of the sessions to come. Those of
// a shared session are nobody's.
func (s *start) adoptLocked(m *jsonrpc.Message) {
	s.chosen.Store(true)
	if !s.b.g.supplier.Shares() && len(m.Params()) > 0 && len(m.Params()) <= maxParams {
		s.own, s.params, s.author = true, ownParams(m), m.ID
	}
}

// waitLocked has a client's initialize wait for a session, for a bounded time.
func (s *start) waitLocked(m *jsonrpc.Message) {
	limit := s.b.g.opts.InitializeTimeout
	s.waiting = append(s.waiting, waitingInitialize{reduced(m), time.Now().Add(limit)})
	if s.patience == nil {
		s.patience = time.AfterFunc(limit, s.expire)
	}
}

// expire answers the initialize requests that have waited too long.
func (s *start) expire() {
	s.mu.Lock()
	var late []waitingInitialize
	now := time.Now()
	for len(s.waiting) > 0 && !s.waiting[0].due.After(now) {
		late = append(late, s.waiting[0])
		s.waiting = s.waiting[1:]
	}
	if len(s.waiting) > 0 {
		s.patience.Reset(s.waiting[0].due.Sub(now))
	} else {
		s.patience = nil
	}
	s.mu.Unlock()
	if len(late) == 0 {
		return
	}
	why := s.whyLate(s.b.g.opts.InitializeTimeout)
	for _, o := range late {
		s.b.Refused(o.m, why)
	}
}

// takeWaitingLocked returns the initialize requests that wait; they wait no more.
func (s *start) takeWaitingLocked() []waitingInitialize {
	waiting := s.waiting
	s.waiting = nil
	if s.patience != nil {
		s.patience.Stop()
		s.patience = nil
	}
	return waiting
}

// takeRefusedLocked returns the initialize request whose params went out, if it
// still waits.
func (s *start) takeRefusedLocked() []waitingInitialize {
	for i, w := range s.waiting {
		if w.m.ID == s.author {
			s.waiting = slices.Delete(s.waiting, i, i+1)
			return []waitingInitialize{w}
		}
	}
	return nil
}

// ownParams are a client's initialize params for a request of the gateway's own.
// A progress token in them would be taken for one of another request.
func ownParams(m *jsonrpc.Message) json.RawMessage {
	params := bytes.Clone(m.Params())
	meta, _ := jsonrpc.Member(params, "_meta")
	if _, ok := jsonrpc.Member(meta, "progressToken"); !ok {
		return params
	}
	return jsonrpc.ReplaceMember(params, jsonrpc.RemoveMember(meta, "progressToken"), "_meta")
}

// reduced is an initialize request without what its answer does not depend on:
// many may wait.
func reduced(m *jsonrpc.Message) *jsonrpc.Message {
	version, ok := jsonrpc.Member(m.Params(), "protocolVersion")
	if !ok || len(version) > 64 {
		version = json.RawMessage(`""`)
	}
	params := append(append([]byte(`{"protocolVersion":`), version...), '}')
	r, err := jsonrpc.Parse(jsonrpc.NewRequest(m.ID, m.Method, params))
	if err != nil {
		return m
	}
	return r
}
