package oauth

import (
	"cmp"
	"crypto/sha256"
	"sync"
	"time"
)

// rememberTime is how long a generation takes tokens.
const rememberTime = 5 * time.Minute

// hash is that of a token.
type hash = [sha256.Size]byte

// memory has the tokens that were checked last. A new generation takes the place of the older of
// two: what was checked longest ago, and has expired, goes first. It is safe for concurrent use.
type memory struct {
	max int // of each generation

	mu           sync.Mutex // guards what follows
	newer, older map[hash]*token
	began        time.Time // of newer
}

// get returns what was found out about a token, which may be over; nil: nothing.
func (m *memory) get(key hash) *token {
	m.mu.Lock()
	defer m.mu.Unlock()
	return cmp.Or(m.newer[key], m.older[key])
}

// forget forgets a token.
func (m *memory) forget(key hash) {
	m.mu.Lock()
	defer m.mu.Unlock()
	delete(m.newer, key)
	delete(m.older, key)
}

// put remembers what was found out about a token.
func (m *memory) put(key hash, t *token) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if len(m.newer) >= m.max || time.Since(m.began) > rememberTime {
		m.newer, m.older, m.began = make(map[hash]*token), m.newer, time.Now()
	}
	m.newer[key] = t
}
