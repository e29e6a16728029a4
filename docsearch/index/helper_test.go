package index_test

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"path/filepath"
	"testing"

	"github.com/mcp-sse/mcp-sse/docsearch/extract"
	"github.com/mcp-sse/mcp-sse/docsearch/index"
)

const folder = "/docs"

// open returns an index in a new file with the folder.
func open(t testing.TB, o index.Options) *index.Index {
	t.Helper()
	return openAt(t, filepath.Join(t.TempDir(), "index"), o)
}

func openAt(t testing.TB, path string, o index.Options) *index.Index {
	t.Helper()
	x, err := index.Open(t.Context(), path, o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := x.Close(); err != nil {
			t.Error(err)
		}
	})
	if err := x.AddFolder(folder); err != nil {
		t.Fatal(err)
	}
	return x
}

// text returns the change that adds a file with a text.
func text(path, text string) index.Change {
	return index.Change{
		Path:     path,
		Stamp:    index.Stamp{Size: int64(len(text)), Modified: 1e9, Hash: fmt.Sprintf("%x", sha256.Sum256([]byte(text)))},
		Document: &extract.Document{Type: "text", Text: text},
	}
}

func titled(path, title, body string) index.Change {
	c := text(path, body)
	c.Document.Title = title
	return c
}

func update(t testing.TB, x *index.Index, changes ...index.Change) {
	t.Helper()
	if err := x.Update(context.WithoutCancel(t.Context()), folder, changes); err != nil {
		t.Fatal(err)
	}
}

// find returns the paths, in the folder, of the results of q.
func find(t testing.TB, x *index.Index, q index.Query) (names []string) {
	t.Helper()
	r, err := x.Search(t.Context(), q)
	if errors.Is(err, index.ErrQuery) {
		return nil
	}
	if err != nil {
		t.Fatalf("Search(%+.100v): %v", q, err)
	}
	for _, r := range r.Results {
		name, _ := filepath.Rel(r.Folder, r.Path)
		names = append(names, filepath.ToSlash(name))
	}
	return names
}

// found is find for the words of a text.
func found(t testing.TB, x *index.Index, text string) string {
	t.Helper()
	return fmt.Sprint(find(t, x, index.Query{Text: text}))
}
