package compose

import (
	"crypto/sha256"
	"encoding/json"
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
	mu         sync.Mutex // taken after session.mu
	generation int64
	results    []cached // the newest first
	lists      map[listKey]*merge.List
}

type listKey struct {
	kind merge.Kind
	hash [sha256.Size]byte
}

// cached is a result, and what it was made of.
type cached struct {
	setup *setup
	lists [][merge.Kinds]*merge.List // of the members
	*result
}

// intern returns the list that has these entries. Lists with the same bytes are the same.
func (v *View) intern(kind merge.Kind, entries []json.RawMessage) *merge.List {
	hash := sha256.New()
	for _, entry := range entries {
		hash.Write(entry)
		hash.Write([]byte{'\n'}) // no message has it
	}
	key := listKey{kind: kind}
	hash.Sum(key.hash[:0])
	c := &v.cache
	c.mu.Lock()
	defer c.mu.Unlock()
	list := c.lists[key]
	if list == nil {
		if len(c.lists) >= maxLists { // sessions keep those that they have
			clear(c.lists)
		}
		list = merge.NewList(kind, entries)
		c.lists[key] = list
	}
	return list
}

// build returns the result of members with their lists.
func (v *View) build(in merge.Input, of *setup) *result {
	c := &v.cache
	c.mu.Lock()
	defer c.mu.Unlock()
	at := slices.IndexFunc(c.results, func(one cached) bool {
		return one.setup == of && slices.EqualFunc(one.lists, in.Members, func(lists [merge.Kinds]*merge.List,
			m merge.Member) bool {
			return lists == m.Lists
		})
	})
	var found cached
	if at >= 0 {
		found = c.results[at]
		c.results = slices.Delete(c.results, at, at+1)
	} else {
		c.generation++
		found = cached{setup: of, result: newResult(merge.Build(in), c.generation)}
		for _, m := range in.Members {
			found.lists = append(found.lists, m.Lists)
		}
	}
	c.results = slices.Insert(c.results, 0, found)
	c.results = c.results[:min(maxResults, len(c.results))]
	return found.result
}

// newest returns the result that was needed last; nil: none was.
func (c *cache) newest() *result {
	c.mu.Lock()
	defer c.mu.Unlock()
	if len(c.results) == 0 {
		return nil
	}
	return c.results[0].result
}
