package vectors

import (
	"cmp"
	"fmt"
	"math/rand/v2"
	"path/filepath"
	"slices"
	"testing"
)

// TestRowsRankAsTheirVectorsDo compares the ranking by int8 with that by float32.
func TestRowsRankAsTheirVectorsDo(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	for _, dimensions := range []int{1, 3, 100, 257} {
		random := func() []float32 {
			one := make([]float32, dimensions)
			for i := range one {
				one[i] = float32(r.NormFloat64())
			}
			return Unit(one)
		}
		var f File
		f.Open(filepath.Join(t.TempDir(), "vectors"), "m")
		var keys []Key
		var all [][]float32
		for n := range 500 {
			keys, all = append(keys, KeyOf(fmt.Sprint(n))), append(all, random())
		}
		all[0] = make([]float32, dimensions) // of a text that the model does not understand
		if err := f.Add(keys, all, 0); err != nil {
			t.Fatal(err)
		}
		query := random()
		order := make([]int, len(all))
		for i := range order {
			order[i] = i
		}
		slices.SortFunc(order, func(a, b int) int { return cmp.Compare(Dot(all[b], query), Dot(all[a], query)) })
		near := f.Nearest(query, 20)
		if _, ok := near[keys[0]]; ok {
			t.Errorf("%d dimensions: a vector of zeros is near", dimensions)
		}
		found := 0
		for _, i := range order[:20] {
			want, got := float64(max(0, Dot(all[i], query))), f.Of(keys[i], query)
			if got < want-0.02 || got > want+0.02 {
				t.Errorf("%d dimensions: the similarity is %.3f, want %.3f", dimensions, got, want)
			}
			if _, ok := near[keys[i]]; ok {
				found++
			}
		}
		if found < 18 && dimensions > 1 { // with one, all are the same
			t.Errorf("%d dimensions: %d of the nearest 20 are found", dimensions, found)
		}
		f.Close()
	}
}

// TestSimilarityIsAtMostOne has a vector whose rounded row is longer than 1.
func TestSimilarityIsAtMostOne(t *testing.T) {
	var f File
	f.Open(filepath.Join(t.TempDir(), "vectors"), "m")
	defer f.Close()
	key, vector := KeyOf("text"), Unit([]float32{1, 0.1})
	if err := f.Add([]Key{key}, [][]float32{vector}, 0); err != nil {
		t.Fatal(err)
	}
	if of, near := f.Of(key, vector), f.Nearest(vector, 1)[key]; of != 1 || near != 1 {
		t.Errorf("the similarity of a text to itself is %v and %v, want 1", of, near)
	}
}
