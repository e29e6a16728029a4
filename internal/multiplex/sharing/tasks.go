package sharing

import (
	"encoding/json"
	"slices"
)

// maxTasks bounds the tasks of a session.
const maxTasks = 4096

// Task is a request that the server runs as a task (MCP 2025-11-25).
type Task[C comparable] struct {
	// ID is unique at the server.
	ID string
	// Client made the task; zero once it has left.
	Client C
	// Principal is whose clients may see the task too; empty: only Client may.
	Principal string
	// Wire is the progress token that the server knows, 0 for none, and Token the
	// client's.
	Wire  int64
	Token json.RawMessage

	over bool // the status will not change any more
}

// OwnedBy reports whether client c, or its principal, may see the task. It reports
// false for a nil task.
func (t *Task[C]) OwnedBy(c C, principal string) bool {
	return t != nil && (t.Client == c || t.Principal != "" && t.Principal == principal)
}

// Tasks are the tasks of a session, by id.
type Tasks[C comparable] struct {
	byID   map[string]*Task[C]
	order  []*Task[C] // by age; may hold tasks that have been removed
	tokens map[int64]*Task[C]
}

// Find returns the task with that id, or nil.
func (s *Tasks[C]) Find(id string) *Task[C] { return s.byID[id] }

// Progressing returns the task with that progress token on the wire, or nil.
func (s *Tasks[C]) Progressing(token int64) *Task[C] { return s.tokens[token] }

// Add records a task. If there are too many, it forgets the oldest one that is over,
// or else the oldest.
func (s *Tasks[C]) Add(t *Task[C]) {
	if s.byID == nil {
		s.byID, s.tokens = make(map[string]*Task[C]), make(map[int64]*Task[C])
	}
	s.remove(s.byID[t.ID])
	if len(s.byID) >= maxTasks || len(s.order) >= 2*maxTasks {
		s.order = slices.DeleteFunc(s.order, func(t *Task[C]) bool { return s.byID[t.ID] != t })
	}
	if len(s.byID) >= maxTasks {
		over := slices.IndexFunc(s.order, func(t *Task[C]) bool { return t.over })
		s.remove(s.order[max(over, 0)])
	}
	s.byID[t.ID] = t
	s.order = append(s.order, t)
	if t.Wire != 0 {
		s.tokens[t.Wire] = t
	}
}

func (s *Tasks[C]) remove(t *Task[C]) {
	if t != nil {
		delete(s.byID, t.ID)
		delete(s.tokens, t.Wire)
	}
}

// SetStatus records the status that the server reports for a task. A task that is
// over makes no more progress.
func (s *Tasks[C]) SetStatus(id, status string) {
	t := s.byID[id]
	if t == nil {
		return
	}
	switch status {
	case "completed", "failed", "cancelled":
		t.over = true
		delete(s.tokens, t.Wire)
	}
}

// Leave forgets the tasks that only client c may see, and that c made the others.
func (s *Tasks[C]) Leave(c C) {
	var none C
	for _, t := range s.byID {
		if t.Client != c {
			continue
		}
		t.Client = none
		delete(s.tokens, t.Wire)
		if t.Principal == "" {
			s.remove(t)
		}
	}
}
