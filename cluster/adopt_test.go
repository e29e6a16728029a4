package cluster_test

import (
	"context"
	"net/http/httptest"
	"slices"
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
		other := all[1]
		if first == other.ID() {
			other = all[2]
		}
		release := other.Adopt("", id) // although the choice falls on another
		synctest.Wait()                // NATS knows it
		if post(all[0]) != other.ID() || post(all[1]) != other.ID() || post(all[2]) != other.ID() {
			t.Error("the replica that has adopted the session does not get its requests")
		}
		release()
		synctest.Wait() // NATS knows it
		ssetest.Want(t, "replica that serves after the release", post(all[0]), first)
	})
}
