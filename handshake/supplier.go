package handshake

import (
	"context"
	"encoding/json"
	"maps"
	"slices"
	"sync"

	"github.com/mcp-sse/mcp-sse/internal/remember"
	"github.com/mcp-sse/mcp-sse/upstream"
)

// Supplier starts sessions with one server and supplies them to connections. It is
// safe for concurrent use. Make it with NewSupplier and end it with Close and Wait.
type Supplier struct {
	*source
	// pool has the warm servers; none if connections share a session. shared has that session; it is nil if each
	// connection has its own.
	pool   *pool
	shared *shared
	renewal
	emptyFolder

	followersMu sync.Mutex // guards followers
	followers   map[Follower]bool
}

// Follower goes on with another server, or with what is remembered, when it is told so. It may not wait then.
type Follower interface {
	// ServerReplaced says that Retire was called: of has a successor.
	ServerReplaced(of *Supplier)
	// MemoryHasNews says that something else or more is remembered of the server now.
	MemoryHasNews(of *Supplier)
	// SelectionChanged says that clients get other lists of these kinds now: "tools", "prompts" or "resources".
	SelectionChanged(kinds []string)
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

// NewSupplier returns a Supplier of sessions with the server that up reaches. It starts
// nothing.
func NewSupplier(up upstream.Upstream, opts SupplierOptions) *Supplier {
	all := &succession{}
	all.closed, all.close = context.WithCancel(context.Background())
	all.serving, all.drain = context.WithCancel(context.Background())
	return all.newSupplier(up, opts)
}

// newSupplier returns a supplier of sessions with up that shares what the succession has, and has started nothing yet.
func (all *succession) newSupplier(up upstream.Upstream, opts SupplierOptions) *Supplier {
	s := &Supplier{}
	s.source = all.newSource(up, opts, s)
	s.pool = &pool{source: s.source, warm: make(chan *Session)}
	s.renewal.pool, s.emptyFolder.source = s.pool, s.source
	if opts.Shared {
		s.shared = &shared{source: s.source, pauses: NewPauses()}
	}
	return s
}

// Open returns a session for a client: the shared one, or one of its own, which the
// client must Close. from says where it comes from, for the log. The start timeout bounds all from
// the start of the server, or from its taking out of the pool, to the end of the handshake.
// The wait for a turn comes before it. The error is a *Failure.
func (s *Supplier) Open(ctx context.Context, c OpenOptions) (session *Session, from string, err error) {
	if s.shared != nil {
		session, err = s.shared.getSession(ctx)
		return session, FromShared, err
	}
	return s.pool.open(ctx, c)
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
	s.unready()
	close(s.replaced)
	s.source.end()
	s.tellFollowers(func(f Follower) { f.ServerReplaced(s) })
}

// tellFollowers calls f for each follower that has joined.
func (s *Supplier) tellFollowers(f func(Follower)) {
	s.followersMu.Lock()
	all := slices.Collect(maps.Keys(s.followers))
	s.followersMu.Unlock()
	for _, l := range all {
		f(l)
	}
}

// TellSelectionChanged tells those who have joined.
func (s *Supplier) TellSelectionChanged(kinds []string) {
	s.tellFollowers(func(f Follower) { f.SelectionChanged(kinds) })
}

// Start starts the warm servers or the shared session that SupplierOptions.Warm configures. It
// does not wait for them, and is idempotent.
func (s *Supplier) Start() {
	if s.started.CompareAndSwap(false, true) {
		s.keepWarm()
	}
}

// keepWarm starts as many servers ahead as Warm says: for a shared session that one, in the background.
func (s *Supplier) keepWarm() {
	switch {
	case s.shared == nil:
		s.pool.resize()
	case s.Options().Warm > 0:
		s.Go(func() { _, _ = s.shared.getSession(s.life) }) // ends with the start
	}
}

// A Supplier is the observer of its source.

func (s *Supplier) serverUsed(at int64) { s.pool.noteUse(at) }
func (s *Supplier) sessionEnded()       { s.learnInAnyFolderSoon() }
func (s *Supplier) memoryHasNews()      { s.tellFollowers(func(f Follower) { f.MemoryHasNews(s) }) }

func (s *Supplier) memoryDiffers(of remember.Client, params json.RawMessage, who string) {
	s.renewDiffering(of, params, who)
}
