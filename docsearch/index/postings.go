package index

import "sync"

const (
	cachedLeast = 256     // a shorter list is not worth its place
	cachedRows  = 1 << 20 // of all lists together, 8 bytes each
)

// postings are the pieces that have a word, by the class of its impact.
type postings struct {
	lists [len(classes)][]int64
	n     int
}

type postingsKey struct {
	word string
	low  int64 // of the scope
}

// postingsCache keeps the lists of common words, which take milliseconds to read, for
// one generation of the index.
type postingsCache struct {
	mu         sync.Mutex // guards all below
	generation int64
	lists      map[postingsKey]postings
	rows       int
}

func (c *postingsCache) get(generation int64, k postingsKey) (postings, bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if generation != c.generation {
		return postings{}, false
	}
	p, ok := c.lists[k]
	return p, ok
}

// put keeps p, which nobody may change any more. It forgets older generations.
func (c *postingsCache) put(generation int64, k postingsKey, p postings) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if p.n < cachedLeast || p.n > cachedRows || generation < c.generation {
		return
	}
	if generation > c.generation || c.rows+p.n > cachedRows || c.lists == nil {
		c.generation, c.rows, c.lists = generation, 0, map[postingsKey]postings{}
	}
	if _, ok := c.lists[k]; !ok {
		c.lists[k] = p
		c.rows += p.n
	}
}
