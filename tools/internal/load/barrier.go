package load

import "sync"

// barrier holds its members until all of them wait.
type barrier struct {
	mu      sync.Mutex
	members int           // guarded by mu
	waiting int           // guarded by mu
	open    chan struct{} // guarded by mu; closed and replaced when all have come
}

func newBarrier(members int) *barrier {
	return &barrier{members: members, open: make(chan struct{})}
}

// wait returns when all members wait.
func (b *barrier) wait() {
	b.mu.Lock()
	b.waiting++
	open := b.open
	b.releaseLocked()
	b.mu.Unlock()
	<-open
}

// leave removes a member that does not wait.
func (b *barrier) leave() {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.members--
	b.releaseLocked()
}

func (b *barrier) releaseLocked() {
	if b.waiting < b.members {
		return
	}
	close(b.open)
	b.open, b.waiting = make(chan struct{}), 0
}
