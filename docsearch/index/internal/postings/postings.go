// Package postings keeps the lists of pieces that have a word.
package postings

import (
	"strconv"
	"sync"

	"github.com/mcp-sse/mcp-sse/docsearch/index/internal/impact"
)

const (
	cachedLeast = 256     // a shorter list is not worth its place
	cachedRows  = 1 << 20 // of all lists together, 8 bytes each
)

// Lists are the pieces that have a word, by the class of its impact.
type Lists struct {
	Rows [len(impact.Classes)][]int64
	N    int
}

// Key names the lists of a word in a scope.
type Key struct {
	Word string
	Low  int64 // of the scope
}

// Cache keeps the lists of common words, which take milliseconds to read, for
// one generation of the index.
type Cache struct {
	mu         sync.Mutex // guards all below
	generation int64
	lists      map[Key]Lists
	rows       int
}

// Get returns the lists that were put, of the same generation.
func (c *Cache) Get(generation int64, k Key) (Lists, bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if generation != c.generation {
		return Lists{}, false
	}
	p, ok := c.lists[k]
	return p, ok
}

// Put keeps p, which nobody may change any more. It forgets older generations.
func (c *Cache) Put(generation int64, k Key, p Lists) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if p.N < cachedLeast || p.N > cachedRows || generation < c.generation {
		return
	}
	if generation > c.generation || c.rows+p.N > cachedRows || c.lists == nil {
		c.generation, c.rows, c.lists = generation, 0, map[Key]Lists{}
	}
	if _, ok := c.lists[k]; !ok {
		c.lists[k] = p
		c.rows += p.N
	}
}

// Parse parses numbers between commas.
func Parse(list []byte) ([]int64, error) {
	if len(list) == 0 {
		return nil, nil
	}
	all := make([]int64, 0, len(list)/14+1)
	var n int64
	for _, c := range list {
		switch {
		case c >= '0' && c <= '9':
			n = n*10 + int64(c-'0')
		case c == ',':
			all = append(all, n)
			n = 0
		default:
			return nil, strconv.ErrSyntax
		}
	}
	return append(all, n), nil
}
