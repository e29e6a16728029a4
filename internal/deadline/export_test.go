package deadline

// Len is the number of deadlines.
func (d *Set[O]) Len() int { return len(d.heap) }

// Running reports whether the timer runs.
func (d *Set[O]) Running() bool { return d.timer != nil }
