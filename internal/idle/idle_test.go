package idle_test

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/mcp-sse/mcp-sse/internal/idle"
	"github.com/mcp-sse/mcp-sse/internal/ssetest"
)

type thing struct {
	name string
	use  idle.Use
}

// longest returns the name of what has been idle longest, but for some; empty: there is none.
func longest(l *idle.List[*thing], but ...string) string {
	found, ok := l.Longest(func(t *thing) bool {
		for _, name := range but {
			if t.name == name {
				return false
			}
		}
		return true
	})
	if !ok {
		return ""
	}
	return found.name
}

func TestLongestUnusedIsFirst(t *testing.T) {
	var l idle.List[*thing]
	a, b, c := &thing{name: "a"}, &thing{name: "b"}, &thing{name: "c"}
	for _, x := range []*thing{a, b, c, a} {
		x.use.Enter()
	}
	for _, x := range []*thing{a, b, c} {
		l.Leave(x, &x.use)
	}
	ssetest.Want(t, "with a in use", longest(&l), "b")
	l.Leave(a, &a.use)
	b.use.Enter()
	ssetest.Want(t, "with b in use", longest(&l), "c")
	ssetest.Want(t, "of those but c", longest(&l, "c"), "a")
	ssetest.Want(t, "after c went to the end", longest(&l), "a")
	a.use.End()
	c.use.End()
	ssetest.Want(t, "with none", longest(&l), "")
}

// A thing that is over is disposed of once, and lets nobody in.
func TestOverIsForTheLastUser(t *testing.T) {
	var l idle.List[*thing]
	a := &thing{name: "a"}
	ssetest.Want(t, "the first user of a new one", a.use.Enter(), true)
	ssetest.Want(t, "the second", a.use.Enter(), true)
	ssetest.Want(t, "unused at the end", a.use.End(), false)
	ssetest.Want(t, "another user", a.use.Enter(), false)
	ssetest.Want(t, "the first that leaves is the last", l.Leave(a, &a.use), false)
	ssetest.Want(t, "the second that leaves is the last", l.Leave(a, &a.use), true)
	ssetest.Want(t, "in the list", longest(&l), "")
}

func TestIdleSinceTheLastUserLeft(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var l idle.List[*thing]
		a := &thing{}
		time.Sleep(time.Minute)
		ssetest.Want(t, "never used", a.use.Idle(), time.Duration(0))
		a.use.Enter()
		l.Leave(a, &a.use)
		time.Sleep(time.Minute)
		ssetest.Want(t, "left a minute ago", a.use.Idle(), time.Minute)
		a.use.Enter()
		ssetest.Want(t, "in use again", a.use.Idle(), time.Duration(0))
	})
}

// Making room costs the same however many must not go.
func TestLongestLooksAtFew(t *testing.T) {
	var l idle.List[*thing]
	for range 1000 {
		x := &thing{}
		x.use.Enter()
		l.Leave(x, &x.use)
	}
	looks := 0
	_, found := l.Longest(func(*thing) bool { looks++; return false })
	ssetest.Want(t, "found", found, false)
	ssetest.Want(t, "looks", looks, 64)
}
