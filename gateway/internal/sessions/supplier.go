package sessions

import (
	"context"
	"encoding/json"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"github.com/mcp-sse/mcp-sse/internal/backoff"
	"github.com/mcp-sse/mcp-sse/internal/mcp"
	"github.com/mcp-sse/mcp-sse/metrics"
	"github.com/mcp-sse/mcp-sse/multiplex"
	"github.com/mcp-sse/mcp-sse/upstream"
)

// Options configure a Supplier. They have no defaults.
type Options struct {
	// Params are those of the synthetic initialize; nil: there is none.
	Params json.RawMessage
	// Shared is how many sessions all connections share; 0: each has its own.
	Shared int
	// Warm is how many servers the pool keeps started. With shared sessions, any
	// number above 0 makes Start start those.
	Warm int
	// The fields of gateway.Options with these names.
	StartConcurrency      int
	StartTimeout          time.Duration
	InitializationTimeout time.Duration // then a start is late, and Ready waits no longer
	// Session configures each session. The supplier uses its Logger and Metrics,
	// which must not be nil, and sets Shared, Repeatable, Nameless and OnClose.
	Session multiplex.Options
}

// Supplier starts sessions with one server and supplies them to connections. It is
// safe for concurrent use. Make it with New and end it with Close and Wait.
type Supplier struct {
	up      upstream.Upstream
	opts    Options
	log     *slog.Logger
	metrics *metrics.Metrics

	boots      bool // servers are processes, which keep the machine busy until they answer
	failures   failureLog
	readiness  readiness
	oddVersion atomic.Pointer[string] // the unknown protocol version that was warned of last
	turns      chan struct{}          // has an element for each start that runs
	pool       *pool                  // nil: no server is started ahead
	shared     *shared                // nil: each connection has its own session
	warm       sync.Once              // what Start does

	life       context.Context // ends with Close
	end        context.CancelFunc
	goroutines sync.WaitGroup // those of Go
}

// observable is an upstream that can use the gateway's logger and metrics.
type observable interface {
	Observed(*slog.Logger, *metrics.Metrics) upstream.Upstream
}

// New returns a Supplier of sessions with the server that up reaches. It starts
// nothing.
func New(up upstream.Upstream, opts Options) *Supplier {
	s := &Supplier{
		up: up, opts: opts, log: opts.Session.Logger, metrics: opts.Session.Metrics,
		turns: make(chan struct{}, opts.StartConcurrency),
	}
	s.life, s.end = context.WithCancel(context.Background())
	s.opts.Session.Shared = opts.Shared > 0
	s.opts.Session.Repeatable = &multiplex.Repeatable{}
	s.opts.Session.Nameless = multiplex.NewNameless()
	_, s.boots = up.(upstream.Command)
	if o, ok := up.(observable); ok {
		s.up = o.Observed(slog.New(childLog{s.log.Handler(), &s.failures}), s.metrics)
	}
	switch {
	case opts.Shared > 0:
		s.shared = newShared(s, opts.Shared)
	case opts.Warm > 0:
		s.pool = &pool{supplier: s, size: opts.Warm}
	}
	return s
}

// Start starts the servers and shared sessions that Options.Warm asks for. It does
// not wait for them, and is idempotent.
func (s *Supplier) Start() {
	s.warm.Do(func() {
		switch {
		case s.pool != nil:
			s.pool.refill()
		case s.shared != nil && s.opts.Warm > 0:
			s.shared.start()
		}
	})
}

// Shares reports whether all connections share sessions.
func (s *Supplier) Shares() bool { return s.shared != nil }

// Go runs f in a goroutine that Wait waits for.
func (s *Supplier) Go(f func()) { s.goroutines.Go(f) }

// Close ends the sessions in the pool and the shared ones, and the starts of them.
// Those that connections own go on.
func (s *Supplier) Close() {
	s.end()
	if s.pool != nil {
		s.pool.close()
	}
	if s.shared != nil {
		s.shared.close()
	}
}

// Wait waits until all sessions have ended, and the goroutines of Go.
func (s *Supplier) Wait() { s.goroutines.Wait() }

// Abort kills the server's processes at once, with all they have started.
func (s *Supplier) Abort() {
	if a, ok := s.up.(interface{ Abort() }); ok {
		a.Abort()
	}
}

// warnOfVersion warns of a protocol version that clients may not know, once.
func (s *Supplier) warnOfVersion(session *Session) {
	version := session.result.Server().ProtocolVersion
	last := s.oddVersion.Load()
	if !mcp.HasInitialize(version) && (last == nil || *last != version) {
		s.oddVersion.Store(&version)
		s.log.Warn("server speaks an unknown protocol version", session.ServerAttrs()...)
	}
}

// The mean of the pauses between starts that fail.
const (
	firstPause = 500 * time.Millisecond
	maxPause   = 15 * time.Second
)

// NewBackoff returns the pauses between starts that fail.
func NewBackoff() *backoff.Backoff { return backoff.New(firstPause, maxPause) }
