package gosdk

import (
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
	vocabulary "github.com/mcp-sse/mcp-sse/internal/mcp"
	"github.com/mcp-sse/mcp-sse/jsonrpc"
	"github.com/mcp-sse/mcp-sse/peer"
)

// closeTimeout is how long Close waits for the handlers.
const closeTimeout = 2 * time.Second

// session is one session with a server. It is the gateway's side of it; serverSide is
// the other. It has no goroutine of its own until its end: go-sdk's reader takes the
// messages out of the inbox, and the goroutines of the handlers deliver what they send.
type session struct {
	id    string
	held  *budget.Account
	extra *mcp.RequestExtra // of requests that bring none of their own; nil: there is none
	ended chan struct{}     // closed when go-sdk has ended the session and its handlers

	mu        sync.Mutex // guards all below; not held while calling go-sdk or the gateway
	changed   sync.Cond  // the inbox has a message, or one of the fields below was set
	inbox     inbox
	connected *mcp.ServerSession // set by Dial
	result    func(number int64, result, fault json.RawMessage)
	receive   func(msg []byte, err error) bool // set by Push
	err       error                            // why the session is over; nil before
	patience  time.Time                        // when Close gives up, once err is set
	closed    bool                             // Close was called
	told      bool                             // receive has got the final error
}

var (
	_ jsonrpc.ResultPusher  = (*session)(nil)
	_ jsonrpc.RequestSender = (*session)(nil)
)

// bind completes the session with what Server.Connect returned.
func (s *session) bind(connected *mcp.ServerSession) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.connected = connected
	s.changed.Broadcast()
}

// PushResults sets the function that gets the responses.
func (s *session) PushResults(receive func(number int64, result, fault json.RawMessage)) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.result = receive
}

// Push sets the function that gets all else. The server waits for it with what it sends
// before.
func (s *session) Push(receive func(msg []byte, err error) bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.receive = receive
	s.changed.Broadcast()
}

// Recv fails: the session delivers by Push.
func (s *session) Recv() ([]byte, error) { return nil, errors.New("recv: the session pushes") }

// SendRequest gives the server a request.
func (s *session) SendRequest(m *jsonrpc.Message, number int64, token jsonrpc.Place) error {
	id, err := sdk.MakeID(float64(number)) // exact: numbers have at most 15 digits
	if err != nil {
		return fmt.Errorf("send: %w", err)
	}
	request := &sdk.Request{ID: id, Method: m.Method, Params: m.ParamsWithNumber(number, token)}
	if extra := s.extraOf(m.Context); extra != nil {
		request.Extra = extra
	}
	return s.enqueue(item{msg: request, number: number, size: len(m.Raw())})
}

// Send gives the server a notification, or the client's response to its request. It
// takes a request too, whose number is its id.
func (s *session) Send(msg []byte) error {
	m, err := jsonrpc.Parse(msg)
	if err != nil {
		return fmt.Errorf("send: %w", err)
	}
	it := item{size: len(msg)}
	switch m.Kind {
	case jsonrpc.Request:
		number, ok := jsonrpc.Integer([]byte(m.ID))
		if !ok {
			return fmt.Errorf("send: the id %.64s is no number of a session", m.ID)
		}
		return s.SendRequest(m, number, jsonrpc.Place{})
	case jsonrpc.Response:
		it.msg, err = responseOf(m)
	default:
		request := &sdk.Request{Method: m.Method, Params: m.Params()}
		if s.extra != nil {
			request.Extra = s.extra
		}
		it.msg, it.lingers = request, true
		if it.cancels = m.Method == vocabulary.MethodCancelled; it.cancels {
			it.request = cancelled(m)
		}
	}
	if err != nil {
		return fmt.Errorf("send: %w", err)
	}
	return s.enqueue(it)
}

// cancelled returns the number that a cancellation names, or 0.
func cancelled(m *jsonrpc.Message) int64 {
	at, ok := m.Param("requestId")
	if !ok {
		return 0
	}
	number, _ := jsonrpc.Integer(m.At(at))
	return number
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
			e = &sdk.Error{Code: sdk.CodeInternalError, Message: "the client answered with an error of a wrong form", Data: fault}
		}
		r.Error = e
	}
	return r, nil
}

// extraOf returns what the context of an HTTP request has for a handler. Of a request
// without a context, or with nothing of its own, it is that of the session.
func (s *session) extraOf(values context.Context) *mcp.RequestExtra {
	if values == nil {
		return s.extra
	}
	var extra mcp.RequestExtra
	if p, ok := peer.FromContext(values); ok {
		extra.Header = p.Header
	}
	extra.TokenInfo = auth.TokenInfoFromContext(values)
	if s.extra != nil {
		if extra.Header == nil {
			extra.Header = s.extra.Header
		}
		if extra.TokenInfo == nil {
			extra.TokenInfo = s.extra.TokenInfo
		}
	}
	if extra.Header == nil && extra.TokenInfo == nil {
		return s.extra
	}
	return &extra
}

// enqueue puts a message into the inbox.
func (s *session) enqueue(it item) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.err != nil {
		return s.err
	}
	err := s.inbox.put(it, s.held)
	s.changed.Broadcast() // also after an error: put may have asked
	return err
}

// end begins the end of the session, unless it has begun.
func (s *session) end(why error) {
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
func (s *session) finish() {
	s.mu.Lock()
	for s.connected == nil {
		s.changed.Wait()
	}
	s.mu.Unlock()
	_ = s.connected.Close() // it ends the keep-alive pings, and never fails: the error is that of serverSide.Close
	s.mu.Lock()
	s.inbox.release(s.held)
	s.mu.Unlock()
	close(s.ended)
	s.mu.Lock()
	for s.receive == nil && !s.closed {
		s.changed.Wait()
	}
	s.mu.Unlock()
	s.tell()
}

// tell reports the end once, to the receiver if there is one.
func (s *session) tell() {
	s.mu.Lock()
	receive, err, due := s.receive, s.err, !s.told && s.receive != nil
	s.told = s.told || due
	s.mu.Unlock()
	if due {
		receive(nil, err)
	}
}

// Close ends the session; see [Server].
func (s *session) Close() error {
	s.mu.Lock()
	s.closed = true
	s.changed.Broadcast()
	s.mu.Unlock()
	s.end(jsonrpc.ErrClosed)
	s.tell()
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
