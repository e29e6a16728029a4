package fair_test

import (
	"strings"
	"testing"

	"github.com/mcp-sse/mcp-sse/internal/fair"
	"github.com/mcp-sse/mcp-sse/internal/ssetest"
)

// waiting returns a queue of items such as "a/x1": party, member and number.
func waiting(items ...string) *fair.Queue[string] {
	q := &fair.Queue[string]{}
	for _, item := range items {
		add(q, item)
	}
	return q
}

func add(q *fair.Queue[string], item string) {
	party, rest, _ := strings.Cut(item, "/")
	q.Add(party, rest[:1], item, 1)
}

func all(string) bool { return true }

func drain(q *fair.Queue[string], ready func(string) bool) (got []string) {
	for {
		item, ok := q.Next(ready)
		if !ok {
			return got
		}
		got = append(got, item)
	}
}

func TestTurnsGoByPartyThenByMember(t *testing.T) {
	q := waiting("a/x1", "a/x2", "a/x3", "a/y1", "b/x1", "b/x2", "c/z1")
	ssetest.Want(t, "items", drain(q, all), []string{"a/x1", "b/x1", "c/z1", "a/y1", "b/x2", "a/x2", "a/x3"})
	ssetest.Want(t, "items that are left", q.Len(), 0)
}

// Parties that come back after each turn do not keep one waiting that was there before.
func TestNobodyStarves(t *testing.T) {
	q := waiting("a/x1", "a/x2", "a/x3")
	var got []string
	for range 4 {
		add(q, "b/x")
		add(q, "c/x")
		for range 3 {
			item, _ := q.Next(all)
			got = append(got, item)
		}
	}
	ssetest.Want(t, "turns of a", strings.Count(strings.Join(got, " "), "a/"), 3)
}

func TestItemsThatAreNotReadyAreLeftOut(t *testing.T) {
	q := waiting("a/x1", "a/x2", "b/x1")
	second := func(item string) bool { return strings.HasSuffix(item, "2") }
	if !q.Any(second) || q.Any(func(string) bool { return false }) {
		t.Error("Any does not ask which items are ready")
	}
	ssetest.Want(t, "items", drain(q, second), []string{"a/x2"})
	if !q.Remove("a", "x", "a/x1") || q.Remove("a", "x", "a/x1") || q.Remove("b", "y", "b/x1") {
		t.Error("Remove does not tell what was there")
	}
	ssetest.Want(t, "items", drain(q, all), []string{"b/x1"})
}

// Room is made by who holds most, if that is more than the newcomer would hold.
func TestTheOneThatHoldsMostYields(t *testing.T) {
	for name, tt := range map[string]struct {
		q             []string
		party, member string
		want          string // empty: nobody
	}{
		"to another party":                    {[]string{"a/x1", "a/y1", "a/y2", "b/x1"}, "b", "x", "a/y2"},
		"to a new party":                      {[]string{"a/x1", "a/x2"}, "b", "x", "a/x2"},
		"to another member":                   {[]string{"a/x1", "a/x2", "a/x3", "a/y1", "b/x1"}, "a", "y", "a/x3"},
		"not to itself":                       {[]string{"a/x1", "a/x2", "b/x1"}, "a", "x", ""},
		"not to an equal":                     {[]string{"a/x1", "a/x2", "b/x1", "b/x2"}, "b", "x", ""},
		"not to one that would hold as much":  {[]string{"a/x1"}, "b", "x", ""},
		"not to a member that holds as much":  {[]string{"a/x1", "a/y1"}, "a", "z", ""},
		"not to anybody when nobody is there": {nil, "a", "x", ""},
	} {
		q := waiting(tt.q...)
		got, ok := q.Yield(tt.party, tt.member, 1)
		if got != tt.want || ok != (tt.want != "") {
			t.Errorf("%s: %q, %v", name, got, ok)
		}
	}
}
