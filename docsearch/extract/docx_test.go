package extract

import (
	"context"
	"errors"
	"strings"
	"testing"

	"github.com/mcp-sse/mcp-sse/docsearch/extract/internal/pdftest"
)

func TestDOCXText(t *testing.T) {
	for name, tc := range map[string]struct{ body, want string }{
		"runs":         {`<w:p><w:r><w:t>one </w:t></w:r><w:r><w:t>t</w:t><w:t>wo</w:t></w:r></w:p><w:p><w:r><w:t>three</w:t></w:r></w:p>`, "one two\nthree\n"},
		"breaks":       {`<w:p><w:r><w:t>a</w:t><w:br/><w:t>b</w:t><w:tab/><w:t>c</w:t><w:noBreakHyphen/><w:t>d</w:t></w:r></w:p>`, "a\nb\tc-d\n"},
		"tab stops":    {`<w:p><w:pPr><w:tabs><w:tab w:val="left"/></w:tabs></w:pPr><w:r><w:t>a</w:t></w:r></w:p>`, "a\n"},
		"table":        {`<w:tbl><w:tr><w:tc><w:p><w:r><w:t>a</w:t></w:r></w:p><w:p><w:r><w:t>b</w:t></w:r></w:p></w:tc><w:tc><w:p><w:r><w:t>c</w:t></w:r></w:p></w:tc></w:tr><w:tr><w:tc><w:p><w:r><w:t>d</w:t></w:r></w:p></w:tc></w:tr></w:tbl>`, "a b\tc\nd\n"},
		"deleted":      {`<w:p><w:del><w:r><w:delText>no</w:delText></w:r></w:del><w:ins><w:r><w:t>yes</w:t></w:r></w:ins><w:r><w:instrText>PAGE</w:instrText></w:r></w:p>`, "yes\n"},
		"alternatives": {`<w:p><w:AlternateContent><w:Choice><w:t>once</w:t></w:Choice><w:Fallback><w:p><w:t>twice</w:t></w:p></w:Fallback></w:AlternateContent></w:p>`, "once\n"},
		"reserved":     {`<w:p><w:r><w:t>a&#xe000;b</w:t></w:r></w:p>`, "ab\n"},
	} {
		doc, err := docx(t.Context(), buildDOCX(tc.body), 1<<20)
		if err != nil || doc.Text != tc.want {
			t.Errorf("%s: got %v, %v, want %q", name, doc, err, tc.want)
		}
	}
}

func TestDOCXHeadings(t *testing.T) {
	paragraph := func(properties, text string) string {
		return `<w:p><w:pPr>` + properties + `</w:pPr><w:r><w:t>` + text + `</w:t></w:r></w:p>`
	}
	data := buildZip(map[string]string{
		"_rels/.rels": `<Relationships><Relationship Type="http://x/officeDocument" Target="/odd/main.xml"/></Relationships>`,
		"odd/main.xml": wordXML(paragraph(`<w:pStyle w:val="T"/>`, "The title") + paragraph(`<w:pStyle w:val="berschrift1"/>`, "By name") +
			paragraph("", "body") + paragraph(`<w:pStyle w:val="Mine"/>`, "By base") + paragraph(`<w:outlineLvl w:val="2"/>`, "By level") +
			paragraph(`<w:outlineLvl w:val="9"/>`, "no level") + paragraph(`<w:pStyle w:val="Circle"/>`, "circle") + paragraph(`<w:pStyle w:val="Heading7"/>`, "By id")),
		"odd/styles.xml": `<w:styles xmlns:w="x"><w:style w:styleId="T"><w:name w:val="Title"/></w:style>` +
			`<w:style w:styleId="berschrift1"><w:name w:val="heading 1"/></w:style>` +
			`<w:style w:styleId="Mine"><w:name w:val="Mine"/><w:basedOn w:val="berschrift1"/></w:style>` +
			`<w:style w:styleId="Circle"><w:basedOn w:val="Circle"/></w:style></w:styles>`,
		"docProps/core.xml": `<p><title></title></p>`,
	})
	doc, err := docx(t.Context(), data, 1<<20)
	if err != nil {
		t.Fatal(err)
	}
	var headings []string
	for _, s := range doc.Sections {
		headings = append(headings, s.Heading)
	}
	if got, want := strings.Join(headings, "|"), "The title|By name|By base|By level|By id"; got != want || doc.Title != "The title" {
		t.Errorf("got title %q, headings %q, want %q", doc.Title, got, want)
	}
}

func TestHostileDOCXIsSkipped(t *testing.T) {
	const maxText = 64 << 10
	manyParts := strings.Repeat("PK\x01\x02"+strings.Repeat("\x00", 42), maxParts+1)
	text := `<w:p><w:r><w:t>` + strings.Repeat("some text ", 1000) + `</w:t></w:r></w:p>`
	for name, tc := range map[string]struct {
		data   []byte
		reason string
	}{
		"not an archive":    {[]byte("PK\x03\x04 not really"), ReasonDamaged},
		"nothing":           {nil, ReasonDamaged},
		"password":          {[]byte("\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1rest"), ReasonEncrypted},
		"stray ends":        {buildDOCX("</w:t></w:tc></w:p>text</w:Fallback>"), ReasonEmpty},
		"no document":       {buildZip(map[string]string{"a": "b"}), ReasonDamaged},
		"many parts":        {[]byte(manyParts), ReasonDamaged},
		"bad XML":           {buildDOCX("<w:p <w:r>"), ReasonDamaged},
		"other encoding":    {buildZip(map[string]string{"word/document.xml": `<?xml version="1.0" encoding="EBCDIC"?><a/>`}), ReasonDamaged},
		"entities":          {buildZip(map[string]string{"word/document.xml": `<!DOCTYPE a [<!ENTITY x "xxx">]><a>&x;</a>`}), ReasonDamaged},
		"deep":              {buildDOCX(strings.Repeat("<a>", 100_000)), ReasonEmpty},
		"much text":         {buildDOCX(strings.Repeat(text, 7)), ReasonTooLarge},
		"much of nothing":   {buildDOCX(strings.Repeat("<w:p/>", maxMarkup*maxText/6)), ReasonTooLarge},
		"nothing in it":     {buildDOCX("<w:p/>"), ReasonEmpty},
		"document is a PDF": {pdftest.OnePage(""), ReasonDamaged},
	} {
		_, err := New(Options{MaxText: maxText}).Extract(t.Context(), "a.docx", tc.data)
		if got := reasonOf(err); got != tc.reason {
			t.Errorf("%s: got %v, want it skipped as %s", name, err, tc.reason)
		}
	}
}

func TestDOCXTokensAreBounded(t *testing.T) {
	for name, data := range map[string][]byte{
		"many attributes": buildDOCX("<a" + strings.Repeat(` b=""`, maxXMLToken/5+1000) + ">"),
		"long comment":    buildDOCX("<!--" + strings.Repeat("x", maxXMLToken+10_000) + "-->"),
	} {
		if _, err := New(Options{}).Extract(t.Context(), "a.docx", data); reasonOf(err) != ReasonDamaged {
			t.Errorf("%s: got %v, want it skipped as damaged", name, err)
		}
	}
}

func TestDOCXEndsWithItsContext(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := docx(ctx, buildDOCX("<w:p/>"), 1<<20); !errors.Is(err, context.Canceled) {
		t.Errorf("got %v, want %v", err, context.Canceled)
	}
}

// FuzzDOCX fuzzes the parts of a document, and the archive.
func FuzzDOCX(f *testing.F) {
	f.Add([]byte(wordXML("<w:p><w:r><w:t>a</w:t></w:r></w:p>")), []byte(`<w:styles xmlns:w="x"><w:style w:styleId="T"/></w:styles>`), []byte{})
	f.Add([]byte(wordXML("<w:tbl><w:tr><w:tc><w:p/></w:tc></w:tr></w:tbl>")), []byte("<"), fixture(f, "pandoc.docx"))
	e := New(Options{MaxText: 1 << 20})
	f.Fuzz(func(t *testing.T, body, styles, archive []byte) {
		built := buildZip(map[string]string{"word/document.xml": string(body), "word/styles.xml": string(styles), "word/footnotes.xml": string(body)})
		for _, data := range [][]byte{built, archive} {
			if doc, err := e.Extract(t.Context(), "a.docx", data); err == nil {
				checkDocument(t, doc)
			} else if reasonOf(err) == "" {
				t.Errorf("the error says nothing of the file: %v", err)
			}
		}
	})
}
