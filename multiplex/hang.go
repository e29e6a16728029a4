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
	// pingTimeout bounds the wait for the answer to a ping.
	pingTimeout = 5 * time.Second
	// maxMissed is how many pings in a row a hanging server misses.
	maxMissed = 2
)

// suspicion is what a session knows of a server that may hang. Guarded by
// Session.mu.
//
// A silent server may just be working. So the session suspects it only when it gives
// up a request, pings it only when it has no requests left, and trusts it again at
// its first message.
type suspicion struct {
	// lastMessage is when the server last sent a message. Idle time is not silence:
	// pause stores the length of the silence in silent, and resume moves lastMessage
	// on.
	lastMessage time.Duration
	silent      time.Duration
	on          bool
	missed      int
	ping        *pending // nil: none under way
}

// resume continues the silence of a server that gets a request to answer, and pause
// stops it when the server has none left.
func (h *suspicion) resume(now time.Duration) { h.lastMessage = now - h.silent }
func (h *suspicion) pause(now time.Duration)  { h.silent = now - h.lastMessage }

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

// trust reports the end of a suspicion, and sends the requests that waited for it.
func (s *Session) trust() {
	s.opts.Metrics.HangCleared()
	s.opts.Logger.Info("server is alive")
	s.sendNext()
}

// suspect suspects a server that did not answer a request in time and has been
// silent for HangTimeout. It reports whether that is new.
func (t *table) suspect() bool {
	h := &t.hang
	if t.opts.HangTimeout <= 0 || h.on || t.deadlines.Now()-h.lastMessage < t.opts.HangTimeout {
		return false
	}
	h.on = true
	return true
}

// holdsBack reports whether requests wait because the server may hang: when it has
// none left, it can be pinged. They do not wait while it has a request that may
// block: that would take too long.
func (t *table) holdsBack() bool { return t.hang.on && t.blocked == 0 }

// nextPing adds a ping to the table and returns it, if the server is suspected and a
// ping is due; else nil.
func (t *table) nextPing() *pending {
	if !t.hang.on || t.hang.ping != nil || t.out > 0 {
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
	s.opts.Metrics.Hung()
	s.opts.Logger.Warn("server hangs")
	s.Close(fmt.Errorf("%w: no answer to anything for %s, nor to %d pings", ErrHung, s.opts.HangTimeout, maxMissed))
}
