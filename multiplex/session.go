package multiplex

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"sync"
	"time"

	"github.com/mcp-sse/mcp-sse/jsonrpc"
	"github.com/mcp-sse/mcp-sse/metrics"
)

// Options configure a Session. The zero value gives the defaults.
type Options struct {
	// RequestTimeout bounds each request of a client, from when it was
	// forwarded or last made progress. Default 60 s.
	RequestTimeout time.Duration
	// MaxRequestTimeout bounds each request whatever progress it makes. Default
	// 10 min; never less than RequestTimeout.
	MaxRequestTimeout time.Duration
	// MaxInFlight bounds the requests that the server works on at a time; more
	// wait in order, within their timeout. 0: unlimited.
	MaxInFlight int
	// MaxWaiting bounds those that wait. Default 1024.
	MaxWaiting int
	// HangTimeout is the silence of a server that has requests to answer after
	// which it is suspected to hang. 0: never.
	HangTimeout time.Duration
	// Shared says that the ports are different clients: what cannot be attributed
	// to one of them reaches none.
	Shared bool
	// Repeatable knows which tools may be called again. Sessions with the same
	// server share one. nil: the session has its own.
	Repeatable *Repeatable
	// SlowRequest is the duration from which a request is logged as slow.
	// 0: never.
	SlowRequest time.Duration
	// OnClose is called once when the session is over, with the reason, before
	// its requests are answered: who reads such an answer and asks again finds
	// that already known.
	OnClose func(err error)
	// Logger receives the logs; nil: silent.
	Logger *slog.Logger
	// Metrics counts; nil: nothing is counted.
	Metrics *metrics.Metrics
}

// Session is one session with an MCP server. It is safe for concurrent use.
type Session struct {
	conn jsonrpc.Conn
	opts Options
	done chan struct{} // closed when the session has ended

	mu       sync.Mutex // guards what follows; not held while sending
	nextID   int64
	pending  map[int64]*pending
	waiting  []*pending // requests beyond MaxInFlight, in order
	inFlight int        // client requests that the server has
	// abandoned are the requests that were given up and the server may still
	// answer. 0 stands for those beyond maxAbandoned; no answer takes it out.
	abandoned map[int64]struct{}
	ports     []*Port
	calls     serverCalls
	err       error // why the session is over; nil while it is not
}

// pending is a request that the server has not answered.
type pending struct {
	id      int64
	method  string
	started time.Time
	// port and client, the id that the client gave it, are set for a client's
	// request, reply for our own.
	port   *Port
	client jsonrpc.ID
	reply  chan *jsonrpc.Message
	timer  *time.Timer
	// request waits for its turn; nil once it is sent: it may be large.
	request *jsonrpc.Message
	// canceled: the client has taken the request back.
	canceled bool
	// sent: the server has it.
	sent bool
}

// New starts a session over conn, which it then owns.
func New(conn jsonrpc.Conn, opts Options) *Session {
	if opts.RequestTimeout <= 0 {
		opts.RequestTimeout = 60 * time.Second
	}
	if opts.Logger == nil {
		opts.Logger = slog.New(slog.DiscardHandler)
	}
	s := &Session{conn: conn, opts: opts, done: make(chan struct{}), pending: make(map[int64]*pending)}
	if p, ok := conn.(jsonrpc.Pusher); ok {
		p.Push(s.take)
	} else {
		go s.read() // ends when the Conn does, at the latest by Close
	}
	return s
}

// Done is closed when the session is over and all its requests are answered.
func (s *Session) Done() <-chan struct{} { return s.done }

// Close ends the session. Its requests are answered with an error that names
// the reason.
func (s *Session) Close(reason error) {
	s.mu.Lock()
	if s.err == nil {
		s.err = reason
	}
	s.mu.Unlock()
	_ = s.conn.Close() // how the peer ended does not matter to those who wait
}

// read is the reader loop.
func (s *Session) read() {
	for s.take(s.conn.Recv()) {
	}
}

// take takes what the Conn gives, and reports whether there may be more.
func (s *Session) take(data []byte, err error) bool {
	switch {
	case err == nil:
		s.receive(data)
		return true
	case errors.Is(err, jsonrpc.ErrTooLong):
		if err = s.tooLong(); err == nil {
			return true
		}
	}
	s.end(err)
	close(s.done)
	return false
}

// end tells the owner and answers all that waits.
func (s *Session) end(err error) {
	s.mu.Lock()
	if s.err == nil {
		s.err = fmt.Errorf("the session with the server was lost: %w", err)
	}
	reason := s.err
	open := make([]*pending, 0, len(s.pending))
	for _, p := range s.pending {
		open = append(open, p)
	}
	clear(s.pending)
	s.waiting = nil
	s.calls.clear()
	s.mu.Unlock()
	if s.opts.OnClose != nil {
		s.opts.OnClose(reason)
	}
	slices.SortFunc(open, func(a, b *pending) int { return int(a.id - b.id) })
	for _, p := range open {
		if p.reply != nil {
			close(p.reply)
			continue
		}
		p.timer.Stop()
		p.port.fail(p, lostError(p, reason), metrics.ErrorSessionLost)
	}
	_ = s.conn.Close() // how the peer ended does not matter to those who waited
}

// receive takes one message of the server.
func (s *Session) receive(data []byte) {
	m, err := jsonrpc.Parse(data)
	switch {
	case err != nil:
		s.invalid(m, err)
	case m.Kind == jsonrpc.Response:
		s.resolve(m)
	case m.Kind == jsonrpc.Request:
		s.serverRequest(m)
	default:
		s.serverNotification(m)
	}
}

// Call sends a request of the gateway's own and returns the response, which may
// be an error response. It fails with ctx, or when the session ends.
func (s *Session) Call(ctx context.Context, method string, params json.RawMessage) (*jsonrpc.Message, error) {
	p := &pending{method: method, started: time.Now(), reply: make(chan *jsonrpc.Message, 1)}
	s.mu.Lock()
	if s.err != nil {
		defer s.mu.Unlock()
		return nil, s.err
	}
	s.nextID++
	p.id, p.sent = s.nextID, true
	s.pending[p.id] = p
	s.mu.Unlock()
	if err := s.conn.Send(jsonrpc.NewRequest(wireID(p.id), method, params)); err != nil {
		s.remove(p)
		return nil, s.why(ctx, err)
	}
	select {
	case m, ok := <-p.reply:
		if !ok {
			return nil, s.Err()
		}
		return m, nil
	case <-ctx.Done():
		s.mu.Lock()
		defer s.mu.Unlock()
		if s.removeLocked(p) {
			s.abandonLocked(p.id)
		}
		return nil, ctx.Err()
	}
}

// why returns the reason of the session's end after a failed send, which knows
// less of it.
func (s *Session) why(ctx context.Context, err error) error {
	if errors.Is(err, jsonrpc.ErrBusy) {
		return err
	}
	select {
	case <-s.done:
		return s.Err()
	case <-ctx.Done():
		return err
	}
}

// Notify sends a notification of the gateway's own.
func (s *Session) Notify(method string, params json.RawMessage) error {
	return s.conn.Send(jsonrpc.NewNotification(method, params))
}

// Err returns why the session is over, nil while it is not.
func (s *Session) Err() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.err
}

// remove takes a request out of the table and reports whether it was there:
// whoever gets true answers it.
func (s *Session) remove(p *pending) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.removeLocked(p)
}

// maxAbandoned bounds how many requests are remembered as given up.
const maxAbandoned = 1024

// abandonLocked remembers that the server may still answer a request that has
// been taken out of the table.
func (s *Session) abandonLocked(id int64) {
	if s.abandoned == nil {
		s.abandoned = make(map[int64]struct{})
	}
	if len(s.abandoned) >= maxAbandoned {
		id = 0
	}
	s.abandoned[id] = struct{}{}
}

func (s *Session) removeLocked(p *pending) bool {
	if s.pending[p.id] != p {
		return false
	}
	delete(s.pending, p.id)
	if p.port != nil && p.sent {
		s.inFlight--
	}
	if p.timer != nil {
		p.timer.Stop()
	}
	if !p.sent {
		s.waiting = slices.DeleteFunc(s.waiting, func(w *pending) bool { return w == p })
	}
	return true
}
