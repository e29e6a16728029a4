package streamable

import (
	"fmt"
	"strings"
	"testing"
)

// kept returns the events that a store has after one.
func kept(m *store, s *session, stream, number int64) string {
	var got []string
	for _, e := range m.after(s, eventID{stream: stream, number: number}) {
		got = append(got, e.String())
	}
	return strings.Join(got, " ")
}

// One session has its share, all together have the whole, and the oldest events go first.
func TestStoreIsBounded(t *testing.T) {
	const limit = 64 << 20
	const size = limit/8/4 - eventCost
	held := 0
	m := store{limit: limit, hold: func(n int) { held += n }}
	sessions := make([]session, 10)
	for i := range sessions {
		for n := range int64(6) {
			m.add(&sessions[i], event{eventID: eventID{stream: 1, number: n + 1}, data: make([]byte, size)})
		}
	}
	if got := kept(&m, &sessions[9], 1, 0); got != "1-3 1-4 1-5 1-6" {
		t.Errorf("the newest session has %s", got)
	}
	if got := fmt.Sprint(kept(&m, &sessions[0], 1, 0), kept(&m, &sessions[1], 1, 0)); got != "" || m.bytes > limit || held != m.bytes {
		t.Errorf("the oldest sessions have %q, all together %d bytes", got, m.bytes)
	}
	m.add(&sessions[9], event{eventID: eventID{stream: 1, number: 7}, data: make([]byte, limit/4)})
	if got := kept(&m, &sessions[9], 1, 0); got != "1-7" {
		t.Errorf("beside a large event there is %s", got)
	}
}
