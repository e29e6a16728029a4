package extract

import (
	"context"
	"errors"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/mcp-sse/mcp-sse/docsearch/extract/internal/plain"
)

func TestDecode(t *testing.T) {
	for name, tc := range map[string]struct{ data, want string }{
		"ASCII":                     {"plain\n", "plain\n"},
		"UTF-8":                     {"Grüße 世界 😀", "Grüße 世界 😀"},
		"UTF-8 with mark":           {"\xef\xbb\xbfGrüße", "Grüße"},
		"UTF-16 little endian":      {"\xff\xfeG\x00r\x00\xfc\x00", "Grü"},
		"UTF-16 big endian":         {"\xfe\xff\x00G\x00r\x00\xfc\xd8\x3d\xde\x00", "Grü😀"},
		"UTF-16 cut off":            {"\xff\xfeG\x00r", "G\uFFFD"},
		"Windows-1252":              {"Gr\xfc\xdfe \x80 5", "Grüße € 5"},
		"UTF-8 with a broken end":   {"Grüße aus Köln, schöne Größe \xc3", "Grüße aus Köln, schöne Größe \uFFFD"},
		"line ends":                 {"a\r\nb\rc\n", "a\nb\nc\n"},
		"reserved characters":       {"a\ue000b\ue001c", "abc"},
		"escapes of terminals":      {"\x1b[1mbold\x1b[0m", "\x1b[1mbold\x1b[0m"},
		"surrogates and overlongs":  {strings.Repeat("äöü", 10) + "\xed\xa0\x80\xc0\x80", strings.Repeat("äöü", 10) + "\uFFFD"},
		"one control among letters": {strings.Repeat("text ", 20) + "\x01", strings.Repeat("text ", 20) + "\x01"},
	} {
		got, err := decode([]byte(tc.data), 1<<20)
		if err != nil || got != tc.want {
			t.Errorf("%s: got %q, %v, want %q", name, got, err, tc.want)
		}
	}
}

func TestBinaryIsSkipped(t *testing.T) {
	e := New(Options{})
	for name, data := range map[string]string{
		"NUL":      "text\x00text",
		"late NUL": strings.Repeat("text ", 100_000) + "\x00",
		"controls": "\x01\x02\x03\x04 text",
		"ELF":      "\x7fELF\x02\x01\x01\x00",
		"PNG":      "\x89PNG\r\n\x1a\n\x00\x00\x00\rIHDR",
	} {
		for _, file := range []string{"file", "file.txt", "file.md", "file.go", "file.html"} {
			if _, err := e.Extract(t.Context(), file, []byte(data)); reasonOf(err) != ReasonBinary {
				t.Errorf("%s as %s: got %v, want it skipped as binary", name, file, err)
			}
		}
	}
}

func reasonOf(err error) string {
	if skipped, ok := errors.AsType[*SkipError](err); ok {
		return skipped.Reason
	}
	return ""
}

func TestKindByName(t *testing.T) {
	for name, want := range map[string]string{
		"a.txt": TypeText, "README": TypeText, "notes.unknown": TypeText, "go.sum": TypeText, "yarn.lock": TypeText,
		"x.csv": TypeText, "a.json": TypeText, ".gitignore": TypeText, "x.": TypeText,
		"README.md": TypeMarkdown, "a.MARKDOWN": TypeMarkdown,
		"index.html": TypeHTML, "A.HTM": TypeHTML,
		"main.go": TypeCode, "a/b/x.py": TypeCode, `dir\x.rs`: TypeCode, "y.ts": TypeCode,
	} {
		doc, err := New(Options{}).Extract(t.Context(), name, []byte("some text"))
		if err != nil || doc.Type != want {
			t.Errorf("%s: got %v, %v, want %s", name, doc, err, want)
		}
	}
}

func TestWants(t *testing.T) {
	e := New(Options{})
	for name, want := range map[string]bool{
		"a.txt": true, "a": true, "a.pdf": true, "a.docx": true, "a.ODS": true, "go.sum": true, "package-lock.json": true, "Makefile": true,
		"a.png": false, "a.ZIP": false, "dir.go/a.mp4": false, "lib.so": false, "a.tar.gz": false, "x.doc": false, "": true,
	} {
		if got := e.Wants(name); got != want {
			t.Errorf("Wants(%q) = %t, want %t", name, got, want)
		}
	}
	if _, err := e.Extract(t.Context(), "a.png", []byte("text")); reasonOf(err) != ReasonUnsupported {
		t.Errorf("got %v, want a file that is unsupported", err)
	}
}

func TestLimitsOfText(t *testing.T) {
	e := New(Options{MaxText: 10})
	for data, want := range map[string]string{"1234567890": "", "12345678901": ReasonTooLarge, "": ReasonEmpty, " \n\t\n": ReasonEmpty, "\xef\xbb\xbf": ReasonEmpty} {
		if _, err := e.Extract(t.Context(), "a.txt", []byte(data)); reasonOf(err) != want {
			t.Errorf("%q: got %v, want %q", data, err, want)
		}
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := e.Extract(ctx, "a.txt", []byte("text")); !errors.Is(err, context.Canceled) {
		t.Errorf("got %v, want %v", err, context.Canceled)
	}
}

func TestMarkdown(t *testing.T) {
	for name, tc := range map[string]struct {
		text, title string
		headings    string
	}{
		"headings":           {"# One\ntext\n## Two ##\n####### no\n#no\n   ### Three\n", "One", "One|Two|Three"},
		"underlined":         {"Title\n=====\n\ntext\n\nPart\n---\n\n---\n", "Title", "Title|Part"},
		"fenced":             {"```\n# no\n```\n# Yes\n~~~~ sh\n# no\n~~~\n# no\n~~~~\n", "Yes", "Yes"},
		"indented":           {"    # no\n\t# no\n# Yes", "Yes", "Yes"},
		"markup":             {"# The **bold** `code` and [link](http://x) {#anchor}\n", "The bold code and link", "The bold code and link"},
		"YAML":               {"---\nother: x\ntitle: \"My title\"\n---\n# One\n", "My title", "One"},
		"TOML":               {"+++\ntitle = 'My title'\n+++\n# One\n", "My title", "One"},
		"rule at the start":  {"---\n# One\n", "One", "One"},
		"no title in matter": {"---\ntitles: x\n---\n# One\n", "One", "One"},
		"list is no heading": {"- item\n---\n> quote\n===\n", "", ""},
		"nothing":            {"just text\n", "", ""},
		"empty heading":      {"#\n# \n## ##\n", "", ""},
		"several blanks":     {"#   Some \t heading  \n", "Some heading", "Some heading"},
	} {
		title, sections := markdown(tc.text)
		var headings []string
		for _, s := range sections {
			headings = append(headings, s.Heading)
		}
		if got := strings.Join(headings, "|"); got != tc.headings || title != tc.title {
			t.Errorf("%s: got title %q, headings %q, want %q, %q", name, title, got, tc.title, tc.headings)
		}
	}
}

func TestCode(t *testing.T) {
	const text = "package x\n\nfunc Do(a int) {\n\tfunc() {}()\n}\n\ntype T struct {\n}\nclass Foo:\n    def x(self):\nfunctional\n"
	var headings []string
	for _, s := range code(text) {
		headings = append(headings, s.Heading)
		if !strings.HasPrefix(text[s.Offset:], s.Heading) {
			t.Errorf("section %q begins at %.20q", s.Heading, text[s.Offset:])
		}
	}
	if got, want := strings.Join(headings, "|"), "package x|func Do(a int)|type T struct|class Foo"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
}

func FuzzText(f *testing.F) {
	f.Add("a.md", []byte("---\ntitle: x\n---\n# A\n\nb\n---\n```\n# c\n```\n"))
	f.Add("a.go", []byte("package x\nfunc f() {\n"))
	f.Add("a.txt", []byte("Gr\xfc\xdfe\r\n\ue000"))
	f.Add("a.html", []byte("<title>x</title><h1>a<p>b<pre> c</h1><table><td>d<script>"))
	f.Add("a", []byte("\xff\xfea\x00"))
	e := New(Options{MaxText: 1 << 20})
	f.Fuzz(func(t *testing.T, name string, data []byte) {
		if doc, err := e.Extract(t.Context(), name, data); err == nil {
			checkDocument(t, doc)
		} else if reasonOf(err) == "" {
			t.Errorf("the error says nothing of the file: %v", err)
		}
	})
}

// checkDocument checks what Document promises.
func checkDocument(t testing.TB, doc *Document) {
	t.Helper()
	if !utf8.ValidString(doc.Text) || strings.ContainsAny(doc.Text, "\x00\ue000\ue001\r") {
		t.Errorf("the text is not clean: %q", doc.Text)
	}
	last := 0
	for _, s := range doc.Sections {
		if s.Offset < last || s.Offset > len(doc.Text) || s.Offset < len(doc.Text) && !utf8.RuneStart(doc.Text[s.Offset]) {
			t.Errorf("section %+v after %d, of %d", s, last, len(doc.Text))
		}
		last = s.Offset
		checkLine(t, s.Heading)
	}
	checkLine(t, doc.Title)
}

func checkLine(t testing.TB, s string) {
	t.Helper()
	if !utf8.ValidString(s) || strings.ContainsAny(s, "\n\r\x00\ue000\ue001") || len(s) > 400 {
		t.Errorf("not one line: %q", s)
	}
}

func TestSectionsAreBounded(t *testing.T) {
	title, sections := markdown(strings.Repeat("# h\n", plain.MaxSections+5))
	if len(sections) != plain.MaxSections || title != "h" {
		t.Fatalf("got %d sections, title %q", len(sections), title)
	}
	if last := sections[plain.MaxSections-1]; last != (Section{Offset: 4 * (plain.MaxSections - 1)}) {
		t.Errorf("the last section is %+v, want one without a heading", last)
	}
}
