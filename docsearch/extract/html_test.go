package extract

import (
	"strings"
	"testing"
)

func TestHTML(t *testing.T) {
	for name, tc := range map[string]struct{ page, title, text, headings string }{
		"page": {"<!doctype html><html><head><title>My &amp; Title</title><style>p{}</style></head><body><h1>One <em>two</em></h1><p>Text\n  <b>bo</b>ld.</p><h2>Three</h2>x</body>",
			"My & Title", "One two\n\nText bold.\n\nThree\nx\n", "One two|Three"},
		"title of the first heading": {"<h2>Only</h2>", "Only", "Only\n", "Only"},
		"entities":                   {"<p>&lt;Gr&uuml;&szlig;e&gt; &#x4e16; &nbsp;&copy;", "", "<Grüße> 世 ©\n", ""},
		"lines":                      {"a<br>b<br/>c<div>d</div>e<ul><li>f<li>g</ul>", "", "a\nb\nc\nd\ne\nf\ng\n", ""},
		"table":                      {"<table><tr><th>A<th>B<tr><td>1</td><td>2</td></tr></table>", "", "A\tB\n1\t2\n", ""},
		"preformatted":               {"a<pre>  x\n    y\n</pre>b", "", "a\n  x\n    y\nb\n", ""},
		"scripts":                    {"a<script>var x = '<p>no</p>'</script><noscript>no</noscript><template><p>no</p></template>b", "", "ab\n", ""},
		"nested pictures":            {"a<svg><svg><title>no</title></svg><text>no</text></svg>b", "", "ab\n", ""},
		"empty picture":              {"a<svg/>b", "", "ab\n", ""},
		"comments":                   {"a<!-- no --><![CDATA[ no ]]>b", "", "ab\n", ""},
		"heading without an end":     {"<h1>One<h2>Two", "One", "One\n\nTwo\n", "One|Two"},
		"heading without text":       {"<h1> </h1>x", "", "x\n", ""},
		"stray ends":                 {"</div></p></pre></svg></title></h1>x</table>", "", "x\n", ""},
		"reserved characters":        {"<title>a&#xe000;</title>b&#xe001;c&#0;d", "a", "bc\uFFFDd\n", ""},
		"declared encoding":          {"<meta charset=iso-8859-1><p>Gr\xfc\xdfe", "", "Grüße\n", ""},
		"UTF-8 after much ASCII":     {"<p>" + strings.Repeat("a", 2000) + "ü", "", strings.Repeat("a", 2000) + "ü\n", ""},
		"UTF-16":                     {"\xff\xfe<\x00p\x00>\x00x\x00", "", "x\n", ""},
		"cut off":                    {"text <a href=\"x", "", "text\n", ""},
	} {
		doc, err := htmlDocument(t.Context(), []byte(tc.page), 1<<20)
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		var headings []string
		for _, s := range doc.Sections {
			headings = append(headings, s.Heading)
			if !strings.HasPrefix(doc.Text[s.Offset:], s.Heading) {
				t.Errorf("%s: section %q begins at %.20q", name, s.Heading, doc.Text[s.Offset:])
			}
		}
		if doc.Title != tc.title || doc.Text != tc.text {
			t.Errorf("%s: got %q, %q, want %q, %q", name, doc.Title, doc.Text, tc.title, tc.text)
		}
		if got := strings.Join(headings, "|"); tc.headings != "" && got != tc.headings {
			t.Errorf("%s: headings %q, want %q", name, got, tc.headings)
		}
		checkDocument(t, doc)
	}
}

func TestLargeHTML(t *testing.T) {
	const maxText = 256 << 10
	for name, tc := range map[string]struct {
		page, reason string
		text         int
	}{
		"text in pieces": {strings.Repeat("ü", 100_000), "", 200_001},
		"pre in pieces":  {"<pre>" + strings.Repeat("a ü\n", 50_000), "", 250_000},
		"much text":      {strings.Repeat("<b>text</b>", maxText/4+1), ReasonTooLarge, 0},
		"one tag":        {"<a b='" + strings.Repeat("x", maxText+1), ReasonTooLarge, 0},
		"one script":     {"<script>" + strings.Repeat("x", maxText+1), ReasonTooLarge, 0},
		"large tag":      {"<a b='" + strings.Repeat("x", maxText-100) + "'>text", "", 5},
	} {
		doc, err := htmlDocument(t.Context(), []byte(tc.page), maxText)
		if reasonOf(err) != tc.reason || err == nil && (len(doc.Text) != tc.text || strings.Contains(doc.Text, "\uFFFD")) {
			t.Errorf("%s: got %v, want %d bytes or %q", name, err, tc.text, tc.reason)
		}
	}
}
