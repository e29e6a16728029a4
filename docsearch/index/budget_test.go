package index_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/mcp-sse/mcp-sse/docsearch/index"
)

// manyWithoutPhrase adds documents that have both words, and last one with the phrase.
func manyWithoutPhrase(t *testing.T, x *index.Index) {
	t.Helper()
	filler := strings.Repeat("delta gamma. ", 800)
	var all []index.Change
	for i := range 130 { // one page of the search reads about 90
		all = append(all, text(fmt.Sprintf("%03d.txt", i), strings.Repeat("alpha no beta. ", 40)+filler))
	}
	update(t, x, append(all, text("zzz.txt", "alpha beta once. "+filler))...)
}

// TestPhraseIsFoundOrTheSearchSaysWhy follows the pages of a phrase that the documents
// ranked first lack.
func TestPhraseIsFoundOrTheSearchSaysWhy(t *testing.T) {
	j := readJudged(t)
	for name, o := range map[string]index.Options{"words": {}, "hybrid": {Embedder: &stub{vector: j.vector}}} {
		t.Run(name, func(t *testing.T) {
			x := open(t, o)
			manyWithoutPhrase(t, x)
			embedAll(t, x)
			q := index.Query{Text: `"alpha beta"`}
			for page := 1; ; page++ {
				r, err := x.Search(t.Context(), q)
				if err != nil {
					t.Fatal(err)
				}
				if len(r.Results) > 0 {
					if r.Results[0].DocumentName != "zzz.txt" || page == 1 {
						t.Errorf("page %d has %s", page, r.Results[0].DocumentName)
					}
					return
				}
				if r.NextCursor == "" || page > 10 {
					t.Fatalf("nothing on %d pages", page)
				}
				if len(r.Warnings) != 1 || !strings.Contains(r.Warnings[0], "of 131 documents") {
					t.Errorf("page %d: warnings %q", page, r.Warnings)
				}
				q.Cursor = r.NextCursor
			}
		})
	}
}

func TestCursorGoesOnInItsMode(t *testing.T) {
	j := readJudged(t)
	slow := &stub{vector: j.vector}
	x := open(t, index.WithQueryTimeout(index.Options{Embedder: slow}, time.Millisecond))
	update(t, x, j.documents...)
	first := func() index.Query {
		q := index.Query{Text: "vehicle Oslo a in", Limit: 1}
		r, err := x.Search(t.Context(), q)
		if err != nil || r.NextCursor == "" {
			t.Fatal(r, err)
		}
		q.Cursor = r.NextCursor
		return q
	}
	lexical := first()
	embedAll(t, x)
	r, err := x.Search(t.Context(), lexical)
	if err != nil || r.Performance.ModelUsed != "bm25" || len(r.Results) != 1 {
		t.Errorf("a page of words, with vectors since: %+v, %v", r, err)
	}
	hybrid := first()
	slow.hang.Store(true)
	if r, err := x.Search(t.Context(), hybrid); err != nil || r.Performance.ModelUsed != "hybrid:stub" {
		t.Errorf("the vector of the query is known: %+v, %v", r, err)
	}
	index.ForgetQueries(x)
	_, err = x.Search(t.Context(), hybrid)
	if !errors.Is(err, index.ErrCursorMode) || !errors.Is(err, index.ErrCursor) || !strings.Contains(err.Error(), "endpoint fails") {
		t.Errorf("without the endpoint: got %v", err)
	}
}

// TestRemovedFolderTakesNoNeighbours has a folder with more vectors than a search takes.
func TestRemovedFolderTakesNoNeighbours(t *testing.T) {
	x := open(t, index.Options{Embedder: &stub{vector: func(s string) []float32 { return []float32{1, float32(len(s)%10) / 1000} }}})
	var many []index.Change
	for i := range 300 {
		many = append(many, text(fmt.Sprint(i), fmt.Sprintf("number %d", i)))
	}
	update(t, x, text("stays.txt", "some text of another length"))
	for when, remove := range map[string]func(context.Context, *index.Index, string) error{
		"while it goes": index.BeginRemoval,
		"afterwards":    index.RemoveNow,
	} {
		path := "/" + when
		if err := x.AddFolder(t.Context(), path); err != nil {
			t.Fatal(err)
		}
		if err := x.Update(t.Context(), path, many); err != nil {
			t.Fatal(err)
		}
		embedAll(t, x)
		if err := remove(t.Context(), x, path); err != nil {
			t.Fatal(err)
		}
		if got := found(t, x, "xyz"); got != "[stays.txt]" {
			t.Errorf("%s: got %s", when, got)
		}
	}
	if n := index.StoredVectors(t.Context(), x); n != 301 {
		t.Errorf("%d vectors, want those of the folder that goes, and one", n)
	}
}

func TestOnlyTheOwnerMayReadTheFile(t *testing.T) {
	path := filepath.Join(t.TempDir(), "index.db")
	x := openAt(t, path, index.Options{})
	update(t, x, text("a.txt", "some text"))
	for _, suffix := range []string{"", "-wal", "-shm"} {
		fi, err := os.Stat(path + suffix)
		if err != nil || fi.Mode().Perm() != 0o600 {
			t.Errorf("%q: %v, %v", suffix, fi.Mode(), err)
		}
	}
}

func TestWarningsSayWhatWasLeftOut(t *testing.T) {
	x := open(t, index.Options{})
	var words []string
	for i := range 40 {
		words = append(words, fmt.Sprintf("w%c%c", 'a'+i/26, 'a'+i%26))
	}
	var all []index.Change
	for i := range 1400 {
		all = append(all, text(fmt.Sprint(i), strings.Join(words, " ")))
	}
	update(t, x, all...)
	for _, c := range []struct {
		words int
		want  []string
	}{{5, nil}, {32, []string{"ignored: wb"}}, {40, []string{"is long", "ignored: wb"}}} {
		r, err := x.Search(t.Context(), index.Query{Text: strings.Join(words[:c.words], " ")})
		if err != nil || len(r.Warnings) != len(c.want) {
			t.Errorf("%d words: %v, %+v", c.words, err, r)
			continue
		}
		for i, want := range c.want {
			if !strings.Contains(r.Warnings[i], want) {
				t.Errorf("%d words: %q, want %q", c.words, r.Warnings[i], want)
			}
		}
	}
}
