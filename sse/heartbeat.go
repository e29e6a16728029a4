package sse

import (
	"math/rand/v2"
	"time"

	"github.com/mcp-sse/mcp-sse/connstate"
	"github.com/mcp-sse/mcp-sse/internal/httpcheck"
)

// heartbeatComment is the text of the comment line.
const heartbeatComment = "heartbeat"

var heartbeatData = []byte(`{"jsonrpc":"2.0","method":"notifications/heartbeat"}`)

// keepAlive sends heartbeats on a connection, and closes it when it is idle, until stop is
// called.
func (h *Handler) keepAlive(c connstate.ForTransport) (stop func()) {
	every, timeout := max(0, h.opts.HeartbeatInterval), h.opts.ConnectionTimeout
	beats := httpcheck.Repeat(jittered(every), func() time.Duration { return beat(c, jittered(every)) })
	idle := httpcheck.Repeat(timeout, func() time.Duration { return checkIdle(c, timeout) })
	return func() {
		beats()
		idle()
	}
}

// beat sends a heartbeat if the stream has been silent for as long as every, and returns
// when the next one is due. While events wait to be written the stream is not silent: the
// write deadline watches over them.
func beat(c connstate.ForTransport, every time.Duration) time.Duration {
	if silence := c.Silence(); silence < every-time.Millisecond {
		return every - silence
	}
	if c.Unwritten() == 0 {
		event := connstate.Event{Name: heartbeatComment}
		if c.Dialect() == connstate.EventResponse {
			event = connstate.Event{Name: connstate.EventHeartbeat, Data: heartbeatData}
		}
		if c.Push(event) == nil {
			c.SawHeartbeat()
		}
	}
	return every
}

// checkIdle closes a connection that has been idle for as long as timeout. It returns when
// to look again.
func checkIdle(c connstate.ForTransport, timeout time.Duration) time.Duration {
	left := timeout - c.Idle()
	switch {
	case left > 0:
		return left
	case c.Unwritten() > 0: // the client reads: the write deadline watches over it
		return min(timeout, time.Second)
	}
	c.Close(connstate.ClosedIdle)
	return 0
}

// jittered shortens an interval by up to a tenth, so that connections that
// opened together do not beat together, and none is silent for longer.
func jittered(d time.Duration) time.Duration {
	return d - time.Duration(rand.Int64N(int64(d)/10+1))
}
