package statelessclient

import (
	"testing"
	"time"
)

// The timer of a closed connection would keep all of it in memory.
func TestClosedConnectionHasNoTimer(t *testing.T) {
	p := &pool{idle: time.Hour, maxCalls: 1, groups: make(map[string]*group), freed: make(chan struct{})}
	l, _, _ := p.tryTake("a", false)
	p.release(l, false)
	p.remove(l)
	if l.idle.Stop() {
		t.Error("the idle timer runs on")
	}
}
