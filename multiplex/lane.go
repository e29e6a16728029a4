package multiplex

import (
	"slices"

	"github.com/mcp-sse/mcp-sse/jsonrpc"
)

// lane has the requests that set one thing of a shared session, as the log level
// or the subscription to one resource. They go one after the other, because what
// becomes of one depends on what has become of those before it. Guarded by
// Session.mu.
type lane struct {
	key     string
	busy    *pending   // the one that the server has, or that waits in the queue
	waiting []*pending // in the order in which they came
}

type lanes struct {
	byKey map[string]*lane
	ready []*lane // those in which the next one may have its turn
}

// laneKey says what a request sets.
func laneKey(p *pending) string {
	if p.method == methodSetLevel {
		return methodSetLevel
	}
	return "uri " + p.uri
}

func (l *lanes) of(key string) *lane {
	if found := l.byKey[key]; found != nil {
		return found
	}
	if l.byKey == nil {
		l.byKey = make(map[string]*lane)
	}
	made := &lane{key: key}
	l.byKey[key] = made
	return made
}

// wake has the next request of a lane get its turn.
func (l *lanes) wake(ready *lane) {
	if !slices.Contains(l.ready, ready) {
		l.ready = append(l.ready, ready)
	}
}

// enterLaneLocked has a request of the table wait for its turn, or gives it that.
func (s *Session) enterLaneLocked(p *pending) verdict {
	p.lane = s.lanes.of(laneKey(p))
	if p.lane.busy == nil && len(p.lane.waiting) == 0 {
		return s.turnLocked(p)
	}
	if !s.queue.takes(p, s.opts.MaxWaiting) {
		s.removeLocked(p)
		return overfull
	}
	p.lane.waiting = append(p.lane.waiting, p)
	return waits
}

// turnLocked decides about a request when all before it are settled.
func (s *Session) turnLocked(p *pending) verdict {
	var v verdict
	switch p.method {
	case methodSetLevel:
		v = s.levelTurnLocked(p)
	default:
		v = s.subscriptionTurnLocked(p)
	}
	if v != goes {
		s.removeLocked(p)
		return v
	}
	p.lane.busy = p
	return s.admitLocked(p)
}

// settleLocked notes the server's answer to a request that has just been taken
// out of the table. It returns those that want the same and get the same error.
func (s *Session) settleLocked(p *pending, failed bool) []*pending {
	switch {
	case p.method == methodSetLevel && !failed:
		s.levelSetLocked(p)
	case p.method == methodSubscribe && !failed:
		s.subscribedLocked(p)
	case p.method == methodSubscribe:
		var same []*pending
		for _, w := range slices.Clone(p.lane.waiting) {
			if w.method != methodSubscribe {
				break
			}
			s.removeLocked(w)
			same = append(same, w)
		}
		return same
	}
	return nil
}

// leaveLaneLocked lets those behind a request have their turn.
func (s *Session) leaveLaneLocked(p *pending) {
	l := p.lane
	if l == nil {
		return
	}
	if l.busy == p {
		l.busy = nil
		if p.sent && p.method == methodSetLevel {
			s.level = levelUnknown // until the answer says so
		}
	}
	if i := slices.Index(l.waiting, p); i >= 0 {
		l.waiting = slices.Delete(l.waiting, i, i+1)
		s.queue.freed(p)
	}
	switch {
	case l.busy != nil:
	case len(l.waiting) > 0:
		s.lanes.wake(l)
	default:
		delete(s.lanes.byKey, l.key)
	}
}

// nextInLaneLocked gives the next turn in a lane that is ready.
func (s *Session) nextInLaneLocked() (*pending, verdict) {
	for len(s.lanes.ready) > 0 {
		l := s.lanes.ready[0]
		if l.busy != nil || len(l.waiting) == 0 {
			s.lanes.ready = s.lanes.ready[1:]
			continue
		}
		p := l.waiting[0]
		l.waiting = slices.Delete(l.waiting, 0, 1)
		s.queue.freed(p)
		if v := s.turnLocked(p); v != waits {
			return p, v
		}
	}
	return nil, nothing
}

// ownLocked makes a request of the gateway's own that nobody waits for, to bring
// the server to where the clients that are left want it.
func (s *Session) ownLocked(method, params, uri string) {
	m, err := jsonrpc.Parse(jsonrpc.NewRequest("0", method, []byte(params)))
	if err != nil || s.err != nil {
		return
	}
	p := &pending{method: method, started: s.now(), request: m, counted: true, uri: uri}
	s.addLocked(p)
	s.deadlineLocked(&p.timed, p, p.started+s.opts.RequestTimeout)
	p.lane = s.lanes.of(laneKey(p))
	p.lane.waiting = append(p.lane.waiting, p)
	s.queue.count++
	s.queue.bytes += len(m.Raw())
	s.lanes.wake(p.lane)
}
