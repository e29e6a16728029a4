package sse

import (
	"math/rand/v2"
	"sync"
	"time"

	"github.com/mcp-sse/mcp-sse/connstate"
)

// heartbeatComment is the text of the comment line.
const heartbeatComment = "heartbeat"

var heartbeatData = []byte(`{"jsonrpc":"2.0","method":"notifications/heartbeat"}`)

// keeper sends heartbeats on a connection and closes it when it is idle. It has
// timers and no goroutine.
type keeper struct {
	c         *connstate.Connection
	heartbeat time.Duration
	timeout   time.Duration

	mu      sync.Mutex // guards what follows
	beats   *time.Timer
	idle    *time.Timer
	stopped bool
}

// keepAlive starts the timers of a connection and returns what stops them.
func (h *Handler) keepAlive(c *connstate.Connection) (stop func()) {
	k := &keeper{c: c, heartbeat: h.opts.HeartbeatInterval, timeout: h.opts.ConnectionTimeout}
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.heartbeat > 0 {
		k.beats = time.AfterFunc(jittered(k.heartbeat), k.beat)
	}
	if k.timeout > 0 {
		k.idle = time.AfterFunc(k.timeout, k.checkIdle)
	}
	return k.stop
}

func (k *keeper) stop() {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.stopped = true
	for _, t := range []*time.Timer{k.beats, k.idle} {
		if t != nil {
			t.Stop()
		}
	}
}

// beat sends a heartbeat if the stream has been silent. While events wait to be
// written it is not silent: the write deadline watches over them.
func (k *keeper) beat() {
	next := jittered(k.heartbeat)
	if silence := k.c.Silence(); silence < next-time.Millisecond {
		k.again(&k.beats, next-silence)
		return
	}
	if k.c.Unwritten() == 0 {
		event := connstate.Event{Name: heartbeatComment}
		if k.c.Dialect() == connstate.EventResponse {
			event = connstate.Event{Name: connstate.EventHeartbeat, Data: heartbeatData}
		}
		if k.c.Push(event) == nil {
			k.c.SawHeartbeat()
		}
	}
	k.again(&k.beats, next)
}

func (k *keeper) checkIdle() {
	left := k.timeout - k.c.Idle()
	switch {
	case left <= 0 && k.c.Unwritten() == 0:
		k.c.Close(connstate.ClosedIdle)
		return
	case left <= 0: // the client reads: the write deadline watches over it
		left = min(k.timeout, time.Second)
	}
	k.again(&k.idle, left)
}

func (k *keeper) again(t **time.Timer, d time.Duration) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if !k.stopped {
		(*t).Reset(d)
	}
}

// jittered shortens an interval by up to a tenth, so that connections that
// opened together do not beat together, and none is silent for longer.
func jittered(d time.Duration) time.Duration {
	return d - time.Duration(rand.Int64N(int64(d)/10+1))
}
