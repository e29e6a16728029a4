package compose

import (
	"crypto/sha256"
	"encoding/json"
	"hash"
	"slices"
	"sync"

	"github.com/mcp-sse/mcp-sse/internal/merge"
)

// The bounds of what a View keeps for the next client: results, and lists of members.
const (
	maxResults = 64
	maxLists   = 4 * maxResults
)

// cache has what all sessions with the same lists share.
type cache struct {
	merge func(in merge.Input) *merge.Result // merge.Build; tests watch when it is called

	mu      sync.Mutex // taken after session.mu
	results []cached   // the newest first
	lists   map[listKey]*merge.List
}

// listKey is the key of a list: its pages decide which one it is, so that those of another client need not be read.
type listKey struct {
	kind merge.Kind
	hash [sha256.Size]byte
}

// newListKey returns the key of a list with these pages.
func newListKey(kind merge.Kind, pages hash.Hash) (key listKey) {
	key.kind = kind
	pages.Sum(key.hash[:0])
	return key
}

// cached is a result, and what it is made of.
type cached struct {
	setup *setup
	lists [][merge.Kinds]*merge.List // of the members
	// result makes the result at the first call; others wait for it. It is called without the lock of the cache: a
	// merge of the longest lists takes a second, and sessions with other lists go on.
	result func() *result
}

// list returns the list that a session has read before; nil: none has.
func (v *View) list(key listKey) *merge.List {
	c := &v.cache
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.lists[key]
}

// keepList keeps the list that has these entries for other sessions, and returns it, or the one that is there.
func (v *View) keepList(key listKey, entries []json.RawMessage) *merge.List {
	list := merge.NewList(key.kind, entries)
	c := &v.cache
	c.mu.Lock()
	defer c.mu.Unlock()
	if before := c.lists[key]; before != nil {
		return before
	}
	if len(c.lists) >= maxLists { // sessions keep those that they have
		clear(c.lists)
	}
	c.lists[key] = list
	return list
}

// build returns the result of members with their lists, and whether it is a new one.
func (v *View) build(in merge.Input, of *setup) (r *result, isNew bool) {
	found, isNew := v.cache.find(in, of)
	return found.result(), isNew
}

// find returns the place of a result in the cache, and whether it is a new one.
func (c *cache) find(in merge.Input, of *setup) (found cached, isNew bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	at := slices.IndexFunc(c.results, func(one cached) bool {
		return one.setup == of && slices.EqualFunc(one.lists, in.Members, func(lists [merge.Kinds]*merge.List,
			m merge.Member) bool {
			return lists == m.Lists
		})
	})
	if at >= 0 {
		found = c.results[at]
		c.results = slices.Delete(c.results, at, at+1)
	} else {
		found = cached{setup: of, result: sync.OnceValue(func() *result { return newResult(c.merge(in), of) })}
		for _, m := range in.Members {
			found.lists = append(found.lists, m.Lists)
		}
	}
	c.results = slices.Insert(c.results, 0, found)
	c.results = c.results[:min(maxResults, len(c.results))]
	return found, at < 0
}
