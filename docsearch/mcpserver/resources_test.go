package mcpserver_test

import (
	"encoding/json"
	"errors"
	"strings"
	"testing"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/mcp-sse/mcp-sse/docsearch/api"
)

func read(t *testing.T, s *mcp.ClientSession, uri string) (*mcp.ResourceContents, error) {
	t.Helper()
	result, err := s.ReadResource(t.Context(), &mcp.ReadResourceParams{URI: uri})
	if err != nil {
		return nil, err
	}
	if result.CacheScope != "private" {
		t.Errorf("%s: cacheScope %q", uri, result.CacheScope)
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

// The resources that can be read do not depend on the daemon.
func TestResources(t *testing.T) {
	f := newFake()
	f.err = errors.New("down")
	s := connect(t, f, nil)
	list, err := s.ListResources(t.Context(), nil)
	if err != nil || len(list.Resources) != 1 || list.Resources[0].URI != "docs://folders" {
		t.Errorf("got %+v, %v, want docs://folders", list, err)
	}
	if caps := s.InitializeResult().Capabilities; caps.Resources.ListChanged || caps.Tools.ListChanged {
		t.Error("the server announces changes of lists that do not change")
	}
	templates, err := s.ListResourceTemplates(t.Context(), nil)
	if err != nil || len(templates.ResourceTemplates) != 1 || templates.ResourceTemplates[0].URITemplate != "docs://documents/{id}" {
		t.Errorf("got %+v, %v", templates, err)
	}
}
