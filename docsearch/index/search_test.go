package index_test

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/mcp-sse/mcp-sse/docsearch/api"
	"github.com/mcp-sse/mcp-sse/docsearch/extract"
	"github.com/mcp-sse/mcp-sse/docsearch/index"
)

func TestSearchFinds(t *testing.T) {
	t.Parallel()
	x := open(t, index.Options{})
	update(t, x,
		text("a.txt", "The quick brown fox jumps over the lazy dog.\nIt is quick."),
		text("b.txt", "A lazy afternoon. The dog sleeps, quick foxes do not. And/or it was asleep."),
		titled("src/c.go", "Reader of files", "func readFile(file_name string) { HTTPServer.Serve(net/http) }"),
		text("d.txt", "Ein scho\u0308nes Café in der Straße nach Zürich"),
		text("e.txt", "全文検索エンジンは文書を索引する。东京是日本的首都"),
		text("f.txt", "error: no space left on C:\\disk in /usr/lib/x 42 times"),
	)
	for query, want := range map[string]string{
		"fox": "a.txt b.txt", "foxes": "a.txt b.txt", "jumping": "a.txt", "DOGS": "a.txt b.txt",
		`"lazy dog"`: "a.txt", `"the dog sleeps"`: "b.txt", `"dog lazy"`: "",
		"+fox brown": "a.txt b.txt", "+fox +brown": "a.txt", "fox -brown": "b.txt", "lazy -fox": "",
		`"lazy dog" OR afternoon`: "a.txt b.txt", "brown OR zurich": "a.txt d.txt",
		"after*": "b.txt", "brow* OR zür*": "a.txt d.txt",
		"readFile": "src/c.go", "readfile": "src/c.go", "ReadFile": "src/c.go", "file_name": "src/c.go", "file name": "src/c.go",
		"http": "src/c.go", "httpserver": "src/c.go", "HTTPServer": "src/c.go", "net/http": "src/c.go",
		"title:reader": "src/c.go", "title:quick": "", "path:src": "src/c.go", "path:src/c.go": "src/c.go", "path:src fox": "src/c.go", "path:a.txt quick": "a.txt",
		"strasse": "d.txt", "STRASSE": "d.txt", "ZURICH cafe": "d.txt", "schones": "d.txt",
		"検索": "e.txt", "首都": "e.txt", "京": "e.txt",
		"the": "a.txt b.txt", `"it was"`: "b.txt",
		"error: no space": "f.txt", `C:\disk`: "f.txt src/c.go", "/usr/lib/": "f.txt", "42": "f.txt", "path:": "", "is the disk full?": "f.txt",
		`fox AND ("brown`: "a.txt b.txt", "zzqqxx": "",
	} {
		got := find(t, x, index.Query{Text: query})
		slices.Sort(got)
		if strings.Join(got, " ") != want {
			t.Errorf("%s: got %s, want %s", query, got, want)
		}
	}
}

// A query that nobody can search for is an error, and any other, however odd, is searched.
func TestHostileQueriesAreHarmless(t *testing.T) {
	t.Parallel()
	x := open(t, index.Options{})
	update(t, x, text("a.txt", "a b c word x"))
	for _, q := range hostile {
		_, err := x.Search(t.Context(), index.Query{Text: q, Concepts: []string{q}, Terms: []string{q, q}})
		if err != nil && !errors.Is(err, index.ErrQuery) {
			t.Errorf("%.40q: %v", q, err)
		}
	}
}

func FuzzQuery(f *testing.F) {
	for _, q := range hostile {
		f.Add(q)
	}
	x := open(f, index.Options{})
	update(f, x, text("a.txt", "some words, 漢字 and fooBar\nmore"))
	f.Fuzz(func(t *testing.T, q string) {
		r, err := x.Search(t.Context(), index.Query{Text: q, Terms: []string{q}, Cursor: q[:len(q)%2*len(q)]})
		if err != nil {
			if !errors.Is(err, index.ErrQuery) && !errors.Is(err, index.ErrCursor) {
				t.Errorf("%q: %v", q, err)
			}
			return
		}
		for _, r := range r.Results {
			if !(r.Relevance > 0 && r.Relevance <= 1) {
				t.Errorf("%q: relevance %v", q, r.Relevance)
			}
		}
	})
}

var hostile = []string{
	"", " ", "a AND b OR NOT c", `"`, `""`, `"""`, `a"b"c"`, "NEAR(a b, 3)", "text:a", "hash:a", "^a", "a^3", "a^", "a~", "a~9", "a*", "*", "?", "*a*", "ab*cd*",
	"-a", "--a", "+", "+-a", "-", ":", "::", "a:", ":a", "title:", "title:>5", `path:<"2020"`, "/a(/", "/[/", `\`, `a\`, "{term}: a",
	"(((", "a + b", "\x00", "a\x00b", "'; DROP TABLE words; --", "\xff\xfe", "%", "_", "__", "the", "...", "1",
	"-1", "1e999", "title:-1e999",
	"🎉🎉", "漢", "かな", "\u0301", "İ", "ﬁ", strings.Repeat("x", 1<<20), strings.Repeat("word ", 200_000),
	strings.Repeat(`"a b" `, 10_000), strings.Repeat("a_b", 1000), strings.Repeat("wo* ", 500), "fooBarBaz_Qux9", "ก็", "e\u0301",
}

func TestConceptsAndTerms(t *testing.T) {
	t.Parallel()
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

// A document is found first by its name, with and without its extension, and by its
// title, though others say these words more often.
func TestNamesAndTitlesCountMost(t *testing.T) {
	t.Parallel()
	x := open(t, index.Options{})
	var others []index.Change
	for n := range 60 {
		others = append(others, text(fmt.Sprintf("other-%d.txt", n), strings.Repeat("search go, the search.go of readme and architecture md: ranking report\n", 20+n)))
	}
	update(t, x, others...)
	update(t, x, text("pkg/search.go", "package search\n\nfunc find() {}\n"), text("README.md", "What this is.\n"),
		text("docs/architecture.md", "How it is built.\n"), titled("deep/x1.txt", "Ranking report", "Numbers, numbers.\n"))
	for query, want := range map[string]string{
		"search.go": "pkg/search.go", "readme": "README.md", "README": "README.md", "architecture.md": "docs/architecture.md",
		"title:report": "deep/x1.txt", "ranking report": "deep/x1.txt",
	} {
		if got := find(t, x, index.Query{Text: query}); len(got) == 0 || got[0] != want {
			t.Errorf("%s: got %.40v, want %s first", query, got, want)
		}
	}
}

func TestPassagesOfADocument(t *testing.T) {
	t.Parallel()
	x := open(t, index.Options{})
	filler := strings.Repeat("nothing of interest here\n", 60)
	parts := []string{"One zebra.\n" + filler, "Two: a zebra, and another zebra.\n" + filler, "Three has zebra after zebra, zebra.\n" + filler, "A zebra at last.\n"}
	c := text("a.md", strings.Join(parts, ""))
	at := 0
	for n, part := range parts {
		c.Document.Sections = append(c.Document.Sections, extract.Section{Offset: at, Heading: fmt.Sprint("Part ", n+1), Page: n + 1})
		at += len(part)
	}
	update(t, x, c, text("b.md", filler))
	for _, want := range []int{1, 2, 4} {
		r, err := x.Search(t.Context(), index.Query{Text: "zebras", Passages: want, Content: true})
		if err != nil || len(r.Results) != 1 {
			t.Fatalf("%+v, %v", r, err)
		}
		all := append([]api.Passage{r.Results[0].Passage}, r.Results[0].MorePassages...)
		if len(all) != want {
			t.Errorf("%d passages, want %d", len(all), want)
		}
		if l := all[0].Location; l.Heading != "Part 3" || l.Page != 3 || l.Line != 123 {
			t.Errorf("the best is %+v", l)
		}
		last := 1.0
		for _, p := range all {
			if p.Relevance > last || p.Relevance < 0.3 {
				t.Errorf("relevance %v after %v", p.Relevance, last)
			}
			last = p.Relevance
			if !strings.Contains(p.Content, "zebra") || !strings.Contains(bold(&p), "*zebra*") {
				t.Errorf("%+v", p)
			}
		}
	}
}

func TestPhraseAcrossPassagesIsFound(t *testing.T) {
	t.Parallel()
	x := open(t, index.Options{})
	long := strings.Repeat("filler text without any border ", 300)
	var changes []index.Change
	for n := range 60 {
		at := 1000 + n*9
		changes = append(changes, text(fmt.Sprint(n, ".txt"), long[:at]+" crimson walrus parade "+long[at:]))
	}
	update(t, x, changes...)
	if got := find(t, x, index.Query{Text: `"crimson walrus parade"`, Limit: 100}); len(got) != len(changes) {
		t.Errorf("found %d of %d", len(got), len(changes))
	}
}

func TestRelevanceMeansSomething(t *testing.T) {
	t.Parallel()
	x := open(t, index.Options{})
	update(t, x, text("all.txt", "alpha gamma beta"), text("near.txt", "alpha beta gamma"), text("two.txt", "alpha beta alpha"), text("one.txt", "gamma delta"),
		text("other.txt", "delta epsilon"))
	r, err := x.Search(t.Context(), index.Query{Text: "alpha beta gamma"})
	if err != nil {
		t.Fatal(err)
	}
	var order []string
	for _, res := range r.Results {
		order = append(order, res.DocumentName)
	}
	if fmt.Sprint(order) != "[near.txt all.txt two.txt one.txt]" || r.Results[1].Relevance < 0.45 || r.Results[3].Relevance > 0.3 {
		t.Errorf("got %v %+v", order, r.Results)
	}
	if got := find(t, x, index.Query{Text: "alpha beta gamma", Threshold: 0.44}); len(got) != 2 {
		t.Errorf("threshold: got %v", got)
	}
	if got := find(t, x, index.Query{Text: "gamma zzqqxx", Threshold: 0.3}); len(got) != 0 {
		t.Errorf("half of the query: got %v", got)
	}
}

func TestPagesHaveEachResultOnce(t *testing.T) {
	t.Parallel()
	x := open(t, index.Options{})
	var changes []index.Change
	for n := range 70 {
		changes = append(changes, text(fmt.Sprintf("%03d.txt", n), strings.Repeat("apple ", 1+n%9)+strings.Repeat("fig ", n%7)))
	}
	update(t, x, changes...)
	for _, threshold := range []float64{0, 0.6} {
		q := index.Query{Text: "apple fig", Limit: 100, Threshold: threshold}
		want := pages(t, x, q)
		if threshold == 0 && len(want) != len(changes) {
			t.Errorf("%d results", len(want))
		}
		for _, limit := range []int{1, 7, 33} {
			q.Limit = limit
			if got := pages(t, x, q); fmt.Sprint(got) != fmt.Sprint(want) {
				t.Errorf("limit %d, threshold %v: got %v\nwant %v", limit, threshold, got, want)
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
		q.Cursor = r.NextCursor
	}
}

func TestForeignCursorsAreRefused(t *testing.T) {
	t.Parallel()
	x := open(t, index.Options{})
	update(t, x, text("a.txt", "one two"), text("b.txt", "one two"))
	r, err := x.Search(t.Context(), index.Query{Text: "one", Limit: 1})
	if err != nil || r.NextCursor == "" {
		t.Fatal(r, err)
	}
	for name, q := range map[string]index.Query{
		"of another query": {Text: "two", Cursor: r.NextCursor},
		"damaged":          {Text: "one", Cursor: r.NextCursor[:5] + "A" + r.NextCursor[6:]},
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

func TestLanguageOfWords(t *testing.T) {
	t.Parallel()
	x := open(t, index.Options{Language: "de"})
	update(t, x, text("a.txt", "Die Häuser stehen am Fluss."))
	if got := found(t, x, "Haus"); got != "[a.txt]" {
		t.Errorf("got %s", got)
	}
	if _, err := index.Open(t.Context(), t.TempDir(), index.Options{Language: "tlh"}); err == nil {
		t.Error("a language without a stemmer is taken")
	}
}

// bold returns the snippet of a passage with stars around its matched words.
func bold(p *api.Passage) string {
	return p.Marked(func(s string) string { return s }, func(word string) string { return "*" + word + "*" })
}
