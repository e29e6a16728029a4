package sharing

// Len returns the number of tasks, and of those among them that make progress.
func (s *Tasks[C]) Len() (tasks, progressing int) { return len(s.byID), len(s.tokens) }
