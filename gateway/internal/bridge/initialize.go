package bridge

import (
	"bytes"
	"encoding/json"
	"time"

	"github.com/mcp-sse/mcp-sse/connstate"
	"github.com/mcp-sse/mcp-sse/handshake"
	"github.com/mcp-sse/mcp-sse/jsonrpc"
)

// maxParams bounds the initialize params of a client that a bridge keeps for later
// sessions, in bytes. A client with larger params gets the stored result.
const maxParams = 64 << 10

// waitingInitialize is an initialize request of the client that waits for a session.
type waitingInitialize struct {
	*connstate.Request
	version string    // that it requests
	due     time.Time // when it gets an error
}

// initialize handles a client's own initialize request. If no initialize has gone to
// the server yet, this one does. Otherwise the stored result of the session answers
// it, unless the client declares more than the session's handshake did and has not
// used the session: then it gets a new session.
func (b *Bridge) initialize(r *connstate.Request) {
	m := r.Message
	b.mu.Lock()
	c := b.current.Load()
	draining := b.ended || b.c.State() == connstate.Draining
	switch {
	case c != nil && (draining || b.used.Load() || b.settled.Load() || !b.exceeds(m, c.session.Params())):
		b.mu.Unlock()
		r.Answer(c.session.Result().Answer(r.ID, handshake.RequestedVersion(m.Params())), "")
		return
	case draining:
		b.mu.Unlock()
		b.refuse(r, connstate.ErrDraining)
		return
	case c != nil:
		_ = b.c.Move(connstate.Initializing) // from ready, or it is
		b.current.Store(nil)
	case !b.retryAt.IsZero():
		b.reviveLocked()
	}
	b.inbox = append(b.inbox, r)
	b.mu.Unlock()
	b.wakeRun()
}

// exceeds reports whether a client declares more than the params of a handshake. Shared
// sessions use the params of no client.
func (b *Bridge) exceeds(m *jsonrpc.Message, params json.RawMessage) bool {
	return !b.shares() && len(m.Params()) <= maxParams && handshake.Exceeds(m.Params(), params)
}

// wakeRun makes run look at the inbox, at current and at chosen.
func (b *Bridge) wakeRun() {
	select {
	case b.wake <- struct{}{}:
	default: // it is to look already
	}
}

// gaveUp reports whether the connection has given up.
func (b *Bridge) gaveUp() bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	return !b.retryAt.IsZero()
}

// revive starts another attempt on a connection that has given up, if the time for a
// retry has come. It reports whether a request may wait for a session.
func (b *Bridge) revive() bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	switch {
	case b.retryAt.IsZero():
		return !b.ended
	case time.Now().Before(b.retryAt):
		return false
	}
	b.reviveLocked()
	return true
}

// reviveLocked makes the gate hold messages again, and run make another attempt.
func (b *Bridge) reviveLocked() {
	b.retryAt = time.Time{}
	_ = b.c.Move(connstate.Initializing) // if it drains, run ends
	b.wakeRun()
}

// readInbox takes the requests out of the inbox, and makes their params those of later
// sessions. sent says that the initialize of the current attempt has gone out; more
// reports that a request declares more than that. came reports whether there were any.
func (r *run) readInbox(sent bool) (came, more bool) {
	r.mu.Lock()
	inbox := r.inbox
	r.inbox = nil
	r.mu.Unlock()
	for _, request := range inbox {
		m := request.Message
		request.Message = nil // its version is all that its answer needs
		r.waiting = append(r.waiting, waitingInitialize{request, handshake.RequestedVersion(m.Params()), time.Now().Add(r.opts.InitializeTimeout)})
		switch {
		case !sent:
			r.adopt(m)
		case !r.settled.Load() && r.exceeds(m, r.params):
			r.adopt(m)
			more = true
		}
	}
	if len(inbox) > 0 && len(inbox) == len(r.waiting) {
		r.expiry.Reset(r.opts.InitializeTimeout)
	}
	return len(inbox) > 0, more
}

// adopt makes the client's params those of later sessions.
func (r *run) adopt(m *jsonrpc.Message) {
	r.chosen.Store(true)
	if !r.shares() && len(m.Params()) > 0 && len(m.Params()) <= maxParams {
		r.own, r.params, r.author = true, ownParams(m), m.ID
		r.settled.Store(true)
	}
}

// expire answers the initialize requests that have waited too long with an error.
func (r *run) expire() {
	for len(r.waiting) > 0 {
		w := r.waiting[0]
		if left := time.Until(w.due); left > 0 {
			r.expiry.Reset(left)
			return
		}
		r.waiting = r.waiting[1:]
		r.refuse(w.Request, r.failure.Load())
	}
}

// takeWaiting removes and returns the waiting initialize requests.
func (r *run) takeWaiting() []waitingInitialize {
	waiting := r.waiting
	r.waiting = nil
	r.expiry.Stop()
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
