package streamable

import (
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

// kept returns the events that a store has after one.
func kept(m *store, s *session, stream, number int64) string {
	var got []string
	for _, e := range m.after(s, eventID{stream, number}) {
		got = append(got, e.String())
	}
	return strings.Join(got, " ")
}

func TestStore(t *testing.T) {
	var m store
	var a, b session
	for n := range int64(3) {
		m.add(&a, event{eventID: eventID{1, n + 1}})
		m.add(&a, event{eventID: eventID{2, n + 1}})
		m.add(&b, event{eventID: eventID{1, n + 11}})
	}
	got := []string{kept(&m, &a, 1, 0), kept(&m, &a, 2, 2), kept(&m, &a, 2, 3), kept(&m, &a, 3, 0)}
	m.forget(&a)
	got = append(got, kept(&m, &a, 1, 0), kept(&m, &b, 1, 0))
	if want := "[1-1 1-2 1-3|2-3||||1-11 1-12 1-13]"; "["+strings.Join(got, "|")+"]" != want {
		t.Errorf("got %q, want %s", got, want)
	}
	m.forget(&b)
	if m.bytes != 0 || m.events.Len() != 0 {
		t.Errorf("%d bytes of %d events are left", m.bytes, m.events.Len())
	}
}

// One session has its share, all together have the whole, and the oldest events go first.
func TestStoreIsBounded(t *testing.T) {
	const size = sessionBytes/4 - eventCost
	var m store
	sessions := make([]session, 10)
	for i := range sessions {
		for n := range int64(6) {
			m.add(&sessions[i], event{eventID: eventID{1, n + 1}, data: make([]byte, size)})
		}
	}
	if got := kept(&m, &sessions[9], 1, 0); got != "1-3 1-4 1-5 1-6" {
		t.Errorf("the newest session has %s", got)
	}
	if got := fmt.Sprint(kept(&m, &sessions[0], 1, 0), kept(&m, &sessions[1], 1, 0)); got != "" || m.bytes > storeBytes {
		t.Errorf("the oldest sessions have %q, all together %d bytes", got, m.bytes)
	}
	m.add(&sessions[9], event{eventID: eventID{1, 7}, data: make([]byte, 2*sessionBytes)})
	if got := kept(&m, &sessions[9], 1, 0); got != "1-7" {
		t.Errorf("beside a large event there is %s", got)
	}
}

func TestStoreDropsOldEvents(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var m store
		var s session
		for n := range int64(4) {
			m.add(&s, event{eventID: eventID{1, n}})
			time.Sleep(2 * time.Minute)
		}
		if got := kept(&m, &s, 1, -1); got != "1-2 1-3" {
			t.Errorf("got %s", got)
		}
		time.Sleep(storeTime) // its timer ends with the last event
		if got := kept(&m, &s, 1, -1); got != "" {
			t.Errorf("got %s", got)
		}
	})
}
