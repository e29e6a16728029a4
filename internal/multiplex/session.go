package multiplex

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"github.com/mcp-sse/mcp-sse/internal/clip"
	"github.com/mcp-sse/mcp-sse/internal/throttle"
	"github.com/mcp-sse/mcp-sse/internal/wire"
	"github.com/mcp-sse/mcp-sse/jsonrpc"
	"github.com/mcp-sse/mcp-sse/metrics"
)

// Options configure a Session. The zero value gives the defaults.
type Options struct {
	// RequestTimeout bounds the time from forwarding a client's request, or from its
	// last progress, to the answer. Default 60 s.
	RequestTimeout time.Duration
	// MaxRequestTimeout bounds each request regardless of its progress. Default 10
	// min; never less than RequestTimeout.
	MaxRequestTimeout time.Duration
	// MaxInFlight bounds the requests that the server works on at a time. The others
	// wait, within their timeout: principals take turns, and so do the clients of each.
	// 0: unlimited.
	MaxInFlight int
	// MaxWaiting bounds the waiting requests. When it is reached, the client that has most
	// of them is refused. Default 1024.
	MaxWaiting int
	// Server is what errors call the server. Default "the server".
	Server string
	// Shared says that the session has several clients. A message that cannot be
	// attributed to one of them reaches none.
	Shared bool
	// Tools is what is known of the server's tools. Sessions with the same server share it; over a jsonrpc.Relay they
	// share the lists in it, and each learns by itself which tools are safe.
	// nil: the session has its own.
	Tools *Tools
	// OnTools is called when a client has read the server's list of tools to its end.
	OnTools func(list *ToolList)
	// OnNamed is called once, in the goroutine that reads, when the server has answered a request of a
	// client under the id of the request; nil: nothing is. It must not wait.
	OnNamed func()
	// OnList is called, as OnNamed, with each page of a list that the server gives a client; nil: nothing is.
	OnList func(result json.RawMessage)
	// OnClose is called once with the reason when the session is over, before its
	// requests are answered. So when a client repeats a request on that answer, the
	// owner knows that the session is over.
	OnClose func(err error)
	// OnRetire is called, before OnClose, with why the Conn is to get no more messages while it still has answers to
	// give: see Retirable. nil: nothing is. It must not wait.
	OnRetire func(why error)
	// OnDone is called once, after Done has been closed.
	OnDone func()
	// Logger receives the logs; nil: silent. Limited is Logger for lines that the server
	// or a client can cause at will. Sessions with the same server share one. nil: the
	// session has its own.
	Logger, Limited *slog.Logger
	// Metrics counts; nil: nothing is counted.
	Metrics *metrics.Metrics
}

// Session is one session with an MCP server. It is safe for concurrent use.
type Session struct {
	conn   jsonrpc.Conn
	local  jsonrpc.Local // conn, if it is one; else nil
	relays bool          // conn is a jsonrpc.Relay
	// tools says which requests may be repeated. Over a Relay the session has its own: a name may lead the clients of
	// two sessions to two servers.
	tools  *Tools
	opts   Options
	done   chan struct{} // closed when the session has ended
	served atomic.Bool   // the server has answered a client

	onNamed sync.Once // guards the call of Options.OnNamed

	mu    sync.Mutex // guards what follows; not held while sending or calling a client
	err   error      // why the session is over; nil before
	table table
	calls serverCalls

	// callers is copied when a client leaves, so that readers of the slice need no
	// lock. principals says whose clients there have been so far; principal is that of the last.
	callers    []*Caller
	principals principals
	principal  string
}

// principals is how many principals the clients of a session have had.
type principals uint8

const (
	noPrincipal principals = iota // there has been no client
	onePrincipal
	severalPrincipals
)

// Retirable is a Conn that may be to get no more messages while the answers to its requests still come.
type Retirable interface {
	jsonrpc.Conn
	// OnRetire sets the function that the Conn calls then, from within Recv or RecvFor, which goes on after it: with
	// the id, as sent, of a request that the server has not taken and another session may take, and why. The Conn does
	// not answer that request, and may call it for several. Call OnRetire before Recv. Without a function the Conn is
	// never retired.
	OnRetire(retire func(request jsonrpc.ID, why error))
}

// New starts a session over conn, which it then owns.
func New(conn jsonrpc.Conn, opts Options) *Session {
	s := &Session{conn: conn, opts: opts.withDefaults(), done: make(chan struct{})}
	s.calls.limit, s.calls.longLimit = s.opts.RequestTimeout, s.opts.MaxRequestTimeout
	_, s.relays = conn.(jsonrpc.Relay)
	s.tools = s.opts.Tools
	if s.relays {
		s.tools = &Tools{}
		s.opts.RequestTimeout *= relayFactor
		s.opts.MaxRequestTimeout = max(s.opts.MaxRequestTimeout, s.opts.RequestTimeout)
	}
	s.table = table{opts: &s.opts, expire: s.expire, byID: make(map[int64]*entry),
		matchState: matchState{isShared: s.opts.Shared}}
	if c, ok := conn.(Retirable); ok {
		c.OnRetire(s.retire)
	}
	switch c := conn.(type) {
	case jsonrpc.Relay:
		s.local = c
		c.PushFor(func(data []byte, request jsonrpc.ID, err error) {
			s.receive(arrival{data: data, related: request}, err)
		})
	case jsonrpc.Local:
		s.local = c
		c.Push(func(data []byte, err error) { s.receive(arrival{data: data}, err) })
	case wire.Formed:
		_, s.table.tells = conn.(jsonrpc.Attributed)
		go s.readLoop(func() (a arrival, err error) { // ends with the Conn, at the latest on Close
			a.data, a.related, a.form, err = c.RecvForm()
			return a, err
		})
	case jsonrpc.Attributed:
		s.table.tells = true
		go s.readLoop(func() (a arrival, err error) { // as above
			a.data, a.related, err = c.RecvFor()
			return a, err
		})
	default:
		go s.readLoop(func() (a arrival, err error) { // as above
			a.data, err = conn.Recv()
			return a, err
		})
	}
	return s
}

// relayFactor is by how much longer a session over a Relay waits for the answer to a request. The gateway behind it
// bounds the request earlier, and answers: it lets a request wait for the start of its server for RequestTimeout, and
// then work for MaxRequestTimeout, which is ten times that.
const relayFactor = 20

// Relays reports whether the Conn is a jsonrpc.Relay: then a client of the session must not be waited for.
func (s *Session) Relays() bool { return s.relays }

// withDefaults returns o with the default in each field that is zero or out of its range.
func (o Options) withDefaults() Options {
	o.RequestTimeout = cmp.Or(max(0, o.RequestTimeout), 60*time.Second)
	o.MaxRequestTimeout = max(cmp.Or(o.MaxRequestTimeout, 10*time.Minute), o.RequestTimeout)
	if o.MaxWaiting <= 0 {
		o.MaxWaiting = 1024
	}
	o.Server = cmp.Or(o.Server, "the server")
	if o.Tools == nil {
		o.Tools = &Tools{}
	}
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	if o.Limited == nil {
		o.Limited = throttle.NewLines().Logger(o.Logger)
	}
	return o
}

// Done returns a channel that is closed when the session is over and all its
// requests are answered.
func (s *Session) Done() <-chan struct{} { return s.done }

// Served reports whether the server has answered a request of a client.
func (s *Session) Served() bool { return s.served.Load() }

// Close ends the session. Its requests get an error that names the reason.
func (s *Session) Close(reason error) {
	_ = s.setErr(reason)
	_ = s.conn.Close() // how the peer ended does not matter to the callers
}

// CloseIdle is Close if no request is unanswered. It reports whether that is so: then the
// session takes no other.
func (s *Session) CloseIdle(reason error) bool {
	s.mu.Lock()
	idle := len(s.table.byID) == 0
	if idle && s.err == nil {
		s.err = reason
	}
	s.mu.Unlock()
	if idle {
		_ = s.conn.Close() // as in Close
	}
	return idle
}

// Idle returns a channel that is closed when no request is unanswered.
func (s *Session) Idle() <-chan struct{} {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.table.idle == nil {
		s.table.idle = make(chan struct{})
	}
	idle := s.table.idle
	if len(s.table.byID) == 0 {
		close(idle)
		s.table.idle = nil
	}
	return idle
}

// NamesAnswers reports whether the server has named an answer of this session, and has given none without a name.
// Answers of two kinds do not count, though they have no name: one that came in the HTTP response to its request, and
// an error that says that the server could not read the only request that it had.
func (s *Session) NamesAnswers() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.table.manner != unknownManner && !s.table.certainty.isSerial()
}

// Asks reports whether a client still has a request of the server to answer.
func (s *Session) Asks() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.calls.open) > 0
}

// Err returns why the session is over, nil before.
func (s *Session) Err() error { return s.setErr(nil) }

// LostError is why a session is over whose server is gone.
type LostError struct {
	Server string // what errors call it
	Err    error  // how it ended
}

// Error names the server and says how it ended.
func (e *LostError) Error() string {
	return fmt.Sprintf("the session with %s was lost: %v", e.Server, e.Err)
}

// Unwrap returns how the server ended.
func (e *LostError) Unwrap() error { return e.Err }

// setErr records why the session is over, unless it has a reason already, and
// returns the recorded reason.
func (s *Session) setErr(reason error) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.err == nil {
		s.err = reason
	}
	return s.err
}

// withLock calls f with s.mu held. f must not send or call a client.
func (s *Session) withLock(f func(t *table)) {
	s.mu.Lock()
	defer s.mu.Unlock()
	f(&s.table)
}

// outcome is what a Call returns.
type outcome struct {
	response *jsonrpc.Message
	err      error
}

// Call sends a request of the gateway and returns the response, which may be an
// error response. It fails when ctx ends or the session does. The request waits for no
// other, unless the server does not name its answers.
func (s *Session) Call(ctx context.Context, method string, params json.RawMessage) (*jsonrpc.Message, error) {
	return s.call(ctx, &entry{method: method}, params)
}

// Call is Session.Call on behalf of the client, for example to subscribe again on a
// new session. The session treats the request like one of the client's.
func (c *Caller) Call(ctx context.Context, method string, params json.RawMessage) (*jsonrpc.Message, error) {
	return c.session.call(ctx, &entry{method: method, caller: c, counted: true}, params)
}

// call sends a request of the gateway and waits for its response. If ctx ends first, the request is given up: its
// answer goes to nobody. If the session ends first, the error says why.
func (s *Session) call(ctx context.Context, e *entry, params json.RawMessage) (_ *jsonrpc.Message, err error) {
	e.reply = make(chan outcome, 1)
	e.message, err = jsonrpc.Parse(jsonrpc.NewRequest("0", e.method, params))
	if err != nil {
		return nil, err
	}
	if err := s.enter(e); errors.Is(err, ErrLeft) {
		return nil, err
	} else if err != nil { // the session is ending: done says why
		select {
		case <-s.done:
			return nil, s.Err()
		case <-ctx.Done():
			return nil, err
		}
	}
	select {
	case o := <-e.reply:
		return o.response, o.err
	case <-ctx.Done():
	}
	s.withLock(func(t *table) { t.giveUp(e) })
	s.closeAmbiguous()
	s.sendNext()
	return nil, ctx.Err()
}

// Notify sends a notification of the gateway.
func (s *Session) Notify(method string, params json.RawMessage) error {
	s.withLock((*table).noteNotice)
	return s.conn.Send(jsonrpc.NewNotification(method, params))
}

// arrival is a message that the Conn received, with all that the Conn knows of it.
type arrival struct {
	data    []byte
	related jsonrpc.ID // the related request; empty if unknown
	form    wire.Form  // how its line has it
}

// readLoop is the reader loop.
func (s *Session) readLoop(recv func() (arrival, error)) {
	for s.receive(recv()) {
	}
}

// receive handles what the Conn received, a message or an error, and reports whether to go on.
func (s *Session) receive(a arrival, err error) bool {
	if err != nil {
		s.endSession(err)
		return false
	}
	data, related := a.data, a.related
	m, err := jsonrpc.Parse(data)
	if err != nil {
		if mended := wire.Mend(data); mended != nil {
			m, err = jsonrpc.Parse(mended)
		}
	}
	if !s.accepts(a, m, err) {
		s.opts.Metrics.Dropped(metrics.DroppedInvalidMessage)
		s.opts.Limited.Warn(
			"server sent a message beside other text: it is not taken, because others may have written it")
		return true
	}
	if err == nil && m.Kind == jsonrpc.Response {
		s.receiveResponse(m, related)
		return true
	}
	s.withLock(func(t *table) { t.lastMessage = time.Now() })
	switch {
	case err != nil:
		s.receiveInvalid(data, err)
	case m.Kind == jsonrpc.Request:
		s.serverRequest(m, related)
	default:
		s.serverNotification(m, related)
	}
	return true
}

// retire has the owner retire the session, and gives back the request that the server has not taken.
func (s *Session) retire(request jsonrpc.ID, why error) {
	if s.opts.OnRetire != nil {
		s.opts.OnRetire(why)
	}
	e := s.takeOut(func(t *table) *entry {
		t.lastMessage = time.Now()
		return t.related(request)
	})
	if e != nil {
		e.move(bounces)
		e.lose(why)
	}
}

// endSession ends the session: it tells the owner and answers all requests.
func (s *Session) endSession(err error) {
	if errors.Is(err, jsonrpc.ErrTooLong) { // if only one request is out, it is the answer to that
		s.opts.Metrics.Dropped(metrics.DroppedTooLong)
		s.opts.Limited.Warn("server sent a message over the limit")
		if e := s.takeOut((*table).onlyOut); e != nil {
			s.failUnusable(e, "the server's answer is over the size limit")
		}
	}
	reason := s.setErr(&LostError{s.opts.Server, err})
	var open []*entry
	s.withLock(func(t *table) {
		untaken := t.untaken(err)
		open = t.removeAll()
		if untaken != nil {
			untaken.move(bounces)
		}
		for _, call := range s.calls.open {
			call.timer.Stop()
		}
		s.calls.open = nil
	})
	if s.opts.OnClose != nil {
		s.opts.OnClose(reason)
	}
	for _, e := range open {
		e.lose(reason)
	}
	_ = s.conn.Close() // how the peer ended does not matter to the callers
	close(s.done)
	if s.opts.OnDone != nil {
		s.opts.OnDone()
	}
}

// dropMessage counts a message that is thrown away, and logs why.
func (s *Session) dropMessage(reason, why string, m *jsonrpc.Message) {
	s.opts.Metrics.Dropped(reason)
	s.opts.Limited.Debug("message dropped", "why", why, "kind", m.Kind.String(), "method", clip.Short(m.Method))
}
