// Package idle knows which of several things nobody uses, and since when: connections that may
// be closed to make room.
package idle

import (
	"container/list"
	"time"
)

// Use says how a thing is used. It is a part of the thing; the zero value is that of one that
// nobody has used yet. The lock of the Lists guards it.
type Use struct {
	users int
	left  time.Time // when the last user left
	over  bool

	list  *list.List // the List that it is in, and place there; nil: in none
	place *list.Element
}

// Enter adds a user. It reports false if the use is over.
func (u *Use) Enter() bool {
	if u.over {
		return false
	}
	u.users++
	u.leaveList()
	return true
}

// Idle returns how long nobody has used the thing.
func (u *Use) Idle() time.Duration {
	if u.users > 0 || u.left.IsZero() {
		return 0
	}
	return time.Since(u.left)
}

// End lets no more users in. It reports whether the thing has none: the caller may dispose of it
// then, else with the last one.
func (u *Use) End() (unused bool) {
	u.over = true
	u.leaveList()
	return u.users == 0
}

func (u *Use) leaveList() {
	if u.list != nil {
		u.list.Remove(u.place)
		u.list, u.place = nil, nil
	}
}

// maxCandidates bounds the things that Longest looks at, so that it costs the same however many
// there are.
const maxCandidates = 64

// List holds things that nobody uses, in the order in which their last users left. The zero
// value is empty.
type List[T any] struct{ list list.List }

// Leave takes a user from a thing, and puts the thing at the end of the list if that was the last one. It
// reports whether it was the last one of a thing whose use is over.
func (l *List[T]) Leave(thing T, u *Use) (last bool) {
	u.users--
	if u.users > 0 {
		return false
	}
	u.left = time.Now()
	if !u.over {
		u.list, u.place = &l.list, l.list.PushBack(thing)
	}
	return u.over
}

// Longest returns the thing that nobody has used for longest of those that are ready to go. It
// puts the others at the end: many of those must not hide the rest.
func (l *List[T]) Longest(ready func(T) bool) (thing T, found bool) {
	for range min(maxCandidates, l.list.Len()) {
		first := l.list.Front()
		if thing = first.Value.(T); ready(thing) {
			return thing, true
		}
		l.list.MoveToBack(first)
	}
	return thing, false
}
