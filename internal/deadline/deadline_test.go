package deadline_test

import (
	"math/rand/v2"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/mcp-sse/mcp-sse/internal/deadline"
)

// Whatever is put, moved and dropped, each entry is due at its time, in order.
func TestEntriesAreDueInOrder(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		rng := rand.New(rand.NewPCG(1, 2))
		fired := make(chan struct{}, 1)
		set := deadline.NewSet[int](func() { fired <- struct{}{} })
		want := map[int]time.Duration{}
		entries := make([]deadline.Entry[int], 500)
		for range 2000 {
			i := rng.IntN(len(entries))
			if rng.IntN(3) == 0 {
				set.Drop(&entries[i])
				delete(want, i)
				continue
			}
			want[i] = time.Duration(1+rng.IntN(1000)) * time.Millisecond
			set.Put(&entries[i], i, want[i])
		}
		if set.Len() != len(want) {
			t.Fatalf("%d entries, want %d", set.Len(), len(want))
		}
		var last time.Duration
		for len(want) > 0 {
			<-fired
			for _, e := range set.Due() {
				at, ok := want[e.Owner]
				if !ok || at < last || at != set.Now() {
					t.Fatalf("entry %d is due at %s, want %s, %t", e.Owner, set.Now(), at, ok)
				}
				last = at
				delete(want, e.Owner)
			}
		}
		if set.Len() != 0 || set.Running() {
			t.Error("something is left")
		}
	})
}

func TestClearStopsTheTimer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		set := deadline.NewSet[string](func() { t.Error("fired") })
		var a, b deadline.Entry[string]
		set.Put(&a, "a", time.Second)
		set.Put(&b, "b", 2*time.Second)
		set.Clear()
		set.Drop(&a) // does nothing
		time.Sleep(time.Minute)
		if set.Running() || set.Len() != 0 {
			t.Error("something is left")
		}
	})
}

func TestOneTimerFiresForTheFirst(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var at []time.Duration
		var set deadline.Set[string]
		done := make(chan struct{})
		set = deadline.NewSet[string](func() {
			at = append(at, set.Now())
			for _, e := range set.Due() {
				if e.Owner == "last" {
					close(done)
				}
			}
		})
		var first, last deadline.Entry[string]
		set.Put(&last, "last", 2*time.Second)
		set.Put(&first, "first", time.Second)
		<-done
		if want := []time.Duration{time.Second, 2 * time.Second}; !slices.Equal(at, want) {
			t.Errorf("fired at %v, want %v", at, want)
		}
	})
}
