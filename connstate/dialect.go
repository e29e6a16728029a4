package connstate

import (
	"cmp"
	"time"

	"github.com/mcp-sse/mcp-sse/internal/mcp"
	"github.com/mcp-sse/mcp-sse/jsonrpc"
)

// The event names of an HTTP+SSE stream. EventMessage is the standard's (MCP
// 2024-11-05, transports); clients written against auto-initializing servers listen
// for EventResponse.
const (
	EventConnection = "connection"
	EventMessage    = "message"
	EventResponse   = "mcp-response"
	EventHeartbeat  = "heartbeat"
)

// Dialect is the event name under which a client expects responses; "" while
// that is undecided, and responses go out under both.
type Dialect string

// Dialect returns the connection's dialect.
func (c ForTransport) Dialect() Dialect { return c.dialect() }

func (c *Connection) dialect() Dialect {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.known.Dialect
}

// Observe learns from a client's message, before anything else is done with it. The
// client's first message decides the dialect, if it is an opening, and whether the
// announcement is still wanted. version is the MCP-Protocol-Version that came with
// the message, or "": only a client that has initialized earlier sends one.
func (c ForTransport) Observe(m *jsonrpc.Message, version string) {
	now := time.Now().UnixNano()
	c.lastIn.Store(now)
	c.messagesIn.Add(1)
	c.bytesIn.Add(int64(len(m.Raw())))
	c.opts.Metrics.MessageIn(len(m.Raw()))
	if c.spoken.Load() && (version == "" || c.versioned.Load()) {
		return
	}
	// As standard clients begin.
	opens := m.Kind == jsonrpc.Request && (m.Method == mcp.MethodInitialize || m.Method == mcp.MethodDiscover)
	c.mu.Lock()
	c.setVersionLocked(version)
	first := !c.spoken.Swap(true)
	if first && opens {
		c.endAnnouncementLocked()
		c.known.Dialect = cmp.Or(c.known.Dialect, EventMessage)
	}
	c.mu.Unlock()
	if first && !opens {
		c.announceNow()
	}
}

// SawVersion notes the MCP-Protocol-Version that came with the stream's GET.
func (c ForTransport) SawVersion(version string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.setVersionLocked(version)
}

// setVersionLocked notes the protocol version of the session, once: the first one stays. A client whose version
// is known reads events called message.
func (c *Connection) setVersionLocked(version string) {
	if version == "" || c.known.ProtocolVersion != "" {
		return
	}
	c.known.ProtocolVersion = version
	c.versioned.Store(true)
	c.known.Dialect = cmp.Or(c.known.Dialect, EventMessage)
}

// announcement is the synthetic handshake's response, held back until the client can
// take it. Guarded by Connection.mu.
type announcement struct {
	mode  announceMode
	held  [][]byte
	timer *time.Timer
	// failed is called for an announcement that cannot be delivered; nil: there has
	// been none.
	failed func(error)
	// mark is the mark in the outbox of the last announcement; 0: none.
	mark int
}

// announceMode says when the announcement is sent.
type announceMode uint8

const (
	announceLater announceMode = iota // until the delay is over
	announceNow                       // at once
	announceNever                     // the client opened by itself, or the announcement is withheld
)

// StartAnnounceDelay begins the least time between the endpoint event and the
// announcement. The stream calls it once the endpoint event is written.
func (c ForTransport) StartAnnounceDelay() {
	if c.opts.AnnounceDelay <= 0 {
		c.announceNow()
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.announcement.mode == announceLater && c.known.State != Closed {
		c.announcement.timer = time.AfterFunc(c.opts.AnnounceDelay, c.announceNow)
	}
}

// Announce sends the response of the synthetic handshake as an mcp-response event,
// now or when the announce delay is over. It sends nothing if the client opened by
// itself or the announcement is withheld. It does not wait. If the outbox has no
// room for the event, the connection goes on. If the event cannot be delivered, the
// connection calls failed, at most once for each Announce and without a lock held:
// with ErrSlow or, when it is closed because the client does not read, with the
// reason.
func (c ForHandler) Announce(response []byte, failed func(error)) {
	c.mu.Lock()
	if a := &c.announcement; a.mode != announceNever {
		a.held, a.failed = append(a.held, response), failed
	}
	report := c.sendAnnouncementsLocked()
	c.mu.Unlock()
	report()
}

// announceNow ends the delay, and sends the announcements that it held back.
func (c *Connection) announceNow() {
	c.mu.Lock()
	if c.announcement.mode == announceLater {
		c.announcement.mode = announceNow
	}
	report := c.sendAnnouncementsLocked()
	c.mu.Unlock()
	report()
}

// sendAnnouncementsLocked puts the announcements that are due into the outbox. It does not
// wait: this early, there is room. The returned function reports those that find none.
func (c *Connection) sendAnnouncementsLocked() (report func()) {
	a, lost := &c.announcement, 0
	for ; a.mode == announceNow && len(a.held) > 0; a.held = a.held[1:] {
		switch mark, err := c.push(Event{Name: EventResponse, Data: a.held[0]}); err {
		case nil:
			a.mark = mark
		case ErrSlow:
			lost++
		}
	}
	failed := a.failed
	return func() {
		for range lost {
			failed(ErrSlow)
		}
	}
}

// endAnnouncementLocked drops the announcements that are held back, and ends the
// delay.
func (c *Connection) endAnnouncementLocked() {
	a := &c.announcement
	a.held = nil
	if a.mode == announceLater {
		a.mode = announceNever
	}
	if a.timer != nil {
		a.timer.Stop()
	}
}

// undeliveredLocked returns the function to call because an announcement has not
// reached a client that does not read; nil: none. The outbox must not be closed yet.
func (c *Connection) undeliveredLocked(reason Reason) func(error) {
	if reason != ClosedSlow && reason != ClosedWriteTimeout {
		return nil // the client has left; a reset of its connection counts as that
	}
	a := &c.announcement
	if len(a.held) == 0 && (a.mark == 0 || c.outbox.hasWritten(a.mark)) {
		return nil
	}
	return a.failed
}
