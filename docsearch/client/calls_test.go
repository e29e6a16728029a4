package client_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"testing"
	"time"

	"github.com/mcp-sse/mcp-sse/docsearch/api"
	"github.com/mcp-sse/mcp-sse/docsearch/client"
	"github.com/mcp-sse/mcp-sse/docsearch/discovery"
)

func TestPathsOfTheAPI(t *testing.T) {
	dir := stateDir(t)
	c := newClient(t, dir, modeGood, client.Options{Token: "right"})
	ctx := t.Context()
	calls := []func() error{
		func() error { _, err := c.Health(ctx); return err },
		func() error { _, err := c.Info(ctx); return err },
		func() error { _, err := c.Folders(ctx); return err },
		func() error { _, err := c.AddFolder(ctx, "/x y"); return err },
		func() error { _, err := c.Search(ctx, api.SearchRequest{Query: "q"}); return err },
		func() error { _, err := c.SearchContent(ctx, api.SearchContentRequest{}); return err },
		func() error { _, err := c.Document(ctx, "0123456789abcdef", 3, 4); return err },
		func() error { return c.RemoveFolder(ctx, "/x y") },
	}
	for i, call := range calls {
		if err := call(); err != nil {
			t.Errorf("call %d: %v", i, err)
		}
	}
	want := []string{"GET_/health", // of the recovery
		"GET_/health", "GET_/api/v1/server/info", "GET_/api/v1/folders", "POST_/api/v1/folders",
		"POST_/api/v1/search", "POST_/api/v1/search_content", "GET_/api/v1/documents/0123456789abcdef", "DELETE_/api/v1/folders/%2Fx%20y"}
	got := notes(dir, "requests")
	for len(got) > 1 && got[1] == want[0] && len(got) > len(want) {
		got = got[1:] // the recovery may look more than once
	}
	if !slices.Equal(got, want) {
		t.Errorf("got requests\n%q, want\n%q", got, want)
	}
}

func TestDaemonSaysNo(t *testing.T) {
	dir := stateDir(t)
	c := newClient(t, dir, modeGood, client.Options{})
	first := mustAsk(t, c, "q")
	for query, status := range map[string]int{badQuery: 400, brokeQuery: 500} {
		_, err := ask(t.Context(), c, query)
		says, ok := errors.AsType[*client.APIError](err)
		if !ok || says.Status != status || says.Code != api.CodeIndexFailed || says.Message != "test" {
			t.Errorf("%s: got %v, want an APIError with status %d", query, err, status)
		}
	}
	if pid := mustAsk(t, c, "q"); pid != first {
		t.Errorf("got daemon %d, want %d still", pid, first)
	}
	wantStarts(t, dir, 1)
}

func TestErrorsOfTheServerAreRetried(t *testing.T) {
	dir := stateDir(t)
	mustAsk(t, newClient(t, dir, modeGood, client.Options{}), busyQuery)
	wantStarts(t, dir, 1)
}

func TestWrongToken(t *testing.T) {
	dir := stateDir(t)
	c := newClient(t, dir, modeGood, client.Options{Token: "wrong"})
	_, err := ask(t.Context(), c, "q")
	if says, ok := errors.AsType[*client.APIError](err); !ok || says.Code != api.CodeUnauthorized {
		t.Errorf("got %v, want unauthorized", err)
	}
	wantStarts(t, dir, 1)
}

func TestAnswersThatAreNone(t *testing.T) {
	dir := stateDir(t)
	c := newClient(t, dir, modeGood, client.Options{})
	_, err := ask(t.Context(), c, htmlQuery)
	wantDown(t, err, "something else than the API's JSON")
	if _, err := ask(t.Context(), c, hugeQuery); err == nil {
		t.Error("huge answer: got nil")
	}
	wantStarts(t, dir, 1)
}

func TestCancelledCall(t *testing.T) {
	dir := stateDir(t)
	closeGate(t, dir, goGate)
	c := newClient(t, dir, modeGood, client.Options{})
	mustAsk(t, c, "q")
	ctx, cancel := context.WithCancel(t.Context())
	answer := make(chan error, 1)
	go func() {
		_, err := ask(ctx, c, slowQuery)
		answer <- err
	}()
	eventually(t, "the request arrives", func() bool { return len(notes(dir, "requests")) >= 3 })
	cancel()
	if err := <-answer; !errors.Is(err, context.Canceled) {
		t.Errorf("got %v, want context.Canceled", err)
	}
	mustAsk(t, c, "q")
	wantStarts(t, dir, 1)
}

func TestCancelledCallEndsAtOnce(t *testing.T) {
	for _, mode := range []string{modeMute, modeHidden, modeSlow} {
		for _, noStart := range []bool{false, true} {
			t.Run(fmt.Sprint(mode, noStart), func(t *testing.T) {
				dir := stateDir(t)
				closeGate(t, dir, goGate)
				patient := client.Options{HangTimeout: time.Minute, StartTimeout: time.Minute}
				starter := newClient(t, dir, mode, patient)
				ctx, cancel := context.WithCancel(t.Context())
				answers := make(chan error, 2)
				call := func(c *client.Client) {
					_, err := ask(ctx, c, "q")
					answers <- err
				}
				go call(starter)
				eventually(t, "the daemon has the lock", func() bool { held, _ := discovery.Held(dir); return held })
				if patient.NoStart = noStart; mode == modeMute {
					eventually(t, "a record", func() bool { _, err := discovery.Read(dir); return err == nil })
					go call(newClient(t, dir, mode, patient))
				} else {
					answers <- context.Canceled
				}
				cancel()
				for range 2 {
					if err := <-answers; !errors.Is(err, context.Canceled) {
						t.Errorf("got %v, want context.Canceled", err)
					}
				}
			})
		}
	}
}

func TestCallAfterItsEndStartsNoDaemon(t *testing.T) {
	dir := stateDir(t)
	c := newClient(t, dir, modeGood, client.Options{})
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := ask(ctx, c, "q"); !errors.Is(err, context.Canceled) {
		t.Errorf("got %v, want context.Canceled", err)
	}
	if err := c.Close(); err != nil { // waits for a recovery
		t.Fatal(err)
	}
	if entries, _ := os.ReadDir(dir); len(entries) != 1 {
		t.Errorf("got files %v, want the gate alone", entries)
	}
}

func TestOptionsAreChecked(t *testing.T) {
	for name, o := range map[string]client.Options{
		"no state directory": {},
		"relative":           {StateDir: "state"},
		"negative":           {StateDir: "/x", HangTimeout: -1},
	} {
		if _, err := client.New(o); err == nil {
			t.Errorf("%s: got nil", name)
		}
	}
}
