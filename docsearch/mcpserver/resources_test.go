package mcpserver_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/mcp-sse/mcp-sse/docsearch/api"
	"github.com/mcp-sse/mcp-sse/docsearch/mcpserver"
)

func read(t *testing.T, s *mcp.ClientSession, uri string) (*mcp.ResourceContents, error) {
	t.Helper()
	result, err := s.ReadResource(t.Context(), &mcp.ReadResourceParams{URI: uri})
	if err != nil {
		return nil, err
	}
	if len(result.Contents) != 1 || result.Contents[0].URI != uri {
		t.Fatalf("got %+v, want one content of %s", result.Contents, uri)
	}
	return result.Contents[0], nil
}

func TestReadFolders(t *testing.T) {
	got, err := read(t, connect(t, newFake(), nil), "docs://folders")
	if err != nil || got.MIMEType != "application/json" {
		t.Fatalf("got %+v, %v", got, err)
	}
	var folders api.Folders
	if err := json.Unmarshal([]byte(got.Text), &folders); err != nil || len(folders.Folders) != 2 {
		t.Errorf("got %s, %v, want two folders", got.Text, err)
	}
}

func TestReadDocument(t *testing.T) {
	f := newFake()
	s := connect(t, f, nil)
	got, err := read(t, s, "docs://documents/"+firstID)
	if err != nil || got.MIMEType != "text/markdown" || got.Text != f.text {
		t.Errorf("got %+v, %v", got, err)
	}
	f.text = strings.Repeat("0123456789abcdef", 1<<16+1)
	got, err = read(t, s, "docs://documents/"+firstID)
	if err != nil || !strings.HasPrefix(f.text, got.Text[:1<<20]) || !strings.Contains(got.Text[1<<20:], "from offset 1048576") {
		t.Errorf("long document: got %d bytes, %v, want 1 MiB and a hint", len(got.Text), err)
	}
}

func TestReadResourceThatIsNotThere(t *testing.T) {
	s := connect(t, newFake(), nil)
	for _, uri := range []string{"docs://documents/" + secondID, "docs://documents/..", "docs://documents/x%2Fy", "docs://other", "file:///etc/passwd"} {
		_, err := read(t, s, uri)
		if wire, ok := errors.AsType[*jsonrpc.Error](err); !ok || wire.Message != "Resource not found" {
			t.Errorf("%s: got %v, want not found", uri, err)
		}
	}
}

func TestReadResourceOfADaemonThatIsDown(t *testing.T) {
	f := newFake()
	f.err = errors.New("it is down, do this")
	s := connect(t, f, nil)
	for _, uri := range []string{"docs://folders", "docs://documents/" + firstID} {
		if _, err := read(t, s, uri); err == nil || !strings.Contains(err.Error(), "do this") {
			t.Errorf("%s: got %v, want what to do", uri, err)
		}
	}
}

// manyDocuments returns n documents.
func manyDocuments(n int) []api.DocumentSummary {
	out := make([]api.DocumentSummary, n)
	for i := range out {
		out[i] = api.DocumentSummary{ID: fmt.Sprintf("%016x", i), Name: fmt.Sprint(i, ".txt"), Path: fmt.Sprintf("/home/u/docs/%d.txt", i), Type: "text"}
	}
	return out
}

func TestDocumentsAreListed(t *testing.T) {
	for _, tt := range []struct{ documents, want int }{{0, 1}, {1, 2}, {250, 251}, {5000, 1001}} {
		f := newFake()
		f.documents = manyDocuments(tt.documents)
		s := connect(t, f, nil)
		seen := map[string]bool{}
		for r, err := range s.Resources(t.Context(), nil) {
			if err != nil {
				t.Fatal(err)
			}
			if seen[r.URI] {
				t.Errorf("%s is listed twice", r.URI)
			}
			seen[r.URI] = true
		}
		if len(seen) != tt.want || !seen["docs://folders"] {
			t.Errorf("%d documents: got %d resources, want %d", tt.documents, len(seen), tt.want)
		}
	}
}

func TestListWithoutADaemon(t *testing.T) {
	f := newFake()
	f.err = errors.New("down")
	list, err := connect(t, f, nil).ListResources(t.Context(), nil)
	if err != nil || len(list.Resources) != 1 {
		t.Errorf("got %+v, %v, want docs://folders alone", list, err)
	}
}

func TestListWithAWrongCursor(t *testing.T) {
	_, err := connect(t, newFake(), nil).ListResources(t.Context(), &mcp.ListResourcesParams{Cursor: "nonsense"})
	if wire, ok := errors.AsType[*jsonrpc.Error](err); !ok || wire.Code != jsonrpc.CodeInvalidParams {
		t.Errorf("got %v, want invalid params", err)
	}
}

func TestResourceTemplate(t *testing.T) {
	list, err := connect(t, newFake(), nil).ListResourceTemplates(t.Context(), nil)
	if err != nil || len(list.ResourceTemplates) != 1 || list.ResourceTemplates[0].URITemplate != "docs://documents/{id}" {
		t.Errorf("got %+v, %v", list, err)
	}
}

func TestChangesOfFoldersAreNotified(t *testing.T) {
	f := newFake()
	notified := make(chan struct{}, 10)
	s := connect(t, f, &mcp.ClientOptions{ResourceListChangedHandler: func(context.Context, *mcp.ResourceListChangedRequest) {
		notified <- struct{}{}
	}})
	if _, err := s.ListResources(t.Context(), nil); err != nil {
		t.Fatal(err)
	}
	for i := range 3 {
		f.setFolders(api.Folder{Path: fmt.Sprint("/new", i)})
		<-notified
	}
}

func FuzzParsePlace(f *testing.F) {
	f.Add("eyJmIjoiL2EiLCJuIjoxfQ")
	f.Fuzz(func(t *testing.T, cursor string) {
		p, err := mcpserver.ParsePlace(cursor)
		if err == nil && (p.Folder == "" || p.Listed < 0) {
			t.Errorf("got %+v", p)
		}
	})
}
