package index

import (
	"regexp"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/mcp-sse/mcp-sse/docsearch/api"
	"github.com/mcp-sse/mcp-sse/docsearch/extract"
)

const (
	passageBytes = 1400 // a passage is no longer
	// A passage has no more words either; with those that it repeats about 250, which fit the window of any embedding
	// model.
	passageWords   = 220
	passageOverlap = 160  // bytes that a passage repeats of the one before in its section, about
	leastShare     = 0.65 // of the longest passage that fits, unless a section or the text ends
	maxHeading     = 200
)

// passage is a part of a document: what a search finds, and what gets a vector. It ends
// where the next section begins, so that it has one heading. A long section has several,
// which end after paragraphs or sentences.
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
		if !c.seek(at, end) {
			from = c.overlap(at)
		}
		all = append(all, passage{at, d.Text[from:end], api.Location{
			Line:    c.line - strings.Count(d.Text[from:at], "\n"),
			EndLine: c.line + strings.Count(strings.TrimRight(d.Text[at:end], "\n"), "\n"),
			Page:    c.page, Heading: c.heading,
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

// seek advances the line to offset at, and the heading and the page to those of the first
// section with words that begins there or in the passage. It reports whether one begins at
// the offset.
func (c *cutter) seek(at, end int) (begins bool) {
	c.line += strings.Count(c.doc.Text[c.counted:at], "\n")
	c.counted = at
	for ; c.section < len(c.doc.Sections) && c.doc.Sections[c.section].Offset < end; c.section++ {
		s := c.doc.Sections[c.section]
		if s.Heading != "" {
			c.heading = strings.ToValidUTF8(s.Heading[:cutBefore(s.Heading, maxHeading)], "")
		}
		if s.Page > 0 {
			c.page = s.Page
		}
		begins = begins || s.Offset == at
	}
	return begins
}

// end returns where the passage at offset at ends: where a section begins, unless nothing
// stands before it but headings; else after the last paragraph, sentence, line or word that
// fits.
func (c *cutter) end(at int) int {
	text := c.doc.Text
	most := c.most(at)
	from, heading := at, ""
	for i := c.section; i < len(c.doc.Sections) && c.doc.Sections[i].Offset < most; i++ {
		s := c.doc.Sections[i]
		inside := s.Offset > from && s.Offset < len(text) && utf8.RuneStart(text[s.Offset])
		if inside && hasWords(text[from:s.Offset], heading) {
			return s.Offset
		}
		from, heading = max(from, min(s.Offset, len(text))), s.Heading
	}
	if most == len(text) {
		return most
	}
	least := at + int(leastShare*float64(most-at))
	for least > at && !utf8.RuneStart(text[least]) {
		least--
	}
	window := text[least:most]
	for _, border := range borders[c.doc.Type == extract.TypeCode] {
		if all := border.FindAllStringIndex(window, -1); len(all) > 0 {
			return least + all[len(all)-1][1]
		}
	}
	return most
}

// most returns the end of the longest passage that may begin at offset at.
func (c *cutter) most(at int) int {
	text := c.doc.Text
	end := max(cutBefore(text, at+passageBytes), min(at+1, len(text)))
	words, inside := 0, false
	for i, r := range text[at:end] {
		space := unicode.IsSpace(r)
		if !space && !inside {
			words++
			if words > passageWords {
				return at + i
			}
		}
		inside = !space
	}
	return end
}

// borders are where a passage may end, best first, in code and in all else.
var borders = map[bool][]*regexp.Regexp{
	false: {paragraphEnd, sentenceEnd, lineEnd, wordEnd},
	true:  {paragraphEnd, lineEnd, wordEnd},
}

var (
	paragraphEnd = regexp.MustCompile(`\n\s*\n`)
	sentenceEnd  = regexp.MustCompile(`[.!?…]["'”’»)\]]*\s+|[。！？]`)
	lineEnd      = regexp.MustCompile(`\n`)
	wordEnd      = regexp.MustCompile(`\s+`)
)

// hasWords reports whether a part of a text has words beside its heading.
func hasWords(part, heading string) bool { return countWords(part) > countWords(heading) }

func countWords(text string) (n int) {
	for word := range strings.FieldsSeq(text) {
		if strings.ContainsFunc(word, func(r rune) bool { return unicode.IsLetter(r) || unicode.IsNumber(r) }) {
			n++
		}
	}
	return n
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
