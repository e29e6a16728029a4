package postings_test

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/mcp-sse/mcp-sse/docsearch/index/internal/impact"
	"github.com/mcp-sse/mcp-sse/docsearch/index/internal/postings"
)

// table is the full-text table: the row of each piece.
type table map[int64]string

// lists reads the lists of a key.
func (t table) lists(k postings.Key) (p postings.Lists) {
	for piece, row := range t {
		if piece < k.Low || piece > k.High {
			continue
		}
		for term := range strings.FieldsSeq(row) {
			if word, class := impact.Split(term); word == k.Word {
				p.Rows[class] = append(p.Rows[class], piece)
				p.N++
			}
		}
	}
	for _, list := range p.Rows {
		slices.Sort(list)
	}
	return p
}

// same tells whether lists have the same pieces.
func same(a, b postings.Lists) bool {
	return a.N == b.N && slices.EqualFunc(a.Rows[:], b.Rows[:], slices.Equal[[]int64])
}

const everywhere = 1<<62 - 1

// row returns a row with some of the words w0 to w9.
func row(r *rand.Rand) string {
	var b strings.Builder
	for i := range 10 {
		if r.IntN(10) >= i {
			fmt.Fprintf(&b, "w%d%c ", i, impact.Classes[r.IntN(len(impact.Classes))].Digit)
		}
	}
	return b.String()
}

// change changes some pieces of t, and returns what it did.
func change(r *rand.Rand, t table) *postings.Change {
	c := &postings.Change{}
	for range r.IntN(8) {
		piece := int64(r.IntN(2000))
		delete(t, piece)
		c.Remove(piece)
		if r.IntN(3) > 0 {
			t[piece] = row(r)
			c.Add(piece, t[piece])
		}
	}
	return c
}

// filled returns a table, and a cache that has the lists of all its words.
func filled(r *rand.Rand, generation int64) (table, *postings.Cache, []postings.Key) {
	t, c := table{}, &postings.Cache{}
	for piece := range int64(1900) {
		t[piece] = row(r)
	}
	var keys []postings.Key
	for i := range 10 {
		w := fmt.Sprint("w", i)
		keys = append(keys, postings.Key{Word: w, High: everywhere}, postings.Key{Word: w, Low: 500, High: 1999})
	}
	put(c, generation, t, keys)
	return t, c, slices.DeleteFunc(keys, func(k postings.Key) bool { return t.lists(k).N < 256 })
}

func put(c *postings.Cache, generation int64, t table, keys []postings.Key) {
	for _, k := range keys {
		c.Put(generation, k, t.lists(k))
	}
}

// check tells whether c has the lists of t.
func check(t *testing.T, c *postings.Cache, generation int64, want table, keys []postings.Key) {
	t.Helper()
	for _, k := range keys {
		got, ok := c.Get(generation, k)
		if !ok {
			t.Fatalf("generation %d: no lists of %v", generation, k)
		}
		if want := want.lists(k); !same(got, want) {
			t.Fatalf("generation %d: %v has %d pieces, want %d: %v, want %v", generation, k, got.N, want.N, got, want)
		}
	}
}

func TestListsSurviveChanges(t *testing.T) {
	r := rand.New(rand.NewPCG(3, 4))
	all, c, keys := filled(r, 7)
	for generation := int64(8); generation < 40; generation++ {
		failed := table{}
		c.Stage(generation, change(r, failed)) // its transaction is rolled back
		check(t, c, generation-1, all, keys)
		c.Stage(generation, change(r, all))
		switch r.IntN(3) {
		case 0:
			c.Advance(generation)
			fallthrough
		case 1:
			check(t, c, generation, all, keys)
		} // case 2: no search, and the next change comes
	}
}

func TestOlderSearchKeepsItsLists(t *testing.T) {
	r := rand.New(rand.NewPCG(5, 6))
	all, c, keys := filled(r, 1)
	before := map[postings.Key]postings.Lists{}
	was := map[postings.Key]postings.Lists{}
	for _, k := range keys {
		before[k], _ = c.Get(1, k)
		was[k] = all.lists(k)
	}
	c.Stage(2, change(r, all))
	c.Advance(2)
	for _, k := range keys {
		if !same(before[k], was[k]) {
			t.Errorf("the lists of %v changed under a search", k)
		}
		if _, ok := c.Get(1, k); ok {
			t.Errorf("a search of generation 1 gets the lists of 2 for %v", k)
		}
		c.Put(1, k, before[k]) // too late
	}
	check(t, c, 2, all, keys)
}

func TestLargeChangeForgetsLists(t *testing.T) {
	for name, grow := range map[string]func(c *postings.Change){
		"rows": func(c *postings.Change) {
			for i := range int64(100) {
				c.Remove(i)
			}
		},
		"bytes": func(c *postings.Change) { c.Add(1, strings.Repeat("word1 ", 1<<20)) },
	} {
		_, c, keys := filled(rand.New(rand.NewPCG(7, 8)), 1)
		var large postings.Change
		grow(&large)
		c.Stage(2, &large)
		c.Advance(2)
		for _, k := range keys {
			if _, ok := c.Get(2, k); ok {
				t.Errorf("many %s: the lists of %v are of before", name, k)
			}
		}
	}
}

// TestUnknownChangeForgetsLists has a change that the cache was not told of.
func TestUnknownChangeForgetsLists(t *testing.T) {
	r := rand.New(rand.NewPCG(9, 10))
	all, c, keys := filled(r, 1)
	c.Stage(3, &postings.Change{})
	c.Advance(3)
	for _, k := range keys {
		if _, ok := c.Get(3, k); ok {
			t.Errorf("the lists of %v are of generation 1", k)
		}
	}
	put(c, 3, all, keys)
	check(t, c, 3, all, keys)
}

func TestCacheIsBounded(t *testing.T) {
	var c postings.Cache
	long := make([]int64, 1<<20)
	keyOf := func(i int) postings.Key { return postings.Key{Word: fmt.Sprint(i), High: everywhere} }
	for i := range 20 {
		c.Put(1, keyOf(i), postings.Lists{Rows: [4][]int64{long}, N: len(long)})
		if _, ok := c.Get(1, keyOf(i)); !ok {
			t.Errorf("list %d was not kept", i)
		}
		kept := 0
		for k := range i + 1 {
			if _, ok := c.Get(1, keyOf(k)); ok {
				kept++
			}
		}
		if want := min(i+1, 4); kept != want {
			t.Errorf("%d lists of a million after %d, want %d", kept, i+1, want)
		}
	}
}
