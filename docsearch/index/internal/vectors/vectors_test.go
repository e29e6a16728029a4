package vectors

import (
	"cmp"
	"fmt"
	"maps"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
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

// FuzzFile opens files that may be damaged. They give similarities, and can be extended.
func FuzzFile(f *testing.F) {
	path := filepath.Join(f.TempDir(), "vectors")
	var whole File
	whole.Open(path, "m")
	query := Unit([]float32{1, 2, 3})
	keys := []Key{KeyOf("one"), KeyOf("two")}
	if err := whole.Add(keys, [][]float32{query, Unit([]float32{3, 1, 1})}, 0.1); err != nil {
		f.Fatal(err)
	}
	whole.Close()
	data, err := os.ReadFile(path)
	if err != nil {
		f.Fatal(err)
	}
	text := string(data)
	f.Add(data)
	f.Add(data[:len(data)-3])
	f.Add(data[:100])
	for _, dimensions := range []string{"-1", "0", "4611686018427387904"} {
		f.Add([]byte(strings.Replace(text, `"dimensions":3`, `"dimensions":`+dimensions, 1)))
	}
	f.Add([]byte(strings.Replace(text, `"floor":0.1`, `"floor":1.0`, 1)))
	noNumber := slices.Clone(data)
	copy(noNumber[headerBytes+len(Key{}):], "\xff\xff\xff\xff") // the scale of the first row
	f.Add(noNumber)
	f.Fuzz(func(t *testing.T, data []byte) {
		path := filepath.Join(t.TempDir(), "vectors")
		if err := os.WriteFile(path, data, 0o600); err != nil {
			t.Fatal(err)
		}
		var file File
		file.Open(path, "m")
		defer file.Close()
		found := map[Key]float64{}
		maps.Copy(found, file.Nearest(query, 2))
		for _, key := range keys {
			found[key] = max(found[key], file.Of(key, query))
		}
		for key, similarity := range found {
			if !(similarity >= 0 && similarity <= 1) {
				t.Errorf("the similarity of %s is %v", key, similarity)
			}
		}
		if err := file.Add([]Key{KeyOf("three")}, [][]float32{query}, 0); err != nil {
			t.Fatal(err)
		}
		if !file.Has(KeyOf("three")) {
			t.Error("a text that was added has no vector")
		}
	})
}
