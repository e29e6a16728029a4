package index_test

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/mcp-sse/mcp-sse/docsearch/index"
)

func TestUpdateReplacesAndDeletes(t *testing.T) {
	t.Parallel()
	x := open(t, index.Options{})
	update(t, x, text("a.txt", "apple"), text("b.txt", "apple"), text("c.txt", "apple"))
	stamp := index.Stamp{Size: 9, Modified: 5_000_000_007, Hash: "1"}
	skipped := stamp
	skipped.Skipped = "binary"
	update(t, x,
		text("a.txt", "pear "+strings.Repeat("long ", 10_000)),
		index.Change{Path: "b.txt", Delete: true},
		index.Change{Path: "c.txt", Stamp: stamp},
		index.Change{Path: "d.bin", Stamp: skipped},
		index.Change{Path: "never.txt", Delete: true},
	)
	if got := found(t, x, "apple"); got != "[c.txt]" {
		t.Errorf("apple: got %s", got)
	}
	if got := found(t, x, "pear"); got != "[a.txt]" {
		t.Errorf("pear: got %s", got)
	}
	stamps, err := x.Stamps(t.Context(), folder)
	if err != nil || len(stamps) != 3 {
		t.Fatal(stamps, err)
	}
	if got := stamps["c.txt"]; got != stamp {
		t.Errorf("c.txt: %+v", got)
	}
	update(t, x, index.Change{Path: "c.txt", Stamp: skipped}, index.Change{Path: "a.txt", Delete: true})
	if got := found(t, x, "apple pear long"); got != "[]" {
		t.Errorf("at the end: got %s", got)
	}
	folders, err := x.Folders()
	if err != nil || len(folders) != 1 {
		t.Fatal(folders, err)
	}
	f := folders[0]
	if f.Documents != 0 || f.Chunks != 0 || f.TextBytes != 0 || !maps.Equal(f.Skipped, map[string]int{"binary": 2}) {
		t.Errorf("%+v", f)
	}
}

// A document is written in several batches, and replaced by a short one.
func TestLargeDocument(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "index")
	x := openAt(t, path, index.Options{})
	line := "some words" + strings.Repeat(" ", 200) + "on a line\n" // whose words cost the time
	body := strings.Repeat(line, 1100<<10/len(line))
	c := text("a.txt", body+"the tail\n")
	update(t, x, text("b.txt", "x"), c)
	at := time.Unix(1e9, 5)
	if err := x.Complete(folder, at); err != nil {
		t.Fatal(err)
	}
	before, err := x.Folders()
	bytes, vectors, failed := x.Size()
	if s := before[0]; errors.Join(err, failed) != nil || s.Documents != 2 || s.TextBytes != int64(len(body)+10) || s.Chunks < 750 || bytes == 0 || vectors != 0 {
		t.Errorf("%+v, %v", s, err)
	}
	if got := found(t, x, "tail"); got != "[a.txt]" {
		t.Errorf("got %s", got)
	}
	x.Close()
	x = openAt(t, path, index.Options{})
	stamps, err := x.Stamps(t.Context(), folder)
	if err != nil || stamps["a.txt"].Hash != c.Stamp.Hash {
		t.Errorf("%v, %v", stamps["a.txt"], err)
	}
	folders, err := x.Folders()
	if err != nil || !folders[0].IndexedAt.Equal(at) || folders[0].Chunks != before[0].Chunks {
		t.Errorf("%+v %v", folders, err)
	}
	update(t, x, text("a.txt", "short"))
	if got := found(t, x, "tail words"); got != "[]" {
		t.Errorf("after the change: got %s", got)
	}
}

func TestFoldersAreApart(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "index")
	x := openAt(t, path, index.Options{})
	const other = "/other"
	if err := x.AddFolder(other); err != nil {
		t.Fatal(err)
	}
	update(t, x, text("same.txt", "apple"))
	if err := x.Update(t.Context(), other, []index.Change{text("same.txt", "apple"), text("more.txt", "apple")}); err != nil {
		t.Fatal(err)
	}
	for _, tc := range []struct {
		folders []string
		want    int
	}{{nil, 3}, {[]string{folder}, 1}, {[]string{other}, 2}, {[]string{folder, other}, 3}} {
		if got := find(t, x, index.Query{Folders: tc.folders, Text: "apple"}); len(got) != tc.want {
			t.Errorf("%q: got %v, want %d", tc.folders, got, tc.want)
		}
	}
	if err := x.RemoveFolder(other); err != nil {
		t.Fatal(err)
	}
	if got := found(t, x, "apple"); got != "[same.txt]" {
		t.Errorf("after removal: got %s", got)
	}
	_, err := x.Search(t.Context(), index.Query{Folders: []string{other}, Text: "apple"})
	if !errors.Is(err, index.ErrNoFolder) {
		t.Errorf("got %v", err)
	}
	if err := x.Update(t.Context(), other, nil); !errors.Is(err, index.ErrNoFolder) {
		t.Errorf("got %v", err)
	}
	x.Close()
	x = openAt(t, path, index.Options{})
	if folders, err := x.Folders(); err != nil || len(folders) != 1 {
		t.Errorf("after another start: %+v, %v", folders, err)
	}
}

func TestDocuments(t *testing.T) {
	t.Parallel()
	x := open(t, index.Options{})
	body := strings.Repeat("é漢x\n", 20_000)
	update(t, x, titled("b/long.md", "Long", body), text("a.txt", "x"), text("c.txt", "y"),
		index.Change{Path: "b/skipped", Stamp: index.Stamp{Skipped: "binary"}})
	var names []string
	for cursor := ""; ; {
		d, err := x.Documents(t.Context(), folder, cursor, 2)
		if err != nil {
			t.Fatal(err)
		}
		for _, s := range d.Documents {
			names = append(names, s.Name)
		}
		if cursor = d.NextCursor; cursor == "" {
			break
		}
	}
	if got := fmt.Sprint(names); got != "[a.txt Long c.txt]" {
		t.Errorf("got %s", got)
	}
	id := index.DocumentID(folder, "b/long.md")
	for _, limit := range []int{1, 4097, 1 << 30} {
		var b strings.Builder
		for offset, more := 0, true; more; {
			d, err := x.Document(id, offset, limit)
			if err != nil {
				t.Fatal(err)
			}
			if d.Offset != offset || d.TextBytes != len(body) || d.Title != "Long" {
				t.Fatalf("limit %d: %d of %d at %d", limit, d.Offset, d.TextBytes, offset)
			}
			b.WriteString(d.Text)
			offset, more = d.NextOffset, d.NextOffset != 0 && (limit != 1 || b.Len() < 100)
		}
		if limit != 1 && b.String() != body || !strings.HasPrefix(body, b.String()) {
			t.Errorf("limit %d: the parts are not the text", limit)
		}
	}
	if d, err := x.Document(id, 1, 9); err != nil || d.Offset != 0 {
		t.Errorf("inside of a character: %v, %v", d.Offset, err)
	}
	if d, err := x.Document(id, 1<<40, 9); err != nil || d.Text != "" || d.NextOffset != 0 {
		t.Errorf("after the end: %v", err)
	}
	for _, id := range []string{"", "zz", "0000000000000000", "-000000000000001", strings.Repeat("0", 99), id + "/0"} {
		if _, err := x.Document(id, 0, 9); !errors.Is(err, index.ErrNoDocument) {
			t.Errorf("%q: got %v", id, err)
		}
	}
}

func TestSearchDuringUpdates(t *testing.T) {
	t.Parallel()
	x := open(t, index.Options{})
	state := func(word string) (changes []index.Change) {
		for i := range 30 {
			changes = append(changes, text(fmt.Sprint(i, ".txt"), word+strings.Repeat(" filler", 50)))
		}
		return changes
	}
	update(t, x, state("even")...)
	ctx, stop := context.WithCancel(t.Context())
	var searches sync.WaitGroup
	for range 3 {
		searches.Go(func() {
			for ctx.Err() == nil {
				if _, err := x.Search(t.Context(), index.Query{Text: "even odd", Limit: 100}); err != nil {
					t.Error(err)
					return
				}
			}
		})
	}
	for i := range 6 {
		update(t, x, state([]string{"odd", "even"}[i%2])...)
	}
	stop()
	searches.Wait()
	if got := find(t, x, index.Query{Text: "even", Limit: 100}); len(got) != 30 {
		t.Errorf("at the end %d documents are found", len(got))
	}
}

func TestCloseWaitsAndRefuses(t *testing.T) {
	t.Parallel()
	x := open(t, index.Options{})
	update(t, x, text("a.txt", "apple"))
	var calls sync.WaitGroup
	for range 20 {
		calls.Go(func() {
			if _, err := x.Search(t.Context(), index.Query{Text: "apple"}); err != nil && !errors.Is(err, index.ErrClosed) {
				t.Error(err)
			}
		})
	}
	if err := x.Close(); err != nil {
		t.Error(err)
	}
	calls.Wait()
	for name, err := range map[string]error{
		"Update":       x.Update(t.Context(), folder, nil),
		"AddFolder":    x.AddFolder("/x"),
		"Complete":     x.Complete(folder, time.Now()),
		"RemoveFolder": x.RemoveFolder(folder),
	} {
		if !errors.Is(err, index.ErrClosed) {
			t.Errorf("%s: got %v", name, err)
		}
	}
}

// A batch is waited for although bleve has failed meanwhile: if the index closed first, the
// batch would wait for ever.
func TestBatchIsWaitedForAfterAFailure(t *testing.T) {
	t.Parallel()
	x := open(t, index.Options{})
	if err := x.WriteAfterFailure(folder); err != nil {
		t.Errorf("got %v, want nil: the batch is written", err)
	}
}

func TestCancelledUpdateChangesNothing(t *testing.T) {
	t.Parallel()
	x := open(t, index.Options{})
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := x.Update(ctx, folder, []index.Change{text("a.txt", "apple")}); !errors.Is(err, context.Canceled) {
		t.Errorf("got %v", err)
	}
	if got := found(t, x, "apple"); got != "[]" {
		t.Errorf("got %s", got)
	}
}
