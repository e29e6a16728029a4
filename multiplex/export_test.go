package multiplex

import "reflect"

// ErrorType names the outcome of a response for the metrics.
var ErrorType = errorType

// Tables returns the size of everything that a session holds, by name, for tests
// that look for leaks.
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
	sizes := map[string]int{
		"pending": t.byID.Len(), "out": t.out, "inFlight": t.inFlight, "blocked": t.blocked, "kept": t.kept,
		"queue": len(t.queue.list), "queue.count": t.queue.count, "queue.bytes": t.queue.bytes,
		"calls": len(s.calls.open), "serial": len(t.queue.serial), "serial.ready": len(t.queue.ready),
		"requests of callers": requests, "callers": len(s.callers),
		"abandoned": len(t.abandoned),
	}
	addSizes(sizes, "deadlines", reflect.ValueOf(t.deadlines))
	addSizes(sizes, "subscriptions", reflect.ValueOf(t.shared.subscriptions))
	addSizes(sizes, "elicitations", reflect.ValueOf(t.shared.elicitations))
	addSizes(sizes, "tasks", reflect.ValueOf(t.shared.tasks))
	delete(sizes, "tasks.order") // it may hold tasks that have been removed
	return sizes
}

// addSizes adds the size of each map and slice that a struct of another package
// has, under its name and that of the field.
func addSizes(sizes map[string]int, name string, of reflect.Value) {
	for field, v := range of.Fields() {
		if k := v.Kind(); k == reflect.Map || k == reflect.Slice {
			sizes[name+"."+field.Name] = v.Len()
		}
	}
}

// Timer reports whether a timer of the session runs.
func (s *Session) Timer() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return !reflect.ValueOf(s.table.deadlines).FieldByName("timer").IsNil()
}
