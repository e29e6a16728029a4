package extract

import "testing"

func TestWordText(t *testing.T) {
	for name, tc := range map[string]struct{ body, want string }{
		"runs":         {`<w:p><w:r><w:t>one </w:t></w:r><w:r><w:t>t</w:t><w:t>wo</w:t></w:r></w:p><w:p><w:r><w:t>three</w:t></w:r></w:p>`, "one two\nthree\n"},
		"breaks":       {`<w:p><w:r><w:t>a</w:t><w:br/><w:t>b</w:t><w:tab/><w:t>c</w:t><w:noBreakHyphen/><w:t>d</w:t></w:r></w:p>`, "a\nb\tc-d\n"},
		"tab stops":    {`<w:p><w:pPr><w:tabs><w:tab w:val="left"/></w:tabs></w:pPr><w:r><w:t>a</w:t></w:r></w:p>`, "a\n"},
		"table":        {`<w:tbl><w:tr><w:tc><w:p><w:r><w:t>a</w:t></w:r></w:p><w:p><w:r><w:t>b</w:t></w:r></w:p></w:tc><w:tc><w:p><w:r><w:t>c</w:t></w:r></w:p></w:tc></w:tr><w:tr><w:tc><w:p><w:r><w:t>d</w:t></w:r></w:p></w:tc></w:tr></w:tbl>`, "a b\tc\nd\n"},
		"deleted":      {`<w:p><w:del><w:r><w:delText>no</w:delText></w:r></w:del><w:moveFrom><w:r><w:t>no</w:t></w:r></w:moveFrom><w:ins><w:r><w:t>yes</w:t></w:r></w:ins><w:r><w:instrText>PAGE</w:instrText></w:r></w:p>`, "yes\n"},
		"alternatives": {`<w:p><w:AlternateContent><w:Choice><w:t>once</w:t></w:Choice><w:Fallback><w:p><w:t>twice</w:t></w:p></w:Fallback></w:AlternateContent></w:p>`, "once\n"},
		"reserved":     {`<w:p><w:r><w:t>a&#xe000;b</w:t></w:r></w:p>`, "ab\n"},
		"stray ends":   {`</w:t></w:tc></w:p>text</w:Fallback><w:p><w:t>a</w:t></w:p>`, "a\n"},
	} {
		if _, text, _ := extracted(t, TypeWord, buildDOCX(tc.body)); text != tc.want {
			t.Errorf("%s: got %q, want %q", name, text, tc.want)
		}
	}
}

func TestWordHeadings(t *testing.T) {
	paragraph := func(properties, text string) string {
		return `<w:p><w:pPr>` + properties + `</w:pPr><w:r><w:t>` + text + `</w:t></w:r></w:p>`
	}
	title, _, headings := extracted(t, TypeWord, buildZip(map[string]string{
		"_rels/.rels": `<Relationships><Relationship Type="http://x/officeDocument" Target="/odd/main.xml"/></Relationships>`,
		"odd/main.xml": wordXML(paragraph(`<w:pStyle w:val="berschrift1"/>`, "By name") + paragraph(`<w:pStyle w:val="T"/>`, "The title") +
			paragraph("", "body") + paragraph(`<w:pStyle w:val="Mine"/>`, "By base") + paragraph(`<w:outlineLvl w:val="2"/>`, "By level") +
			paragraph(`<w:outlineLvl w:val="9"/>`, "no level") + paragraph(`<w:pStyle w:val="Circle"/>`, "circle") + paragraph(`<w:pStyle w:val="Heading7"/>`, "By id")),
		"odd/styles.xml": `<w:styles xmlns:w="x"><w:style w:styleId="T"><w:name w:val="Title"/></w:style>` +
			`<w:style w:styleId="berschrift1"><w:name w:val="heading 1"/></w:style>` +
			`<w:style w:styleId="Mine"><w:name w:val="Mine"/><w:basedOn w:val="berschrift1"/></w:style>` +
			`<w:style w:styleId="Circle"><w:basedOn w:val="Circle"/></w:style></w:styles>`,
		"docProps/core.xml": `<p><title></title></p>`,
	}))
	if want := "By name|The title|By base|By level|By id"; headings != want || title != "The title" {
		t.Errorf("got title %q, headings %q, want %q", title, headings, want)
	}
}

func TestRTF(t *testing.T) {
	for name, tc := range map[string]struct{ rtf, title, text, headings string }{
		"text":       {`{\rtf1\ansi one \b two\b0  {\i three}\par four\line five\tab six}`, "", "one two three\nfour\nfive\tsix\n", ""},
		"tables":     {`{\rtf1{\fonttbl{\f0 Arial;}}{\colortbl;\red0;}{\info{\title My \'fc}{\author no}}{\*\generator no;}{\pict 0102}yes}`, "My ü", "yes\n", ""},
		"characters": {"{\\rtf1\\ansi\\ansicpg1252 Gr\\'fc\\'dfe \\u19990?\\u55357?\\u56832?\\uc2\\u228ae\\~\\{x\\}\\\\ a\\_b\\emdash\r\nc\\\nd}", "", "Grüße 世😀ä {x}\\ a-b—c\nd\n", ""},
		"code page":  {`{\rtf1\ansicpg1251 \'ec\'e8\'f0}`, "", "мир\n", ""},
		"two bytes":  {`{\rtf1\ansicpg932 \'90\'a2\'8a\'45}`, "", "世界\n", ""},
		"headings":   {`{\rtf1{\stylesheet{\s1 heading 1;}{\s2 Body;}}\pard\outlinelevel0 One\par\pard two\par\pard\s1 Three\par\pard\s2 four}`, "One", "One\ntwo\nThree\nfour\n", "One|Three"},
		"table":      {`{\rtf1\trowd\intbl a\par b\cell c\cell\row\pard d}`, "", "a b\tc\nd\n", ""},
		"footnote":   {`{\rtf1 a{\*\footnote  note} b}`, "", "a note b\n", ""},
		"binary":     {"{\\rtf1 a{\\pict\\bin3 }}}}b\\bin99999999 c", "", "ab\n", ""},
		"broken":     {`{\rtf1 a\'zz}}}}{\u b\`, "", "azz", ""},
	} {
		title, text, headings := extracted(t, TypeRTF, []byte(tc.rtf))
		if name == "broken" {
			continue // it need only end
		}
		if title != tc.title || text != tc.text || headings != tc.headings {
			t.Errorf("%s: got %q, %q, %q, want %q, %q, %q", name, title, text, headings, tc.title, tc.text, tc.headings)
		}
	}
}

func TestNotebook(t *testing.T) {
	title, text, headings := extracted(t, TypeNotebook, []byte(`{"nbformat": 4, "cells": [
		{"cell_type": "markdown", "source": ["# Title\n", "text"]},
		{"cell_type": "code", "source": "# a comment\nx = 1", "outputs": [{"text": "no"}]},
		{"cell_type": "markdown", "source": "## Part"}]}`))
	if want := "# Title\ntext\n\n# a comment\nx = 1\n\n## Part\n"; title != "Title" || text != want || headings != "Title|Part" {
		t.Errorf("got %q, %q, %q", title, text, headings)
	}
}

func TestEPUBPagesComeInTheirOrder(t *testing.T) {
	title, text, headings := extracted(t, TypeEPUB, buildZip(map[string]string{
		"META-INF/container.xml": `<container><rootfiles><rootfile full-path="a/book.opf"/></rootfiles></container>`,
		"a/book.opf": `<package><metadata><dc:title>A Book</dc:title></metadata><manifest><item id="x" href="one.html"/><item id="y" href="t%20wo.html"/>` +
			`<item id="z" href="gone.html"/></manifest><spine><itemref idref="y"/><itemref idref="z"/><itemref idref="x"/></spine></package>`,
		"a/one.html":   "<title>no</title><h1>One</h1>first",
		"a/t wo.html":  "<h1>Two</h1>second",
		"a/other.html": "no",
	}))
	if title != "A Book" || text != "Two\nsecond\n\nOne\nfirst\n" || headings != "Two|One" {
		t.Errorf("got %q, %q, %q", title, text, headings)
	}
}

// FuzzParts fuzzes the parts of archives.
func FuzzParts(f *testing.F) {
	f.Add(wordXML("<w:p><w:r><w:t>a</w:t></w:r></w:p>"), `<w:styles xmlns:w="x"><w:style w:styleId="T"/></w:styles>`)
	f.Add(wordXML("<w:tbl><w:tr><w:tc><w:p/></w:tc></w:tr></w:tbl>"), "<")
	f.Add(`<page><h>a</h><frame class="title"><p>b</p></frame></page><spreadsheet><table name="s"><table-cell><p>c`, `<item id="a" href="b"/>`)
	f.Fuzz(func(t *testing.T, body, other string) {
		data := buildZip(map[string]string{
			"word/document.xml": body, "word/styles.xml": other, "word/footnotes.xml": body,
			"ppt/slides/slide1.xml": body, "ppt/slides/_rels/slide1.xml.rels": other, "content.xml": body, "meta.xml": other,
			"META-INF/container.xml": `<rootfile full-path="b"/>`, "b": other,
		})
		for _, typ := range []string{TypeWord, TypePresentation, TypeOpenDocument, TypeEPUB} {
			if doc, err := read(order{Type: typ, MaxText: 1 << 20}, data); err == nil {
				checkDocument(t, doc)
			}
		}
	})
}

// FuzzReaders fuzzes files that are not archives.
func FuzzReaders(f *testing.F) {
	f.Add([]byte(`{\rtf1\ansicpg932 a\'90\'a2{\stylesheet{\s1 heading 1;}}\pard\s1 b\par\trowd\u-1?\uc9\bin5 }`))
	f.Add([]byte(`{"nbformat":4,"cells":[{"cell_type":"markdown","source":["# a\n","b"]}]}`))
	f.Fuzz(func(t *testing.T, data []byte) {
		for _, typ := range []string{TypeRTF, TypeNotebook} {
			if doc, err := read(order{Type: typ, MaxText: 1 << 20}, data); err == nil {
				checkDocument(t, doc)
			}
		}
	})
}
