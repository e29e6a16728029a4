// Package pdf reads the text of PDFs.
//
// A file may make it panic in a goroutine of its own, run without end or take all
// memory: only a process that is limited, and has nothing else to do, may use it.
package pdf

import (
	"bytes"
	"errors"
	"fmt"
	"strings"

	"github.com/ledongthuc/pdf"

	"github.com/mcp-sse/mcp-sse/docsearch/extract/internal/plain"
)

// Limits of PDF, on top of those of the worker's process.
const (
	maxPages     = 50_000
	maxPageNodes = 200_000 // of the tree of pages
	maxPageDepth = 64
	maxOutline   = 10_000
)

// Document is what a PDF says.
type Document struct {
	Title    string
	Text     string // clean as plain.Clean makes it
	Sections []plain.Section
}

var (
	// ErrEncrypted means that a PDF is readable with a password only.
	ErrEncrypted = errors.New("it is encrypted")
	// ErrTooLarge means that a PDF has more text or pages than are read.
	ErrTooLarge = errors.New("it is too large")
)

// Read reads a PDF with up to maxText bytes of text. It fails with ErrEncrypted or
// ErrTooLarge; with any other error, the PDF is damaged.
func Read(data []byte, maxText int) (doc *Document, err error) {
	defer func() {
		if r := recover(); r != nil {
			doc, err = nil, fmt.Errorf("%v", r)
		}
	}()
	data, err = trim(data)
	if err != nil {
		return nil, err
	}
	file, err := pdf.NewReader(bytes.NewReader(data), int64(len(data)))
	if err != nil {
		if errors.Is(err, pdf.ErrInvalidPassword) || strings.Contains(err.Error(), "encryption") {
			return nil, fmt.Errorf("%w: %w", ErrEncrypted, err)
		}
		return nil, err
	}
	root := file.Trailer().Key("Root")
	r := &reader{maxText: maxText, fonts: make(map[string]*font), headings: make(map[string]bool)}
	r.readOutline(root.Key("Outlines"), 0)
	if err := r.walkPages(root.Key("Pages"), 0); err != nil {
		return nil, err
	}
	if r.pages == 0 {
		return nil, errors.New("it has no pages")
	}
	return &Document{
		Title:    plain.OneLine(plain.Clean(file.Trailer().Key("Info").Key("Title").Text())),
		Text:     r.text.String(),
		Sections: r.sections.List,
	}, nil
}

// trim removes what stands before the header and after the end, which viewers accept
// and the library does not, and writes a version that the library knows.
func trim(data []byte) ([]byte, error) {
	const (
		within = 1024
		header = "%PDF-1.7\n"
		end    = "%%EOF"
	)
	start := bytes.Index(data[:min(len(data), within)], []byte("%PDF-"))
	stop := bytes.LastIndex(data, []byte(end))
	if start < 0 || stop < start+len(header) {
		return nil, errors.New("it lacks the header or the end of a PDF")
	}
	return append([]byte(header), data[start+len(header):stop+len(end)]...), nil
}

// reader collects the text of the pages.
type reader struct {
	maxText  int
	nodes    int // of the tree of pages, so far
	pages    int // so far
	outlines int // entries so far
	headings map[string]bool
	fonts    map[string]*font // by what their dictionary says

	text     plain.Builder
	sections plain.Sections
}

// readOutline collects the headings: a line of a page that is also an entry of the
// outline is taken as one.
func (r *reader) readOutline(entry pdf.Value, depth int) {
	for child := entry.Key("First"); child.Kind() == pdf.Dict; child = child.Key("Next") {
		if r.outlines++; r.outlines > maxOutline || depth > maxPageDepth {
			return
		}
		if title := plain.OneLine(textOf(child.Key("Title").Text())); title != "" {
			r.headings[title] = true
		}
		r.readOutline(child, depth+1)
	}
}

// walkPages reads the pages below a node. Nodes that contain themselves end at the
// depth.
func (r *reader) walkPages(node pdf.Value, depth int) error {
	if r.nodes++; r.nodes > maxPageNodes || depth > maxPageDepth {
		return fmt.Errorf("its tree of pages has more than %d nodes or %d levels", maxPageNodes, maxPageDepth)
	}
	kids := node.Key("Kids")
	if kids.Kind() != pdf.Array {
		if node.Kind() == pdf.Dict {
			return r.readPage(node)
		}
		return nil
	}
	for i := range kids.Len() {
		if err := r.walkPages(kids.Index(i), depth+1); err != nil {
			return err
		}
	}
	return nil
}

func (r *reader) readPage(v pdf.Value) error {
	if r.pages++; r.pages > maxPages {
		return fmt.Errorf("%w: more than %d pages", ErrTooLarge, maxPages)
	}
	r.text.BlankLine()
	r.sections.Add(plain.Section{Offset: r.text.Len(), Page: r.pages})
	p := &page{reader: r, line: -1}
	p.interpret(v.Key("Contents"), pdf.Page{V: v}.Resources(), 0)
	p.endLine()
	if r.text.Size() > r.maxText {
		return fmt.Errorf("%w: more than %d bytes of text", ErrTooLarge, r.maxText)
	}
	return nil
}

// heading notes that the line from offset is a heading.
func (r *reader) heading(offset int, heading string) {
	last := &r.sections.List[len(r.sections.List)-1]
	if last.Offset == offset && !r.sections.Full() {
		last.Heading = strings.Clone(heading)
		return
	}
	r.sections.Add(plain.Section{Offset: offset, Heading: heading, Page: r.pages})
}

// textOf returns text with ligatures as letters and without soft hyphens.
func textOf(s string) string { return ligatures.Replace(plain.Clean(s)) }

var ligatures = strings.NewReplacer("ﬀ", "ff", "ﬁ", "fi", "ﬂ", "fl", "ﬃ", "ffi", "ﬄ", "ffl", "ﬅ", "st", "ﬆ", "st",
	"\u00ad", "")
