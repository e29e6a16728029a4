package extract

import (
	"bytes"
	"encoding/xml"
	"fmt"
	"path"
	"strings"

	"github.com/mcp-sse/mcp-sse/docsearch/extract/internal/plain"
)

// readWord reads the body of a Word document, then its footnotes and endnotes.
func readWord(o order, data []byte, text *plain.Builder) (title string, err error) {
	a, err := openArchive(o, data)
	if err != nil {
		return "", err
	}
	main, err := a.related("", "officeDocument")
	if err != nil {
		return "", err
	}
	if main == "" {
		main = "word/document.xml"
	}
	m := &markup{text: text, maxText: o.MaxText, paragraph: -1}
	if m.styles, err = a.styles(path.Join(path.Dir(main), "styles.xml")); err != nil {
		return "", err
	}
	if err := a.tokens(main, m.take); err != nil {
		return "", err
	}
	for _, name := range []string{"footnotes.xml", "endnotes.xml"} {
		text.BlankLine()
		if err := optional(a.tokens(path.Join(path.Dir(main), name), m.take)); err != nil {
			return "", err
		}
	}
	title, err = a.title("docProps/core.xml")
	if title == "" {
		title = m.title
	}
	return title, err
}

// readPresentation reads the slides, each a page, with their notes. The title that
// PowerPoint gives a presentation is seldom one.
func readPresentation(o order, data []byte, text *plain.Builder) (title string, err error) {
	a, err := openArchive(o, data)
	if err != nil {
		return "", err
	}
	for n := 1; ; n++ {
		slide := fmt.Sprintf("ppt/slides/slide%d.xml", n)
		if a.parts[slide] == nil && n == 1 {
			return "", damaged("it has no slides")
		}
		if a.parts[slide] == nil {
			return "", nil
		}
		text.Page()
		m := &markup{text: text, maxText: o.MaxText, paragraph: -1}
		if err := a.tokens(slide, m.take); err != nil {
			return "", err
		}
		notes, err := a.related(slide, "notesSlide")
		if err == nil && notes != "" {
			text.BlankLine()
			err = optional(a.tokens(notes, m.take))
		}
		if err != nil {
			return "", err
		}
	}
}

// readOpenDocument reads the texts, presentations and spreadsheets of LibreOffice.
func readOpenDocument(o order, data []byte, text *plain.Builder) (title string, err error) {
	a, err := openArchive(o, data)
	if err != nil {
		return "", err
	}
	if manifest, err := a.read("META-INF/manifest.xml"); err == nil && bytes.Contains(manifest, []byte("encryption-data")) {
		return "", skip(ReasonEncrypted, nil)
	}
	m := &markup{text: text, maxText: o.MaxText, paragraph: -1, open: true}
	if err := a.tokens("content.xml", m.take); err != nil {
		return "", err
	}
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

func (a *archive) styles(part string) (styles, error) {
	all, id := make(styles), ""
	return all, a.elements(part, func(e xml.StartElement) {
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
