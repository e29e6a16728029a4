package extract

import (
	"context"
	"encoding/xml"
	"errors"
	"net/url"
	"path"

	"github.com/mcp-sse/mcp-sse/docsearch/extract/internal/plain"
)

// readEPUB reads the pages of a book in their order.
func readEPUB(o order, a *archive, text *plain.Builder) (title string) {
	var book string
	a.elements("META-INF/container.xml", func(e xml.StartElement) {
		if e.Name.Local == "rootfile" && book == "" {
			book = attribute(e, "full-path")
		}
	})
	if a.parts[book] == nil {
		a.fail(errors.New("it does not name its pages"))
	}
	for _, page := range a.spine(book) {
		text.BlankLine()
		_, err := readHTML(context.Background(), a.read(page), text, o.MaxText) // the worker is killed in time
		a.fail(err)
	}
	return a.title(book)
}

// spine returns the parts that are the pages of a book.
func (a *archive) spine(book string) (pages []string) {
	hrefs := make(map[string]string)
	a.elements(book, func(e xml.StartElement) {
		switch e.Name.Local {
		case "item":
			if href, err := url.PathUnescape(attribute(e, "href")); err == nil {
				hrefs[attribute(e, "id")] = href
			}
		case "itemref":
			if part := path.Join(path.Dir(book), hrefs[attribute(e, "idref")]); a.parts[part] != nil {
				pages = append(pages, part)
			}
		}
	})
	return pages
}
