// Package few keeps maps that mostly hold one element or none, of which there are many: a
// map of Go takes hundreds of bytes for its first element, and keeps them.
package few

import "iter"

// kept is how many elements an empty map may have held: a map does not shrink.
const kept = 64

// Map is a map whose first element needs no memory of its own. The zero Map is empty. It
// must not be copied while it is in use.
type Map[K comparable, V any] struct {
	has   bool // key and value are an element
	key   K
	value V
	rest  map[K]V // the other elements
	most  int     // elements of rest since it was made
}

// Get returns the element of a key.
func (m *Map[K, V]) Get(key K) (value V, ok bool) {
	if m.has && m.key == key {
		return m.value, true
	}
	if len(m.rest) == 0 {
		return value, false
	}
	value, ok = m.rest[key]
	return value, ok
}

// Set adds the element of a key, or replaces it.
func (m *Map[K, V]) Set(key K, value V) {
	_, elsewhere := m.rest[key]
	if !elsewhere && (!m.has || m.key == key) {
		m.has, m.key, m.value = true, key, value
		return
	}
	if m.rest == nil {
		m.rest = make(map[K]V)
	}
	m.rest[key] = value
	m.most = max(m.most, len(m.rest))
}

// Delete removes the element of a key, if there is one.
func (m *Map[K, V]) Delete(key K) {
	if m.has && m.key == key {
		var none Map[K, V]
		m.has, m.key, m.value = false, none.key, none.value
		return
	}
	delete(m.rest, key)
	if len(m.rest) == 0 && m.most > kept {
		m.rest, m.most = nil, 0
	}
}

// Len returns the number of elements.
func (m *Map[K, V]) Len() int {
	if m.has {
		return 1 + len(m.rest)
	}
	return len(m.rest)
}

// All returns the elements, in no order. The caller may delete those that it has got.
func (m *Map[K, V]) All() iter.Seq2[K, V] {
	return func(yield func(K, V) bool) {
		if m.has && !yield(m.key, m.value) {
			return
		}
		for key, value := range m.rest {
			if !yield(key, value) {
				return
			}
		}
	}
}
