package connstate

import (
	"time"

	"github.com/mcp-sse/mcp-sse/jsonrpc"
)

// The event names of an HTTP+SSE stream. EventMessage is the standard's (MCP
// 2024-11-05, transports); EventResponse is what clients written against
// auto-initializing servers listen to.
const (
	EventEndpoint   = "endpoint"
	EventConnection = "connection"
	EventMessage    = "message"
	EventResponse   = "mcp-response"
	EventHeartbeat  = "heartbeat"
)

// Dialect is the event name under which a client expects responses; "" while
// that is undecided, and responses go out under both.
type Dialect string

// Dialect returns the connection's dialect.
func (c *Connection) Dialect() Dialect {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.dialect
}

// Observe learns from a client's message, before anything else is done with it:
// the first message decides the dialect when it is an opening, and whether the
// announcement is still wanted. version is the MCP-Protocol-Version that came
// with it, or "": only a client that has initialized earlier sends one.
func (c *Connection) Observe(m *jsonrpc.Message, version string) {
	now := time.Now().UnixNano()
	c.lastIn.Store(now)
	c.messagesIn.Add(1)
	c.bytesIn.Add(int64(len(m.Raw())))
	c.opts.Metrics.MessageIn(len(m.Raw()))
	if c.spoken.Load() && (version == "" || c.versioned.Load()) {
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.versionLocked(version)
	if c.spoken.Swap(true) {
		return
	}
	if !isOpening(m) {
		c.announceLocked(announceNow)
		return
	}
	c.announceLocked(announceNever)
	if c.dialect == "" {
		c.dialect = EventMessage
	}
}

// SawVersion notes the MCP-Protocol-Version that came with the stream's GET.
func (c *Connection) SawVersion(version string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.versionLocked(version)
}

func (c *Connection) versionLocked(version string) {
	if version == "" || c.protocolVersion != "" {
		return
	}
	c.protocolVersion = version
	c.versioned.Store(true)
	if c.dialect == "" {
		c.dialect = EventMessage
	}
}

// isOpening reports whether a standard client begins with such a message.
func isOpening(m *jsonrpc.Message) bool {
	return m.Kind == jsonrpc.Request && (m.Method == "initialize" || m.Method == "server/discover")
}

// announcement is the synthetic handshake's response, held back until the
// client can take it. Guarded by Connection.mu.
type announcement struct {
	mode  announceMode
	held  [][]byte
	timer *time.Timer
}

type announceMode uint8

const (
	announceHold  announceMode = iota // until the delay is over
	announceNow                       // at once
	announceNever                     // the client opened by itself, or cannot take it
)

// StartAnnounceDelay begins the least time between the endpoint event and the
// announcement. The stream calls it when the endpoint has been written.
func (c *Connection) StartAnnounceDelay() {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.announcement.mode != announceHold || c.state == Closed {
		return
	}
	if c.opts.AnnounceDelay <= 0 {
		c.announceLocked(announceNow)
		return
	}
	c.announcement.timer = time.AfterFunc(c.opts.AnnounceDelay, func() {
		c.mu.Lock()
		defer c.mu.Unlock()
		c.announceLocked(announceNow)
	})
}

// Announce sends the response of the synthetic handshake as an mcp-response
// event: now, when the announce delay is over, or never, when the client opened
// by itself or the events are withheld. It does not wait: ErrSlow says that the
// outbox had no room for it. The connection goes on.
func (c *Connection) Announce(response []byte) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	switch c.announcement.mode {
	case announceNever:
		return nil
	case announceHold:
		c.announcement.held = append(c.announcement.held, response)
		return nil
	}
	return c.pushAnnouncementLocked(response)
}

func (c *Connection) announceLocked(mode announceMode) {
	a := &c.announcement
	if a.mode != announceHold {
		return
	}
	a.mode = mode
	held := a.held
	a.held = nil
	if a.timer != nil {
		a.timer.Stop()
		a.timer = nil
	}
	if mode == announceNow {
		for _, response := range held {
			_ = c.pushAnnouncementLocked(response) // without room the client learns it from its first request
		}
	}
}

// pushAnnouncementLocked does not wait: what is sent this early finds room.
func (c *Connection) pushAnnouncementLocked(response []byte) error {
	err := c.outbox.push(Event{Name: EventResponse, Data: response})
	if err == nil {
		c.countOut(len(response))
	}
	return err
}
