package sharing

import (
	"encoding/json"
	"slices"
)

// maxTasks bounds the tasks of a session.
const maxTasks = 4096

// Task is a request that the server has made a task (MCP 2025-11-25).
type Task[C comparable] struct {
	// ID is unique at the server.
	ID string
	// Client made the task; none when it has left.
	Client C
	// Principal may know of the task too; empty: the client alone may.
	Principal string
	// Wire is the progress token that the server knows, 0 for none, and Token the
	// client's.
	Wire  int64
	Token json.RawMessage

	over bool // the status will not change any more
}

// OwnedBy reports whether a client may know of the task. A nil task is nobody's.
func (t *Task[C]) OwnedBy(c C, principal string) bool {
	return t != nil && (t.Client == c || t.Principal != "" && t.Principal == principal)
}

// Tasks are the tasks of a session, by id.
type Tasks[C comparable] struct {
	byID   map[string]*Task[C]
	order  []*Task[C] // by age; may hold tasks that have been removed
	tokens map[int64]*Task[C]
}

// Find returns the task of that id, or nil.
func (s *Tasks[C]) Find(id string) *Task[C] { return s.byID[id] }

// Progressing returns the task whose progress the server reports by a token, or nil.
func (s *Tasks[C]) Progressing(token int64) *Task[C] { return s.tokens[token] }

// Add notes a task. When there are too many, it forgets the oldest one that is
// over, or else the oldest.
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

// SetStatus notes the status that the server reports of a task. A task that is
// over makes no progress.
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

// Leave forgets the tasks that only a client may know of, and the client of its
// other tasks.
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
