package extract

import (
	"bytes"
	"context"
	"errors"
	"io"
	"strings"
	"unicode/utf8"

	"golang.org/x/net/html"
	"golang.org/x/net/html/atom"
	"golang.org/x/net/html/charset"
)

// htmlDocument reads the tokens of a page, never its tree: the time to build a tree
// from bad nesting grows with its square.
func htmlDocument(ctx context.Context, data []byte) (*Document, error) {
	if isBinary(data) && !hasUTF16BOM(data) {
		return nil, skip(ReasonBinary, nil)
	}
	text, err := decodeHTML(data)
	if err != nil {
		return nil, skip(ReasonDamaged, err)
	}
	h := htmlReader{tokens: html.NewTokenizer(bytes.NewReader(text))}
	for n := 0; h.next(); n++ {
		if n%4096 == 0 && ctx.Err() != nil {
			return nil, ctx.Err()
		}
	}
	if err := h.tokens.Err(); !errors.Is(err, io.EOF) {
		return nil, skip(ReasonDamaged, err)
	}
	return h.document(), nil
}

// decodeHTML returns a page as UTF-8. A page that does not declare its encoding is UTF-8
// if it is valid as such.
func decodeHTML(data []byte) ([]byte, error) {
	const declared = 1024 // bytes in which the encoding stands
	encoding, _, certain := charset.DetermineEncoding(data[:min(len(data), declared)], "")
	if !certain && utf8.Valid(data) {
		return bytes.TrimPrefix(data, []byte("\xef\xbb\xbf")), nil
	}
	text, err := encoding.NewDecoder().Bytes(data)
	return bytes.TrimPrefix(text, []byte("\xef\xbb\xbf")), err
}

func hasUTF16BOM(data []byte) bool {
	return bytes.HasPrefix(data, []byte("\xff\xfe")) || bytes.HasPrefix(data, []byte("\xfe\xff"))
}

// htmlReader turns tokens into text.
type htmlReader struct {
	tokens *html.Tokenizer
	text   lineBuilder

	title    strings.Builder
	inTitle  bool
	pre      int       // depth of elements that keep white space
	dropped  atom.Atom // the element whose content is dropped, 0 outside
	depth    int       // of that element in itself
	sections []Section
	heading  int // number of the open heading in sections from 1, 0 outside
}

// next takes one token. It returns false at the end.
func (h *htmlReader) next() bool {
	switch h.tokens.Next() {
	case html.ErrorToken:
		return false
	case html.TextToken:
		h.takeText()
	case html.StartTagToken:
		name, _ := h.tokens.TagName()
		h.start(atom.Lookup(name))
	case html.SelfClosingTagToken:
		name, _ := h.tokens.TagName()
		if a := atom.Lookup(name); h.dropped == 0 && blockElements[a] {
			h.text.newLine()
		}
	case html.EndTagToken:
		name, _ := h.tokens.TagName()
		h.end(atom.Lookup(name))
	}
	return true
}

func (h *htmlReader) takeText() {
	switch {
	case h.inTitle && h.title.Len() < 4096:
		h.title.Write(h.tokens.Text())
	case h.dropped != 0 || h.inTitle:
	case h.pre > 0:
		h.text.raw(string(h.tokens.Text()))
	default:
		h.text.words(string(h.tokens.Text()))
	}
}

func (h *htmlReader) start(name atom.Atom) {
	switch {
	case h.dropped != 0:
		if name == h.dropped {
			h.depth++
		}
		return
	case droppedElements[name]:
		h.dropped, h.depth = name, 1
		return
	case name == atom.Title:
		h.inTitle = true
	case name == atom.Pre, name == atom.Textarea, name == atom.Listing:
		h.pre++
	case name == atom.Td, name == atom.Th:
		h.text.tab()
	case name == atom.Hr, name == atom.P:
		h.text.blankLine()
	}
	if headingElements[name] {
		h.closeHeading()
		h.text.blankLine()
		h.sections = append(h.sections, Section{Offset: h.text.Len()})
		h.heading = len(h.sections)
	} else if blockElements[name] {
		h.text.newLine()
	}
}

func (h *htmlReader) end(name atom.Atom) {
	switch {
	case h.dropped != 0:
		if name == h.dropped {
			if h.depth--; h.depth == 0 {
				h.dropped = 0
			}
		}
		return
	case name == atom.Title:
		h.inTitle = false
	case name == atom.Pre, name == atom.Textarea, name == atom.Listing:
		h.pre = max(0, h.pre-1)
	}
	if headingElements[name] {
		h.closeHeading()
		h.text.newLine()
	} else if blockElements[name] {
		h.text.newLine()
	}
}

// closeHeading ends the open heading. One without text is no section.
func (h *htmlReader) closeHeading() {
	if h.heading == 0 {
		return
	}
	open := &h.sections[h.heading-1]
	open.Heading = oneLine(h.text.From(open.Offset))
	if open.Heading == "" {
		h.sections = h.sections[:h.heading-1]
	}
	h.heading = 0
}

func (h *htmlReader) document() *Document {
	h.closeHeading()
	doc := &Document{
		Type:     TypeHTML,
		Title:    oneLine(clean(h.title.String())),
		Text:     h.text.String(),
		Sections: h.sections,
	}
	if doc.Title == "" && len(h.sections) > 0 {
		doc.Title = h.sections[0].Heading
	}
	return doc
}

func atomSet(names ...atom.Atom) map[atom.Atom]bool {
	set := make(map[atom.Atom]bool)
	for _, name := range names {
		set[name] = true
	}
	return set
}

var (
	droppedElements = atomSet(atom.Script, atom.Style, atom.Noscript, atom.Template, atom.Svg,
		atom.Math, atom.Iframe, atom.Object, atom.Noframes, atom.Select)
	headingElements = atomSet(atom.H1, atom.H2, atom.H3, atom.H4, atom.H5, atom.H6)
	blockElements   = atomSet(atom.Address, atom.Article, atom.Aside, atom.Blockquote, atom.Body, atom.Br,
		atom.Caption, atom.Center, atom.Dd, atom.Details, atom.Dialog, atom.Div, atom.Dl, atom.Dt,
		atom.Fieldset, atom.Figcaption, atom.Figure, atom.Footer, atom.Form, atom.Header, atom.Hr,
		atom.Li, atom.Main, atom.Nav, atom.Ol, atom.Option, atom.P, atom.Pre, atom.Section,
		atom.Summary, atom.Table, atom.Tbody, atom.Tfoot, atom.Thead, atom.Tr, atom.Ul)
)
