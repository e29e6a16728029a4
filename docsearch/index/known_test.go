package index_test

import (
	"flag"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/mcp-sse/mcp-sse/docsearch/api"
	"github.com/mcp-sse/mcp-sse/docsearch/index"
)

// known is how much of the toolchain's source TestKnownItems searches, and how often. All
// of it takes a minute under the race detector.
var (
	known   = flag.Int("known", 1<<20, "bytes of the Go source that TestKnownItems searches")
	phrases = flag.Int("phrases", 200, "phrases that TestKnownItems searches for")
)

// TestKnownItems takes a phrase from each of some documents and searches for its words.
// The document must be among the first three.
func TestKnownItems(t *testing.T) {
	r := rand.New(rand.NewPCG(10, 20))
	root, paths := goFiles(t)
	r.Shuffle(len(paths), func(i, j int) { paths[i], paths[j] = paths[j], paths[i] })
	all := readFiles(t, root, paths, *known)
	x := open(t, index.Options{})
	fill(t, x, all)
	var text strings.Builder
	for _, c := range all {
		text.WriteString(c.Document.Text)
	}
	items, top, first := 0, 0, 0
	for i := 0; items < *phrases; i++ {
		c := all[i%len(all)]
		phrase := uniquePhrase(r, c.Document.Text, text.String())
		if phrase == "" {
			continue
		}
		items++
		resp, err := x.Search(t.Context(), index.Query{Text: phrase, Limit: 3})
		if err != nil {
			t.Fatal(err)
		}
		at := slices.IndexFunc(resp.Results, func(res api.Result) bool { return strings.HasSuffix(res.Path, "/"+c.Path) })
		switch {
		case at == 0:
			first++
			fallthrough
		case at > 0:
			top++
		default:
			t.Logf("%s is not found by %q", c.Path, phrase)
		}
	}
	t.Logf("%d documents: %d of %d first, %d among the first three", len(all), first, items, top)
	if top*100 < items*95 {
		t.Errorf("%d of %d among the first three, want 95 %%", top, items)
	}
}

// uniquePhrase returns some words in sequence of a document that no other place of the
// corpus has, or "".
func uniquePhrase(r *rand.Rand, document, corpus string) string {
	for range 20 {
		if len(document) < 400 {
			return ""
		}
		at := r.IntN(len(document) - 200)
		line, _, _ := strings.Cut(document[at:], "\n")
		rest, _, ok := strings.Cut(document[at+len(line):][1:], "\n")
		words := strings.Fields(rest)
		if !ok || len(words) < 5 || len(index.Terms(rest)) < 5 {
			continue
		}
		phrase := strings.Trim(rest, "\t /")
		if len(phrase) > 30 && len(phrase) < 120 && !strings.Contains(phrase, `"`) && strings.Count(corpus, phrase) == 1 {
			return phrase
		}
	}
	return ""
}
