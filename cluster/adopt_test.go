package cluster_test

import (
	"context"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/mcp-sse/mcp-sse/internal/ssetest"
)

// A session whose replica drains goes on at one of the others, whichever replica a request
// reaches.
func TestAdopt(t *testing.T) {
	bubble(t, func(t *testing.T) {
		all := joinAll(t, startBroker(t), echo, "one", "two", "three")
		id := all[0].ID() + ".random.mac"
		all[0].set(func() { all[0].has[id] = true })
		post := func(entry *replica) (at string) {
			t.Helper()
			for _, r := range all {
				r.set(func() { r.served = nil })
			}
			r, f := request(context.Background(), id, "hello")
			f.Resumes = true
			w := httptest.NewRecorder()
			if !entry.Forward(w, r, f) {
				return entry.ID()
			}
			if w.Code != 202 {
				t.Errorf("got %d %s", w.Code, w.Body)
			}
			i := slices.IndexFunc(all, func(r *replica) bool { return len(r.served) > 0 })
			return all[max(i, 0)].ID()
		}
		ssetest.Want(t, "replica that serves", post(all[1]), all[0].ID())
		all[0].set(func() { all[0].draining = true })
		ssetest.Want(t, "replica that serves an open session of one that drains", post(all[1]), all[0].ID())
		all[0].set(func() { clear(all[0].has) })
		first := post(all[1])
		if first == all[0].ID() || post(all[0]) != first || post(all[2]) != first {
			t.Errorf("served by %s, then by others", first)
		}
		for _, r := range all {
			r.set(func() { r.has[id] = true })
		}
		if post(all[1]) != all[0].ID() || post(all[2]) != all[0].ID() {
			t.Error("a replica that drains does not get what belongs to a call that it still has")
		}
		for _, r := range all {
			r.set(func() { clear(r.has) })
		}
		other := all[1]
		if first == other.ID() {
			other = all[2]
		}
		other.set(func() { other.has[id] = true })
		release := other.Adopt("", id) // although the choice falls on another
		synctest.Wait()                // NATS knows it
		if post(all[0]) != other.ID() || post(all[1]) != other.ID() || post(all[2]) != other.ID() {
			t.Error("the replica that has adopted the session does not get its requests")
		}
		other.set(func() { clear(other.has) })
		release()
		synctest.Wait() // NATS knows it
		ssetest.Want(t, "replica that serves after the release", post(all[0]), first)
	})
}

// A question that is on its way to a replica that lets go of the session, or leaves, has an
// answer.
func TestAskedAtTheEnd(t *testing.T) {
	for name, end := range map[string]func(r *replica){"release": func(*replica) {}, "close": func(r *replica) { go r.Close() }} {
		t.Run(name, func(t *testing.T) {
			bubble(t, func(t *testing.T) {
				b := startBroker(t)
				all := joinAll(t, b, echo, "one", "two")
				release := all[1].Adopt("", "lostlost.random.mac")
				synctest.Wait() // NATS knows it
				b.hold("two", true)
				release()
				end(all[1])
				answered := make(chan struct{})
				go func() {
					defer close(answered)
					r, f := request(t.Context(), "lostlost.random.mac", "hello")
					f.Resumes = true
					w := httptest.NewRecorder()
					if all[0].Forward(w, r, f) && w.Code != 202 {
						t.Errorf("got %d %s", w.Code, w.Body)
					}
				}()
				synctest.Wait() // the question has reached the replica
				b.hold("two", false)
				<-answered
			})
		})
	}
}

// A session that has moved is looked for once by each replica, until it moves again.
func TestMovedAgain(t *testing.T) {
	bubble(t, func(t *testing.T) {
		b := startBroker(t)
		all := joinAll(t, b, echo, "one", "two", "three")
		const id = "lostlost.random.mac"
		asked := 0
		b.lose(func(_ string, command []byte) []byte {
			asked += strings.Count(string(command), "PUB mcp.mcp.id.")
			return command
		})
		post := func(at *replica) {
			t.Helper()
			for _, r := range all {
				r.set(func() { r.served, r.has[id] = nil, r == at })
			}
			for range 3 {
				r, f := request(t.Context(), id, "hello")
				f.Resumes = true
				if w := httptest.NewRecorder(); !all[0].Forward(w, r, f) || w.Code != 202 {
					t.Errorf("got %d %s", w.Code, w.Body)
				}
			}
			ssetest.Want(t, "requests that the session's replica has served", len(at.served), 3)
		}
		release := all[1].Adopt("", id)
		synctest.Wait() // NATS knows it
		post(all[1])
		ssetest.Want(t, "how often its replica was asked for", asked, 1)
		release()
		release = all[2].Adopt("", id)
		synctest.Wait()
		post(all[2])
		ssetest.Want(t, "how often its replica was asked for, after another move", asked, 2)
		release()
	})
}
