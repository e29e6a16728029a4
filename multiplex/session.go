package multiplex

import (
	"cmp"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"github.com/mcp-sse/mcp-sse/internal/deadline"
	"github.com/mcp-sse/mcp-sse/internal/throttle"
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
	// MaxWaiting bounds the requests that wait. Default 1024.
	MaxWaiting int
	// HangTimeout is the silence of a server that has requests to answer after
	// which it is suspected to hang. 0: never.
	HangTimeout time.Duration
	// Shared says that the session is for several clients: what cannot be attributed
	// to one of them reaches none.
	Shared bool
	// Repeatable knows which tools may be called again. Sessions with the same
	// server share one. nil: the session has its own.
	Repeatable *Repeatable
	// Nameless holds back the warning about answers without an id. Sessions with
	// the same server share one. nil: the session has its own.
	Nameless *throttle.Line
	// OnClose is called once when the session is over, with the reason, before
	// its requests are answered: a client that asks again as soon as it has such an
	// answer finds an owner that knows.
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

	mu    sync.Mutex // guards what follows; not held while sending or calling a client
	err   error      // why the session is over; nil while it is not
	table table
	calls serverCalls

	// callers are replaced when one leaves, so that those who have the slice may read
	// it without the lock. inhabited says that there has been one, principal whose
	// all of them have been, unless mixed.
	callers          []*Caller
	principal        string
	inhabited, mixed bool
}

// New starts a session over conn, which it then owns.
func New(conn jsonrpc.Conn, opts Options) *Session {
	s := &Session{conn: conn, opts: opts.withDefaults(), done: make(chan struct{})}
	s.table = table{
		opts: &s.opts, byID: make(map[int64]*pending),
		deadlines: deadline.NewSet[expiring](s.expireDue),
	}
	switch c := conn.(type) {
	case jsonrpc.Pusher:
		c.Push(func(data []byte, err error) bool { return s.take(data, "", err) })
	case jsonrpc.Attributed:
		go s.read(c.RecvFor) // ends when the Conn does, at the latest by Close
	default:
		go s.read(func() ([]byte, jsonrpc.ID, error) { // as above
			data, err := conn.Recv()
			return data, "", err
		})
	}
	return s
}

func (o Options) withDefaults() Options {
	o.RequestTimeout = cmp.Or(max(0, o.RequestTimeout), 60*time.Second)
	o.MaxRequestTimeout = max(cmp.Or(o.MaxRequestTimeout, 10*time.Minute), o.RequestTimeout)
	if o.MaxWaiting <= 0 {
		o.MaxWaiting = 1024
	}
	if o.Repeatable == nil {
		o.Repeatable = &Repeatable{}
	}
	if o.Nameless == nil {
		o.Nameless = NewNameless()
	}
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	return o
}

// Done is closed when the session is over and all its requests are answered.
func (s *Session) Done() <-chan struct{} { return s.done }

// Close ends the session. Its requests are answered with an error that names
// the reason.
func (s *Session) Close(reason error) {
	_ = s.setErr(reason)
	_ = s.conn.Close() // how the peer ended does not matter to the callers
}

// Err returns why the session is over, nil while it is not.
func (s *Session) Err() error { return s.setErr(nil) }

// setErr gives the session its reason to be over, unless it has one, and returns
// the one that it has.
func (s *Session) setErr(reason error) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.err == nil {
		s.err = reason
	}
	return s.err
}

// locked calls f with the lock held. f must not send, nor call a client.
func (s *Session) locked(f func(t *table)) {
	s.mu.Lock()
	defer s.mu.Unlock()
	f(&s.table)
}

// read is the reader loop.
func (s *Session) read(recv func() ([]byte, jsonrpc.ID, error)) {
	for s.take(recv()) {
	}
}

// take takes a message or error of the Conn, and reports whether there may be more.
// The message came with the request related, empty when that is not known.
func (s *Session) take(data []byte, related jsonrpc.ID, err error) bool {
	switch {
	case err == nil:
		s.receive(data, related)
		return true
	case errors.Is(err, jsonrpc.ErrTooLong):
		s.noteHeard()
		if err = s.receiveTooLong(); err == nil {
			return true
		}
	}
	s.end(err)
	close(s.done)
	return false
}

// receive handles one message of the server.
func (s *Session) receive(data []byte, related jsonrpc.ID) {
	if r, ok := jsonrpc.ParseReply(data); ok {
		s.resolve(&r.Message, r.Number)
		return
	}
	m, err := jsonrpc.Parse(data)
	if err == nil && m.Kind == jsonrpc.Response {
		s.resolve(m, numberOf(m.ID))
		return
	}
	s.noteHeard()
	switch {
	case err != nil:
		s.receiveInvalid(m, err)
	case m.Kind == jsonrpc.Request:
		s.serverRequest(m, related)
	default:
		s.serverNotification(m, related)
	}
}

// noteHeard notes that the server has sent a message.
func (s *Session) noteHeard() {
	suspected := false
	s.locked(func(t *table) { suspected = t.heard() })
	if suspected {
		s.trust()
	}
}

// end tells the owner and answers all requests.
func (s *Session) end(err error) {
	reason := s.setErr(fmt.Errorf("the session with the server was lost: %w", err))
	var open []*pending
	s.locked(func(t *table) { open, s.calls.open = t.removeAll(), nil })
	if s.opts.OnClose != nil {
		s.opts.OnClose(reason)
	}
	for _, p := range open {
		e := ReasonError(reason.Error(), "session_lost", !p.sent || p.safe)
		switch {
		case p.reply != nil:
			p.reply <- outcome{err: reason}
		case p.canceled:
			p.fail(e, metrics.ErrorSessionLost)
		default:
			p.lose(p.request, e)
		}
	}
	_ = s.conn.Close() // how the peer ended does not matter to the callers
}
