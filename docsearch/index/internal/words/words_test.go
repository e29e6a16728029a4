package words_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/mcp-sse/mcp-sse/docsearch/index/internal/words"
)

// terms returns the terms of a text.
func terms(text string) (all []string) {
	words.Each(text, func(t words.Term) { all = append(all, string(t.Text)) })
	return all
}

var underscores = strings.Repeat("_", 70)

func TestTerms(t *testing.T) {
	for text, want := range map[string]string{
		"Hello, World":         "hello world",
		"readFile":             "readfile read file",
		"HTTPServer":           "httpserver http server",
		"parse_HTTP_response2": "parse_http_response2 parse http response2",
		"__init__":             "init",
		"don't":                "don t",
		"utf8 SHA256sum":       "utf8 sha256sum",
		"Straße ÉCOLE":         "straße ecole",
		"東京都":                  "東 東京 京 京都 都",
		"go言語":                 "go 言 言語 語",
		"___":                  "",
		"_x_ ____Ab":           "x ab",
		underscores + "y":      "y",
		underscores + "bC_d":   "bc_d b c d",
		"Word wOrd WOrd w1X":   "word word w ord word w ord w1x",
		"ﬁne ①":                "fine 1",
	} {
		if got := strings.Join(terms(text), " "); got != want {
			t.Errorf("%s: got %q, want %q", text, got, want)
		}
	}
}

func FuzzPhrase(f *testing.F) {
	long := strings.Repeat("long", 20)
	for _, text := range []string{
		"some words, and\nmore words", "readFile _x_ a__b ___ HTTPServer", long + " " + long + "x " + underscores + "y",
		"caf\u00e9 latte \u2014 \u201cquoted words\u201d", "\u6f22\u5b57 and words", "\U0001f389 party", "e\u0301t\u00e9 x",
	} {
		for _, phrase := range []string{"words and", "more", "x", "quoted words", "latte quoted", "t\u00e9", "\u5b57", "y", "and more", "_ x A__B", long} {
			f.Add(text, phrase)
		}
	}
	f.Fuzz(func(t *testing.T, text, phrase string) {
		p := words.NewPhrase(phrase)
		folded := words.Fold(phrase)
		if folded == "" {
			return
		}
		if got, want := p.In(text), strings.Contains(words.Fold(text), folded); got != want {
			t.Errorf("%q in %q: got %v, want %v", phrase, text, got, want)
		}
	})
}

func FuzzEachOf(f *testing.F) {
	f.Add("some words, and readFile __b_c \u6f22\u5b57 Caf\u00e9", byte('a'))
	f.Add("Apple aBc "+underscores+"a", byte('a'))
	f.Fuzz(func(t *testing.T, text string, first byte) {
		type at struct {
			text     string
			pos, end int
		}
		var got, want []at
		keep := func(list *[]at) func(words.Term) {
			return func(t words.Term) {
				if t.Text[0] == first {
					*list = append(*list, at{string(t.Text), t.Pos, t.End})
				}
			}
		}
		words.Each(text, keep(&want))
		var some [256]bool
		some[first] = true
		words.EachOf(text, &some, keep(&got))
		if !slices.Equal(got, want) {
			t.Errorf("%q: got %v, want %v", text, got, want)
		}
	})
}
