package extract

import (
	"bytes"
	"cmp"
	"encoding/xml"
	"errors"
	"fmt"
	"path"
	"strings"

	"github.com/xuri/excelize/v2"

	"github.com/mcp-sse/mcp-sse/docsearch/extract/internal/plain"
)

// readWord reads the body of a Word document, then its footnotes and endnotes.
func readWord(o order, a *archive, text *plain.Builder) (title string) {
	main := cmp.Or(a.related("", "officeDocument"), "word/document.xml")
	if a.parts[main] == nil {
		a.fail(errors.New("it has no text"))
	}
	dir := path.Dir(main)
	m := &markup{text: text, maxText: o.MaxText, paragraph: -1, styles: a.styles(path.Join(dir, "styles.xml"))}
	a.tokens(main, m.take)
	for _, name := range []string{"footnotes.xml", "endnotes.xml"} {
		text.BlankLine()
		a.tokens(path.Join(dir, name), m.take)
	}
	return cmp.Or(a.title("docProps/core.xml"), m.title)
}

// readPresentation reads the slides, each a page, with their notes. The title that
// PowerPoint gives a presentation is seldom one.
func readPresentation(o order, a *archive, text *plain.Builder) (title string) {
	n := 1
	slide := func() string { return fmt.Sprintf("ppt/slides/slide%d.xml", n) }
	for ; a.parts[slide()] != nil; n++ {
		text.Page()
		m := &markup{text: text, maxText: o.MaxText, paragraph: -1}
		notes := a.related(slide(), "notesSlide")
		a.tokens(slide(), m.take)
		text.BlankLine()
		a.tokens(notes, m.take)
	}
	if n == 1 {
		a.fail(errors.New("it has no slides"))
	}
	return ""
}

// readSpreadsheet reads the cells as Excel shows them, row by row. The name of a sheet is
// a heading.
func readSpreadsheet(o order, a *archive, text *plain.Builder) (title string) {
	f, err := excelize.OpenReader(bytes.NewReader(a.data), excelize.Options{
		UnzipSizeLimit: int64(a.left), UnzipXMLSizeLimit: int64(a.left), // no part goes to a temporary file
	})
	if err != nil {
		a.fail(err)
		return ""
	}
	for _, sheet := range f.GetSheetList() {
		text.Sheet(sheet)
		a.fail(readSheet(f, sheet, text, o.MaxText))
	}
	return a.title("docProps/core.xml")
}

func readSheet(f *excelize.File, sheet string, text *plain.Builder, maxText int) error {
	rows, err := f.Rows(sheet)
	if err != nil {
		return nil // a sheet that is a chart
	}
	for rows.Next() {
		cells, err := rows.Columns()
		if err != nil {
			return err
		}
		for _, cell := range cells {
			text.Tab()
			text.Words(cell)
		}
		text.NewLine()
		if text.Size() > maxText {
			return tooMuchText(maxText)
		}
	}
	return rows.Error()
}

// readOpenDocument reads the texts, presentations and spreadsheets of LibreOffice.
func readOpenDocument(o order, a *archive, text *plain.Builder) (title string) {
	if bytes.Contains(a.read("META-INF/manifest.xml"), []byte("encryption-data")) {
		a.fail(skip(ReasonEncrypted, nil))
	}
	if a.parts["content.xml"] == nil {
		a.fail(errors.New("it has no content"))
	}
	m := &markup{text: text, maxText: o.MaxText, paragraph: -1, open: true}
	a.tokens("content.xml", m.take)
	return a.title("meta.xml")
}

// markup takes the tokens of a document. The names of the elements for the same thing
// differ little in Word, PowerPoint and OpenDocument, and no name has two meanings.
type markup struct {
	text    *plain.Builder
	maxText int
	open    bool   // text is directly in paragraphs, as in OpenDocument, without an element of its own
	styles  styles // of Word
	title   string // of the first paragraph with the style of titles

	paragraph   int // where the open paragraph begins, -1 outside and in a table
	heading     bool
	isTitle     bool
	placeholder bool // of the title of a slide, open
	inText      int  // depth of elements with text
	skipped     int  // depth of elements whose text does not count
	cells       int  // depth of table cells
	sheets      bool // tables are sheets
}

// skippedElements hold what stands elsewhere too, is deleted, or is no text.
var skippedElements = map[string]bool{
	"Fallback": true, "tabs": true, "tabLst": true, "fld": true, "moveFrom": true,
	"tracked-changes": true, "note-citation": true,
}

func (m *markup) take(token xml.Token) error {
	switch t := token.(type) {
	case xml.StartElement:
		if m.skipped > 0 || skippedElements[t.Name.Local] {
			m.skipped++
		} else {
			m.start(t)
		}
	case xml.EndElement:
		if m.skipped > 0 {
			m.skipped--
		} else {
			m.end(t.Name.Local)
		}
	case xml.CharData:
		if m.inText > 0 && m.skipped == 0 {
			m.text.Words(string(t))
		}
		if m.text.Size() > m.maxText {
			return tooMuchText(m.maxText)
		}
	}
	return nil
}

func (m *markup) start(e xml.StartElement) {
	switch e.Name.Local {
	case "p", "h":
		m.startParagraph(e)
	case "pStyle":
		style := attribute(e, "val")
		m.isTitle = m.styles[style].name == "title"
		m.heading = m.isTitle || m.styles.isHeading(style)
	case "outlineLvl":
		m.heading = m.heading || isHeadingLevel(attribute(e, "val"))
	case "ph":
		m.placeholder = attribute(e, "type") == "title" || attribute(e, "type") == "ctrTitle"
	case "frame":
		m.placeholder = attribute(e, "class") == "title"
	case "t":
		m.inText++
	case "tab", "ptab":
		m.text.Tab()
	case "br", "cr", "line-break":
		m.text.NewLine()
	case "s":
		m.text.Words(" ")
	case "noBreakHyphen":
		m.text.Raw("-")
	case "tc", "table-cell":
		m.cells++
		m.text.Tab()
	case "page":
		m.text.Page()
	case "spreadsheet":
		m.sheets = true
	case "table":
		if m.sheets {
			m.text.Sheet(attribute(e, "name"))
		}
	}
}

func (m *markup) startParagraph(e xml.StartElement) {
	m.paragraph, m.isTitle = -1, false
	if m.cells == 0 {
		m.paragraph = m.text.Len()
	}
	m.heading = e.Name.Local == "h" || m.placeholder || attribute(e, "style-name") == "Title"
	if m.open {
		m.inText++
	}
}

func (m *markup) end(name string) {
	switch name {
	case "p", "h":
		m.endParagraph()
	case "t":
		m.inText = max(0, m.inText-1)
	case "sp", "frame":
		m.placeholder = false
	case "tc", "table-cell":
		m.cells = max(0, m.cells-1)
	case "tr", "table-row":
		m.text.NewLine()
	case "tbl", "table":
		m.text.BlankLine()
	}
}

// endParagraph ends the line and records a heading. The paragraphs of a table cell share
// one line.
func (m *markup) endParagraph() {
	if m.open {
		m.inText = max(0, m.inText-1)
	}
	if m.cells > 0 {
		m.text.Words(" ")
		return
	}
	if m.heading && m.paragraph >= 0 {
		heading := m.text.Heading(m.paragraph)
		if m.isTitle && m.title == "" {
			m.title = heading
		}
	}
	m.paragraph, m.heading = -1, false
	m.text.NewLine()
}

// isHeadingLevel reports whether a w:outlineLvl is one of a heading: 9 is body text.
func isHeadingLevel(level string) bool { return len(level) == 1 && level >= "0" && level <= "8" }

// styles has the styles of Word's paragraphs by their ids.
type styles map[string]style

type style struct {
	name    string // lower case; English in every language of Word
	basedOn string
	heading bool
}

func (a *archive) styles(part string) styles {
	all, id := make(styles), ""
	a.elements(part, func(e xml.StartElement) {
		s := all[id]
		switch value := attribute(e, "val"); e.Name.Local {
		case "style":
			id, s = attribute(e, "styleId"), style{}
		case "name":
			s.name = strings.ToLower(value)
		case "basedOn":
			s.basedOn = value
		case "outlineLvl":
			s.heading = isHeadingLevel(value)
		}
		all[id] = s
	})
	return all
}

func (s styles) isHeading(id string) bool {
	for range 10 { // bases of bases, which may be a circle
		style, ok := s[id]
		switch {
		case !ok:
			return strings.HasPrefix(strings.ToLower(id), "heading")
		case style.heading, strings.HasPrefix(style.name, "heading "):
			return true
		}
		id = style.basedOn
	}
	return false
}
