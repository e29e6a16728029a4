package sharing_test

import (
	"errors"
	"fmt"
	"slices"
	"testing"

	"github.com/mcp-sse/mcp-sse/multiplex/sharing"
)

// Clients in these tests are names; "" is none.

func TestTheServerHasTheMostVerboseLevel(t *testing.T) {
	debug, info, failed := sharing.ParseLevel("debug"), sharing.ParseLevel("info"), sharing.ParseLevel("error")
	var levels sharing.Levels[string]
	want := func(c string, level, server sharing.Level, needed bool) {
		t.Helper()
		got, ok := levels.Needed(c, level)
		if got != server || ok != needed {
			t.Errorf("%s wants %q: the server needs %q, %t; want %q, %t", c, level, got, ok, server, needed)
		}
		if ok {
			levels.Told(got)
		}
		levels.Set(c, level)
	}
	want("ann", info, info, true)
	want("bob", failed, info, false)
	want("bob", debug, debug, true)
	want("ann", failed, debug, false)
	if !levels.Wants("bob", debug) || levels.Wants("ann", debug) || !levels.Wants("cid", debug) || !levels.Wants("ann", 0) {
		t.Error("clients want messages from their own level on, or all")
	}
	if level, needed := levels.Leave("bob"); level != failed || !needed {
		t.Errorf("once bob has left the server needs %q, %t", level, needed)
	}
	levels.Lost()
	if level, needed := levels.Needed("ann", debug); level != debug || !needed {
		t.Errorf("a server that may not have the level is told again, got %q, %t", level, needed)
	}
	for _, name := range []string{"", "loud"} {
		if level := sharing.ParseLevel(name); level != 0 || level.String() != "" {
			t.Errorf("%q is level %d", name, level)
		}
	}
}

func TestSubscriptionsAreCounted(t *testing.T) {
	var s sharing.Subscriptions[string]
	if done, err := s.Subscribe("a://1", "ann"); done || err != nil {
		t.Errorf("the first subscriber: %t, %v; want the server to be asked", done, err)
	}
	s.Add("a://1", "ann")
	for _, c := range []string{"ann", "bob"} {
		if done, err := s.Subscribe("a://1", c); !done || err != nil {
			t.Errorf("%s: %t, %v; want no request", c, done, err)
		}
	}
	if s.Unsubscribe("a://1", "ann") || !s.Unsubscribe("a://1", "bob") || !s.Unsubscribe("a://1", "bob") {
		t.Error("the server hears of the last one that leaves, and of who was not subscribed")
	}
	for i := range sharing.MaxSubscriptions {
		s.Add(fmt.Sprint("b://", i), "ann")
	}
	if _, err := s.Subscribe("c://", "ann"); !errors.Is(err, sharing.ErrTooManySubscriptions) {
		t.Errorf("got %v", err)
	}
	s.Add("b://0", "bob")
	if uris := s.Leave("ann"); len(uris) != sharing.MaxSubscriptions-1 || slices.Contains(uris, "b://0") {
		t.Errorf("%d URIs have no subscriber left", len(uris))
	}
	if s.Len() != 1 {
		t.Errorf("%d subscriptions are left", s.Len())
	}
}

func TestWhoIsToldOfAnUpdate(t *testing.T) {
	var s sharing.Subscriptions[string]
	s.Add("a://dir", "ann")
	s.Add("a://dir/", "bob")
	s.Add("a://dir/file", "ann")
	s.Add("z://", "cid")
	for uri, want := range map[string][]string{
		"a://dir":        {"ann"},
		"a://dir/file":   {"ann", "bob"},
		"a://dir/file#2": {"ann", "bob"},
		"a://directory":  {"ann", "bob", "cid"}, // nobody subscribes to it, so it may be part of anything
		"z://x":          {"cid"},
	} {
		got := s.Updated(uri)
		slices.Sort(got)
		if !slices.Equal(got, want) {
			t.Errorf("%s: told are %v, want %v", uri, got, want)
		}
	}
}

func TestElicitationsAreBounded(t *testing.T) {
	var e sharing.Elicitations[string]
	for i := range 1025 {
		e.Add(fmt.Sprint(i), "ann")
	}
	e.Add("1024", "bob")
	if _, ok := e.Complete("0"); ok || e.Len() != 1024 {
		t.Errorf("the oldest is known, or %d are", e.Len())
	}
	if c, ok := e.Complete("1024"); c != "bob" || !ok {
		t.Errorf("completed by %q", c)
	}
	if _, ok := e.Complete("1024"); ok {
		t.Error("completed twice")
	}
	e.Leave("ann")
	if e.Len() != 0 {
		t.Errorf("%d are left", e.Len())
	}
}

type task = sharing.Task[string]

func TestTasksOfAClientThatLeaves(t *testing.T) {
	var s sharing.Tasks[string]
	s.Add(&task{ID: "own", Client: "ann", Wire: 1})
	s.Add(&task{ID: "principal's", Client: "ann", Principal: "p", Wire: 2})
	s.Add(&task{ID: "bob's", Client: "bob"})
	if s.Progressing(1) == nil || s.Progressing(0) != nil {
		t.Error("a token names its task, 0 none")
	}
	s.Leave("ann")
	if s.Find("own") != nil || !s.Find("principal's").OwnedBy("cid", "p") || s.Find("principal's").OwnedBy("cid", "q") || !s.Find("bob's").OwnedBy("bob", "") {
		t.Error("a principal keeps its tasks, a client alone does not")
	}
	if tasks, progressing := s.Len(); tasks != 2 || progressing != 0 {
		t.Errorf("%d tasks, %d make progress", tasks, progressing)
	}
}

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

func TestSubscriptionsLeaveNothing(t *testing.T) {
	var s sharing.Subscriptions[string]
	s.Add("a://1", "ann")
	s.Add("a://1", "bob")
	s.Leave("ann")
	if got := s.Updated("a://1/x"); len(got) != 1 || got[0] != "bob" {
		t.Errorf("told are %v, want bob", got)
	}
	s.Leave("bob")
	if got := s.Updated("a://1"); len(got) != 0 {
		t.Errorf("told are %v, want nobody", got)
	}
}
