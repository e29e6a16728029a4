package connstate

import "time"

// Attach gives the connection the stream that writes its events. take gets one event
// at a time and reports whether the stream had room for it; it must not block. Only
// the stream calls Attach, Written, SawFirstByte, SawWrite and SawHeartbeat.
func (c ForTransport) Attach(take func(Event) bool) { c.outbox.attach(take) }

// DeliverTo gives the connection's events to deliver, in place of a stream that takes them
// from the outbox: deliver keeps those that cannot be written at once, within bounds of its
// own, and must not block. When the process holds as many bytes as it may, a client is closed
// if more waits for it than the outbox would hold. The transport calls DeliverTo once, before
// Bind.
func (c ForTransport) DeliverTo(deliver func(Event)) {
	c.outbox.deliver = func(e Event) {
		if c.queued.Load() > int64(c.opts.OutboxBytes) && c.opts.Budget.Full() {
			c.Close(ClosedSlow)
			return
		}
		deliver(e)
	}
}

// Push queues an event of the transport's own if there is room for it now. It fails
// with ErrSlow if there is none, without closing the connection, and with ErrClosed
// if the connection is closed.
func (c ForTransport) Push(e Event) error {
	_, err := c.push(e)
	return err
}

// OnClose sets the function that Close calls to end the stream. If the connection is
// closed already, OnClose calls it. The stream calls OnClose once.
func (c ForTransport) OnClose(stop func()) {
	c.mu.Lock()
	closed := c.known.State == Closed
	c.stop = stop
	c.mu.Unlock()
	if closed {
		stop()
	}
}

// OnDrain sets the function that Drain calls, for a transport that has to end something
// of its own then. The transport calls OnDrain once, before Bind.
func (c ForTransport) OnDrain(f func()) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.drained = f
}

// Written notes that a taken event of that size has been written, which makes room
// in the outbox, and offers the stream the next events.
func (c ForTransport) Written(size int) { c.outbox.noteWritten(size) }

// Unwritten returns the bytes that wait to be written.
func (c ForTransport) Unwritten() int { return c.outbox.unwritten() }

// SawFirstByte notes that the stream's first bytes have been written.
func (c ForTransport) SawFirstByte() {
	now := time.Now().UnixNano()
	c.firstByte.Store(now)
	c.lastOut.Store(now)
}

// SawWrite notes that something has been written just now.
func (c ForTransport) SawWrite() { c.lastOut.Store(time.Now().UnixNano()) }

// SawLeave notes that the client no longer waits for the answer to its initialize, although the
// connection stays.
func (c ForTransport) SawLeave() { c.left.Store(time.Now().UnixNano()) }

// LeftAfter returns how long the client had waited when SawLeave was called; 0 if it was not.
func (c ForHandler) LeftAfter() time.Duration {
	if left := c.left.Load(); left != 0 {
		return time.Unix(0, left).Sub(c.known.Opened)
	}
	return 0
}

// SawHeartbeat counts a heartbeat.
func (c ForTransport) SawHeartbeat() {
	c.heartbeats.Add(1)
	c.opts.Metrics.Heartbeat()
}

// Silence returns how long nothing has been written to the client.
func (c ForTransport) Silence() time.Duration { return since(c.lastOut.Load(), c.known.Opened) }

// Idle returns how long the client has neither sent anything nor waited for an
// answer.
func (c ForTransport) Idle() time.Duration {
	if c.InFlight() > 0 {
		return 0
	}
	return since(max(c.lastIn.Load(), c.lastDone.Load()), c.known.Opened)
}

func since(nanos int64, fallback time.Time) time.Duration {
	if nanos == 0 {
		return time.Since(fallback)
	}
	return time.Since(time.Unix(0, nanos))
}
