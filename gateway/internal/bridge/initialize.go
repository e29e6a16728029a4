package bridge

import (
	"bytes"
	"encoding/json"
	"errors"
	"time"

	"github.com/mcp-sse/mcp-sse/connstate"
	"github.com/mcp-sse/mcp-sse/handshake"
	"github.com/mcp-sse/mcp-sse/jsonrpc"
)

// errSuperseded is the close reason of a session that the client's own initialize
// replaces.
var errSuperseded = errors.New("the client has opened a session with capabilities of its own")

// maxParams bounds the initialize params of a client that a bridge keeps for later
// sessions, in bytes. A client with larger params gets the stored result.
const maxParams = 64 << 10

// waitingInitialize is an initialize request of the client that waits for a session.
type waitingInitialize struct {
	r   *connstate.Request // its Message is from reduced
	due time.Time          // when it gets an error
}

// initialize handles a client's own initialize request. If no initialize has gone to
// the server yet, this one does. Otherwise the stored result of the session answers
// it, unless the client declares more than the session's handshake did and has not
// used the session: then it gets a new session.
func (s *start) initialize(r *connstate.Request) {
	m := r.Message
	s.mu.Lock()
	a := s.current.Load()
	exceeds := s.exceedsLocked(m)
	fresh := a != nil && exceeds && !s.own && !s.refused && !s.b.used.Load()
	switch {
	case a != nil && !fresh:
		s.mu.Unlock()
		r.Answer(a.Result().Answer(m), "")
		return
	case s.state == over, s.b.c.State() == connstate.Draining:
		s.mu.Unlock()
		s.b.Refused(r, connstate.ErrDraining)
		return
	}
	s.queueLocked(r)
	switch {
	case fresh:
		s.adoptLocked(m)
		s.attempts = 0
		s.current.Store(nil)
	case s.state != initializing:
		s.adoptLocked(m)
	case exceeds && !s.own && !s.refused: // the handshake that runs declares less: start over
		s.adoptLocked(m)
		s.attempts, s.superseded = 1, true
		if s.cancel != nil { // nil: the attempt has just ended; run handles its result
			s.cancel()
		}
	}
	s.startNowLocked()
	s.mu.Unlock()
	if fresh {
		a.leave(errSuperseded)
	}
}

// exceedsLocked reports whether a client declares more than the params of the current
// or next initialize.
func (s *start) exceedsLocked(m *jsonrpc.Message) bool {
	return !s.b.shares() && len(m.Params()) <= maxParams && handshake.Exceeds(m.Params(), s.params)
}

// isOwn reports whether the handshake has the client's own params.
func (s *start) isOwn() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.own
}

// adoptLocked makes the client's params those of later sessions. Shared sessions use
// the params of no client.
func (s *start) adoptLocked(m *jsonrpc.Message) {
	s.chosen.Store(true)
	if !s.b.shares() && len(m.Params()) > 0 && len(m.Params()) <= maxParams {
		s.own, s.params, s.author = true, ownParams(m), m.ID
	}
}

// queueLocked adds an initialize to those that wait for a session, and starts their
// timer.
func (s *start) queueLocked(r *connstate.Request) {
	r.Message = reduced(r.Message)
	limit := s.b.opts.InitializeTimeout
	s.waiting = append(s.waiting, waitingInitialize{r, time.Now().Add(limit)})
	if s.expiry == nil {
		s.expiry = time.AfterFunc(limit, s.expire)
	}
}

// expire answers the initialize requests that have waited too long with an error.
func (s *start) expire() {
	s.mu.Lock()
	var late []waitingInitialize
	now := time.Now()
	for len(s.waiting) > 0 && !s.waiting[0].due.After(now) {
		late = append(late, s.waiting[0])
		s.waiting = s.waiting[1:]
	}
	if len(s.waiting) > 0 {
		s.expiry.Reset(s.waiting[0].due.Sub(now))
	} else {
		s.expiry = nil
	}
	s.mu.Unlock()
	if len(late) == 0 {
		return
	}
	why := s.lateFailure(s.b.opts.InitializeTimeout)
	for _, o := range late {
		s.b.Refused(o.r, why)
	}
}

// takeWaitingLocked removes and returns the waiting initialize requests.
func (s *start) takeWaitingLocked() []waitingInitialize {
	waiting := s.waiting
	s.waiting = nil
	if s.expiry != nil {
		s.expiry.Stop()
		s.expiry = nil
	}
	return waiting
}

// ownParams returns a copy of a client's initialize params without its progress
// token, for a request of the gateway: the token could match that of another request.
func ownParams(m *jsonrpc.Message) json.RawMessage {
	params := bytes.Clone(m.Params())
	meta, _ := jsonrpc.Member(params, "_meta")
	if _, ok := jsonrpc.Member(meta, "progressToken"); !ok {
		return params
	}
	return jsonrpc.ReplaceMember(params, jsonrpc.RemoveMember(meta, "progressToken"), "_meta")
}

// reduced returns an initialize request with the protocol version alone, on which its
// answer depends. It saves memory while many requests wait.
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
