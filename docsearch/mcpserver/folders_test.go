package mcpserver_test

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"slices"
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

func TestFirstIndexIsWaitedFor(t *testing.T) {
	f := newFake()
	f.setFolders(indexing(37))
	looks := 0
	f.onFolders = func() {
		if looks++; looks == 3 {
			f.setFolders(newFake().folders.Folders...)
		}
	}
	progress := make(chan float64, 1)
	s := connect(t, f, &mcp.ClientOptions{ProgressNotificationHandler: func(_ context.Context, req *mcp.ProgressNotificationClientRequest) {
		progress <- req.Params.Progress
	}})
	params := &mcp.CallToolParams{Name: "search", Arguments: map[string]any{"query": "q"}}
	params.SetProgressToken("token")
	result, err := s.CallTool(t.Context(), params)
	if err != nil {
		t.Fatal(err)
	}
	if text := textOf(t, result); looks != 3 || !strings.Contains(text, "Found 2 documents") {
		t.Errorf("got %q after %d looks, want results after 3", text, looks)
	}
	if got := <-progress; got != 37 {
		t.Errorf("progress %v, want 37", got)
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
	f.onSearch = func(context.Context, api.SearchRequest) (*api.SearchResponse, error) {
		return &api.SearchResponse{}, nil
	}
	session := serve(t, server, nil)
	if text, result := call(t, session, "search", map[string]any{"query": "q"}); result.IsError || !strings.Contains(text, "not complete yet") {
		t.Errorf("got %q, want that the index is not complete", text)
	}
	looks := 0
	f.onFolders = func() { looks++ }
	if text, result := call(t, session, "search", map[string]any{"query": "q"}); result.IsError || looks != 2 {
		t.Errorf("got %q after %d looks, want that later searches do not wait", text, looks)
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
		_, err := s.CallTool(ctx, &mcp.CallToolParams{Name: "search", Arguments: map[string]any{"query": "q"}})
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
	looks := 0
	f.onFolders = func() { looks++ }
	if text, result := call(t, connect(t, f, nil), "search", map[string]any{"query": "q"}); result.IsError || looks != 2 {
		t.Errorf("got %q after %d looks, want results at once", text, looks)
	}
}

// An agent that is limited to folders sees nothing of others.
func TestLimitedToFolders(t *testing.T) {
	f := newFake()
	s := connect(t, f, nil, "/home/u/docs", "/home/u/gone")
	text, _ := call(t, s, "search", map[string]any{"query": "q"})
	if !strings.Contains(text, "Warning: /home/u/gone is not indexed") {
		t.Errorf("got %q, want a warning", text)
	}
	call(t, s, "search_content", map[string]any{"exact_terms": []string{"x"}})
	call(t, s, "search", map[string]any{"query": "q", "folder": "docs"})
	want := []string{`search {Folders:[/home/u/docs] Query:q Limit:10 Threshold:0 IncludeContent:false Passages:5}`,
		`search_content {Folders:[/home/u/docs] SemanticConcepts:[] ExactTerms:[x] MinScore:0 Limit:10 IncludeContent:false Passages:5 Cursor:}`,
		`search {Folders:[/home/u/docs] Query:q Limit:10 Threshold:0 IncludeContent:false Passages:5}`}
	searches := slices.DeleteFunc(slices.Clone(f.asked), func(s string) bool { return strings.HasPrefix(s, "add ") })
	if !slices.Equal(searches, want) {
		t.Errorf("got requests\n%q, want\n%q", searches, want)
	}
	for _, folder := range []string{"notes", "/home/u/team/notes"} {
		if text, result := call(t, s, "search", map[string]any{"query": "q", "folder": folder}); !result.IsError || strings.Contains(text, "- /home/u/team") {
			t.Errorf("%s: got %q, want an error", folder, text)
		}
	}
	if text, _ := call(t, s, "list_folders", nil); strings.Contains(text, "team") {
		t.Errorf("list: got %q", text)
	}
	text, _ = call(t, s, "get_server_info", nil)
	for _, want := range []string{`"folders":1,`, `"documents":2,`, `"chunks":5,`, `"textBytes":2048,`} {
		if !strings.Contains(text, want) || strings.Contains(text, "almost full") {
			t.Errorf("info: got %q, want %s of the folder alone", text, want)
		}
	}
	if folders, err := read(t, s, "docs://folders"); err != nil || strings.Contains(folders.Text, "team") {
		t.Errorf("resource: got %v, %v", folders, err)
	}
}

// A folder that the daemon lacks, because it was not there or another program removed
// it, is added again.
func TestFolderThatTheDaemonLacksIsAdded(t *testing.T) {
	f := newFake()
	s := connect(t, f, nil, "/home/u/late")
	if text, result := call(t, s, "search", map[string]any{"query": "q"}); result.IsError {
		t.Errorf("got %q", text)
	}
	if len(f.asked) < 1 || f.asked[0] != `add "/home/u/late"` {
		t.Errorf("got requests %q, want that the folder is added first", f.asked)
	}
}

// An agent without any folder is told why.
func TestFolderThatCannotBeAdded(t *testing.T) {
	s := connect(t, newFake(), nil, "/home/u/gone")
	for _, tool := range []string{"search", "list_folders"} {
		args := map[string]any{"query": "q"}
		if tool == "list_folders" {
			args = nil
		}
		if text, result := call(t, s, tool, args); !result.IsError || !strings.Contains(text, "/home/u/gone is not indexed: no such folder") {
			t.Errorf("%s: got %q, want the daemon's reason", tool, text)
		}
	}
}

func TestDocumentOfAnotherFolder(t *testing.T) {
	s := connect(t, newFake(), nil, "/home/u/team/notes")
	if text, result := call(t, s, "get_document_data", map[string]any{"document_id": firstID}); !result.IsError || !strings.Contains(text, "no document "+firstID) {
		t.Errorf("got %q, want that there is no such document", text)
	}
	if _, err := read(t, s, "docs://documents/"+firstID); err == nil {
		t.Error("resource: got nil")
	}
}

func TestFolderBySymbolicLink(t *testing.T) {
	dir := realPath(t, t.TempDir())
	link := filepath.Join(realPath(t, t.TempDir()), "link")
	if err := os.Symlink(dir, link); err != nil {
		t.Fatal(err)
	}
	f := newFake()
	f.setFolders(api.Folder{Path: dir}, api.Folder{Path: "/other"})
	if text, result := call(t, connect(t, f, nil, link), "search", map[string]any{"query": "q", "folder": link}); result.IsError {
		t.Errorf("got error %q", text)
	}
	if want := "search {Folders:[" + dir + "]"; len(f.asked) != 1 || !strings.HasPrefix(f.asked[0], want) {
		t.Errorf("got %q, want %s", f.asked, want)
	}
}

func realPath(t *testing.T, path string) string {
	t.Helper()
	path, err := filepath.EvalSymlinks(path)
	if err != nil {
		t.Fatal(err)
	}
	return path
}

// Indexing begins when the agent lists the tools, before its first search.
func TestFoldersAreAddedEarly(t *testing.T) {
	f := newFake()
	s := connect(t, f, nil, "/home/u/late")
	if _, err := s.ListTools(t.Context(), nil); err != nil {
		t.Fatal(err)
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	if want := `add "/home/u/late"`; !slices.Contains(f.asked, want) {
		t.Errorf("the daemon was asked for %q, want %q", f.asked, want)
	}
}
