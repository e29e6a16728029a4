package multiplex

// Tables returns the size of all that a session holds, by name, for the tests that
// nothing is left behind.
func (s *Session) Tables() map[string]int {
	s.mu.Lock()
	defer s.mu.Unlock()
	requests := 0
	for _, c := range s.callers {
		for p := c.requests; p != nil; p = p.next {
			requests++
		}
	}
	t := &s.table
	tasks, progressing := t.shared.tasks.Len()
	return map[string]int{
		"pending": len(t.byID), "out": t.out, "inFlight": t.inFlight, "blocked": t.blocked, "kept": t.kept,
		"queue": len(t.queue.list), "queue.count": t.queue.count, "queue.bytes": t.queue.bytes,
		"deadlines": t.deadlines.Len(), "calls": len(s.calls.open), "serial": len(t.queue.serial), "serial.ready": len(t.queue.ready),
		"subscriptions": t.shared.subscriptions.Len(), "tokens of tasks": progressing, "tasks": tasks,
		"elicitations": t.shared.elicitations.Len(), "requests of callers": requests, "callers": len(s.callers),
		"abandoned": len(t.abandoned),
	}
}

// Timer reports whether a timer of the session runs.
func (s *Session) Timer() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.table.deadlines.Running()
}
