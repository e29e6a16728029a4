package extract

import (
	"archive/zip"
	"bytes"
	"context"
	"encoding/xml"
	"errors"
	"io"
	"path"
	"strings"

	"github.com/mcp-sse/mcp-sse/docsearch/extract/internal/plain"
)

// Limits of DOCX. Word itself makes some dozens of parts.
const (
	maxParts    = 20_000
	maxXML      = 64 << 20 // bytes of all parts that are read, and at most
	maxMarkup   = 8        // times as many as of text
	maxXMLToken = 1 << 20  // bytes of one tag or one text
	maxStyles   = 10_000   // Word itself allows some thousands
	maxStyleID  = 255      // bytes, also of a name
)

// docx reads the text of a Word document: its body, then its footnotes and endnotes.
func docx(ctx context.Context, data []byte, maxText int) (*Document, error) {
	if bytes.HasPrefix(data, []byte("\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1")) {
		return nil, skip(ReasonEncrypted, errors.New("an OLE file, in which Word keeps documents with a password"))
	}
	archive, err := openPackage(ctx, data, maxText)
	if err != nil {
		return nil, err
	}
	main, err := archive.mainPart()
	if err != nil {
		return nil, err
	}
	styles := make(docxStyles)
	if err := archive.read(sibling(main, "styles.xml"), styles.reader()); err != nil && !errors.Is(err, errNoPart) {
		return nil, err
	}
	body := &docxReader{styles: styles, maxText: maxText}
	if err := archive.read(main, body); err != nil {
		return nil, docxError(main, err)
	}
	for _, name := range []string{"footnotes.xml", "endnotes.xml"} {
		body.text.BlankLine()
		if err := archive.read(sibling(main, name), body); err != nil && !errors.Is(err, errNoPart) {
			return nil, err
		}
	}
	properties := &docxProperties{}
	if err := archive.read("docProps/core.xml", properties); err != nil && !errors.Is(err, errNoPart) {
		return nil, err
	}
	return body.document(plain.OneLine(plain.Clean(properties.title.String()))), nil
}

func docxError(part string, err error) error {
	if errors.Is(err, errNoPart) {
		return damaged("it has no part %s", part)
	}
	return err
}

func sibling(part, name string) string { return path.Join(path.Dir(part), name) }

// docxPackage is the archive that a document is.
type docxPackage struct {
	ctx   context.Context // of the one call that reads it
	parts map[string]*zip.File
	left  int64 // bytes that may still be unpacked
}

var errNoPart = errors.New("no such part")

func openPackage(ctx context.Context, data []byte, maxText int) (*docxPackage, error) {
	if n := bytes.Count(data, []byte("PK\x01\x02")); n > maxParts {
		return nil, damaged("%d parts, at most %d are read", n, maxParts)
	}
	r, err := zip.NewReader(bytes.NewReader(data), int64(len(data)))
	if err != nil {
		return nil, skip(ReasonDamaged, err)
	}
	p := &docxPackage{ctx: ctx, parts: make(map[string]*zip.File), left: min(maxXML, maxMarkup*int64(maxText))}
	for _, f := range r.File {
		if _, double := p.parts[f.Name]; !double {
			p.parts[f.Name] = f
		}
	}
	return p, nil
}

// mainPart returns the name of the part with the body.
func (p *docxPackage) mainPart() (string, error) {
	relations := &docxRelations{}
	if err := p.read("_rels/.rels", relations); err != nil && !errors.Is(err, errNoPart) {
		return "", err
	}
	if relations.main == "" {
		return "word/document.xml", nil
	}
	return relations.main, nil
}

// xmlReader takes the tokens of a part.
type xmlReader interface {
	start(xml.StartElement)
	end(xml.EndElement)
	chars([]byte) error
}

// read passes the tokens of a part to to.
func (p *docxPackage) read(name string, to xmlReader) error {
	f := p.parts[name]
	if f == nil {
		return errNoPart
	}
	r, err := f.Open()
	if err != nil {
		return skip(ReasonDamaged, err)
	}
	defer r.Close()
	in := &partReader{r: r, left: &p.left, token: maxXMLToken}
	d := xml.NewDecoder(in)
	for n := 0; ; n++ {
		if n%4096 == 0 && p.ctx.Err() != nil {
			return p.ctx.Err()
		}
		token, err := d.RawToken() // it keeps no stack of what is open
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return xmlError(name, err)
		}
		in.token = maxXMLToken
		switch t := token.(type) {
		case xml.StartElement:
			to.start(t)
		case xml.EndElement:
			to.end(t)
		case xml.CharData:
			if err := to.chars(t); err != nil {
				return err
			}
		}
	}
}

func xmlError(name string, err error) error {
	if skipped := (*SkipError)(nil); errors.As(err, &skipped) {
		return err
	}
	return damaged("part %s: %w", name, err)
}

// partReader bounds what the XML decoder reads: of all parts together, and for one
// token, because the decoder keeps a token with all of its attributes in memory.
type partReader struct {
	r     io.Reader
	left  *int64
	token int64
}

func (p *partReader) Read(b []byte) (int, error) {
	if p.token <= 0 {
		return 0, damaged("a tag or text longer than %d bytes", maxXMLToken)
	}
	if *p.left <= 0 {
		return 0, skip(ReasonTooLarge, errors.New("it unpacks to more than is read"))
	}
	n, err := p.r.Read(b)
	p.token -= int64(n)
	*p.left -= int64(n)
	return n, err
}

// docxReader takes the tokens of the body and of the notes.
type docxReader struct {
	styles  docxStyles
	maxText int

	text      plain.Builder
	title     string // of the first paragraph with the style Title
	sections  plain.Sections
	paragraph docxParagraph
	inText    int // depth of elements with text
	skipped   int // depth of elements whose content comes a second time
	cells     int // depth of table cells
}

// docxParagraph is the open paragraph.
type docxParagraph struct {
	offset     int
	style      string
	outline    bool // has a level of its own
	properties bool // in its properties, where a tab is a tab stop
}

func (d *docxReader) start(e xml.StartElement) {
	if d.skipped > 0 || e.Name.Local == "Fallback" {
		d.skipped++
		return
	}
	switch e.Name.Local {
	case "p":
		d.paragraph = docxParagraph{offset: -1}
		if d.cells == 0 {
			d.paragraph.offset = d.text.Len()
		}
	case "pPr":
		d.paragraph.properties = true
	case "pStyle":
		d.paragraph.style = attribute(e, "val")
	case "outlineLvl":
		d.paragraph.outline = isHeadingLevel(attribute(e, "val"))
	case "t":
		d.inText++
	case "tab", "ptab":
		if !d.paragraph.properties {
			d.text.Tab()
		}
	case "br", "cr":
		d.text.NewLine()
	case "noBreakHyphen":
		d.text.Raw("-")
	case "tc":
		d.cells++
		d.text.Tab()
	}
}

func (d *docxReader) end(e xml.EndElement) {
	if d.skipped > 0 {
		d.skipped--
		return
	}
	switch e.Name.Local {
	case "p":
		d.endParagraph()
	case "pPr":
		d.paragraph.properties = false
	case "t":
		d.inText = max(0, d.inText-1)
	case "tc":
		d.cells = max(0, d.cells-1)
	case "tr":
		d.text.NewLine()
	case "tbl":
		d.text.BlankLine()
	}
}

func (d *docxReader) chars(text []byte) error {
	if d.inText == 0 || d.skipped > 0 {
		return nil
	}
	d.text.Words(string(text))
	if d.text.Size() > d.maxText {
		return tooMuchText(d.maxText)
	}
	return nil
}

// endParagraph ends the line and records a heading. The paragraphs of a table cell share
// one line.
func (d *docxReader) endParagraph() {
	p := d.paragraph
	d.paragraph = docxParagraph{offset: -1}
	if d.cells > 0 {
		d.text.Words(" ")
		return
	}
	isTitle := d.styles.is(p.style, "title")
	if p.offset >= 0 && (p.outline || isTitle || d.styles.isHeading(p.style)) {
		if heading := plain.OneLine(d.text.From(p.offset)); heading != "" {
			d.sections.Add(Section{Offset: p.offset, Heading: heading})
			if isTitle && d.title == "" {
				d.title = heading
			}
		}
	}
	d.text.NewLine()
}

func (d *docxReader) document(title string) *Document {
	switch {
	case title != "":
	case d.title != "":
		title = d.title
	default:
		title = d.sections.Title()
	}
	return &Document{Type: TypeDOCX, Title: title, Text: d.text.String(), Sections: d.sections.List}
}

func attribute(e xml.StartElement, name string) string {
	for _, a := range e.Attr {
		if a.Name.Local == name {
			return a.Value
		}
	}
	return ""
}

// isHeadingLevel reports whether a w:outlineLvl is one of a heading: 9 is body text.
func isHeadingLevel(level string) bool { return len(level) == 1 && level >= "0" && level <= "8" }

// docxStyles has the styles of paragraphs by their ids.
type docxStyles map[string]docxStyle

type docxStyle struct {
	name    string // lower case; English in every language of Word
	basedOn string
	heading bool
}

func (s docxStyles) isHeading(id string) bool {
	for range 10 { // bases of bases, which may be a circle
		style, ok := s[id]
		if !ok {
			return strings.HasPrefix(strings.ToLower(id), "heading")
		}
		if style.heading || strings.HasPrefix(style.name, "heading ") {
			return true
		}
		if style.basedOn == "" {
			return false
		}
		id = style.basedOn
	}
	return false
}

func (s docxStyles) is(id, name string) bool { return s[id].name == name }

func (s docxStyles) reader() xmlReader { return &docxStylesReader{styles: s} }

type docxStylesReader struct {
	noChars
	styles docxStyles
	id     string
	style  docxStyle
}

func (r *docxStylesReader) start(e xml.StartElement) {
	switch e.Name.Local {
	case "style":
		r.id, r.style = attribute(e, "styleId"), docxStyle{}
	case "name":
		r.style.name = strings.ToLower(attribute(e, "val"))
	case "basedOn":
		r.style.basedOn = attribute(e, "val")
	case "outlineLvl":
		r.style.heading = isHeadingLevel(attribute(e, "val"))
	}
}

func (r *docxStylesReader) end(e xml.EndElement) {
	if e.Name.Local == "style" && len(r.styles) < maxStyles && max(len(r.id), len(r.style.name), len(r.style.basedOn)) <= maxStyleID {
		r.styles[r.id] = r.style
	}
}

// docxRelations finds the main part.
type docxRelations struct {
	noChars
	main string
}

func (r *docxRelations) start(e xml.StartElement) {
	if e.Name.Local == "Relationship" && strings.HasSuffix(attribute(e, "Type"), "/officeDocument") {
		r.main = strings.TrimPrefix(path.Clean("/"+attribute(e, "Target")), "/")
	}
}

func (*docxRelations) end(xml.EndElement) {}

// docxProperties finds the title.
type docxProperties struct {
	title   strings.Builder
	inTitle bool
}

func (r *docxProperties) start(e xml.StartElement) { r.inTitle = e.Name.Local == "title" }
func (r *docxProperties) end(xml.EndElement)       { r.inTitle = false }

func (r *docxProperties) chars(text []byte) error {
	if r.inTitle && r.title.Len() < 4096 {
		r.title.Write(text)
	}
	return nil
}

// noChars ignores text.
type noChars struct{}

func (noChars) chars([]byte) error { return nil }
