package multiplex

import (
	"errors"
	"fmt"
	"time"

	"github.com/mcp-sse/mcp-sse/internal/mcp"
	"github.com/mcp-sse/mcp-sse/jsonrpc"
)

// ErrHung is the reason of a session whose server was silent for HangTimeout
// while it had requests to answer, and then did not answer two pings.
var ErrHung = errors.New("the server hangs")

const (
	// pingTimeout is how long a ping may take.
	pingTimeout = 5 * time.Second
	// maxMissed is how many pings in a row must be missed.
	maxMissed = 2
)

// suspicion is what a session knows of a server that may hang. Guarded by
// Session.mu.
//
// A silent server may just be at work. So the session suspects it only when it has
// to give a request up, pings it only when it has no requests left, and trusts it
// again at its first message.
type suspicion struct {
	// heard is when the server last sent a message. Idle time is not silence: pause
	// keeps in silent how long the silence was, and resume moves heard on.
	heard  time.Duration
	silent time.Duration
	on     bool
	missed int
	ping   *pending // nil: none under way
}

// resume starts to count the silence of a server that gets a request to answer,
// and pause stops when it has none left.
func (h *suspicion) resume(now time.Duration) { h.heard = now - h.silent }
func (h *suspicion) pause(now time.Duration)  { h.silent = now - h.heard }

// heard notes that the server has sent a message. It reports whether the server
// was suspected until now; the caller then calls trust.
func (t *table) heard() bool {
	h := &t.hang
	h.heard, h.silent = t.deadlines.Now(), 0
	if !h.on {
		return false
	}
	h.on, h.missed = false, 0
	return true
}

// trust sends what has waited while the server was suspected.
func (s *Session) trust() {
	s.opts.Metrics.HangCleared()
	s.opts.Logger.Info("server is alive")
	s.sendNext()
}

// suspect suspects a server that did not answer a request in time if it has been
// silent for long, and reports whether it begins to.
func (t *table) suspect() bool {
	h := &t.hang
	if t.opts.HangTimeout <= 0 || h.on || t.deadlines.Now()-h.heard < t.opts.HangTimeout {
		return false
	}
	h.on = true
	return true
}

// holdsBack reports whether requests wait until the server has shown that it lives:
// then it comes to have none left, and can be pinged. While it has a request that
// may block, that would take too long.
func (t *table) holdsBack() bool { return t.hang.on && t.blocked == 0 }

// nextPing adds the ping to a server that is suspected, when it is time for one,
// and returns it; else nil.
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

// missPing notes a ping without an answer, and reports whether the server hangs.
func (t *table) missPing() bool {
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
