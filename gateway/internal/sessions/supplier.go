package sessions

import (
	"context"
	"encoding/json"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"github.com/mcp-sse/mcp-sse/internal/fair"
	"github.com/mcp-sse/mcp-sse/internal/mcp"
	"github.com/mcp-sse/mcp-sse/internal/throttle"
	"github.com/mcp-sse/mcp-sse/jsonrpc"
	"github.com/mcp-sse/mcp-sse/metrics"
	"github.com/mcp-sse/mcp-sse/multiplex"
	"github.com/mcp-sse/mcp-sse/upstream"
)

// Options configure a Supplier. The fields have no defaults.
type Options struct {
	// Name is that of gateway.Options.
	Name string
	// Params are the params of the synthetic initialize. nil: the supplier runs no
	// handshake.
	Params json.RawMessage
	// Shared gives all connections one session; else each has its own.
	Shared bool
	// Warm is the number of servers that the pool keeps started. With Shared, any
	// number above 0 makes Start start the session.
	Warm int
	// Forwards says that sessions get something of their clients' requests. A probe may
	// lack the credentials, and the server may have other tools for each client.
	Forwards bool
	// The fields of gateway.Options with these names.
	MaxSessions           int // below 1: unlimited
	StartTimeout          time.Duration
	InitializationTimeout time.Duration // after it a start is late, and Ready fails
	// Boots says that servers are processes, which keep the machine busy while they boot.
	Boots bool
	// Session configures each session. Its Logger and Metrics, which the supplier
	// uses too, must not be nil. The supplier sets Shared, Habits, Limited, OnTools, OnClose and
	// OnDone.
	Session multiplex.Options
}

// maxStarts bounds the sessions that start at the same time.
const maxStarts = 16

// Supplier starts sessions with one server and supplies them to connections. It is
// safe for concurrent use. Make it with New and end it with Close and Wait.
type Supplier struct {
	up      upstream.Upstream
	opts    Options
	log     *slog.Logger
	limited *slog.Logger // log for what a server that keeps failing causes at will
	metrics *metrics.Metrics

	habits     *multiplex.Habits // of all servers; with Forwards nothing is learned
	readiness  readiness
	mute       atomic.Bool            // servers do not answer a ping before initialize, or end because of it
	manyTools  sync.Once              // guards a warning
	oddVersion atomic.Pointer[string] // the unknown protocol version of the last warning
	turns      *fair.Places           // of starts
	places     *fair.Places           // of sessions, from before their start until they have ended
	pool       *pool                  // nil: there are no warm servers
	shared     *shared                // nil: each connection has its own session
	warm       sync.Once              // guards Start

	life       context.Context // ends with Close
	end        context.CancelFunc
	goroutines sync.WaitGroup // started by Go
}

// observable is an upstream that takes the gateway's logger and metrics.
type observable interface {
	Observed(*slog.Logger, *metrics.Metrics) upstream.Upstream
}

// writer is an upstream that knows whether its server writes text instead of messages.
type writer interface{ WritesText() bool }

var _ writer = upstream.Command{}

// Advice returns what errors about a server that does not answer add: what to change, or
// nothing. It quotes nothing, because the text may be about another client.
func (s *Supplier) Advice() string {
	if w, ok := s.up.(writer); ok && w.WritesText() {
		return "; it writes text to stdout, which is for MCP messages: start it in its stdio mode, and have it log to stderr"
	}
	return ""
}

// New returns a Supplier of sessions with the server that up reaches. It starts
// nothing.
func New(up upstream.Upstream, opts Options) *Supplier {
	s := &Supplier{
		up: up, opts: opts, log: opts.Session.Logger, limited: throttle.NewLines().Logger(opts.Session.Logger), metrics: opts.Session.Metrics,
		habits: &multiplex.Habits{}, turns: fair.NewPlaces(maxStarts), places: fair.NewPlaces(opts.MaxSessions),
	}
	s.life, s.end = context.WithCancel(context.Background())
	s.readiness.life, s.readiness.drain = context.WithCancel(context.Background())
	s.opts.Session.Shared = opts.Shared
	if !opts.Forwards {
		s.opts.Session.Habits = s.habits
	}
	s.opts.Session.Limited = s.limited
	if o, ok := up.(observable); ok {
		s.up = o.Observed(s.limited, s.metrics)
	}
	switch {
	case opts.Shared:
		s.shared = &shared{supplier: s, pauses: NewBackoff()}
	case opts.Warm > 0:
		s.pool = &pool{supplier: s, warm: make(chan *Session)}
	}
	return s
}

// Start starts the warm servers or the shared session that Options.Warm configures. It
// does not wait for them, and is idempotent.
func (s *Supplier) Start() {
	s.warm.Do(func() {
		switch {
		case s.pool != nil:
			for range s.opts.Warm {
				s.Go(s.pool.keep) // ends with the supplier
			}
		case s.shared != nil && s.opts.Warm > 0:
			s.Go(func() { _, _ = s.shared.get(s.life) }) // ends with the start
		}
	})
}

// Tools returns the size of the server's list of tools, nil if no client has read it, or if
// each may have a list of its own.
func (s *Supplier) Tools() *multiplex.ToolList { return s.habits.Tools() }

// Shares reports whether connections share sessions.
func (s *Supplier) Shares() bool { return s.shared != nil }

// Repeatable reports whether a request to the server may be run twice.
func (s *Supplier) Repeatable(m *jsonrpc.Message) bool { return s.habits.Safe(m) }

// Go runs f in a goroutine. Wait waits for it.
func (s *Supplier) Go(f func()) { s.goroutines.Go(f) }

// Close ends the warm servers, the shared session and their starts. Sessions that
// connections own go on.
func (s *Supplier) Close() { s.end() }

// Wait waits until all sessions and all goroutines of Go have ended.
func (s *Supplier) Wait() { s.goroutines.Wait() }

// leavePlace gives up the place of a session that was not started, or has ended.
func (s *Supplier) leavePlace() {
	s.places.Give()
	s.metrics.SessionEnded()
}

// Abort kills the server's processes and all their children at once.
func (s *Supplier) Abort() {
	if a, ok := s.up.(interface{ Abort() }); ok {
		a.Abort()
	}
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
