package index_test

import (
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/mcp-sse/mcp-sse/docsearch/index"
)

func TestHostileQueriesAreHarmless(t *testing.T) {
	x := open(t, index.Options{})
	update(t, x, text("a.txt", "a b c word x"))
	for _, q := range hostile {
		r, err := x.Search(t.Context(), index.Query{Text: q, Concepts: []string{q}, Terms: []string{q, q}})
		if err != nil && !errors.Is(err, index.ErrQuery) {
			t.Errorf("%.40q: %v", q, err)
		}
		if (err == nil) != (len(index.Terms(q)) > 0) {
			t.Errorf("%.40q: got error %v", q, err)
		}
		if len(q) > 1<<15 && (r == nil || len(r.Warnings) != 1) {
			t.Errorf("%.40q: no warning", q)
		}
	}
}

func TestConceptsAndTerms(t *testing.T) {
	x := open(t, index.Options{})
	update(t, x,
		text("both.txt", "The gateway closes a stale connection after the idle timeout."),
		text("concept.txt", "A connection is a line between two ends."),
		text("term.txt", "Set the idle timeout to zero for none."),
		text("apart.txt", "An idle machine has no timeout."),
		text("none.txt", "Apples and pears."),
	)
	got := find(t, x, index.Query{Concepts: []string{"connection"}, Terms: []string{"idle timeout"}})
	if len(got) != 3 || got[0] != "both.txt" || slices.Contains(got, "apart.txt") {
		t.Errorf("got %v", got)
	}
	if got := find(t, x, index.Query{Terms: []string{"Idle Timeout"}}); len(got) != 2 {
		t.Errorf("terms alone: got %v", got)
	}
}

func TestPhraseAcrossPiecesIsFound(t *testing.T) {
	x := open(t, index.Options{})
	var b strings.Builder
	for b.Len() < 100_000 {
		b.WriteString("filler text without any border ")
	}
	long := b.String()
	var changes []index.Change
	for i := range 40 {
		at := 11_900 + i*5
		changes = append(changes, text("p"+strings.Repeat("x", i)+".txt", long[:at]+" crimson walrus parade "+long[at:]))
	}
	update(t, x, changes...)
	if got := find(t, x, index.Query{Text: `"crimson walrus parade"`, Limit: 100}); len(got) != len(changes) {
		t.Errorf("found %d of %d", len(got), len(changes))
	}
}

func TestRelevanceTellsWhetherAllWordsOccur(t *testing.T) {
	x := open(t, index.Options{})
	update(t, x, text("all.txt", "alpha beta gamma"), text("two.txt", "alpha beta alpha beta alpha"), text("one.txt", "gamma"))
	r, err := x.Search(t.Context(), index.Query{Text: "alpha beta gamma"})
	if err != nil {
		t.Fatal(err)
	}
	for i, res := range r.Results {
		if all := res.DocumentName == "all.txt"; all != (res.Relevance >= 0.5) || all != (i == 0) {
			t.Errorf("%d: %s has %v", i, res.DocumentName, res.Relevance)
		}
	}
	if got := find(t, x, index.Query{Text: "alpha beta gamma", Threshold: 0.5}); len(got) != 1 {
		t.Errorf("threshold: got %v", got)
	}
}
