package extract

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"

	"golang.org/x/net/html"
	"golang.org/x/net/html/atom"

	"github.com/mcp-sse/mcp-sse/docsearch/extract/internal/plain"
)

// maxHTMLToken bounds one tag, text or script of HTML, which the tokenizer keeps as a
// whole. None may be larger than the text of a document.
const maxHTMLToken = 8 << 20

func htmlDocument(ctx context.Context, data []byte, maxText int) (*Document, error) {
	if isBinary(data) {
		return nil, skip(ReasonBinary, nil)
	}
	var text plain.Builder
	title, err := readHTML(ctx, data, &text, maxText)
	if err != nil {
		return nil, err
	}
	return documentFrom(TypeHTML, title, &text), nil
}

// readHTML appends a page to text, and returns its title. It reads the tokens, never the
// tree: the time to build a tree from bad nesting grows with its square.
func readHTML(ctx context.Context, data []byte, text *plain.Builder, maxText int) (title string, err error) {
	h := htmlReader{tokens: html.NewTokenizer(decoded(data, true)), text: text, heading: -1}
	maxToken := min(maxHTMLToken, maxText)
	h.tokens.SetMaxBuf(maxToken)
	for n := 0; h.next(); n++ {
		if n%4096 == 0 && ctx.Err() != nil {
			return "", ctx.Err()
		}
		if text.Size() > maxText {
			return "", tooMuchText(maxText)
		}
	}
	h.closeHeading()
	switch err := h.tokens.Err(); {
	case errors.Is(err, html.ErrBufferExceeded):
		return "", skip(ReasonTooLarge, fmt.Errorf("a tag, text or script of more than %d bytes", maxToken))
	case !errors.Is(err, io.EOF):
		return "", skip(ReasonDamaged, err)
	}
	return h.title.String(), nil
}

// htmlReader turns tokens into text.
type htmlReader struct {
	tokens *html.Tokenizer
	text   *plain.Builder

	title   strings.Builder
	inTitle bool
	pre     int       // depth of elements that keep white space
	dropped atom.Atom // the element whose content is dropped, 0 outside
	depth   int       // of that element in itself
	heading int       // offset of the open heading, -1 outside
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
			h.text.NewLine()
		}
	case html.EndTagToken:
		name, _ := h.tokens.TagName()
		h.end(atom.Lookup(name))
	}
	return true
}

func (h *htmlReader) takeText() {
	switch {
	case h.inTitle:
		h.title.Write(h.tokens.Text())
	case h.dropped != 0:
	case h.pre > 0:
		h.text.Raw(string(h.tokens.Text()))
	default:
		h.text.Words(string(h.tokens.Text()))
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
	case preElements[name]:
		h.pre++
	case name == atom.Td, name == atom.Th:
		h.text.Tab()
	case name == atom.Hr, name == atom.P:
		h.text.BlankLine()
	}
	h.edge(name)
	if headingElements[name] {
		h.text.BlankLine()
		h.heading = h.text.Len()
	}
}

func (h *htmlReader) end(name atom.Atom) {
	switch {
	case h.dropped != 0:
		if name == h.dropped {
			h.depth--
			if h.depth == 0 {
				h.dropped = 0
			}
		}
		return
	case name == atom.Title:
		h.inTitle = false
	case preElements[name]:
		h.pre = max(0, h.pre-1)
	}
	h.edge(name)
}

// edge ends the line before and after a block, and the open heading before and after one.
func (h *htmlReader) edge(name atom.Atom) {
	if headingElements[name] {
		h.closeHeading()
	}
	if headingElements[name] || blockElements[name] {
		h.text.NewLine()
	}
}

// closeHeading ends the open heading. One without text is no section.
func (h *htmlReader) closeHeading() {
	if h.heading >= 0 {
		h.text.Heading(h.heading)
	}
	h.heading = -1
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
	preElements     = atomSet(atom.Pre, atom.Textarea, atom.Listing)
	headingElements = atomSet(atom.H1, atom.H2, atom.H3, atom.H4, atom.H5, atom.H6)
	blockElements   = atomSet(atom.Address, atom.Article, atom.Aside, atom.Blockquote, atom.Body, atom.Br,
		atom.Caption, atom.Center, atom.Dd, atom.Details, atom.Dialog, atom.Div, atom.Dl, atom.Dt,
		atom.Fieldset, atom.Figcaption, atom.Figure, atom.Footer, atom.Form, atom.Header, atom.Hr,
		atom.Li, atom.Main, atom.Nav, atom.Ol, atom.Option, atom.P, atom.Pre, atom.Section,
		atom.Summary, atom.Table, atom.Tbody, atom.Tfoot, atom.Thead, atom.Tr, atom.Ul)
)
