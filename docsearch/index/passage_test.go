package index_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/mcp-sse/mcp-sse/docsearch/api"
	"github.com/mcp-sse/mcp-sse/docsearch/extract"
	"github.com/mcp-sse/mcp-sse/docsearch/index"
)

// The passages cover the text without gaps. FuzzCut repeats its text: the fuzzer spends a
// minute to shorten each long input that it finds interesting.
func FuzzCut(f *testing.F) {
	f.Add("a\nb\n\nc", uint16(1), 2, 3)
	f.Add("word ", uint16(5000), 100, 4000)
	f.Add("漢", uint16(9000), 1, 0)
	f.Fuzz(func(t *testing.T, text string, times uint16, a, b int) {
		text = strings.ToValidUTF8(strings.Repeat(text, min(int(times), 40_000/(len(text)+1))), "?")
		texts, starts := index.Cut(&extract.Document{Text: text, Sections: []extract.Section{{Offset: a, Heading: "A", Page: 1}, {Offset: b, Page: 2}}})
		var all strings.Builder
		for n, passage := range texts {
			end := len(text)
			if n+1 < len(starts) {
				end = starts[n+1]
			}
			if !utf8.ValidString(passage) || len(passage) == 0 || len(passage) > 1800 || end <= starts[n] || end-starts[n] > len(passage) {
				t.Fatalf("a passage of %d bytes, from %d to %d", len(passage), starts[n], end)
			}
			all.WriteString(passage[len(passage)-(end-starts[n]):])
		}
		if all.String() != text {
			t.Fatal("the passages are not the text")
		}
	})
}

// document returns what a Markdown file of that text is.
func document(t *testing.T, name, text string) *extract.Document {
	t.Helper()
	d, err := extract.New(extract.Options{}).Extract(t.Context(), name, []byte(text))
	if err != nil {
		t.Fatal(err)
	}
	return d
}

// sections returns a Markdown document of n headed sections, some of which have a word.
func sections(n int, word string, with ...int) string {
	var b strings.Builder
	b.WriteString("# Handbook\n\n")
	for i := 1; i <= n; i++ {
		fmt.Fprintf(&b, "## Chapter %d\n\nSome sentence of this chapter.\n", i)
		if slices.Contains(with, i) {
			fmt.Fprintf(&b, "Here the %s is explained.\n", word)
		}
		b.WriteString("\n")
	}
	return b.String()
}

// Each section is a passage with its own heading, however short it is. A heading without
// words of its own belongs to the section below it. A line like a heading in a block of
// code is none.
func TestPassagesHaveTheirHeadings(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		file, text string
		want       []string // heading: the first words of its passage
	}{
		"short sections":  {"a.md", "# Title\n\n## One\nFirst.\n## Two\nSecond.\n", []string{"One: # Title", "Two: ## Two"}},
		"no words":        {"a.md", "# Title\n\nIntro.\n\n## Empty\n\n## Full\n\nText.\n", []string{"Title: # Title", "Full: ## Empty"}},
		"a heading last":  {"a.md", "# Title\n\nIntro.\n\n## End\n", []string{"Title: # Title", "End: ## End"}},
		"only headings":   {"a.md", "# One\n\n## Two\n", []string{"Two: # One"}},
		"before a title":  {"a.md", "Preface.\n\n# Title\n\nText.\n", []string{": Preface.", "Title: # Title"}},
		"code":            {"a.md", "# Title\n\n```sh\n# no heading\nls\n```\n", []string{"Title: # Title"}},
		"code in a line":  {"a.md", "# Title\n\n```ls``` lists files.\n\n## One\n\nFirst.\n", []string{"Title: # Title", "One: ## One"}},
		"HTML":            {"a.html", "<h1>Title</h1><p>Intro.</p><h2>One</h2><p>First.</p><h2>Two</h2><p>Second.</p>", []string{"Title: Title", "One: One", "Two: Two"}},
		"without any":     {"a.txt", "Just text.\n", []string{": Just text."}},
		"underlined ones": {"a.md", "Title\n=====\n\nText.\n\nOne\n---\n\nFirst.\n", []string{"Title: Title", "One: One"}},
	} {
		d := document(t, test.file, test.text)
		texts, headings := index.Headings(d)
		var got []string
		for i := range texts {
			line, _, _ := strings.Cut(texts[i], "\n")
			got = append(got, headings[i]+": "+line)
		}
		if !slices.Equal(got, test.want) {
			t.Errorf("%s: got %q, want %q", name, got, test.want)
		}
	}
}

// A long section is cut after sentences, into passages that fit the window of an embedding
// model. All have its heading.
func TestLongSectionsAreCutAfterSentences(t *testing.T) {
	t.Parallel()
	var b strings.Builder
	b.WriteString("# Long\n\n")
	for n := range 200 {
		fmt.Fprintf(&b, "This is sentence %d\nof a long section in which a line may end anywhere. ", n)
	}
	texts, headings := index.Headings(document(t, "a.md", b.String()))
	if len(texts) < 5 {
		t.Fatalf("got %d passages", len(texts))
	}
	for n, text := range texts {
		if !strings.HasSuffix(strings.TrimSpace(text), ".") {
			t.Errorf("passage %d ends with %q", n, text[len(text)-30:])
		}
		if words := len(strings.Fields(text)); words > 260 {
			t.Errorf("passage %d has %d words", n, words)
		}
		if headings[n] != "Long" {
			t.Errorf("passage %d has the heading %q", n, headings[n])
		}
	}
}

// Of very short words, too, a passage has no more than fit.
func TestPassagesAreBoundedInWords(t *testing.T) {
	t.Parallel()
	texts, _ := index.Headings(document(t, "a.txt", strings.Repeat("a b ", 3000)))
	for n, text := range texts {
		if words := len(strings.Fields(text)); words > 300 {
			t.Errorf("passage %d has %d words", n, words)
		}
	}
}

// A search finds each section that has the word, as a passage with its heading, whose words
// are marked by their places.
func TestSearchFindsTheSectionsOfADocument(t *testing.T) {
	t.Parallel()
	x := open(t, index.Options{})
	c := text("a.md", sections(40, "hippopotamus", 3, 9, 17, 28, 40))
	c.Document = document(t, "a.md", sections(40, "hippopotamus", 3, 9, 17, 28, 40))
	update(t, x, c)
	r, err := x.Search(t.Context(), index.Query{Text: "hippopotamus"})
	if err != nil || len(r.Results) != 1 {
		t.Fatalf("%+v, %v", r, err)
	}
	var headings []string
	for _, p := range append([]api.Passage{r.Results[0].Passage}, r.Results[0].MorePassages...) {
		headings = append(headings, p.Location.Heading)
		if !strings.Contains(bold(&p), "the *hippopotamus* is") || strings.ContainsAny(p.Snippet, "\ue000\ue001") {
			t.Errorf("the snippet is %q, with %v", p.Snippet, p.Highlights)
		}
	}
	if want := []string{"Chapter 3", "Chapter 9", "Chapter 17", "Chapter 28", "Chapter 40"}; !slices.Equal(headings, want) {
		t.Errorf("got the passages %q, want %q", headings, want)
	}
}
