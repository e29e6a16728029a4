package multiplex

import (
	"errors"
	"fmt"
	"time"

	"github.com/mcp-sse/mcp-sse/internal/mcp"
	"github.com/mcp-sse/mcp-sse/jsonrpc"
)

// ErrHung reports a server that was silent for HangTimeout while it had requests to
// answer, and then did not answer two pings.
var ErrHung = errors.New("the server hangs")

const (
	// pingTimeout bounds the wait for the answer to a ping while the server has nothing
	// else to answer.
	pingTimeout = 5 * time.Second
	// maxMissed is how many pings in a row a hanging server misses.
	maxMissed = 2
)

// suspicion is what a session knows of a server that may hang. Guarded by
// Session.mu.
//
// A silent server may just be working. So the session suspects it only when a request
// times out, then pings it beside its requests, and trusts it again at its first
// message. A server need not answer a request that its client has cancelled, and one
// that waits for a client has to be silent: neither is evidence.
type suspicion struct {
	// lastMessage is when the server last sent a message. Time in which it owes no
	// answer is not silence: unexpect stores the length of the silence in silent, and
	// expect moves lastMessage on.
	lastMessage time.Duration
	silent      time.Duration
	owed        int // requests that the server has and that were not cancelled
	calls       int // requests of the server that wait for a client
	on          bool
	missed      int
	ping        *pending // nil: none under way
}

// expect notes that the server owes one more answer, and unexpect that it owes one
// less.
func (h *suspicion) expect(now time.Duration) {
	if h.owed == 0 {
		h.lastMessage = now - h.silent
	}
	h.owed++
}

func (h *suspicion) unexpect(now time.Duration) {
	h.owed--
	if h.owed == 0 {
		h.silent = now - h.lastMessage
	}
}

// callEnded notes that a request of the server waits for a client no longer. The
// silence begins anew.
func (h *suspicion) callEnded(now time.Duration) {
	h.calls--
	h.lastMessage, h.silent = now, 0
}

// noteMessage notes that the server has sent a message. It reports whether the
// server was suspected until now; the caller must then call trust.
func (t *table) noteMessage() bool {
	h := &t.hang
	h.lastMessage, h.silent = t.deadlines.Now(), 0
	if !h.on {
		return false
	}
	h.on, h.missed = false, 0
	return true
}

// trust reports the end of a suspicion.
func (s *Session) trust() {
	s.log.Info("server is alive")
}

// suspect suspects a server that did not answer a request in time and has been
// silent for HangTimeout. It reports whether that is new.
func (t *table) suspect() bool {
	h := &t.hang
	if t.opts.HangTimeout <= 0 || h.on || h.calls > 0 || t.deadlines.Now()-h.lastMessage < t.opts.HangTimeout {
		return false
	}
	h.on = true
	return true
}

// pingDue reports whether the server is suspected and no ping is under way.
func (t *table) pingDue() bool { return t.hang.on && t.hang.ping == nil }

// nextPing adds a ping to the table and returns it, if one is due; else nil.
func (t *table) nextPing() *pending {
	if !t.pingDue() {
		return nil
	}
	m, err := jsonrpc.Parse(jsonrpc.NewRequest("0", mcp.MethodPing, nil))
	if err != nil { // it is valid
		return nil
	}
	t.hang.ping = &pending{method: mcp.MethodPing, request: m}
	t.add(t.hang.ping, pingTimeout)
	return t.hang.ping
}

// prolongPing gives the ping more time if the server may be at work instead, and
// reports whether it did. A server that works on one request at a time answers the
// ping after the requests that it had before; by the end of the prolonged time it has
// answered those, or they have timed out.
func (t *table) prolongPing(p *pending) bool {
	limit := pingTimeout
	switch others := t.out - 1; {
	case t.blocked > 0:
		limit = t.opts.MaxRequestTimeout
	case others > 0:
		limit = max(limit, t.opts.RequestTimeout)
	}
	now := t.deadlines.Now()
	if !t.hang.on || now-p.started >= limit {
		return false
	}
	t.deadlines.Put(&p.timed, p, p.started+limit)
	return true
}

// noteMissedPing counts a ping without an answer, and reports whether the server
// hangs.
func (t *table) noteMissedPing() bool {
	if !t.hang.on {
		return false
	}
	t.hang.missed++
	return t.hang.missed >= maxMissed
}

// closeHung ends a session whose server hangs.
func (s *Session) closeHung() {
	s.log.Warn("server hangs")
	s.Close(fmt.Errorf("%w: no answer to anything for %s, nor to %d pings", ErrHung, s.opts.HangTimeout, maxMissed))
}
