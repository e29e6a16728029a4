package handshake

import (
	"context"
	"encoding/json"
	"log/slog"
	"maps"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/mcp-sse/mcp-sse/internal/closed"
	"github.com/mcp-sse/mcp-sse/internal/fair"
	"github.com/mcp-sse/mcp-sse/internal/mcp"
	"github.com/mcp-sse/mcp-sse/internal/remember"
	"github.com/mcp-sse/mcp-sse/internal/throttle"
	"github.com/mcp-sse/mcp-sse/jsonrpc"
	"github.com/mcp-sse/mcp-sse/metrics"
	"github.com/mcp-sse/mcp-sse/multiplex"
	"github.com/mcp-sse/mcp-sse/upstream"
)

// SupplierOptions configure a Supplier. The fields have no defaults. Those that Reconfigure can change
// say so.
type SupplierOptions struct {
	// Name is what clients call the server; empty: what it calls itself.
	Name string
	// Params are the params of the synthetic initialize. nil: the supplier runs no
	// handshake.
	Params json.RawMessage
	// Shared gives all connections one session; else each has its own.
	Shared bool
	// Warm is the number of servers that the pool keeps started. With Shared, any
	// number above 0 makes Start start the session. It can change.
	Warm int
	// WarmFollowsUse keeps those servers started only while nothing is remembered of the server, and
	// for ProcessIdle after it was used last. It can change.
	WarmFollowsUse bool
	// Forwards says that sessions get something of their clients' requests. A probe may
	// lack the credentials, and the server may have other tools for each client.
	Forwards bool
	// The fields of gateway.Options with these names. They can change.
	MaxSessions           int // below 1: unlimited
	StartTimeout          time.Duration
	InitializationTimeout time.Duration // after it a start is late, and Ready fails
	// Memory has what the server said before; nil: nothing is remembered, and ProcessIdle has no effect.
	Memory *remember.Server
	// ProcessIdle is the time without a message after which a session with nothing open ends, until its
	// client needs it again; 0: never.
	ProcessIdle time.Duration
	// RememberFor is the age of what is remembered from which the server is asked again in the background.
	RememberFor time.Duration
	// Locks are those of the server's command: each session says to other programs that it is there. nil: none does. It can
	// change.
	Locks *remember.Locks
	// AnyFolder learns what may be told in any folder, and needs Locks; nil: nothing. It can change.
	AnyFolder *AnyFolder
	// Boots says that servers are processes, which keep the machine busy while they boot.
	Boots bool
	// Authenticates says that clients have principals.
	Authenticates bool
	// Session configures each session. Its Logger and Metrics, which the supplier
	// uses too, must not be nil. The supplier sets Shared, Tools, Limited, and all
	// functions On…. The times and bounds can change.
	Session multiplex.Options
}

// IdleCheck returns the time between two looks whether a session is idle.
func (o *SupplierOptions) IdleCheck() time.Duration { return o.ProcessIdle / 4 }

// maxStarts bounds the sessions that start at the same time.
const maxStarts = 16

// Supplier starts sessions with one server and supplies them to connections. It is
// safe for concurrent use. Make it with NewSupplier and end it with Close and Wait.
type Supplier struct {
	*succession
	up      upstream.Upstream
	options atomic.Pointer[SupplierOptions]
	// limited is log for what a server that keeps failing causes at will.
	log, limited *slog.Logger
	metrics      *metrics.Metrics

	// tools is what is known of the server's tools. With Forwards nothing is learned, because each
	// client may have others.
	tools     *multiplex.Tools
	readiness readiness
	// turns are those of starts, and places those of sessions, from before their start until they
	// have ended.
	turns, places *fair.Places
	// pool has the warm servers; it is nil if connections share a session. shared has that session;
	// it is nil if each connection has its own.
	pool   *pool
	shared *shared
	// started says that Start has been called.
	started atomic.Bool

	// asked is the session whose handshake began last.
	asked atomic.Pointer[Session]
	// server is what the server last said of itself.
	server atomic.Pointer[Server]
	// lowered is the newest protocol version that the server does not refuse; nil if it has refused
	// none.
	lowered atomic.Pointer[string]
	// manyTools guards the warning about tools that clients drop, and oddVersion is the unknown
	// protocol version of the last warning about that.
	manyTools sync.Once
	// background is the start for nobody that shows what the server says.
	background background
	// anyFolderSoon says that LearnInAnyFolder is about to run, or runs.
	anyFolderSoon atomic.Bool
	oddVersion    atomic.Pointer[string]
	// learned notes for what clients declare a session without a client was started although another one
	// had just been looked at: see learn.
	learned OncePerHour

	// life ends with Close and Retire, by end. replaced is closed by Retire.
	life     context.Context
	end      context.CancelFunc
	replaced chan struct{}

	followersMu sync.Mutex // guards followers
	followers   map[Follower]bool
}

// Follower goes on with another server, or with what is remembered, when it is told so. It may not wait then.
type Follower interface {
	// ServerReplaced says that Retire was called: of has a successor.
	ServerReplaced(of *Supplier)
	// MemoryHasNews says that something else or more is remembered of the server now.
	MemoryHasNews(of *Supplier)
}

// Join has a follower told of Retire, perhaps at once, and of what memory learns. Wait waits until the follower has
// left; one that goes on with a successor joins that first.
func (s *Supplier) Join(f Follower) {
	s.goroutines.Add(1)
	s.followersMu.Lock()
	if s.followers == nil {
		s.followers = make(map[Follower]bool)
	}
	s.followers[f] = true
	s.followersMu.Unlock()
	if s.IsReplaced() {
		f.ServerReplaced(s)
	}
}

// Leave has a follower that has joined no longer told.
func (s *Supplier) Leave(f Follower) {
	s.followersMu.Lock()
	delete(s.followers, f)
	s.followersMu.Unlock()
	s.goroutines.Done()
}

// succession is what a supplier and its successors share.
type succession struct {
	// goroutines are what Wait waits for.
	goroutines sync.WaitGroup
	// serving ends with Drain, closed with Close.
	serving, closed context.Context
	drain, close    context.CancelFunc

	mu sync.Mutex // guards live
	// live are the suppliers that may still have sessions.
	live []*Supplier
}

// observable is an upstream that takes the gateway's logger and metrics.
type observable interface {
	Observed(*slog.Logger, *metrics.Metrics) upstream.Upstream
}

// excused is an upstream that knows why its server does not answer.
type excused interface{ Excuse() string }

var (
	_ excused = upstream.Command{}
	_ excused = upstream.URL{}
)

// Advice returns what errors about a server that does not answer add: what to change, or
// nothing. It quotes nothing, because the text may be about another client.
func (s *Supplier) Advice() string {
	if up, ok := s.up.(excused); ok {
		return up.Excuse()
	}
	return ""
}

// Saying returns what the process that was asked last to initialize has written while it has not answered yet, to stderr
// or else as text to stdout; empty if that is nothing, or the server is no process.
func (s *Supplier) Saying() string {
	session := s.asked.Load()
	if session == nil {
		return ""
	}
	if c, ok := session.conn.(talkative); ok && c.LastWords() != "" {
		return c.LastWords()
	}
	if c, ok := session.conn.(interface{ Printed() string }); ok {
		return c.Printed()
	}
	return ""
}

// NewSupplier returns a Supplier of sessions with the server that up reaches. It starts
// nothing.
func NewSupplier(up upstream.Upstream, opts SupplierOptions) *Supplier {
	all := &succession{}
	all.closed, all.close = context.WithCancel(context.Background())
	all.serving, all.drain = context.WithCancel(context.Background())
	return all.newSupplier(up, opts)
}

func (all *succession) newSupplier(up upstream.Upstream, opts SupplierOptions) *Supplier {
	s := &Supplier{
		succession: all, replaced: make(chan struct{}),
		up: up, log: opts.Session.Logger, limited: throttle.NewLines().Logger(opts.Session.Logger),
		metrics: opts.Session.Metrics,
		tools:   &multiplex.Tools{}, turns: fair.NewPlaces(maxStarts), places: fair.NewPlaces(opts.MaxSessions),
	}
	s.life, s.end = context.WithCancel(all.closed)
	s.readiness.life, s.readiness.drain = context.WithCancel(all.serving)
	s.setOptions(opts)
	if o, ok := up.(observable); ok {
		s.up = o.Observed(s.limited, s.metrics)
	}
	if opts.Shared {
		s.shared = &shared{supplier: s, pauses: NewPauses()}
	} else {
		s.pool = &pool{supplier: s, warm: make(chan *Session)}
	}
	all.mu.Lock()
	defer all.mu.Unlock()
	all.live = append(slices.DeleteFunc(all.live,
		func(s *Supplier) bool { return s.life.Err() != nil && s.places.Free() }), s)
	return s
}

// Options returns the options of now, which the caller must not change.
func (s *Supplier) Options() *SupplierOptions { return s.options.Load() }

func (s *Supplier) setOptions(opts SupplierOptions) {
	opts.Session.Shared, opts.Session.Limited = opts.Shared, s.limited
	if !opts.Forwards {
		opts.Session.Tools = s.tools
	}
	s.options.Store(&opts)
}

// Reconfigure changes options for the sessions and starts that begin from now on.
func (s *Supplier) Reconfigure(opts SupplierOptions) {
	s.setOptions(opts)
	s.places.Resize(opts.MaxSessions)
	if s.started.Load() {
		s.keepWarm()
	}
}

// Successor returns a Supplier of sessions with another server, about which nothing is
// known yet. Drain, Close, Wait and Abort are for both. The caller must call Retire once users
// open sessions with the new one alone. MaxSessions bounds those of each.
func (s *Supplier) Successor(up upstream.Upstream, opts SupplierOptions) *Supplier {
	next := s.newSupplier(up, opts)
	if s.started.Load() {
		next.Start()
	}
	return next
}

// Retire makes the supplier, which has a successor, start nothing any more. It ends the warm
// servers, retires the shared session, and tells those who have joined.
func (s *Supplier) Retire() {
	s.readiness.drain()
	close(s.replaced)
	s.end()
	s.tell(func(f Follower) { f.ServerReplaced(s) })
}

// tell calls f for each follower that has joined.
func (s *Supplier) tell(f func(Follower)) {
	s.followersMu.Lock()
	all := slices.Collect(maps.Keys(s.followers))
	s.followersMu.Unlock()
	for _, l := range all {
		f(l)
	}
}

// IsReplaced reports whether Retire was called.
func (s *Supplier) IsReplaced() bool { return closed.Is(s.replaced) }

// Start starts the warm servers or the shared session that SupplierOptions.Warm configures. It
// does not wait for them, and is idempotent.
func (s *Supplier) Start() {
	if s.started.CompareAndSwap(false, true) {
		s.keepWarm()
	}
}

func (s *Supplier) keepWarm() {
	switch {
	case s.pool != nil:
		s.pool.resize()
	case s.Options().Warm > 0:
		s.Go(func() { _, _ = s.shared.get(s.life) }) // ends with the start
	}
}

// Tools returns the size of the server's list of tools, nil if no client has read it, or if
// each may have a list of its own.
func (s *Supplier) Tools() *multiplex.ToolList { return s.tools.List() }

// Shares reports whether connections share sessions.
func (s *Supplier) Shares() bool { return s.shared != nil }

// Repeatable reports whether a request to the server may be run twice.
func (s *Supplier) Repeatable(m *jsonrpc.Message) bool { return s.tools.Safe(m) }

// Go runs f in a goroutine. Wait waits for it.
func (s *Supplier) Go(f func()) { s.goroutines.Go(f) }

// Closed returns a context that ends with Close.
func (s *Supplier) Closed() context.Context { return s.closed }

// Close ends the warm servers, the shared session and their starts. Sessions that
// connections own go on.
func (s *Supplier) Close() { s.close() }

// Wait waits until all sessions and all goroutines of Go have ended, and all followers have left.
func (s *Supplier) Wait() { s.goroutines.Wait() }

// leavePlace gives up the place of a session that was not started, or has ended.
func (s *Supplier) leavePlace() {
	s.places.Give()
	s.metrics.Sessions(-1)
}

// Abort kills the server's processes and all their children at once.
func (s *Supplier) Abort() {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, other := range s.live {
		if a, ok := other.up.(interface{ Abort() }); ok {
			a.Abort()
		}
	}
}

// noteUse notes that the server is used, at a time in Unix nanoseconds.
func (s *Supplier) noteUse(at int64) {
	if s.pool != nil {
		s.pool.noteUse(at)
	}
}

// Memory returns how many bytes of memory the server's processes hold, as far as the system tells.
func (s *Supplier) Memory() (bytes int64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, other := range s.live {
		if up, ok := other.up.(interface{ Memory() int64 }); ok {
			bytes += up.Memory()
		}
	}
	return bytes
}

// warnOfVersion logs a warning, once, for a protocol version that clients may not
// know.
func (s *Supplier) warnOfVersion(session *Session) {
	version := session.Result().Server().ProtocolVersion
	last := s.oddVersion.Load()
	if !mcp.HasInitialize(version) && (last == nil || *last != version) {
		s.oddVersion.Store(&version)
		s.log.Warn("server speaks an unknown protocol version", session.ServerAttrs()...)
	}
}
