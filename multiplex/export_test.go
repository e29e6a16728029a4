package multiplex

// Tables returns the size of all that a session holds, by name, for the tests that
// nothing is left behind.
func (s *Session) Tables() map[string]int {
	s.mu.Lock()
	defer s.mu.Unlock()
	subscribed := 0
	for _, who := range s.subscriptions {
		subscribed += len(who)
	}
	requests := 0
	for _, t := range s.ports {
		for p := t.requests; p != nil; p = p.next {
			requests++
		}
	}
	return map[string]int{
		"pending": len(s.pending), "out": s.out, "inFlight": s.inFlight, "blocked": s.blocked, "kept": s.kept,
		"queue": len(s.queue.list), "queue.count": s.queue.count, "queue.bytes": s.queue.bytes,
		"deadlines": len(s.deadlines.heap), "calls": len(s.calls.open), "lanes": len(s.lanes.byKey), "lanes.ready": len(s.lanes.ready),
		"subscriptions": subscribed, "tokens of tasks": len(s.tasks.tokens), "tasks": len(s.tasks.byID),
		"elicitations": len(s.elicitations.ports) + len(s.elicitations.order), "requests of ports": requests, "ports": len(s.ports),
		"abandoned": len(s.abandoned),
	}
}

// Timer reports whether a timer of the session runs.
func (s *Session) Timer() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.deadlines.timer != nil
}
