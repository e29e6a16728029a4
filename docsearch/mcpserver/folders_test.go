package mcpserver_test

import (
	"context"
	"errors"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/mcp-sse/mcp-sse/docsearch/api"
	"github.com/mcp-sse/mcp-sse/docsearch/mcpserver"
)

// indexing returns a folder that is being indexed for the first time.
func indexing(percent int) api.Folder {
	return api.Folder{Path: "/home/u/docs", Status: api.StatusIndexing, Percent: percent}
}

// withToken calls search with a progress token.
func withToken(ctx context.Context, s *mcp.ClientSession) (*mcp.CallToolResult, error) {
	params := &mcp.CallToolParams{Name: "search", Arguments: map[string]any{"query": "q"}}
	params.SetProgressToken("token")
	return s.CallTool(ctx, params)
}

func TestFirstIndexIsWaitedForWithProgress(t *testing.T) {
	f := newFake()
	f.setFolders(indexing(0))
	percent := 0
	f.onFolders = func() {
		if percent++; percent < 100 {
			f.setFolders(indexing(percent / 10 * 10))
		} else {
			f.setFolders(api.Folder{Path: "/home/u/docs", Status: api.StatusHealthy, Percent: 100, IndexedAt: someTime})
		}
	}
	var mu sync.Mutex
	var got []float64
	s := connect(t, f, &mcp.ClientOptions{ProgressNotificationHandler: func(_ context.Context, r *mcp.ProgressNotificationClientRequest) {
		mu.Lock()
		defer mu.Unlock()
		got = append(got, r.Params.Progress)
		if r.Params.ProgressToken != "token" || r.Params.Total != 100 {
			t.Errorf("got %+v", r.Params)
		}
	}})
	result, err := withToken(t.Context(), s)
	if err != nil || result.IsError {
		t.Fatalf("got %+v, %v", result, err)
	}
	if text := textOf(t, result); strings.Contains(text, "incomplete") {
		t.Errorf("got %q, want no warning", text)
	}
	mu.Lock()
	defer mu.Unlock()
	if len(got) != 10 {
		t.Errorf("got progress %v, want ten values", got)
	}
	for i := range got {
		if got[i] != float64(i*10) {
			t.Errorf("got progress %v, want 0, 10, …", got)
		}
	}
}

func TestFirstIndexWithoutATokenIsAWarning(t *testing.T) {
	f := newFake()
	f.setFolders(indexing(37))
	text, result := call(t, connect(t, f, nil), "search", map[string]any{"query": "q"})
	if result.IsError || !strings.Contains(text, "Warning: /home/u/docs is 37 % indexed") {
		t.Errorf("got %q, want a warning", text)
	}
}

func TestFirstIndexIsNotWaitedForForever(t *testing.T) {
	f := newFake()
	f.setFolders(indexing(37))
	server, err := mcpserver.New(mcpserver.Options{Client: f})
	if err != nil {
		t.Fatal(err)
	}
	mcpserver.SetPauses(server, 20*time.Millisecond, time.Millisecond)
	result, err := withToken(t.Context(), serve(t, server, nil))
	if err != nil || !strings.Contains(textOf(t, result), "37 % indexed") {
		t.Errorf("got %+v, %v, want a warning", result, err)
	}
}

func TestCancelledWaitForTheFirstIndex(t *testing.T) {
	f := newFake()
	f.setFolders(indexing(37))
	waits := make(chan struct{})
	var once sync.Once
	f.onFolders = func() { once.Do(func() { close(waits) }) }
	s := connect(t, f, nil)
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() {
		_, err := withToken(ctx, s)
		ended <- err
	}()
	<-waits
	cancel()
	if err := <-ended; !errors.Is(err, context.Canceled) {
		t.Errorf("got %v, want context.Canceled", err)
	}
	if len(f.asked) > 0 {
		t.Errorf("got %q, want no search", f.asked)
	}
}

func TestLaterIndexingIsNotWaitedFor(t *testing.T) {
	f := newFake()
	again := indexing(37)
	again.IndexedAt = someTime
	f.setFolders(again)
	result, err := withToken(t.Context(), connect(t, f, nil))
	if err != nil || strings.Contains(textOf(t, result), "37") {
		t.Errorf("got %+v, %v, want results at once", result, err)
	}
}

func TestWarningsOfFolders(t *testing.T) {
	f := newFake()
	f.setFolders(api.Folder{Path: "/a", Status: api.StatusMissing, IndexedAt: someTime},
		api.Folder{Path: "/b", Status: api.StatusDegraded, Warning: "the disk is full"})
	text, _ := call(t, connect(t, f, nil), "search", map[string]any{"query": "q"})
	for _, want := range []string{"Warning: /a is gone", "Warning: /b: the disk is full", "Warning: embeddings failed"} {
		if !strings.Contains(text, want) {
			t.Errorf("got %q, want %q in it", text, want)
		}
	}
	text, _ = call(t, connect(t, f, nil), "search", map[string]any{"query": "q", "folder": "b"})
	if strings.Contains(text, "/a is gone") {
		t.Errorf("got %q, want no warning of another folder", text)
	}
}
