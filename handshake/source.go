package handshake

import (
	"context"
	"encoding/json"
	"log/slog"
	"slices"
	"sync"
	"sync/atomic"

	"github.com/mcp-sse/mcp-sse/internal/closed"
	"github.com/mcp-sse/mcp-sse/internal/fair"
	"github.com/mcp-sse/mcp-sse/internal/mcp"
	"github.com/mcp-sse/mcp-sse/internal/multiplex"
	"github.com/mcp-sse/mcp-sse/internal/remember"
	"github.com/mcp-sse/mcp-sse/internal/throttle"
	"github.com/mcp-sse/mcp-sse/internal/upstream/remote"
	"github.com/mcp-sse/mcp-sse/internal/upstream/stdio"
	"github.com/mcp-sse/mcp-sse/jsonrpc"
	"github.com/mcp-sse/mcp-sse/metrics"
	"github.com/mcp-sse/mcp-sse/upstream"
)

// maxStarts bounds the sessions that start at the same time.
const maxStarts = 16

// source is one server as its sessions see it: how to reach it, the options, the places for sessions, and what all of
// them have shown of the server. It knows neither a session nor the Supplier. Through it a session tells the observer
// what concerns more than its own clients.
type source struct {
	*succession
	*record
	observer observer // nil: there is none
	up       upstream.Upstream
	options  atomic.Pointer[SupplierOptions]
	// limited is log for what a server that keeps failing causes at will.
	log, limited *slog.Logger
	metrics      *metrics.Metrics

	// tools is what is known of the server's tools. With Forwards nothing is learned, because each
	// client may have others.
	tools *multiplex.Tools
	// turns are those of starts, and places those of sessions, from before their start until they
	// have ended.
	turns, places *fair.Places

	// asked is the jsonrpc.Conn of the session whose handshake began last.
	asked atomic.Pointer[jsonrpc.Conn]
	// server is what the server last said of itself.
	server atomic.Pointer[Server]
	// about is what it last said of itself to people. With Forwards it stays nil.
	about atomic.Pointer[About]
	// lowered is the newest protocol version that the server does not refuse; nil if it has refused
	// none.
	lowered atomic.Pointer[string]
	// manyTools guards the warning about tools that clients drop, and oddVersion is the unknown
	// protocol version of the last warning about that.
	manyTools  sync.Once
	oddVersion atomic.Pointer[string]

	// started says that Supplier.Start has been called.
	started atomic.Bool
	// Close and Retire end life. Drain and Retire end ready. Retire also closes replaced. The contexts serving and
	// closed are those of the succession. In each condition of a source these are done:
	//
	//	condition  since                started  serving  ready  closed  life  replaced
	//	new        newSource            no
	//	serving    Supplier.Start       yes
	//	draining   Drain                either   done     done
	//	closed     Close, after Drain   either   done     done   done    done
	//	retired    Supplier.Retire      either            done           done  done
	//
	// A drain and its end come to a retired source as well, with those of its successor.
	life, ready  context.Context
	end, unready context.CancelFunc
	replaced     chan struct{}
}

// observer is told what happens to the sessions of a source. It may not wait then.
type observer interface {
	// serverUsed says that a client uses the server, at a time in Unix nanoseconds.
	serverUsed(at int64)
	// sessionEnded says that a session has ended, and has left its place.
	sessionEnded()
	// memoryHasNews says that something else or more is remembered of the server now.
	memoryHasNews()
	// memoryDiffers says that a session's answers differ from what is remembered for clients like its own, but its
	// client may be the reason: the session had its messages before. A session without a client, with these params,
	// shows what holds for all. who is a remember.Principal.
	memoryDiffers(of remember.Client, params json.RawMessage, who string)
}

// tellObserver tells the observer, if there is one.
func (s *source) tellObserver(event func(observer)) {
	if s.observer != nil {
		event(s.observer)
	}
}

// succession is what a supplier and its successors share.
type succession struct {
	// goroutines are what Wait waits for.
	goroutines sync.WaitGroup
	// serving ends with Drain, closed with Close.
	serving, closed context.Context
	drain, close    context.CancelFunc

	mu sync.Mutex // guards live
	// live are those of the suppliers that may still have sessions.
	live []*source
}

// newSource returns a source of sessions with the server that up reaches.
func (all *succession) newSource(up upstream.Upstream, opts SupplierOptions, told observer) *source {
	s := &source{
		succession: all, record: &record{forwards: opts.Forwards}, observer: told, replaced: make(chan struct{}),
		up: up, log: opts.Session.Logger, limited: throttle.NewLines().Logger(opts.Session.Logger),
		metrics: opts.Session.Metrics,
		tools:   &multiplex.Tools{}, turns: fair.NewPlaces(maxStarts), places: fair.NewPlaces(opts.MaxSessions),
	}
	s.life, s.end = context.WithCancel(all.closed)
	s.ready, s.unready = context.WithCancel(all.serving)
	s.setOptions(opts)
	if o, ok := up.(observable); ok {
		s.up = o.Observed(s.limited, s.metrics)
	}
	all.mu.Lock()
	defer all.mu.Unlock()
	all.live = append(slices.DeleteFunc(all.live,
		func(s *source) bool { return s.life.Err() != nil && s.places.Free() }), s)
	return s
}

// Abort kills the server's processes and all their children at once.
func (all *succession) Abort() {
	all.mu.Lock()
	defer all.mu.Unlock()
	for _, other := range all.live {
		if a, ok := other.up.(interface{ Abort() }); ok {
			a.Abort()
		}
	}
}

// Memory returns how many bytes of memory the server's processes hold, as far as the system tells.
func (all *succession) Memory() (bytes int64) {
	all.mu.Lock()
	defer all.mu.Unlock()
	for _, other := range all.live {
		if up, ok := other.up.(interface{ Memory() int64 }); ok {
			bytes += up.Memory()
		}
	}
	return bytes
}

// observable is an upstream that takes the gateway's logger and metrics.
type observable interface {
	Observed(*slog.Logger, *metrics.Metrics) upstream.Upstream
}

// excused is an upstream that knows why its server does not answer.
type excused interface{ Excuse() string }

var (
	_ excused = stdio.Command{}
	_ excused = remote.URL{}
)

// Advice returns what errors about a server that does not answer add: what to change, or
// nothing. It quotes nothing, because the text may be about another client.
func (s *source) Advice() string {
	if up, ok := s.up.(excused); ok {
		return up.Excuse()
	}
	return ""
}

// talkative is a Conn whose server writes to stderr.
type talkative interface{ LastWords() string }

// Saying returns what the process that was asked last to initialize has written while it has not answered yet, to
// stderr or else as text to stdout; empty if that is nothing, or the server is no process.
func (s *source) Saying() string {
	conn := s.asked.Load()
	if conn == nil {
		return ""
	}
	if c, ok := (*conn).(talkative); ok && c.LastWords() != "" {
		return c.LastWords()
	}
	if c, ok := (*conn).(interface{ Printed() string }); ok {
		return c.Printed()
	}
	return ""
}

// Options returns the options of now, which the caller must not change.
func (s *source) Options() *SupplierOptions { return s.options.Load() }

func (s *source) setOptions(opts SupplierOptions) {
	opts.Session.Shared, opts.Session.Limited = opts.Shared, s.limited
	s.tools.Offer(opts.Offers)
	if !opts.Forwards {
		opts.Session.Tools = s.tools
	}
	s.options.Store(&opts)
}

// IsReplaced reports whether Retire was called.
func (s *source) IsReplaced() bool { return closed.Is(s.replaced) }

// Tools returns the size of the server's list of tools, nil if no client has read it, or if
// each may have a list of its own.
func (s *source) Tools() *multiplex.ToolList { return s.tools.List() }

// Shares reports whether connections share sessions.
func (s *source) Shares() bool { return s.Options().Shared }

// Repeatable reports whether a request to the server may be run twice.
func (s *source) Repeatable(m *jsonrpc.Message) bool { return s.tools.Safe(m) }

// Go runs f in a goroutine. Wait waits for it.
func (s *source) Go(f func()) { s.goroutines.Go(f) }

// Closed returns a context that ends with Close.
func (s *source) Closed() context.Context { return s.closed }

// Drain makes Ready fail. It cancels the running probe; no other begins.
func (s *source) Drain() { s.drain() }

// Close ends the warm servers, the shared session and their starts. Sessions that
// connections own go on.
func (s *source) Close() { s.close() }

// Wait waits until all sessions and all goroutines of Go have ended, and all followers have left.
func (s *source) Wait() { s.goroutines.Wait() }

// leavePlace gives up the place of a session that was not started, or has ended.
func (s *source) leavePlace() {
	s.places.Release()
	s.metrics.Sessions(-1)
}

// warnOfVersion logs a warning, once, for a protocol version that clients may not
// know.
func (s *source) warnOfVersion(server Server) {
	version := server.ProtocolVersion
	last := s.oddVersion.Load()
	if !mcp.HasInitialize(version) && (last == nil || *last != version) {
		s.oddVersion.Store(&version)
		s.log.Warn("server speaks an unknown protocol version", server.attrs()...)
	}
}
