package index

import (
	"strings"
	"unicode/utf8"

	"github.com/mcp-sse/mcp-sse/docsearch/api"
	"github.com/mcp-sse/mcp-sse/docsearch/extract"
)

const (
	passageBytes   = 1400 // a passage is no longer
	passageLeast   = 900  // and no shorter, unless a section or the text ends
	passageOverlap = 160  // bytes that a passage repeats of the one before, about
	maxHeading     = 200
)

// passage is a part of a document: what a search finds, and what gets a vector.
type passage struct {
	start    int // of its own text in that of the document, which follows what it repeats
	text     string
	location api.Location
}

// cut cuts a document into passages, in time linear in its text.
func cut(d *extract.Document) (all []passage) {
	c := cutter{doc: d, line: 1}
	for at := 0; at < len(d.Text); {
		end := c.end(at)
		from := at
		if !c.seek(at) {
			from = c.overlap(at)
		}
		all = append(all, passage{at, d.Text[from:end], api.Location{
			Line: c.line - strings.Count(d.Text[from:at], "\n"), EndLine: c.line + strings.Count(strings.TrimRight(d.Text[at:end], "\n"), "\n"),
			Page: c.page, Heading: c.heading,
		}})
		at = end
	}
	return all
}

// cutter cuts one document, front to back.
type cutter struct {
	doc     *extract.Document
	counted int // lines are counted up to here
	section int // the number of sections that begin at or before counted
	line    int // of counted
	heading string
	page    int
}

// seek advances the line, the heading and the page to offset at. It reports whether a
// section begins there.
func (c *cutter) seek(at int) (begins bool) {
	c.line += strings.Count(c.doc.Text[c.counted:at], "\n")
	c.counted = at
	for ; c.section < len(c.doc.Sections) && c.doc.Sections[c.section].Offset <= at; c.section++ {
		s := c.doc.Sections[c.section]
		if s.Heading != "" {
			c.heading = strings.ToValidUTF8(s.Heading[:cutBefore(s.Heading, maxHeading)], "")
		}
		if s.Page > 0 {
			c.page = s.Page
		}
		begins = s.Offset == at
	}
	return begins
}

// end returns where the passage at offset at ends: where a section begins, else after the
// last paragraph, line, sentence or word that fits.
func (c *cutter) end(at int) int {
	text := c.doc.Text
	least, most := at+passageLeast, at+passageBytes
	for i := c.section; i < len(c.doc.Sections) && c.doc.Sections[i].Offset < most; i++ {
		if o := c.doc.Sections[i].Offset; o >= at+passageOverlap && o < len(text) && utf8.RuneStart(text[o]) {
			return o
		}
	}
	if most >= len(text) {
		return len(text)
	}
	window := text[least:most]
	for _, border := range []string{"\n\n", "\n", ". ", " "} {
		if i := strings.LastIndex(window, border); i >= 0 {
			return least + i + len(border)
		}
	}
	return max(at+1, cutBefore(text, most))
}

// overlap returns where a passage begins whose own text begins at offset at: a line or a
// word some bytes before, so that no phrase is cut in two.
func (c *cutter) overlap(at int) int {
	from := max(0, at-passageOverlap)
	window := c.doc.Text[from:at]
	for _, border := range []string{"\n", " "} {
		if i := strings.Index(window, border); i >= 0 && i < len(window)-1 {
			return from + i + 1
		}
	}
	return at
}

// cutBefore returns the largest n' ≤ n at which s can be cut between characters.
func cutBefore(s string, n int) int {
	if n >= len(s) {
		return len(s)
	}
	for n > 0 && !utf8.RuneStart(s[n]) {
		n--
	}
	return n
}
