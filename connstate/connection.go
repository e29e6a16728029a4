package connstate

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"net/netip"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"go.opentelemetry.io/otel/trace"

	"github.com/mcp-sse/mcp-sse/internal/asker"
	"github.com/mcp-sse/mcp-sse/internal/budget"
	"github.com/mcp-sse/mcp-sse/internal/selection"
	"github.com/mcp-sse/mcp-sse/internal/signedid"
	"github.com/mcp-sse/mcp-sse/internal/throttle"
	"github.com/mcp-sse/mcp-sse/jsonrpc"
	"github.com/mcp-sse/mcp-sse/metrics"
)

// Errors of a Connection. Compare with errors.Is.
var (
	// ErrClosed: the stream is over.
	ErrClosed = errors.New("connection is closed")
	// ErrSlow: the client reads so slowly that the outbox has no room.
	ErrSlow = errors.New("client reads too slowly")
	// ErrGateFull: too many messages wait for the session.
	ErrGateFull = errors.New("too many messages wait for the server to start")
	// ErrBusy: the process, or the connection, holds as many bytes as it may.
	ErrBusy = budget.ErrUsedUp
	// ErrGateTimeout: the message waited too long for the session.
	ErrGateTimeout = errors.New("the server is still starting")
	// ErrDraining: the connection is about to be closed.
	ErrDraining = errors.New("the gateway is shutting down")
	// ErrDuplicate: a request with the same id is not answered yet.
	ErrDuplicate = errors.New("a request with this id is in flight")
	// ErrTooManyPending: too many requests are not answered yet.
	ErrTooManyPending = errors.New("too many requests in flight")
)

// Options configure the connections of a Registry. The zero value gives the defaults
// named at each field.
type Options struct {
	// GateQueue bounds the messages at the gate. Default 64.
	GateQueue int
	// GateTimeout bounds how long a message waits at the gate. Default 5 s.
	GateTimeout time.Duration
	// RestTimeout takes the place of GateTimeout for a client that has its lists, and takes the wait for a slow
	// answer. Default 60 s.
	RestTimeout time.Duration
	// OutboxBytes bounds the events that wait to be written; a larger event passes
	// alone. Default 1 MiB.
	OutboxBytes int
	// OutboxWait is what the stream allows for a write. A sender waits for room at most
	// three times as long. Default 10 s.
	OutboxWait time.Duration
	// AnnounceDelay is the least time between endpoint and announcement.
	// Default 100 ms; negative: none.
	AnnounceDelay time.Duration
	// MaxPending bounds the unanswered requests. Default 4096.
	MaxPending int
	// SlowRequest is the duration, from the POST to the answer, from which a
	// request is logged as slow. 0: never.
	SlowRequest time.Duration
	// IDs makes the ids; nil: with a key of its own.
	IDs *signedid.Issuer
	// Clustered says that the limits are of several replicas, whose IDs have the same key.
	Clustered bool
	// Budget bounds the bytes that wait in the process; nil: there is no bound.
	Budget *budget.Account
	// Logger receives the state changes and the life of requests; nil: silent.
	Logger *slog.Logger
	// Audit receives a line for each tool call, when it is answered; nil: none.
	Audit *slog.Logger
	// IsView reports whether the server is a view, which gets an asker.Request with a message. nil: it is none.
	IsView func() bool
	// Called returns the tool that a tools/call is about, for Audit, if the tool that it names only calls that one.
	// nil: there are no such tools.
	Called func(m *jsonrpc.Message) (tool string, ok bool)
	// Metrics counts; nil: nothing is counted.
	Metrics *metrics.Metrics
	// Tracer makes the spans of requests and connections; nil: there are none. Server is
	// the name of the server in them, empty if there is only one.
	Tracer trace.Tracer
	Server string

	limited *slog.Logger // Logger for what each request may cause
	bodies  *bodies
}

// withDefaults returns o with the default in each field that is zero, and with what its connections share.
func (o Options) withDefaults() Options {
	o.GateQueue = cmp.Or(o.GateQueue, 64)
	o.GateTimeout = cmp.Or(o.GateTimeout, 5*time.Second)
	o.RestTimeout = cmp.Or(o.RestTimeout, 60*time.Second)
	o.OutboxBytes = cmp.Or(o.OutboxBytes, 1<<20)
	o.OutboxWait = cmp.Or(o.OutboxWait, 10*time.Second)
	o.AnnounceDelay = cmp.Or(o.AnnounceDelay, 100*time.Millisecond)
	o.MaxPending = cmp.Or(o.MaxPending, 4096)
	if o.IDs == nil {
		o.IDs = signedid.New(nil, "", "")
	}
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	o.limited = throttle.NewLines().Logger(o.Logger)
	o.bodies = &bodies{held: o.Budget, by: make(map[string]int)}
	return o
}

// Handler receives what happens on a connection. Its methods may be called
// concurrently and must not block for long: Receive runs inside a client's POST.
type Handler interface {
	// Receive gets each message of the client.
	Receive(m *jsonrpc.Message)
	// Refused gets a request or notification that the gate refuses after a wait. reason
	// is ErrGateTimeout or ErrDraining.
	Refused(r *Request, reason error)
	// Drained is called once the connection takes no more requests, before anybody looks whether it is
	// quiet: a request that comes after it must be refused. It must not wait.
	Drained()
	// Closed is called once, when the connection is over.
	Closed()
	// OnMemory reports whether memory answers the client, and no session is there.
	OnMemory() bool
}

// Client says who opened a connection, and how.
type Client struct {
	// Addr is the client's address; it may be the zero Addr.
	Addr netip.Addr
	// Principal is who was authenticated; "" without authentication.
	Principal string
	// Transport is how the client reaches the gateway.
	Transport Transport
	// Credentials are what its lease depends on; "" without one.
	Credentials string
	// Newest returns the newest credentials of a client whose requests the connection does not see; nil: it sees
	// them.
	Newest func() string
	// Version is the protocol version that the client has negotiated earlier; empty if
	// that is unknown.
	Version string
	// UserAgent is what the client calls itself. It is only for logs and snapshots.
	UserAgent string
	// Dialect is what the client or the configuration chose; "" for undecided.
	Dialect Dialect
	// Quiet withholds the announcement.
	Quiet bool
	// Local says that the client is on this machine, as far as its request shows: it
	// came from a loopback address to a loopback address, and names no proxy.
	Local bool
	// Proxied says that the request came through a proxy that the gateway does not trust.
	// All clients of that proxy have its Addr.
	Proxied bool
	// Context has the values of the request's context, and its peer, for a server in this
	// process; nil unless they are passed on. It has no end.
	Context context.Context
	// Front is the shortened id of the connection that the client has with the gateway in front of this one; empty if
	// there is none.
	Front string
	// Header holds the client's request headers that the operator has chosen to pass
	// to the server; nil for none. It must not be logged.
	Header map[string][]string
	// Narrow is the client's own choice among the tools; nil: it has made none.
	Narrow *selection.Narrowing
}

// Connection is one client's connection: its state, the gate in front of the server,
// the outbox towards the client, and the unanswered requests. All methods are safe
// for concurrent use.
//
// It has three users. Its transport uses it as a [ForTransport], its [Handler] as a [ForHandler].
// Everybody may look at it, drain it, or close it, as the methods of Connection itself do.
type Connection struct {
	id     string
	client Client
	opts   *Options
	// handler gets the client's messages. Bind sets it, under mu and before the client knows the id.
	handler Handler
	outbox  *outbox
	// done is closed by Close.
	done chan struct{}
	// span is that of the beginning. The spans of requests are in it, or link to it.
	span trace.Span
	// queued are the bytes that CountQueued has counted: they wait for the client outside of the
	// outbox.
	queued atomic.Int64

	// mu guards the fields up to the next blank line.
	mu sync.Mutex
	// known is the state, and all that a Snapshot says and that is not counted below. Its Opened
	// never changes.
	known        Snapshot
	gate         gate
	announcement announcement
	// arriving are the requests that a transport has and BeginRequest has not, by their ids.
	arriving map[jsonrpc.ID]*jsonrpc.Message
	// requests are the unanswered requests, by their ids. At the end they become unanswered, so that
	// Committed can still tell of them.
	requests, unanswered map[jsonrpc.ID]*Request
	// answering counts the responses on their way into the outbox. Until it is 0, the connection is
	// not quiet.
	answering int
	// stop ends the stream. It is nil until there is one.
	stop func()
	// drained is called by Drain, if OnDrain has set it.
	drained func()
	// onCredentials are the functions of OnCredentials.
	onCredentials map[*func()]bool
	// listened are the methods of Listen, and onListen the functions of OnListen.
	listened []string
	onListen map[*func(method string)]bool
	// quiet is closed when no request is unanswered. It is nil if nobody waits for that.
	quiet chan struct{}

	// spoken says that the client has sent a message, versioned that a protocol version is known, and
	// leaving that new requests belong to another replica. They never become false again.
	spoken, versioned, leaving atomic.Bool
	// These are in Unix nanoseconds, and 0 for what has not happened.
	firstByte, lastIn, lastOut, lastDone, left atomic.Int64
	messagesIn, messagesOut, bytesIn, bytesOut atomic.Int64
	heartbeats, requestsDone, requestsFailed   atomic.Int64
	// renewed are the credentials of the newest request. It is nil while those of client are.
	renewed atomic.Pointer[string]
}

// ForTransport is a connection as its transport uses it. The transport passes what the client sends
// (Observe, then Receive), takes and writes the events and says what it has written (stream.go),
// and accounts for bodies (body.go).
type ForTransport struct{ *Connection }

// ForHandler is a connection as its Handler uses it. The Handler moves the state, lets messages
// through the gate (gate.go), begins requests (request.go), and sends what the server says
// (outbox.go, dialect.go).
type ForHandler struct{ *Connection }

// newConnection returns a connection in the state Initializing, without a handler. The registry makes it, which has
// counted it. The client must not learn the id before Bind.
func newConnection(id string, client Client, opts *Options) *Connection {
	now := time.Now()
	c := &Connection{
		id: id, client: client, opts: opts, done: make(chan struct{}),
		outbox: &outbox{limit: opts.OutboxBytes, held: opts.Budget},
		known: Snapshot{
			ID: signedid.Short(id), Since: now, Opened: now, Transport: client.Transport, Principal: client.Principal,
			UserAgent: client.UserAgent, Dialect: client.Dialect, Front: client.Front,
		},
	}
	if client.Addr.IsValid() {
		c.known.Remote = client.Addr.String()
	}
	if client.Quiet {
		c.announcement.mode = announceNever
	}
	return c
}

// Bind gives the connection its handler. The caller must call it once, before the
// client learns the connection's id.
func (c ForTransport) Bind(h Handler) {
	c.mu.Lock()
	c.handler = h
	state := c.known.State
	c.mu.Unlock()
	switch state {
	case Draining:
		h.Drained()
	case Closed:
		h.Closed()
	}
}

// ID returns the connection's id: a secret that lets its holder send messages on the
// connection. Logs carry ShortID.
func (c *Connection) ID() string { return c.id }

// ShortID returns a part of the id: enough to tell connections apart in logs, not enough
// to use one.
func (c *Connection) ShortID() string { return signedid.Short(c.id) }

// Client returns who opened the connection.
func (c *Connection) Client() Client { return c.client }

// Opened returns when the connection was opened.
func (c *Connection) Opened() time.Time { return c.known.Opened }

// Done returns a channel that is closed with the connection.
func (c *Connection) Done() <-chan struct{} { return c.done }

// State returns the current state.
func (c *Connection) State() State {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.known.State
}

// Leave makes new requests of a client without a stream go to another replica, while those that come here are served.
func (c *Connection) Leave() { c.leaving.Store(true) }

// Leaving reports whether Leave or Drain has been called, or the connection is closed.
func (c *Connection) Leaving() bool { return c.leaving.Load() || c.State() >= Draining }

// Reason returns why the connection was closed, "" before.
func (c *Connection) Reason() Reason {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.known.Reason
}

// Move changes the state. It fails if the table in state.go does not have the move, and
// for a move to Closed, which only Close makes.
func (c ForHandler) Move(to State) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if to == Closed {
		return errors.New("a connection is closed by Close")
	}
	return c.moveLocked(to)
}

// moveLocked moves the connection to a state that the table moves allows, and notes when. It is the only place that
// changes the state.
func (c *Connection) moveLocked(to State) error {
	from := c.known.State
	if !slices.Contains(moves[from], to) {
		return fmt.Errorf("connection cannot go from %s to %s", from, to)
	}
	now := time.Now()
	c.known.State, c.known.Since = to, now
	if c.known.Ready.IsZero() && to != Closed {
		c.known.Reached = to
	}
	if to == Ready || to == Resting {
		c.sawReadyLocked(now)
	}
	c.opts.Metrics.StateChanged(from.String(), to.String())
	c.opts.Logger.Debug("connection state", "connectionId", c.ShortID(), "from", from.String(), "to", to.String())
	return nil
}

// sawReadyLocked notes the first moment at which the client can use the server.
func (c *Connection) sawReadyLocked(now time.Time) {
	if c.known.Ready.IsZero() {
		c.known.Ready = now
		c.opts.Metrics.Ready(now.Sub(c.known.Opened))
	}
}

// Renew tells with which credentials the newest request came, and reports whether they are others than before. If so,
// the caller must call CredentialsChecked.
func (c ForTransport) Renew(credentials string) (others bool) {
	before := c.renewed.Swap(&credentials)
	return *cmp.Or(before, &c.client.Credentials) != credentials
}

// SetCredentials notes the credentials with which m came. A view needs them: other requests, with other credentials,
// may have come before m is read. It does nothing in front of any other server.
func (c ForTransport) SetCredentials(m *jsonrpc.Message, credentials string) {
	if m.Kind == jsonrpc.Request && c.isOfView() {
		m.Context, _ = asker.WithRequest(m.Context, credentials)
	}
}

// OnCredentials has f called after the client has sent other credentials, and after each check of those that it has.
// stop ends that. f must not wait.
func (c ForHandler) OnCredentials(f func()) (stop func()) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.onCredentials == nil {
		c.onCredentials = make(map[*func()]bool)
	}
	c.onCredentials[&f] = true
	return func() {
		c.mu.Lock()
		defer c.mu.Unlock()
		delete(c.onCredentials, &f)
	}
}

// Listen notes that the client wants the notifications of a method, which are about a list.
func (c ForTransport) Listen(method string) {
	c.mu.Lock()
	if slices.Contains(c.listened, method) {
		c.mu.Unlock()
		return
	}
	c.listened = append(c.listened, method)
	all := slices.Collect(maps.Keys(c.onListen))
	c.mu.Unlock()
	for _, f := range all {
		(*f)(method)
	}
}

// OnListen has f called with each method of Listen, also with those of before. stop ends that. f must not wait.
func (c ForHandler) OnListen(f func(method string)) (stop func()) {
	c.mu.Lock()
	if c.onListen == nil {
		c.onListen = make(map[*func(method string)]bool)
	}
	c.onListen[&f] = true
	before := slices.Clone(c.listened)
	c.mu.Unlock()
	for _, method := range before {
		f(method)
	}
	return func() {
		c.mu.Lock()
		defer c.mu.Unlock()
		delete(c.onListen, &f)
	}
}

// CredentialsChecked tells that the newest credentials have been found good.
func (c *Connection) CredentialsChecked() {
	c.mu.Lock()
	all := slices.Collect(maps.Keys(c.onCredentials))
	c.mu.Unlock()
	for _, f := range all {
		(*f)()
	}
}

// Credentials returns those of the newest request. They must not be logged.
func (c *Connection) Credentials() string {
	if c.client.Newest != nil {
		return c.client.Newest()
	}
	return *cmp.Or(c.renewed.Load(), &c.client.Credentials)
}

// OnMemory is that of the handler.
func (c ForTransport) OnMemory() bool { return c.handler.OnMemory() }

// Receive passes a client's message to the handler.
func (c ForTransport) Receive(m *jsonrpc.Message) { c.handler.Receive(m) }

// Close ends the connection, and tells the stream, the handler and all waiting
// senders. Only the first call has an effect and reports true; its reason counts.
func (c *Connection) Close(reason Reason) bool {
	c.mu.Lock()
	if c.known.State == Closed {
		c.mu.Unlock()
		return false
	}
	_ = c.moveLocked(Closed) // every state may go to Closed
	c.known.Reason = reason
	c.drainGateLocked(metrics.GateClosed)
	undelivered := c.undeliveredLocked(reason)
	c.endAnnouncementLocked()
	open, stop, handler := c.requests, c.stop, c.handler
	c.requests, c.unanswered = nil, open // no more are added
	c.signalQuietLocked()
	c.mu.Unlock()
	for _, r := range open {
		c.opts.Budget.Release(r.cost)
		r.report(metrics.ErrorClosed, "", 0)
	}
	if undelivered != nil {
		undelivered(fmt.Errorf("%w: %s", ErrClosed, reason))
	}
	c.outbox.close()
	close(c.done)
	if handler != nil {
		handler.Closed() // before the stream ends: Shutdown waits for streams, and all of this must have begun by then
	}
	if stop != nil {
		stop()
	}
	return true
}

// CloseGracefully ends the connection once all that was sent to it is written, at
// the latest after wait.
func (c *Connection) CloseGracefully(reason Reason, wait time.Duration) {
	c.outbox.waitWritten(wait)
	c.Close(reason)
}
