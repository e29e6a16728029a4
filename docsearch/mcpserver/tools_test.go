package mcpserver_test

import (
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/google/jsonschema-go/jsonschema"
	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/mcp-sse/mcp-sse/docsearch/api"
	"github.com/mcp-sse/mcp-sse/docsearch/client"
	"github.com/mcp-sse/mcp-sse/docsearch/mcpserver"
)

var update = flag.Bool("update", false, "write the golden files")

// golden compares got with a file in testdata.
func golden(t *testing.T, name, got string) {
	t.Helper()
	path := filepath.Join("testdata", name)
	if *update {
		if err := os.WriteFile(path, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if got != string(want) {
		t.Errorf("%s: got\n%s\nwant\n%s", name, got, want)
	}
}

func TestToolOutput(t *testing.T) {
	for _, tt := range []struct {
		tool string
		args map[string]any
	}{
		{"search_content", map[string]any{"semantic_concepts": []string{"installing"}, "exact_terms": []string{"gateway"}}},
		{"search", map[string]any{"query": "install gateway", "folder": "docs"}},
		{"list_folders", nil},
		{"get_document_data", map[string]any{"document_id": firstID, "limit": 9}},
		{"get_server_info", nil},
	} {
		t.Run(tt.tool, func(t *testing.T) {
			text, result := call(t, connect(t, newFake(), nil), tt.tool, tt.args)
			if result.IsError {
				t.Fatalf("got error %q", text)
			}
			structured, err := json.MarshalIndent(result.StructuredContent, "", "  ")
			if err != nil {
				t.Fatal(err)
			}
			if !json.Valid([]byte(text)) { // else it is the structured output
				golden(t, tt.tool+".txt", text)
			}
			golden(t, tt.tool+".json", string(structured)+"\n")
		})
	}
}

func TestToolList(t *testing.T) {
	tools, err := connect(t, newFake(), nil).ListTools(t.Context(), nil)
	if err != nil {
		t.Fatal(err)
	}
	data, err := json.MarshalIndent(tools.Tools, "", "  ")
	if err != nil {
		t.Fatal(err)
	}
	golden(t, "tools.json", string(data)+"\n")
	for _, tool := range tools.Tools {
		a := tool.Annotations
		if !a.ReadOnlyHint || !a.IdempotentHint || a.OpenWorldHint == nil || *a.OpenWorldHint {
			t.Errorf("%s: got annotations %+v", tool.Name, a)
		}
		for kind, schema := range map[string]any{"input": tool.InputSchema, "output": tool.OutputSchema} {
			checkSchema(t, tool.Name+" "+kind, schema)
		}
	}
}

// checkSchema checks that a schema is one, and that each of its properties has a
// description.
func checkSchema(t *testing.T, name string, schema any) {
	t.Helper()
	data, err := json.Marshal(schema)
	if err != nil {
		t.Fatal(err)
	}
	var s jsonschema.Schema
	if err := json.Unmarshal(data, &s); err != nil {
		t.Fatalf("%s: %v", name, err)
	}
	if _, err := s.Resolve(&jsonschema.ResolveOptions{ValidateDefaults: true}); err != nil {
		t.Errorf("%s: %v", name, err)
	}
	checkDescriptions(t, name, &s)
}

func checkDescriptions(t *testing.T, name string, s *jsonschema.Schema) {
	t.Helper()
	for property, p := range s.Properties {
		if p.Description == "" {
			t.Errorf("%s: property %s has no description", name, property)
		}
		checkDescriptions(t, name+" "+property, p)
		if p.Items != nil {
			checkDescriptions(t, name+" "+property, p.Items)
		}
	}
}

func TestArgumentsReachTheDaemon(t *testing.T) {
	f := newFake()
	s := connect(t, f, nil)
	call(t, s, "search_content", map[string]any{"semantic_concepts": []string{"a", "b"}, "exact_terms": []string{"c"},
		"folder": "/home/u/docs", "min_score": 0.5, "limit": 3, "cursor": "x"})
	call(t, s, "search_content", map[string]any{"exact_terms": []string{"c"}})
	call(t, s, "search", map[string]any{"query": "q", "threshold": 1, "limit": 100, "folder": "team/notes/",
		"includeContent": true, "passages_per_document": 1})
	call(t, s, "get_document_data", map[string]any{"document_id": firstID})
	want := []string{
		`search_content {Folders:[/home/u/docs] SemanticConcepts:[a b] ExactTerms:[c] MinScore:0.5 Limit:3 IncludeContent:false Passages:5 Cursor:x}`,
		`search_content {Folders:[] SemanticConcepts:[] ExactTerms:[c] MinScore:0 Limit:10 IncludeContent:false Passages:5 Cursor:}`,
		`search {Folders:[/home/u/team/notes] Query:q Limit:100 Threshold:1 IncludeContent:true Passages:1}`,
		`document "0123456789abcdef" 0 65536`,
	}
	if got := strings.Join(f.asked, "\n"); got != strings.Join(want, "\n") {
		t.Errorf("got\n%s\nwant\n%s", got, strings.Join(want, "\n"))
	}
}

func TestErrorsThatTheAgentCanActOn(t *testing.T) {
	down := &client.DownError{Reason: "the program is missing", Advice: "install docsearch again"}
	no := func(code string) error { return &client.APIError{Status: 400, Code: code, Message: "the message"} }
	for _, tt := range []struct {
		name, tool string
		args       map[string]any
		err        error
		words      []string
	}{
		{"unknown folder", "search", map[string]any{"query": "q", "folder": "dcos"}, nil, []string{`"dcos"`, "- /home/u/docs\n- /home/u/team/notes"}},
		{"part of a name", "search", map[string]any{"query": "q", "folder": "ocs"}, nil, []string{"- /home/u/docs"}},
		{"path outside", "search", map[string]any{"query": "q", "folder": "/etc"}, nil, []string{"- /home/u/docs"}},
		{"nothing to look for", "search_content", nil, nil, []string{"semantic_concepts", "exact_terms"}},
		{"empty query", "search", map[string]any{"query": ""}, nil, []string{"query"}},
		{"no query", "search", nil, nil, []string{"query"}},
		{"limit", "search", map[string]any{"query": "q", "limit": 101}, nil, []string{"limit"}},
		{"score", "search_content", map[string]any{"exact_terms": []string{"x"}, "min_score": 1.5}, nil, []string{"min_score"}},
		{"unknown argument", "search", map[string]any{"query": "q", "folders": []string{"x"}}, nil, []string{"folders"}},
		{"malformed id", "get_document_data", map[string]any{"document_id": "../x"}, nil, []string{"document_id"}},
		{"unknown id", "get_document_data", map[string]any{"document_id": secondID}, nil, []string{"no document " + secondID, "results of a search"}},
		{"down", "search", map[string]any{"query": "q"}, down, []string{"down", "the program is missing", "install docsearch again"}},
		{"down list", "list_folders", nil, down, []string{"install docsearch again"}},
		{"down info", "get_server_info", nil, down, []string{"install docsearch again"}},
		{"down document", "get_document_data", map[string]any{"document_id": firstID}, down, []string{"install docsearch again"}},
		{"token", "list_folders", nil, no(api.CodeUnauthorized), []string{"the message", "token"}},
		{"index", "list_folders", nil, no(api.CodeIndexFailed), []string{"the message", "log"}},
		{"strange", "list_folders", nil, no("strange"), []string{"the message", "strange"}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			f := newFake()
			f.err = tt.err
			text, result := call(t, connect(t, f, nil), tt.tool, tt.args)
			if !result.IsError {
				t.Fatalf("got %q, want an error", text)
			}
			for _, w := range tt.words {
				if !strings.Contains(text, w) {
					t.Errorf("got %q, want %q in it", text, w)
				}
			}
		})
	}
}

func TestFolderNamesThatAreNotUnique(t *testing.T) {
	f := newFake()
	f.setFolders(api.Folder{Path: "/a/docs"}, api.Folder{Path: "/b/docs"}, api.Folder{Path: "/c"})
	s := connect(t, f, nil)
	text, result := call(t, s, "search", map[string]any{"query": "q", "folder": "docs"})
	if !result.IsError || !strings.Contains(text, "- /a/docs\n- /b/docs") || strings.Contains(text, "/c") {
		t.Errorf("got %q, want the two folders", text)
	}
	if text, result = call(t, s, "search", map[string]any{"query": "q", "folder": "b/docs"}); result.IsError {
		t.Errorf("got error %q", text)
	}
}

func TestNoFolders(t *testing.T) {
	f := newFake()
	f.setFolders()
	s := connect(t, f, nil)
	if text, result := call(t, s, "search", map[string]any{"query": "q"}); !result.IsError || !strings.Contains(text, "--folder PATH") {
		t.Errorf("got %q, want how to name a folder", text)
	}
	if text, result := call(t, s, "list_folders", nil); result.IsError || text != `{"folders":[]}` {
		t.Errorf("got %q", text)
	}
	if text, _ := call(t, connect(t, f, nil, "/home/u/docs"), "search", map[string]any{"query": "q"}); !strings.Contains(text, "- /home/u/docs") {
		t.Errorf("got %q, want the configured folder", text)
	}
}

func TestNothingFound(t *testing.T) {
	f := newFake()
	f.onSearch = func(context.Context, api.SearchRequest) (*api.SearchResponse, error) {
		return &api.SearchResponse{}, nil
	}
	text, result := call(t, connect(t, f, nil), "search", map[string]any{"query": "q"})
	data, _ := json.Marshal(result.StructuredContent)
	if result.IsError || !strings.Contains(text, "Found 0 documents") || !strings.Contains(string(data), `"results":[]`) {
		t.Errorf("got %q and %s", text, data)
	}
}

func TestParallelSearchesGetTheirOwnAnswers(t *testing.T) {
	f := newFake()
	var all sync.WaitGroup // has all searches run at once
	all.Add(8)
	f.onSearch = func(_ context.Context, q api.SearchRequest) (*api.SearchResponse, error) {
		all.Done()
		all.Wait()
		return &api.SearchResponse{Results: []api.Result{{DocumentName: q.Query, DocumentID: firstID}}}, nil
	}
	s := connect(t, f, nil)
	var wg sync.WaitGroup
	for i := range 8 {
		wg.Go(func() {
			query := fmt.Sprintf("query-%d", i)
			result, err := s.CallTool(t.Context(), &mcp.CallToolParams{Name: "search", Arguments: map[string]any{"query": query}})
			if err != nil {
				t.Error(err)
				return
			}
			if text := textOf(t, result); !strings.Contains(text, "1. "+query+" ") {
				t.Errorf("got %q, want %s", text, query)
			}
		})
	}
	wg.Wait()
}

func TestSlowAndPanickingCallsHarmNoOther(t *testing.T) {
	f := newFake()
	slow := make(chan struct{})
	f.onSearch = func(ctx context.Context, q api.SearchRequest) (*api.SearchResponse, error) {
		switch q.Query {
		case "panic":
			panic("test")
		case "slow":
			close(slow)
			<-ctx.Done()
			return nil, ctx.Err()
		}
		return found(), nil
	}
	s := connect(t, f, nil)
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() {
		_, err := s.CallTool(ctx, &mcp.CallToolParams{Name: "search", Arguments: map[string]any{"query": "slow"}})
		ended <- err
	}()
	<-slow
	if _, err := s.CallTool(t.Context(), &mcp.CallToolParams{Name: "search", Arguments: map[string]any{"query": "panic"}}); err == nil {
		t.Error("panic: got nil")
	}
	if text, result := call(t, s, "search", map[string]any{"query": "q"}); result.IsError {
		t.Errorf("got error %q", text)
	}
	cancel()
	if err := <-ended; !errors.Is(err, context.Canceled) {
		t.Errorf("got %v, want context.Canceled", err)
	}
}

// An agent that asks for another model than the daemon has is told which one that is.
func TestOtherModelIsTold(t *testing.T) {
	s, err := mcpserver.New(mcpserver.Options{Client: newFake(), Model: "other"})
	if err != nil {
		t.Fatal(err)
	}
	session := serve(t, s, nil)
	for tool, args := range map[string]map[string]any{
		"search": {"query": "q"}, "search_content": {"exact_terms": []string{"x"}}, "get_server_info": nil,
	} {
		if text, _ := call(t, session, tool, args); !strings.Contains(strings.ReplaceAll(text, `\"`, `"`), `the model "nomic", not "other"`) {
			t.Errorf("%s: got %q", tool, text)
		}
	}
}

func TestOptionsAreChecked(t *testing.T) {
	if _, err := mcpserver.New(mcpserver.Options{}); err == nil {
		t.Error("without a client: got nil")
	}
}
