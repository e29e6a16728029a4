package mcpgo

import (
	"encoding/json"

	"github.com/mark3labs/mcp-go/mcp"

	"github.com/mcp-sse/mcp-sse/internal/budget"
	"github.com/mcp-sse/mcp-sse/jsonrpc"
	"github.com/mcp-sse/mcp-sse/metrics"
)

// maxNotifications is how many notifications may wait for the client. mcp-go drops more,
// and reports that to the sender. Its own sessions have the same number.
const maxNotifications = 100

// marker is the method of a notification that takes the place of an outgoing message
// among the notifications.
const marker = "\x00outgoing"

// outgoing is the answer to a call, or a message of the server's own.
type outgoing struct {
	call          *call // nil: msg is the message
	result, fault json.RawMessage
	msg           []byte
}

// size is what o counts for while it waits, in bytes.
func (o outgoing) size() int { return len(o.result) + len(o.fault) + len(o.msg) + budget.ItemCost }

// NotificationChannel returns the channel for notifications to the client.
func (s *session) NotificationChannel() chan<- mcp.JSONRPCNotification {
	s.lock.Lock()
	defer s.lock.Unlock()
	if s.notifications == nil {
		s.notifications = make(chan mcp.JSONRPCNotification, maxNotifications)
		s.forwardLocked()
	}
	return s.notifications
}

// forwardLocked starts the goroutine that reads notifications, once there are a channel
// and a receiver.
func (s *session) forwardLocked() {
	if s.notifications != nil && s.receive != nil && !s.forwarding && !s.closed {
		s.forwarding = true
		go s.forward() // ends with the session
	}
}

// forward passes notifications and outgoing messages on, in order.
func (s *session) forward() {
	for {
		select {
		case n := <-s.notifications:
			s.pass(n)
		case <-s.done:
			return
		}
	}
}

func (s *session) pass(n mcp.JSONRPCNotification) {
	if n.Method == marker {
		s.passOutgoing()
		return
	}
	msg, err := encode(n)
	if err != nil {
		s.log.Warn("notification has no JSON form", "method", n.Method, "err", err)
		return
	}
	s.receive(msg, nil)
}

func (s *session) passOutgoing() {
	s.lock.Lock()
	if len(s.outgoing) == 0 { // the session has ended
		s.lock.Unlock()
		return
	}
	o := s.outgoing[0]
	s.outgoing[0] = outgoing{}
	if s.outgoing = s.outgoing[1:]; len(s.outgoing) == 0 {
		s.outgoing = nil
	}
	s.leaveLocked(o.size()) // the gateway counts it from now on
	s.lock.Unlock()
	s.deliver(o)
}

// enqueueLocked adds o to those that wait for the client. An answer over budget.Free that
// finds others before it and the budget used up is dropped for an error.
func (s *session) enqueueLocked(o outgoing) {
	switch {
	case o.call == nil || o.size() <= budget.Free || s.waiting == 0:
		s.held.Force(o.size())
	case !s.held.TakeAny(o.size(), metrics.HeldReply):
		o.result, o.fault = nil, noRoom()
		s.held.Force(o.size())
	}
	s.waiting += o.size()
	s.outgoing = append(s.outgoing, o)
}

// leaveLocked gives back n bytes of what waited for the client.
func (s *session) leaveLocked(n int) {
	s.waiting -= n
	s.held.Give(n)
}

// noRoom is the error in place of an answer that was dropped.
func noRoom() json.RawMessage {
	b, _ := json.Marshal(jsonrpc.ReasonError("the server's answer was dropped: "+budget.ErrUsedUp.Error(), "server_busy", false)) // it has a JSON form
	return b
}

// push passes o on after all notifications that were sent before. It may wait for the
// client: admit takes no calls while too much waits. It fails if the session has ended, or
// has no receiver yet.
func (s *session) push(o outgoing) error {
	s.lock.Lock()
	if s.closed || s.receive == nil {
		s.lock.Unlock()
		return jsonrpc.ErrClosed
	}
	notifications := s.notifications
	if notifications != nil {
		s.enqueueLocked(o)
	}
	s.lock.Unlock()
	if notifications == nil {
		s.deliver(o)
		return nil
	}
	// The markers are alike: each lets the oldest message pass, which was added before.
	select {
	case notifications <- mcp.JSONRPCNotification{Notification: mcp.Notification{Method: marker}}:
	case <-s.done:
	}
	return nil
}

func (s *session) deliver(o outgoing) {
	if o.call == nil {
		s.receive(o.msg, nil)
		return
	}
	s.results(o.call.number, o.result, o.fault)
	s.remove(o.call)
}
