package compose

import (
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/mcp-sse/mcp-sse/internal/merge"
)

// The pauses before a failing member is tried again.
const (
	firstPause = 5 * time.Second
	lastPause  = 5 * time.Minute
)

// known is what all sessions know of members, by their names.
type known struct {
	mu       sync.Mutex // taken after session.mu
	late     map[string]bool
	troubles map[string]*trouble
	failure  map[string]string // why a member fails or has failed last, until it lists
	tools    map[string]int    // of the last list of a member
}

// trouble is a member that fails for at least one session. It ends when the member has listed, for any session, or when
// no such session is left.
type trouble struct {
	links map[*link]bool
	pause time.Duration // before the next try
	timer *time.Timer   // of the next try; nil: one is under way
}

// noteLate notes that a list, or a request by a URI, has waited for a member in vain, for as long as any may.
func (v *View) noteLate(member string) {
	v.known.mu.Lock()
	defer v.known.mu.Unlock()
	v.known.late[member] = true
}

// isKnownToBeSlow reports whether no list, and no request by a URI, of any session waits for a member: it is late, or
// fails for a session.
func (v *View) isKnownToBeSlow(member string) bool {
	v.known.mu.Lock()
	defer v.known.mu.Unlock()
	return v.known.late[member] || v.known.troubles[member] != nil
}

// noteFailing notes that a link fails, and has its member tried again after a pause.
func (v *View) noteFailing(l *link) {
	k, name := &v.known, l.m.Name
	k.mu.Lock()
	defer k.mu.Unlock()
	if _, before := k.failure[name]; !before {
		log, why := l.s.log(), l.why
		l.s.later(func() { log.Warn("member failed", "member", name, "err", why) })
	}
	k.failure[name] = l.why
	t := k.troubles[name]
	if t == nil {
		t = &trouble{links: make(map[*link]bool), pause: firstPause}
		k.troubles[name] = t
	}
	t.links[l] = true
	if t.timer == nil {
		t.timer = time.AfterFunc(t.pause, func() { v.tryAgain(name, t) })
		t.pause = min(2*t.pause, lastPause)
	}
}

// noteWhy notes a better reason why a link fails.
func (v *View) noteWhy(l *link) {
	v.known.mu.Lock()
	defer v.known.mu.Unlock()
	if _, fails := v.known.failure[l.m.Name]; fails && l.why != "" {
		v.known.failure[l.m.Name] = l.why
	}
}

// tryAgain has the failing links of a member try again.
func (v *View) tryAgain(member string, t *trouble) {
	k := &v.known
	k.mu.Lock()
	if k.troubles[member] != t {
		k.mu.Unlock()
		return
	}
	t.timer = nil
	links := slices.Collect(maps.Keys(t.links))
	k.mu.Unlock()
	retryAll(links)
}

// retryAll has links try again that fail. No lock is held.
func retryAll(links []*link) {
	for _, l := range links {
		l.s.mu.Lock()
		if l.s.err == nil {
			l.event(retry, merge.Tools)
		}
		l.s.unlock()
	}
}

// noteListed notes that a member has listed: it is neither late nor failing any more. Sessions for which it fails try
// again at once.
func (v *View) noteListed(l *link) {
	k := &v.known
	k.mu.Lock()
	defer k.mu.Unlock()
	delete(k.late, l.m.Name)
	if _, failed := k.failure[l.m.Name]; failed {
		log, name := l.s.log(), l.m.Name
		l.s.later(func() { log.Info("member back", "member", name) })
	}
	delete(k.failure, l.m.Name)
	t := k.troubles[l.m.Name]
	if t == nil {
		return
	}
	k.end(l.m.Name, t)
	delete(t.links, l)
	if len(t.links) > 0 {
		others := slices.Collect(maps.Keys(t.links))
		l.s.later(func() { retryAll(others) })
	}
}

// noteTools notes how many tools a member has listed.
func (v *View) noteTools(member string, tools int) {
	v.known.mu.Lock()
	defer v.known.mu.Unlock()
	v.known.tools[member] = tools
}

// report returns what is known of a member.
func (k *known) report(member string) Report {
	k.mu.Lock()
	defer k.mu.Unlock()
	r := Report{Name: member, State: StateUnused, Failure: k.failure[member], Tools: -1}
	if tools, ok := k.tools[member]; ok {
		r.State, r.Tools = StateListed, tools
	}
	switch {
	case k.troubles[member] != nil:
		r.State = StateFailing
	case k.late[member]:
		r.State = StateLate
	}
	return r
}

// leave removes a link whose member has left the view.
func (k *known) leave(l *link) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if t := k.troubles[l.m.Name]; t != nil {
		if delete(t.links, l); len(t.links) == 0 {
			k.end(l.m.Name, t)
		}
	}
}

// keepOnly forgets all members but these.
func (k *known) keepOnly(members map[string]bool) {
	k.mu.Lock()
	defer k.mu.Unlock()
	others := func(name string) bool { return !members[name] }
	maps.DeleteFunc(k.late, func(name string, _ bool) bool { return others(name) })
	maps.DeleteFunc(k.failure, func(name, _ string) bool { return others(name) })
	maps.DeleteFunc(k.tools, func(name string, _ int) bool { return others(name) })
}

// end ends a trouble, with mu held.
func (k *known) end(member string, t *trouble) {
	if t.timer != nil {
		t.timer.Stop()
	}
	delete(k.troubles, member)
}

// forget removes the links of a session that is over.
func (k *known) forget(s *session) {
	k.mu.Lock()
	defer k.mu.Unlock()
	for member, t := range k.troubles {
		for _, l := range s.links {
			delete(t.links, l)
		}
		if len(t.links) == 0 {
			k.end(member, t)
		}
	}
}
