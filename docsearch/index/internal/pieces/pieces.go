// Package pieces cuts documents into the pieces that are stored and the chunks that a
// search finds.
package pieces

import (
	"encoding/binary"
	"errors"
	"strings"
	"unicode/utf8"

	"github.com/mcp-sse/mcp-sse/docsearch/extract"
	"github.com/mcp-sse/mcp-sse/docsearch/index/internal/words"
)

const (
	chunkBytes   = 1400  // a chunk is no longer
	chunkLeast   = 900   // and no shorter, unless a section or the text ends
	chunkOverlap = 160   // bytes that a chunk repeats of the one before, about
	pieceBytes   = 12000 // of a piece's own text, about
	maxHeading   = 200
)

// Chunk is a passage of a document: what a search finds, and what gets a vector.
type Chunk struct {
	Start, End    int // in bytes, into the text of its piece
	Line, EndLine int // from 1
	Page          int
	Heading       string
}

// Piece is a run of chunks that is stored and indexed as one. Its text goes on for up
// to chunkOverlap bytes after its own part, so that no phrase is cut in two.
type Piece struct {
	Start  int // in the document's text
	Own    int // bytes up to the next piece
	Text   string
	Chunks []Chunk
}

// Cut cuts a document. It takes time linear in its text.
func Cut(d *extract.Document) []Piece {
	c := cutter{doc: d, line: 1}
	var all []Piece
	for at := 0; at < len(d.Text); {
		p := c.piece(at)
		all = append(all, p)
		at += p.Own
	}
	return all
}

// cutter cuts one document, front to back.
type cutter struct {
	doc     *extract.Document
	section int // the number of sections that begin at or before counted
	counted int // lines are counted up to here
	line    int // of counted
	heading string
	page    int
}

// piece cuts the piece at start.
func (c *cutter) piece(start int) Piece {
	text := c.doc.Text
	p := Piece{Start: start}
	at := start
	for at < len(text) && at-start < pieceBytes {
		from := at
		if at > start {
			from = overlapStart(text, start, at)
		}
		end := c.chunkEnd(at)
		c.seek(from)
		k := Chunk{Start: from - start, End: end - start, Line: c.line, Page: c.page, Heading: c.heading}
		if from < at {
			c.seek(at)
			k.Heading, k.Page = c.heading, c.page
		}
		c.seek(at)
		k.EndLine = c.line + strings.Count(strings.TrimRight(text[at:end], "\n"), "\n")
		p.Chunks = append(p.Chunks, k)
		at = end
	}
	p.Own = at - start
	tail := min(len(text), at+chunkOverlap)
	for tail < len(text) && !utf8.RuneStart(text[tail]) {
		tail++
	}
	p.Text = text[start:tail]
	return p
}

// seek advances the line, the heading and the page to offset at. Steps back, which
// are shorter than an overlap, only correct the line.
func (c *cutter) seek(at int) {
	if at < c.counted {
		c.line -= strings.Count(c.doc.Text[at:c.counted], "\n")
		c.counted = at
		return
	}
	c.line += strings.Count(c.doc.Text[c.counted:at], "\n")
	c.counted = at
	for c.section < len(c.doc.Sections) && c.doc.Sections[c.section].Offset <= at {
		s := c.doc.Sections[c.section]
		if s.Heading != "" {
			c.heading = strings.ToValidUTF8(s.Heading[:words.CutBefore(s.Heading, maxHeading)], "")
		}
		if s.Page > 0 {
			c.page = s.Page
		}
		c.section++
	}
}

// chunkEnd returns where the chunk at offset at ends: where a section begins, else
// after the last paragraph, line, sentence or word that fits.
func (c *cutter) chunkEnd(at int) int {
	text := c.doc.Text
	least, most := at+chunkLeast, at+chunkBytes
	for i := c.section; i < len(c.doc.Sections) && c.doc.Sections[i].Offset < most; i++ {
		if o := c.doc.Sections[i].Offset; o >= at+chunkOverlap && o < len(text) && utf8.RuneStart(text[o]) {
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
	return max(at+1, words.CutBefore(text, most))
}

// overlapStart returns where a chunk begins whose own text begins at offset at: a line
// or a word some bytes before, not before low.
func overlapStart(text string, low, at int) int {
	from := max(low, at-chunkOverlap)
	window := text[from:at]
	for _, border := range []string{"\n", " "} {
		if i := strings.Index(window, border); i >= 0 && i < len(window)-1 {
			return from + i + 1
		}
	}
	return at
}

// ErrChunks means that a list of chunks is damaged.
var ErrChunks = errors.New("the list of chunks is damaged")

// AppendChunks encodes chunks.
func AppendChunks(b []byte, chunks []Chunk) []byte {
	b = binary.AppendUvarint(b, uint64(len(chunks)))
	heading := ""
	for _, c := range chunks {
		for _, n := range [...]int{c.Start, c.End, c.Line, c.EndLine, c.Page} {
			b = binary.AppendUvarint(b, uint64(n))
		}
		if c.Heading == heading {
			b = append(b, 0)
			continue
		}
		heading = c.Heading
		b = binary.AppendUvarint(b, uint64(len(heading))+1)
		b = append(b, heading...)
	}
	return b
}

// ParseChunks decodes what AppendChunks made, of a piece whose text has size bytes.
func ParseChunks(b []byte, size int) ([]Chunk, error) {
	number := func() int {
		n, k := binary.Uvarint(b)
		if k <= 0 || n > 1<<40 {
			b = nil
			return -1
		}
		b = b[k:]
		return int(n)
	}
	count := number()
	if count < 0 || count > size+1 {
		return nil, ErrChunks
	}
	chunks := make([]Chunk, 0, count)
	heading := ""
	for range count {
		c := Chunk{Start: number(), End: number(), Line: number(), EndLine: number(), Page: number()}
		h := number()
		if h < 0 || h > len(b)+1 || c.Start < 0 || c.End < c.Start || c.End > size {
			return nil, ErrChunks
		}
		if h > 0 {
			heading = string(b[:h-1])
			b = b[h-1:]
		}
		c.Heading = heading
		chunks = append(chunks, c)
	}
	return chunks, nil
}
