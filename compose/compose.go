package compose

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/mcp-sse/mcp-sse/internal/asker"
	"github.com/mcp-sse/mcp-sse/internal/merge"
	"github.com/mcp-sse/mcp-sse/jsonrpc"
)

// A View is an upstream that brings several servers together. It is safe for concurrent use. Its gateway serves it
// as any other server.
type View struct {
	replacing sync.Mutex // held by Replace; taken before mu

	mu       sync.Mutex // guards what follows; taken before session.mu
	setup    *setup
	sessions map[*session]bool
	logged   map[[sha256.Size]byte]bool // the lines that the log has, by what they say

	cache cache
	known known
}

var _ jsonrpc.Dialer = (*View)(nil)

// New returns a view of members, in their order, of which there may be 64. The error names everything that is wrong.
func New(members []Member, opts Options) (*View, error) {
	setup, err := newSetup(members, opts)
	if err != nil {
		return nil, err
	}
	return &View{
		setup: setup, sessions: make(map[*session]bool), logged: make(map[[sha256.Size]byte]bool),
		cache: cache{merge: merge.Build, lists: make(map[listKey]*merge.List)},
		known: known{
			late: make(map[string]bool), troubles: make(map[string]*trouble), failure: make(map[string]string),
			tools: make(map[string]int),
		},
	}, nil
}

// Dial opens a session of one client. It does not wait, and opens no member: initialize does.
func (v *View) Dial(ctx context.Context) (jsonrpc.Conn, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	v.mu.Lock()
	defer v.mu.Unlock()
	s := &session{
		view: v, ctx: context.WithoutCancel(ctx), opened: time.Now(), setup: v.setup,
		own: make(map[jsonrpc.ID]ownRequest), open: make(map[int64]openRequest), asked: make(map[jsonrpc.ID]asked),
		waiting: make(map[int64]*waiter), subscribed: make(map[string]subscription),
		asksFor: make(map[int64]wish),
		leaving: make(map[*link]bool),
	}
	for _, m := range s.setup.members {
		s.links = append(s.links, &link{s: s, m: m})
	}
	v.sessions[s] = true
	a := asker.FromContext(ctx)
	if a != nil && a.OnCheck != nil {
		s.unfollow = append(s.unfollow, a.OnCheck(s.recheck))
	}
	if a != nil && a.OnListen != nil {
		s.unfollow = append(s.unfollow, a.OnListen(s.listen))
	}
	return s, nil
}

// Replace gives the view other members and options while it serves. Sessions keep the connections to members whose
// Name and Upstream stay. Requests that other members have are still answered. Clients are told of lists that differ.
// If New would refuse them, Replace returns the error of New and changes nothing.
func (v *View) Replace(members []Member, opts Options) error {
	setup, err := newSetup(members, opts)
	if err != nil {
		return err
	}
	v.replacing.Lock()
	defer v.replacing.Unlock()
	v.mu.Lock()
	stay := make(map[string]bool)
	for _, m := range v.setup.members {
		stay[m.Name] = slices.ContainsFunc(setup.members, m.isSame)
	}
	v.known.keepOnly(stay)
	v.setup = setup
	sessions := slices.Collect(maps.Keys(v.sessions))
	v.mu.Unlock()
	for _, s := range sessions {
		s.replace(setup)
	}
	return nil
}

// The values of Report.State.
const (
	StateListed  = "listed"  // its tools are known
	StateLate    = "late"    // a list has waited for it in vain
	StateFailing = "failing" // it fails for a session
	StateUnused  = "unused"  // no client has needed it
)

// Report is what is known of a member.
type Report struct {
	Name    string
	State   string // listed, late, failing or unused
	Failure string // why it fails, or has failed last; empty once it has listed
	Tools   int    // of its last list; -1: unknown
}

// Members returns what is known of each member, from state alone, in their order.
func (v *View) Members() []Report {
	members := v.configured().members
	all := make([]Report, len(members))
	for i, m := range members {
		all[i] = v.known.report(m.Name)
	}
	return all
}

// forget removes a session that is over.
func (v *View) forget(s *session) {
	v.mu.Lock()
	delete(v.sessions, s)
	v.mu.Unlock()
	v.known.forget(s)
}

// Ready returns nil if a member is ready, by the Ready of its Upstream; else why none is. A member whose Upstream has
// none counts as ready. All are asked at once, and the first that is ready decides.
func (v *View) Ready(ctx context.Context) error {
	members := v.configured().members
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	results := make(chan error, len(members))
	for _, m := range members {
		go func() { results <- m.ready(ctx) }() // ends with ctx, at the latest
	}
	var why []error
	for range members {
		err := <-results
		if err == nil {
			return nil
		}
		why = append(why, err)
	}
	return errors.Join(why...)
}

// ready returns nil if the member is ready.
func (m *member) ready(ctx context.Context) error {
	up, ok := m.Upstream.(interface {
		Ready(ctx context.Context) error
	})
	if !ok {
		return nil
	}
	if err := up.Ready(ctx); err != nil {
		return fmt.Errorf("%s: %w", m.Name, err)
	}
	return nil
}
