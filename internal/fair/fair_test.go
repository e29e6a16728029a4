package fair_test

import (
	"context"
	"slices"
	"sync"
	"testing"
	"testing/synctest"

	"go.uber.org/goleak"

	"github.com/mcp-sse/mcp-sse/internal/fair"
	"github.com/mcp-sse/mcp-sse/internal/ssetest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// served records in which order callers get places.
type served struct {
	mu    sync.Mutex
	names []string
}

func (s *served) add(name string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.names = append(s.names, name)
}

// take lets callers of a party wait, one after the other.
func (s *served) take(t *testing.T, ctx context.Context, p *fair.Places, party string, names ...string) {
	for _, name := range names {
		go func() {
			if err := p.Acquire(ctx, party); err != nil {
				ssetest.WantError(t, name, err, context.Canceled)
				s.add("-" + name)
				return
			}
			s.add(name)
		}()
		synctest.Wait()
	}
}

func TestPartiesGetPlacesInTurn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var got served
		p := fair.NewPlaces(1)
		if !p.TryAcquire() || p.TryAcquire() {
			t.Fatal("there is not exactly one place")
		}
		got.take(t, t.Context(), p, "many", "a1", "a2", "a3")
		got.take(t, t.Context(), p, "one", "b1")
		got.take(t, t.Context(), p, "two", "c1", "c2")
		for range 6 {
			p.Release()
			synctest.Wait()
		}
		ssetest.Want(t, "served", got.names, []string{"a1", "b1", "c1", "a2", "c2", "a3"})
		if p.TryAcquire() {
			t.Error("there are more places than one")
		}
		p.Release()
		if !p.TryAcquire() {
			t.Error("the place is lost")
		}
	})
}

func TestCallersThatLeaveTakeNoPlace(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var got served
		p := fair.NewPlaces(1)
		p.TryAcquire()
		leaves, leave := context.WithCancel(t.Context())
		got.take(t, leaves, p, "a", "a1")
		got.take(t, t.Context(), p, "b", "b1")
		got.take(t, leaves, p, "b", "b2")
		leave()
		synctest.Wait()
		p.Release()
		synctest.Wait()
		p.Release()
		slices.Sort(got.names)
		ssetest.Want(t, "served", got.names, []string{"-a1", "-b2", "b1"})
		if !p.TryAcquire() {
			t.Error("the place is lost")
		}
	})
}

// A place that a caller gets just when it leaves must not be lost.
func TestNoPlaceIsLost(t *testing.T) {
	const places = 3
	p := fair.NewPlaces(places)
	var wg sync.WaitGroup
	for i := range 300 {
		ctx, cancel := context.WithCancel(t.Context())
		wg.Go(func() {
			if p.Acquire(ctx, string(rune('a'+i%7))) == nil {
				p.Release()
			}
		})
		wg.Go(cancel)
	}
	wg.Wait()
	for range places {
		if !p.TryAcquire() {
			t.Fatal("a place is lost")
		}
	}
	if p.TryAcquire() {
		t.Error("there is a place too many")
	}
}

func TestPlacesWithoutBound(t *testing.T) {
	p := fair.NewPlaces(0)
	for range 100 {
		if err := p.Acquire(t.Context(), ""); err != nil {
			t.Fatal(err)
		}
	}
	p.Release()
}

func TestResize(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var got served
		p := fair.NewPlaces(1)
		p.TryAcquire()
		got.take(t, t.Context(), p, "one", "a1", "a2", "a3")
		p.Resize(3)
		synctest.Wait()
		slices.Sort(got.names) // they run at the same time
		ssetest.Want(t, "with three places", got.names, []string{"a1", "a2"})
		p.Resize(1)
		p.Release()
		p.Release()
		if p.TryAcquire() {
			t.Error("two have one place")
		}
		p.Resize(0)
		synctest.Wait()
		if len(got.names) != 3 || !p.TryAcquire() {
			t.Errorf("without a bound: %v", got.names)
		}
		for range 3 {
			if p.Free() {
				t.Error("free while there are callers")
			}
			p.Release()
		}
		if !p.Free() {
			t.Error("not free in the end")
		}
	})
}
