package printable_test

import (
	"strings"
	"testing"
	"unicode"

	"github.com/mcp-sse/mcp-sse/docsearch/internal/printable"
)

func TestPrintable(t *testing.T) {
	for text, want := range map[string]struct{ text, lines, line string }{
		"plain  text":                    {"plain  text", "plain  text", "plain text"},
		"\x1b[2Jclear\a":                 {"[2Jclear", "[2Jclear", "[2Jclear"},
		"one\n\ttwo\r\nthree":            {"onetwothree", "one\ntwo\nthree", "one two three"},
		"C1\u009b\u0085next":             {"C1next", "C1next", "C1 next"},
		"\u202eright\u2066 to\u200f":     {"right to", "right to", "right to"},
		"line\u2028para\u2029":           {"linepara", "linepara", "line para"},
		"in\u200bvis\u00adible\ufeff":    {"invisible", "invisible", "invisible"},
		"می\u200cخواهم 👩\u200d🚒 \u0600١": {"می\u200cخواهم 👩\u200d🚒 \u0600١", "می\u200cخواهم 👩\u200d🚒 \u0600١", "می\u200cخواهم 👩\u200d🚒 \u0600١"},
		"\xffinvalid":                    {"\ufffdinvalid", "\ufffdinvalid", "\ufffdinvalid"},
	} {
		if got := printable.Text(text); got != want.text {
			t.Errorf("Text(%q) = %q, want %q", text, got, want.text)
		}
		if got := printable.Lines(text); got != want.lines {
			t.Errorf("Lines(%q) = %q, want %q", text, got, want.lines)
		}
		if got := printable.Line(text); got != want.line {
			t.Errorf("Line(%q) = %q, want %q", text, got, want.line)
		}
	}
}

func FuzzLine(f *testing.F) {
	f.Add("a\x1b\n\u202eb")
	f.Fuzz(func(t *testing.T, text string) {
		for _, got := range []string{printable.Line(text), printable.Text(text)} {
			if strings.ContainsFunc(got, unicode.IsControl) || strings.ContainsAny(got, "\u202e\u2028\u2029") || printable.Text(got) != got {
				t.Errorf("%q becomes %q", text, got)
			}
		}
	})
}
