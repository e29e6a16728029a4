package gosdk

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/modelcontextprotocol/go-sdk/auth"
	sdk "github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/mcp-sse/mcp-sse/internal/budget"
	"github.com/mcp-sse/mcp-sse/internal/caller"
	vocabulary "github.com/mcp-sse/mcp-sse/internal/mcp"
	"github.com/mcp-sse/mcp-sse/jsonrpc"
)

const (
	// maxBytes bounds the messages of one session that the server has not read, and its
	// unanswered requests. Responses and cancellations may use as much again: they end
	// other work.
	maxBytes = 8 << 20
	// maxWorking bounds the unanswered requests of one session: each has a goroutine.
	maxWorking = 16384
	// closeTimeout is how long Close waits for the handlers.
	closeTimeout = 2 * time.Second
)

// gatewaySide is the gateway's side of one session with a server; serverSide is
// the other. Until its end it has no goroutine: go-sdk's reader takes the messages out of
// the inbox, and the goroutines of the handlers deliver what they send.
type gatewaySide struct {
	id    string
	extra mcp.RequestExtra // of requests that bring none of their own
	ended chan struct{}    // closed when go-sdk has ended the session and its handlers

	mu        sync.Mutex // guards all below; not held while calling go-sdk or the gateway
	changed   sync.Cond  // the inbox has a message, or one of the fields below was set
	inbox     []item
	working   map[int64]int // the sizes of the unanswered requests
	bytes     int           // of inbox and working
	connected *mcp.ServerSession
	receive   func(msg []byte, err error) // set by Push
	err       error                       // why the session is over; nil before
	patience  time.Time                   // when Close gives up, once err is set
	closed    bool                        // Close was called
	reported  bool                        // receive has got the final error
}

var _ jsonrpc.Local = (*gatewaySide)(nil)

// item is a message for the server.
type item struct {
	msg    sdk.Message
	number int64 // of a request, else 0
	size   int   // in bytes
	urgent bool  // a response or a cancellation
}

// update changes fields that mu guards.
func (s *gatewaySide) update(change func()) {
	s.mu.Lock()
	defer s.mu.Unlock()
	change()
	s.changed.Broadcast()
}

// Push sets the function that gets what the server sends. The server waits for it with
// what it sends before.
func (s *gatewaySide) Push(receive func(msg []byte, err error)) {
	s.update(func() { s.receive = receive })
}

// Recv fails: the session delivers by Push.
func (s *gatewaySide) Recv() ([]byte, error) { return nil, errors.New("recv: the session pushes") }

// SendRequest gives the server a request.
func (s *gatewaySide) SendRequest(m *jsonrpc.Message, number int64) error {
	id, err := sdk.MakeID(float64(number)) // exact: numbers have at most 15 digits
	if err != nil {
		return fmt.Errorf("send: %w", err)
	}
	request := &sdk.Request{ID: id, Method: m.Method, Params: m.RenumberedParams(jsonrpc.NumberID(number))}
	if extra := s.extraOf(m.Context); extra != nil {
		request.Extra = extra
	}
	return s.enqueue(item{msg: request, number: number, size: len(m.Raw())})
}

// Send gives the server a notification, or the client's response to its request. It refuses requests: what wraps the
// session must be a jsonrpc.Local, too.
func (s *gatewaySide) Send(msg []byte) error {
	m, err := jsonrpc.Parse(msg)
	if err != nil {
		return fmt.Errorf("send: %w", err)
	}
	switch m.Kind {
	case jsonrpc.Request:
		return errors.New("send: a session of package gosdk takes requests by SendRequest")
	case jsonrpc.Response:
		response, err := responseOf(m)
		if err != nil {
			return fmt.Errorf("send: %w", err)
		}
		return s.enqueue(item{msg: response, size: len(msg), urgent: true})
	}
	request := &sdk.Request{Method: m.Method, Params: m.Params()}
	if extra := s.extraOf(m.Context); extra != nil {
		request.Extra = extra
	}
	return s.enqueue(item{msg: request, size: len(msg), urgent: m.Method == vocabulary.MethodCancelled})
}

// responseOf returns a client's response as go-sdk has it.
func responseOf(m *jsonrpc.Message) (*sdk.Response, error) {
	var raw any
	if err := json.Unmarshal([]byte(m.ID), &raw); err != nil {
		return nil, err
	}
	id, err := sdk.MakeID(raw)
	if err != nil {
		return nil, err
	}
	r := &sdk.Response{ID: id, Result: m.Result()}
	if fault := m.Error(); fault != nil {
		e := &sdk.Error{}
		if json.Unmarshal(fault, e) != nil {
			e = &sdk.Error{Code: sdk.CodeInternalError, Message: "the client answered with an error of a wrong form",
				Data: fault}
		}
		r.Error = e
	}
	return r, nil
}

// extraOf returns what the context of an HTTP request has for a handler; nil for nothing.
// A part that it lacks is the session's.
func (s *gatewaySide) extraOf(values context.Context) *mcp.RequestExtra {
	extra := s.extra
	if values != nil {
		if p, ok := caller.FromContext(values); ok && p.Header != nil {
			extra.Header = p.Header
		}
		extra.TokenInfo = cmp.Or(auth.TokenInfoFromContext(values), extra.TokenInfo)
	}
	if extra.Header == nil && extra.TokenInfo == nil {
		return nil
	}
	return &extra
}

// enqueue puts a message into the inbox.
func (s *gatewaySide) enqueue(it item) error {
	it.size += budget.ItemCost
	limit := maxBytes
	if it.urgent {
		limit *= 2
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case s.err != nil:
		return s.err
	case s.bytes > 0 && s.bytes+it.size > limit, it.number != 0 && len(s.working) >= maxWorking:
		return jsonrpc.ErrBusy
	}
	s.inbox = append(s.inbox, it)
	s.bytes += it.size
	if it.number != 0 {
		s.working[it.number] = it.size
	}
	s.changed.Broadcast()
	return nil
}

// nextLocked removes and returns the first message of the inbox, which must have one. A request
// counts until it is answered.
func (s *gatewaySide) nextLocked() sdk.Message {
	it := s.inbox[0]
	s.inbox[0] = item{}
	s.inbox = s.inbox[1:]
	if len(s.inbox) == 0 {
		s.inbox = nil
	}
	if it.number == 0 {
		s.bytes -= it.size
	}
	return it.msg
}

// answered notes that the gateway has taken the response to a request.
func (s *gatewaySide) answered(number int64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.bytes -= s.working[number]
	delete(s.working, number)
}

// end begins the end of the session, unless it has begun.
func (s *gatewaySide) end(why error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.err != nil {
		return
	}
	s.err, s.patience = why, time.Now().Add(closeTimeout)
	s.changed.Broadcast()
	go s.finish() // ends when the handlers have returned
}

// finish waits for the end of the session in go-sdk, and reports it. A session that the
// server has closed has no handlers by then.
func (s *gatewaySide) finish() {
	s.mu.Lock()
	for s.connected == nil {
		s.changed.Wait()
	}
	s.mu.Unlock()
	_ = s.connected.Close() // it ends the keep-alive pings, and never fails: the error is that of serverSide.Close
	close(s.ended)
	s.mu.Lock()
	for s.receive == nil && !s.closed {
		s.changed.Wait()
	}
	s.mu.Unlock()
	s.report()
}

// report passes the end on once, to the receiver if there is one.
func (s *gatewaySide) report() {
	s.mu.Lock()
	receive, err, due := s.receive, s.err, !s.reported && s.receive != nil
	s.reported = s.reported || due
	s.mu.Unlock()
	if due {
		receive(nil, err)
	}
}

// Close ends the session; see [Server].
func (s *gatewaySide) Close() error {
	s.update(func() { s.closed = true })
	s.end(jsonrpc.ErrClosed)
	s.report()
	select {
	case <-s.ended:
		return nil
	case <-time.After(time.Until(s.patience)):
	}
	select {
	case <-s.ended: // both were true
		return nil
	default:
		return fmt.Errorf("close: a handler of the server did not return within %s", closeTimeout)
	}
}
