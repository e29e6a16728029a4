package streamable_test

import (
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/mcp-sse/mcp-sse/streamable"
)

func event(stream, number int64) streamable.StoredEvent {
	return streamable.StoredEvent{EventID: streamable.EventID{Stream: stream, Number: number}, Data: []byte(fmt.Sprint(stream, "/", number))}
}

// kept returns the events that a store has after one.
func kept(m *streamable.MemoryStore, session string, stream, number int64) string {
	var got []string
	for _, e := range m.After(session, streamable.EventID{Stream: stream, Number: number}) {
		got = append(got, string(e.Data))
	}
	return strings.Join(got, " ")
}

func TestMemoryStore(t *testing.T) {
	m := streamable.NewMemoryStore(streamable.MemoryLimits{})
	for n := range int64(3) {
		m.Append("a", event(1, n+1))
		m.Append("a", event(2, n+1))
		m.Append("b", event(1, n+11))
	}
	if got := kept(m, "a", 1, 0); got != "1/1 1/2 1/3" {
		t.Errorf("got %s", got)
	}
	if got := kept(m, "a", 2, 2); got != "2/3" {
		t.Errorf("got %s", got)
	}
	if got := kept(m, "a", 2, 3) + kept(m, "c", 1, 0) + kept(m, "a", 3, 0); got != "" {
		t.Errorf("got %s", got)
	}
	m.Forget("a")
	if got := kept(m, "a", 1, 0) + kept(m, "a", 2, 0); got != "" {
		t.Errorf("after Forget: got %s", got)
	}
	if got := kept(m, "b", 1, 0); got != "1/11 1/12 1/13" {
		t.Errorf("got %s", got)
	}
	m.Append("a", event(1, 1)) // an adopted session has the same id
	if got := kept(m, "a", 1, 0); got != "1/1" {
		t.Errorf("got %s", got)
	}
}

func TestMemoryStoreIsBounded(t *testing.T) {
	t.Run("events", func(t *testing.T) {
		m := streamable.NewMemoryStore(streamable.MemoryLimits{MaxEvents: 3})
		for n := range int64(5) {
			m.Append(fmt.Sprint(n%2), event(1, n))
		}
		if got := kept(m, "0", 1, -1) + ", " + kept(m, "1", 1, -1); got != "1/2 1/4, 1/3" {
			t.Errorf("got %s", got)
		}
	})
	t.Run("bytes", func(t *testing.T) {
		m := streamable.NewMemoryStore(streamable.MemoryLimits{MaxBytes: 16 * (256 + 3)})
		for n := range int64(5) {
			m.Append("a", event(1, n)) // one session has an eighth
			m.Append("forgotten", event(1, n))
			m.Forget("forgotten")
		}
		if got := kept(m, "a", 1, -1); got != "1/3 1/4" {
			t.Errorf("got %s", got)
		}
		for n := range int64(14) {
			m.Append(fmt.Sprint(n), event(1, n))
		}
		if got := kept(m, "a", 1, -1) + ", " + kept(m, "0", 1, -1); got != "1/4, 1/0" {
			t.Errorf("got %s", got)
		}
		m.Append("a", streamable.StoredEvent{EventID: streamable.EventID{Stream: 1, Number: 9}, Data: make([]byte, 10<<10)})
		if got := m.After("a", streamable.EventID{Stream: 1, Number: -1}); len(got) != 1 || got[0].Number != 9 {
			t.Errorf("a large event: got %d events", len(got))
		}
	})
	t.Run("time", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			m := streamable.NewMemoryStore(streamable.MemoryLimits{MaxAge: 10 * time.Second})
			for n := range int64(4) {
				m.Append("a", event(1, n))
				time.Sleep(4 * time.Second)
			}
			if got := kept(m, "a", 1, -1); got != "1/2 1/3" {
				t.Errorf("got %s", got)
			}
			time.Sleep(10 * time.Second) // its timer ends with the last event
			if got := kept(m, "a", 1, -1); got != "" {
				t.Errorf("got %s", got)
			}
		})
	})
}
