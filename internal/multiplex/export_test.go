package multiplex

import "reflect"

// Tables returns the size of everything that a session holds, by name, for tests
// that look for leaks.
func (s *Session) Tables() map[string]int {
	s.mu.Lock()
	defer s.mu.Unlock()
	t := &s.table
	sizes := map[string]int{
		"entries": len(t.byID), "out": t.out, "counted": t.counted, "blocked": t.blocked, "kept": t.kept,
		"queue": t.queue.waiting.Len(), "queue.bytes": t.queue.bytes, "busy": len(t.queue.busy),
		"calls": len(s.calls.open), "callers": len(s.callers),
	}
	addSizes(sizes, "subscriptions", reflect.ValueOf(t.shared.subscriptions))
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
