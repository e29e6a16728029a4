package sharing_test

import (
	"fmt"
	"slices"
	"testing"

	"github.com/mcp-sse/mcp-sse/internal/multiplex/sharing"
)

// Clients in these tests are names; "" is none.

func TestWhoIsToldOfAnUpdate(t *testing.T) {
	var s sharing.Subscriptions[string]
	s.Add("a://dir", "ann")
	s.Add("a://dir/", "bob")
	s.Add("a://dir/file", "ann")
	s.Add("z://", "cid")
	for uri, want := range map[string][]string{
		"a://dir":        {"ann"},
		"a://dir?x":      {"ann"},
		"a://dir/x/y":    {"ann", "bob"},
		"a://dir/file":   {"ann", "bob"},
		"a://dir/file#2": {"ann", "bob"},
		"a://directory":  nil,
		"z://x":          {"cid"},
	} {
		got := s.Updated(uri)
		slices.Sort(got)
		if !slices.Equal(got, want) {
			t.Errorf("%s: told are %v, want %v", uri, got, want)
		}
	}
}

type task = sharing.Task[string]

func TestTasksAreBounded(t *testing.T) {
	var s sharing.Tasks[string]
	id := func(i int) string { return fmt.Sprint(i) }
	for i := range 4096 {
		s.Add(&task{ID: id(i), Client: "ann", Wire: int64(i + 1)})
	}
	s.SetStatus(id(7), "completed")
	s.SetStatus("unknown", "completed")
	if s.Progressing(8) != nil {
		t.Error("a task that is over makes progress")
	}
	s.Add(&task{ID: "x"})
	s.Add(&task{ID: "y"})
	for want, ids := range map[bool][]string{false: {id(7), id(0)}, true: {id(1), "x", "y"}} {
		for _, id := range ids {
			if known := s.Find(id) != nil; known != want {
				t.Errorf("task %s known: %t", id, known)
			}
		}
	}
	for range 3 * 4096 { // one id again and again is one task
		s.Add(&task{ID: "x"})
	}
	if tasks, _ := s.Len(); tasks != 4096 {
		t.Errorf("%d tasks", tasks)
	}
}
