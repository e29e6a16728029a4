package impact_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/mcp-sse/mcp-sse/docsearch/extract"
	"github.com/mcp-sse/mcp-sse/docsearch/index/internal/impact"
	"github.com/mcp-sse/mcp-sse/docsearch/index/internal/pieces"
)

func row(w *impact.Weigher, d *extract.Document, path string) string {
	cut := pieces.Cut(d)
	return w.Row(d, path, &cut[0])
}

func TestRowHasEachTermOnceWithItsClass(t *testing.T) {
	var w impact.Weigher
	d := &extract.Document{
		Title: "Title", Text: "rare " + strings.Repeat("often ", 1500) + "readFile",
		Sections: []extract.Section{{Offset: 0, Heading: "heading"}},
	}
	const want = "rare1 often3 readfile1 read1 file1 title4 name4 txt1 dir2 heading2 "
	for range 2 { // the second time with what the first left behind
		if got := row(&w, d, "dir/name.txt"); got != want {
			t.Errorf("got %q, want %q", got, want)
		}
	}
}

func TestRowOfManyTerms(t *testing.T) {
	var w impact.Weigher
	var b strings.Builder
	var want []string
	for i := range 2000 {
		fmt.Fprintf(&b, "%d ", i)
		want = append(want, fmt.Sprint(i))
	}
	got := strings.Fields(row(&w, &extract.Document{Text: b.String()}, "0"))
	if len(got) != len(want) {
		t.Fatalf("%d terms, want %d", len(got), len(want))
	}
	for i := range got {
		if got[i][:len(got[i])-1] != want[i] {
			t.Fatalf("term %d is %s, want %s", i, got[i], want[i])
		}
	}
}

func BenchmarkRow(b *testing.B) {
	d := &extract.Document{Text: strings.Repeat("some words of a text, which are repeated, someTimes\n", 240)}
	cut := pieces.Cut(d)
	b.SetBytes(int64(len(d.Text)))
	b.ReportAllocs()
	var w impact.Weigher
	for b.Loop() {
		w.Row(d, "dir/name.txt", &cut[0])
	}
}
