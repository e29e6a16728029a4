package index_test

import (
	"fmt"
	"math/rand/v2"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/mcp-sse/mcp-sse/docsearch/index"
)

// TestListsOfCommonWordsFollowChanges changes an index, and compares its searches with
// those of the same index opened again.
func TestListsOfCommonWordsFollowChanges(t *testing.T) {
	r := rand.New(rand.NewPCG(11, 12))
	body := func() string {
		var b strings.Builder
		for _, w := range []string{"delta", "gamma", "sigma", "omega"} {
			if n := r.IntN(12); n > 0 {
				fmt.Fprint(&b, strings.Repeat(w+" and ", n*n))
			}
		}
		return b.String() + "tail."
	}
	var all []index.Change
	for i := range 700 {
		all = append(all, text(fmt.Sprintf("%03d.txt", i), body()))
	}
	path := filepath.Join(t.TempDir(), "index.db")
	x := openAt(t, path, index.Options{})
	update(t, x, all...)
	queries := []string{"delta", "gamma sigma", "omega delta gamma sigma", `"sigma and omega"`, "and"}
	for _, q := range queries {
		found(t, x, q)
	}
	for range 12 {
		var some []index.Change
		for range 1 + r.IntN(4) {
			c := text(fmt.Sprintf("%03d.txt", r.IntN(720)), body())
			if r.IntN(3) == 0 {
				c = index.Change{Path: c.Path, Delete: true}
			}
			some = append(some, c)
		}
		update(t, x, some...)
		for _, w := range []string{"delta", "and"} {
			if !index.KeepsLists(t.Context(), x, w) {
				t.Fatalf("the lists of %s are read again after a change of %d documents", w, len(some))
			}
		}
		found(t, x, "omega")
	}
	if err := x.AddFolder(t.Context(), "/more"); err != nil {
		t.Fatal(err)
	}
	if err := x.Complete(t.Context(), folder, time.Unix(1e9, 0)); err != nil {
		t.Fatal(err)
	}
	if !index.KeepsLists(t.Context(), x, "and") {
		t.Error("a change of no document forgets lists")
	}
	before := results(t, x, queries)
	if err := x.Close(); err != nil {
		t.Fatal(err)
	}
	after := results(t, openAt(t, path, index.Options{}), queries)
	for i, q := range queries {
		if !slices.Equal(before[i], after[i]) {
			t.Errorf("%s: %.200q by the lists that followed changes, want %.200q", q, before[i], after[i])
		}
	}
}

// results returns the best results of each query, with their relevance.
func results(t *testing.T, x *index.Index, queries []string) (all [][]string) {
	t.Helper()
	for _, q := range queries {
		resp, err := x.Search(t.Context(), index.Query{Text: q, Limit: 100})
		if err != nil {
			t.Fatal(err)
		}
		var list []string
		for _, r := range resp.Results {
			list = append(list, fmt.Sprint(r.Path, r.Relevance))
		}
		all = append(all, list)
	}
	return all
}

func TestListsOfCommonWordsAreLoadedAhead(t *testing.T) {
	var all []index.Change
	for i := range 1100 {
		all = append(all, text(fmt.Sprintf("%04d.txt", i), fmt.Sprintf("delta and omega%d", i)))
	}
	path := filepath.Join(t.TempDir(), "index.db")
	x := openAt(t, path, index.Options{})
	loaded := func(when string, want bool) {
		t.Helper()
		index.WaitForCalls(x)
		for _, w := range []string{"delta", "and"} {
			if got := index.KeepsLists(t.Context(), x, w); got != want {
				t.Errorf("%s, lists of %q are kept: %t, want %t", when, w, got, want)
			}
		}
		if index.KeepsLists(t.Context(), x, "omega7") {
			t.Errorf("%s, lists of a rare word are kept", when)
		}
	}
	update(t, x, all...)
	loaded("after a large change", false)
	if err := x.Complete(t.Context(), folder, time.Unix(1e9, 0)); err != nil {
		t.Fatal(err)
	}
	loaded("when the folder is complete", true)
	if err := x.Close(); err != nil {
		t.Fatal(err)
	}
	x = openAt(t, path, index.Options{})
	loaded("after Open", true)
}
