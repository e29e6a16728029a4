package extract

import (
	"bytes"
	"errors"
	"fmt"
	"strings"

	"github.com/ledongthuc/pdf"
)

// Limits of PDF, on top of those of the worker's process.
const (
	maxPages     = 50_000
	maxPageNodes = 200_000 // of the tree of pages
	maxPageDepth = 64
	maxOutline   = 10_000
)

// pdfDocument reads a PDF. It may panic in a goroutine of its own, run without end or
// take all memory: only a worker calls it.
func pdfDocument(data []byte, maxText int) (doc *Document, err error) {
	defer func() {
		if r := recover(); r != nil {
			doc, err = nil, damaged("%v", r)
		}
	}()
	data, err = trimPDF(data)
	if err != nil {
		return nil, err
	}
	file, err := pdf.NewReader(bytes.NewReader(data), int64(len(data)))
	if err != nil {
		if errors.Is(err, pdf.ErrInvalidPassword) || strings.Contains(err.Error(), "encryption") {
			return nil, skip(ReasonEncrypted, err)
		}
		return nil, skip(ReasonDamaged, err)
	}
	root := file.Trailer().Key("Root")
	r := &pdfReader{maxText: maxText, fonts: make(map[string]*pdfFont), headings: make(map[string]bool)}
	outline := root.Key("Outlines")
	r.readOutline(outline, 0)
	if err := r.walkPages(root.Key("Pages"), 0); err != nil {
		return nil, err
	}
	if r.pages == 0 {
		return nil, damaged("it has no pages")
	}
	return &Document{
		Type:     TypePDF,
		Title:    oneLine(clean(file.Trailer().Key("Info").Key("Title").Text())),
		Text:     r.text.String(),
		Sections: r.sections.list,
	}, nil
}

// trimPDF removes what stands before the header and after the end, which viewers accept
// and the library does not, and writes a version that the library knows.
func trimPDF(data []byte) ([]byte, error) {
	const (
		within = 1024
		header = "%PDF-1.7\n"
		end    = "%%EOF"
	)
	start := bytes.Index(data[:min(len(data), within)], []byte("%PDF-"))
	stop := bytes.LastIndex(data, []byte(end))
	if start < 0 || stop < start+len(header) {
		return nil, damaged("it lacks the header or the end of a PDF")
	}
	return append([]byte(header), data[start+len(header):stop+len(end)]...), nil
}

// pdfReader collects the text of the pages.
type pdfReader struct {
	maxText  int
	nodes    int // of the tree of pages, so far
	pages    int // so far
	outlines int // entries so far
	headings map[string]bool
	fonts    map[string]*pdfFont // by what their dictionary says

	text     lineBuilder
	sections sectionList
}

// readOutline collects the headings: a line of a page that is also an entry of the
// outline is taken as one.
func (r *pdfReader) readOutline(entry pdf.Value, depth int) {
	for child := entry.Key("First"); child.Kind() == pdf.Dict; child = child.Key("Next") {
		if r.outlines++; r.outlines > maxOutline || depth > maxPageDepth {
			return
		}
		if title := oneLine(pdfText(child.Key("Title").Text())); title != "" {
			r.headings[title] = true
		}
		r.readOutline(child, depth+1)
	}
}

// walkPages reads the pages below a node. Nodes that contain themselves end at the
// depth.
func (r *pdfReader) walkPages(node pdf.Value, depth int) error {
	if r.nodes++; r.nodes > maxPageNodes || depth > maxPageDepth {
		return damaged("its tree of pages has more than %d nodes or %d levels", maxPageNodes, maxPageDepth)
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

func (r *pdfReader) readPage(page pdf.Value) error {
	if r.pages++; r.pages > maxPages {
		return skip(ReasonTooLarge, fmt.Errorf("more than %d pages", maxPages))
	}
	r.text.blankLine()
	r.sections.add(Section{Offset: r.text.Len(), Page: r.pages})
	p := &pdfPage{reader: r, line: -1}
	p.interpret(page.Key("Contents"), pdf.Page{V: page}.Resources(), 0)
	p.endLine()
	if r.text.b.Len() > r.maxText {
		return tooMuchText(r.maxText)
	}
	return nil
}

// heading notes that the line from offset is a heading.
func (r *pdfReader) heading(offset int, heading string) {
	last := &r.sections.list[len(r.sections.list)-1]
	if last.Offset == offset && !r.sections.full() {
		last.Heading = strings.Clone(heading)
		return
	}
	r.sections.add(Section{Offset: offset, Heading: heading, Page: r.pages})
}

// pdfText returns text with ligatures as letters and without soft hyphens.
func pdfText(s string) string { return ligatures.Replace(clean(s)) }

var ligatures = strings.NewReplacer("ﬀ", "ff", "ﬁ", "fi", "ﬂ", "fl", "ﬃ", "ffi", "ﬄ", "ffl", "ﬅ", "st", "ﬆ", "st",
	"\u00ad", "")
