package multiplex

import (
	"cmp"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"time"

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
	// Nameless holds back the warning about answers without an id. Sessions with
	// the same server share one. nil: the session has its own.
	Nameless *throttle.Line
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
	conn  jsonrpc.Conn
	opts  Options
	epoch time.Time     // instants of the session are counted from here
	done  chan struct{} // closed when the session has ended

	mu       sync.Mutex // guards what follows; not held while sending or calling a client
	nextID   int64
	pending  map[int64]*pending // by id on the wire
	out      int                // those that the server has
	inFlight int                // those of them that MaxInFlight bounds
	blocked  int                // those of them that may take any time
	kept     int                // bytes of those of them that may be made again
	queue    queue
	// abandoned are the requests that were given up and the server may still
	// answer. 0 stands for those beyond maxAbandoned; no answer takes it out.
	abandoned map[int64]struct{}
	named     bool // the server has answered with an id
	// told is the id that the next request had when a notification was last sent. 0:
	// none was, or a later request has been answered.
	told      int64
	deadlines deadlines
	hang      suspicion
	calls     serverCalls
	err       error // why the session is over; nil while it is not

	// ports are replaced when one leaves, so that who has them may go through
	// them without the lock. There has been one if inhabited; principal is that
	// of all there have been, unless mixed.
	ports            []*Port
	principal        string
	inhabited, mixed bool

	// What follows is of shared sessions, tasks aside.
	lanes         lanes
	level         int8 // of log messages that the server was told; 0: none
	subscriptions subscriptions
	tasks         tasks
	elicitations  elicitations
}

// New starts a session over conn, which it then owns.
func New(conn jsonrpc.Conn, opts Options) *Session {
	s := &Session{
		conn: conn, opts: opts.withDefaults(), epoch: time.Now(),
		done: make(chan struct{}), pending: make(map[int64]*pending),
	}
	switch c := conn.(type) {
	case jsonrpc.Pusher:
		c.Push(func(data []byte, err error) bool { return s.take(data, "", err) })
	case jsonrpc.Attributed:
		go s.readFor(c) // ends when the Conn does, at the latest by Close
	default:
		go s.read() // as above
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
	s.mu.Lock()
	if s.err == nil {
		s.err = reason
	}
	s.mu.Unlock()
	_ = s.conn.Close() // how the peer ended does not matter to those who wait
}

// read is the reader loop.
func (s *Session) read() {
	for {
		data, err := s.conn.Recv()
		if !s.take(data, "", err) {
			return
		}
	}
}

// readFor is read for a Conn that knows what its messages came with.
func (s *Session) readFor(conn jsonrpc.Attributed) {
	for s.take(conn.RecvFor()) {
	}
}

// take takes what the Conn gives, and reports whether there may be more. The
// message came with the request related, empty when that is not known.
func (s *Session) take(data []byte, related jsonrpc.ID, err error) bool {
	switch {
	case err == nil:
		s.receive(data, related)
		return true
	case errors.Is(err, jsonrpc.ErrTooLong):
		s.heard()
		if err = s.tooLong(); err == nil {
			return true
		}
	}
	s.end(err)
	close(s.done)
	return false
}

// receive takes one message of the server.
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
	s.heard()
	switch {
	case err != nil:
		s.invalid(m, err)
	case m.Kind == jsonrpc.Request:
		s.serverRequest(m, related)
	default:
		s.serverNotification(m, related)
	}
}

// end tells the owner and answers all that waits.
func (s *Session) end(err error) {
	s.mu.Lock()
	if s.err == nil {
		s.err = fmt.Errorf("the session with the server was lost: %w", err)
	}
	reason := s.err
	open := s.openLocked()
	s.clearLocked()
	s.mu.Unlock()
	if s.opts.OnClose != nil {
		s.opts.OnClose(reason)
	}
	for _, p := range open {
		switch {
		case p.reply != nil:
			p.reply <- outcome{err: reason}
		case p.canceled:
			s.fail(p, lostError(p, reason), metrics.ErrorSessionLost)
		default:
			s.lost(p, p.request, lostError(p, reason))
		}
	}
	_ = s.conn.Close() // how the peer ended does not matter to those who waited
}

// clearLocked empties all tables: what they have is over with the session.
func (s *Session) clearLocked() {
	clear(s.pending)
	for _, t := range s.ports {
		t.requests = nil
	}
	s.queue, s.lanes, s.calls.open, s.abandoned = queue{}, lanes{}, nil, nil
	s.subscriptions, s.tasks, s.elicitations = nil, tasks{}, elicitations{}
	s.out, s.inFlight, s.blocked, s.kept, s.hang = 0, 0, 0, 0, suspicion{}
	s.deadlines.clear()
}

// Err returns why the session is over, nil while it is not.
func (s *Session) Err() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.err
}
