package mcpserver_test

import (
	"context"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"
	"go.uber.org/goleak"

	"github.com/mcp-sse/mcp-sse/docsearch/api"
	"github.com/mcp-sse/mcp-sse/docsearch/client"
	"github.com/mcp-sse/mcp-sse/docsearch/mcpserver"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

var _ mcpserver.API = (*client.Client)(nil)

// fakeAPI is a daemon with two folders. Its functions, if set, replace what it answers.
type fakeAPI struct {
	mu      sync.Mutex
	folders api.Folders

	err       error
	onSearch  func(ctx context.Context, q api.SearchRequest) (*api.SearchResponse, error)
	onFolders func()
	text      string // of each document
	asked     []string
}

const (
	firstID  = "0123456789abcdef"
	secondID = "fedcba9876543210"
)

var someTime = time.Date(2026, 11, 22, 7, 0, 0, 0, time.UTC)

func newFake() *fakeAPI {
	return &fakeAPI{text: "The whole text.", folders: api.Folders{Folders: []api.Folder{
		{Path: "/home/u/docs", Status: api.StatusHealthy, Percent: 100, Documents: 2, Chunks: 5, TextBytes: 2048, IndexedAt: someTime,
			Skipped: map[string]int{"binary": 1, "too_large": 2}},
		{Path: "/home/u/team/notes", Status: api.StatusMissing, Percent: 100, Documents: 1, Chunks: 1, TextBytes: 10, IndexedAt: someTime},
	}}}
}

func (f *fakeAPI) setFolders(folders ...api.Folder) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.folders.Folders = folders
}

func (f *fakeAPI) note(format string, args ...any) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.asked = append(f.asked, fmt.Sprintf(format, args...))
}

func (f *fakeAPI) Info(context.Context) (*api.ServerInfo, error) {
	if f.err != nil {
		return nil, f.err
	}
	return &api.ServerInfo{Name: "docsearch", Version: "1.2.3", APIVersion: 1, PID: 42, StartedAt: someTime, Status: api.StatusIndexing,
		Percent: 40, Folders: 2, Documents: 3, Chunks: 6, TextBytes: 3 << 20, IndexBytes: 5 << 30,
		Language: "english", Formats: []string{"plain text", "PDF"}, MaxFile: 16 << 20,
		Embeddings: &api.Embeddings{Model: "nomic", Chunks: 1, LastFailed: "connection refused"}, Warnings: []string{"the disk is almost full"}}, nil
}

func (f *fakeAPI) Folders(context.Context) (*api.Folders, error) {
	if f.onFolders != nil {
		f.onFolders()
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	out := f.folders
	return &out, f.err
}

// AddFolder refuses all folders but /home/u/late.
func (f *fakeAPI) AddFolder(_ context.Context, path string) (*api.Folder, error) {
	f.note("add %q", path)
	if path != "/home/u/late" {
		return nil, &client.APIError{Status: 404, Code: api.CodeFolderNotFound, Message: "no such folder: " + path}
	}
	return &api.Folder{Path: path, Status: api.StatusIndexing}, nil
}

func (f *fakeAPI) Search(ctx context.Context, q api.SearchRequest) (*api.SearchResponse, error) {
	f.note("search %+v", q)
	if f.onSearch != nil {
		return f.onSearch(ctx, q)
	}
	return found(), f.err
}

func (f *fakeAPI) SearchContent(_ context.Context, q api.SearchContentRequest) (*api.SearchResponse, error) {
	f.note("search_content %+v", q)
	return found(), f.err
}

func found() *api.SearchResponse {
	return &api.SearchResponse{
		Results: []api.Result{
			{DocumentName: "Guide", DocumentID: firstID, Folder: "/home/u/docs", Path: "/home/u/docs/guide.md", Passage: api.Passage{Relevance: 0.934, FoundBy: api.ByBoth, WordScore: 0.9, MeaningScore: 0.34,
				Snippet: "How to install\n\tthe gateway …", Highlights: []api.Highlight{{Start: 7, End: 14}, {Start: 20, End: 27}},
				Location: api.Location{Line: 10, EndLine: 14, Heading: "Install"}}, MorePassages: []api.Passage{{Relevance: 0.4, FoundBy: api.ByWords, WordScore: 0.4, Snippet: "Install again", Highlights: []api.Highlight{{Start: 0, End: 7}}, Location: api.Location{Line: 40, EndLine: 41}}}},
			{DocumentName: "report.pdf", DocumentID: secondID, Folder: "/home/u/docs", Path: "/home/u/docs/report.pdf", Passage: api.Passage{Relevance: 0.5, FoundBy: api.ByMeaning, MeaningScore: 0.5, Snippet: "one line",
				Location: api.Location{Line: 3, EndLine: 3, Page: 2}}},
		},
		Performance: api.Performance{SearchTime: 3.21, ModelUsed: "bm25"}, NextCursor: "abc", Warnings: []string{"embeddings failed"},
	}
}

func (f *fakeAPI) Document(_ context.Context, id string, offset, limit int) (*api.Document, error) {
	f.note("document %q %d %d", id, offset, limit)
	if f.err != nil {
		return nil, f.err
	}
	if id != firstID {
		return nil, &client.APIError{Status: 404, Code: api.CodeDocumentNotFound, Message: "no document " + id}
	}
	end := len(f.text)
	if limit > 0 {
		end = min(end, offset+limit)
	}
	doc := &api.Document{DocumentSummary: api.DocumentSummary{ID: id, Name: "guide.md", Folder: "/home/u/docs", Path: "/home/u/docs/guide.md", Type: "markdown",
		Bytes: 20, Modified: someTime, Chunks: 1}, Title: "Guide", Text: f.text[offset:end], Offset: offset, TextBytes: len(f.text)}
	if end < len(f.text) {
		doc.NextOffset = end
	}
	return doc, nil
}

// connect serves the fake, limited to folders if there are any, and returns a client
// session of it. Both end with the test.
func connect(t *testing.T, f *fakeAPI, o *mcp.ClientOptions, folders ...string) *mcp.ClientSession {
	t.Helper()
	s, err := mcpserver.New(mcpserver.Options{Client: f, Version: "1.2.3", Folders: folders})
	if err != nil {
		t.Fatal(err)
	}
	mcpserver.SetPauses(s, 2*time.Second, time.Millisecond)
	return serve(t, s, o)
}

func serve(t *testing.T, s *mcpserver.Server, o *mcp.ClientOptions) *mcp.ClientSession {
	t.Helper()
	here, there := mcp.NewInMemoryTransports()
	ended := make(chan error, 1)
	go func() { ended <- s.Run(context.WithoutCancel(t.Context()), there) }()
	session, err := mcp.NewClient(&mcp.Implementation{Name: "test", Version: "1"}, o).Connect(t.Context(), here, nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = session.Close()
		if err := <-ended; err != nil {
			t.Errorf("run: %v", err)
		}
	})
	return session
}

// call calls a tool and returns its text.
func call(t *testing.T, s *mcp.ClientSession, tool string, args map[string]any) (string, *mcp.CallToolResult) {
	t.Helper()
	result, err := s.CallTool(t.Context(), &mcp.CallToolParams{Name: tool, Arguments: args})
	if err != nil {
		t.Fatalf("%s: %v", tool, err)
	}
	return textOf(t, result), result
}

func textOf(t *testing.T, r *mcp.CallToolResult) string {
	t.Helper()
	if len(r.Content) != 1 {
		t.Fatalf("got %d contents, want 1", len(r.Content))
	}
	text, ok := r.Content[0].(*mcp.TextContent)
	if !ok {
		t.Fatalf("got content %T, want text", r.Content[0])
	}
	return text.Text
}
