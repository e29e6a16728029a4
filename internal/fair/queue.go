package fair

import "slices"

// Queue holds items that wait. It gives them out in rounds: each party one a round, and
// each member of a party one a round of that party; to one member in order. The zero value
// is empty. It is not safe for concurrent use.
type Queue[T comparable] struct {
	parties []*group[*group[T]] // whose turn is next comes first
	n       int
}

// group is a party with its members, or a member with its items.
type group[E any] struct {
	name    string
	weight  int64 // of the items
	waiting []E   // whose turn is next comes first
	weights []int64
}

// Len returns the number of items.
func (q *Queue[T]) Len() int { return q.n }

// Add adds an item. Its weight is for Yield.
func (q *Queue[T]) Add(party, member string, item T, weight int64) {
	p := find(q.parties, party)
	if p == nil {
		p = &group[*group[T]]{name: party}
		q.parties = append(q.parties, p)
	}
	m := find(p.waiting, member)
	if m == nil {
		m = &group[T]{name: member}
		p.waiting = append(p.waiting, m)
	}
	m.waiting, m.weights = append(m.waiting, item), append(m.weights, weight)
	p.weight += weight
	m.weight += weight
	q.n++
}

// find returns the group with the name; nil if there is none.
func find[E any](all []*group[E], name string) *group[E] {
	if i := slices.IndexFunc(all, func(g *group[E]) bool { return g.name == name }); i >= 0 {
		return all[i]
	}
	return nil
}

// Any reports whether an item is ready.
func (q *Queue[T]) Any(ready func(T) bool) bool {
	p, _, _ := q.next(ready)
	return p != nil
}

// Next removes the next item that is ready. It reports false if there is none.
func (q *Queue[T]) Next(ready func(T) bool) (item T, ok bool) {
	p, m, i := q.next(ready)
	if p == nil {
		return item, false
	}
	item = m.waiting[i]
	last(q.parties, p)
	last(p.waiting, m)
	q.remove(p, m, i)
	return item, true
}

func (q *Queue[T]) next(ready func(T) bool) (*group[*group[T]], *group[T], int) {
	for _, p := range q.parties {
		for _, m := range p.waiting {
			if i := slices.IndexFunc(m.waiting, ready); i >= 0 {
				return p, m, i
			}
		}
	}
	return nil, nil, 0
}

// last moves a group to the end.
func last[G comparable](all []G, g G) {
	i := slices.Index(all, g)
	copy(all[i:], all[i+1:])
	all[len(all)-1] = g
}

// Remove removes an item, and reports whether it was there.
func (q *Queue[T]) Remove(party, member string, item T) bool {
	p := find(q.parties, party)
	if p == nil {
		return false
	}
	m := find(p.waiting, member)
	if m == nil {
		return false
	}
	i := slices.Index(m.waiting, item)
	if i < 0 {
		return false
	}
	q.remove(p, m, i)
	return true
}

func (q *Queue[T]) remove(p *group[*group[T]], m *group[T], i int) {
	p.weight -= m.weights[i]
	m.weight -= m.weights[i]
	m.waiting, m.weights = slices.Delete(m.waiting, i, i+1), slices.Delete(m.weights, i, i+1)
	q.n--
	if len(m.waiting) == 0 {
		p.waiting = slices.DeleteFunc(p.waiting, func(o *group[T]) bool { return o == m })
	}
	if len(p.waiting) == 0 {
		q.parties = slices.DeleteFunc(q.parties, func(o *group[*group[T]]) bool { return o == p })
	}
}

// Yield removes the item that should make room for a new one of that weight: the newest of
// the member that holds most, in the party that holds most. It reports false if nobody
// holds more than the new one's member and party would.
func (q *Queue[T]) Yield(party, member string, weight int64) (item T, ok bool) {
	own := find(q.parties, party)
	p := heaviest(q.parties, own)
	var m *group[T]
	switch {
	case p != nil && p.weight > own.held()+weight:
		m = heaviest(p.waiting, nil)
	case own == nil:
		return item, false
	default:
		p = own
		mine := find(p.waiting, member)
		m = heaviest(p.waiting, mine)
		if m == nil || m.weight <= mine.held()+weight {
			return item, false
		}
	}
	i := len(m.waiting) - 1
	item = m.waiting[i]
	q.remove(p, m, i)
	return item, true
}

func (g *group[E]) held() int64 {
	if g == nil {
		return 0
	}
	return g.weight
}

// heaviest returns the group that holds most of all but one; nil if there is none.
func heaviest[E any](all []*group[E], but *group[E]) (most *group[E]) {
	for _, g := range all {
		if g != but && (most == nil || g.weight > most.weight) {
			most = g
		}
	}
	return most
}
