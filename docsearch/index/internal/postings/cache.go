package postings

import "sync"

const (
	cachedLeast = 256     // a shorter list is not worth its place
	cachedRows  = 4 << 20 // of all lists together, 8 bytes each
)

// Key names the lists of a word in a range of pieces.
type Key struct {
	Word      string
	Low, High int64
}

// Cache keeps the lists of common words, which take milliseconds to read, for one
// generation of the index, and takes them over to the next one. Its methods are safe
// for concurrent use; the zero Cache is empty.
type Cache struct {
	mu         sync.Mutex // guards all below
	generation int64
	lists      map[Key]Lists
	rows       int

	next   *Change // what leads to the generation nextIs, if its transaction is committed; nil: none
	nextIs int64
}

// Get returns the lists that were put, of the same generation.
func (c *Cache) Get(generation int64, k Key) (Lists, bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.advanceLocked(generation)
	if generation != c.generation {
		return Lists{}, false
	}
	p, ok := c.lists[k]
	return p, ok
}

// Put keeps p, which nobody may change any more. It forgets other lists for want of room,
// and older generations.
func (c *Cache) Put(generation int64, k Key, p Lists) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.advanceLocked(generation)
	if p.N < cachedLeast || p.N > cachedRows || generation < c.generation {
		return
	}
	if generation > c.generation || c.lists == nil {
		c.resetLocked(generation)
	}
	c.putLocked(k, p)
	for other, p := range c.lists {
		if c.rows <= cachedRows {
			break
		}
		if other != k {
			delete(c.lists, other)
			c.rows -= p.N
		}
	}
}

// Outdated reports whether the cache holds a later generation, and not these lists.
func (c *Cache) Outdated(generation int64, k Key) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	_, kept := c.lists[k]
	return generation < c.generation && !kept
}

// Stage tells what the transaction does that is about to make a generation. It must be
// called before the commit, one transaction at a time.
func (c *Cache) Stage(generation int64, next *Change) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.advanceLocked(generation - 1)
	c.next, c.nextIs = next, generation
}

// Advance takes the lists over to a generation that was committed.
func (c *Cache) Advance(generation int64) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.advanceLocked(generation)
}

// advanceLocked goes on to a generation, which is visible, if it is the staged one.
func (c *Cache) advanceLocked(generation int64) {
	if c.next == nil || generation != c.nextIs || generation != c.generation+1 {
		return
	}
	next := c.next
	c.next = nil
	if next.large || len(c.lists) == 0 {
		c.resetLocked(generation)
		return
	}
	c.generation = generation
	changed, gains := next.gains(c.words())
	for k, p := range c.lists {
		c.putLocked(k, p.patch(k, changed, gains[k.Word]))
	}
}

func (c *Cache) words() map[string]bool {
	words := make(map[string]bool, len(c.lists))
	for k := range c.lists {
		words[k.Word] = true
	}
	return words
}

func (c *Cache) putLocked(k Key, p Lists) {
	c.rows += p.N - c.lists[k].N
	c.lists[k] = p
}

func (c *Cache) resetLocked(generation int64) {
	c.generation, c.rows, c.lists = generation, 0, map[Key]Lists{}
}
