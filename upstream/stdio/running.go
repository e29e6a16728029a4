package stdio

import "sync"

// running holds the living children of a Command and its copies.
type running struct {
	mu       sync.Mutex // guards children
	children map[*child]struct{}
}

func (r *running) add(c *child) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.children == nil {
		r.children = make(map[*child]struct{})
	}
	r.children[c] = struct{}{}
}

func (r *running) remove(c *child) {
	r.mu.Lock()
	defer r.mu.Unlock()
	delete(r.children, c)
}

// writeText reports whether one of them has written text to stdout, and no message.
func (r *running) writeText() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	for c := range r.children {
		if c.textOnly.Load() {
			return true
		}
	}
	return false
}

func (r *running) kill() {
	r.mu.Lock()
	defer r.mu.Unlock()
	for c := range r.children {
		c.signal(killGroup)
	}
}
