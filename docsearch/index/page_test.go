package index_test

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/mcp-sse/mcp-sse/docsearch/index"
)

func TestPagesHaveEachResultOnce(t *testing.T) {
	const documents = 70 // more than three windows
	x := open(t, index.Options{Embedder: nil})
	r := rand.New(rand.NewPCG(3, 4))
	var changes []index.Change
	for i := range documents {
		var b strings.Builder
		for range 5 + r.IntN(60) {
			fmt.Fprintf(&b, "%s ", []string{"apple", "pear", "plum", "fig", "nut"}[r.IntN(5)])
		}
		changes = append(changes, text(fmt.Sprintf("%03d.txt", i), b.String()+" apple"))
	}
	update(t, x, changes...)
	for _, threshold := range []float64{0, 0.7, 0.9} {
		q := index.Query{Text: "apple fig", Limit: 100, Threshold: threshold}
		want := pages(t, x, q)
		if threshold == 0 && len(want) != documents {
			t.Errorf("%d results", len(want))
		}
		for _, limit := range []int{1, 7, 20, 33} {
			q.Limit = limit
			if got := pages(t, x, q); fmt.Sprint(got) != fmt.Sprint(want) {
				t.Errorf("limit %d, threshold %v: got %d results %v\nwant %d %v", limit, threshold, len(got), got, len(want), want)
			}
		}
	}
}

// pages returns name and relevance of all results of all pages.
func pages(t *testing.T, x *index.Index, q index.Query) (all []string) {
	t.Helper()
	last := 1.0
	for {
		r, err := x.Search(t.Context(), q)
		if err != nil {
			t.Fatal(err)
		}
		for _, res := range r.Results {
			if res.Relevance > last || res.Relevance < q.Threshold {
				t.Errorf("relevance %v after %v", res.Relevance, last)
			}
			last = res.Relevance
			all = append(all, fmt.Sprintf("%s %.4f", res.DocumentName, res.Relevance))
		}
		if r.NextCursor == "" {
			return all
		}
		if len(r.Results) != q.Limit {
			t.Errorf("a page of %d, limit %d", len(r.Results), q.Limit)
		}
		q.Cursor = r.NextCursor
	}
}

func TestForeignCursorsAreRefused(t *testing.T) {
	x := open(t, index.Options{})
	update(t, x, text("a.txt", "one two"), text("b.txt", "one two"))
	r, err := x.Search(t.Context(), index.Query{Text: "one", Limit: 1})
	if err != nil || r.NextCursor == "" {
		t.Fatal(r, err)
	}
	for name, q := range map[string]index.Query{
		"of another query": {Text: "two", Cursor: r.NextCursor},
		"damaged":          {Text: "one", Cursor: r.NextCursor[:10] + "A" + r.NextCursor[11:]},
		"short":            {Text: "one", Cursor: "x"},
		"long":             {Text: "one", Cursor: strings.Repeat("A", 1<<20)},
	} {
		if _, err := x.Search(t.Context(), q); !errors.Is(err, index.ErrCursor) {
			t.Errorf("%s: got %v", name, err)
		}
	}
	if _, err := x.Documents(t.Context(), folder, "***", 0); !errors.Is(err, index.ErrCursor) {
		t.Errorf("of documents: got %v", err)
	}
}
