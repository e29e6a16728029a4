package few_test

import (
	"maps"
	"math/rand/v2"
	"testing"

	"github.com/mcp-sse/mcp-sse/internal/few"
)

// A Map does what a map of Go does.
func TestMapIsAMap(t *testing.T) {
	for seed := range uint64(200) {
		rng := rand.New(rand.NewPCG(seed, 1))
		got, want := few.Map[int, int]{}, map[int]int{}
		keys := 1 + rng.IntN(150) // some have held too many to be kept
		for range 2000 {
			key := rng.IntN(keys)
			if rng.IntN(2) == 0 {
				got.Set(key, int(rng.Int32()))
				want[key], _ = got.Get(key)
			} else {
				got.Delete(key)
				delete(want, key)
			}
			value, ok := got.Get(key)
			if wanted, has := want[key]; ok != has || value != wanted || got.Len() != len(want) {
				t.Fatalf("seed %d: Get(%d) = %d, %t of %d, want %d, %t of %d", seed, key, value, ok, got.Len(), wanted, has, len(want))
			}
		}
		if all := maps.Collect(got.All()); !maps.Equal(all, want) {
			t.Fatalf("seed %d: All = %v, want %v", seed, all, want)
		}
		for key := range got.All() {
			got.Delete(key)
		}
		if got.Len() != 0 {
			t.Fatalf("seed %d: %d elements are left", seed, got.Len())
		}
	}
}

func TestOneElementNeedsNoMemory(t *testing.T) {
	var m few.Map[string, int]
	if n := testing.AllocsPerRun(100, func() { m.Set("a", 1); m.Set("a", 2); m.Delete("a") }); n != 0 {
		t.Errorf("%v allocations, want none", n)
	}
}
