package extract

import (
	"context"
	"encoding/xml"
	"net/url"
	"path"

	"github.com/mcp-sse/mcp-sse/docsearch/extract/internal/plain"
)

// readEPUB reads the pages of a book in their order.
func readEPUB(o order, data []byte, text *plain.Builder) (title string, err error) {
	a, err := openArchive(o, data)
	if err != nil {
		return "", err
	}
	var book string
	if err := a.elements("META-INF/container.xml", func(e xml.StartElement) {
		if e.Name.Local == "rootfile" && book == "" {
			book = attribute(e, "full-path")
		}
	}); err != nil {
		return "", err
	}
	pages, err := a.spine(book)
	if err != nil {
		return "", err
	}
	for _, page := range pages {
		content, err := a.read(page)
		if err != nil {
			return "", err
		}
		text.BlankLine()
		if _, err := readHTML(context.Background(), content, text, o.MaxText); err != nil { // the worker is killed in time
			return "", err
		}
	}
	return a.title(book)
}

// spine returns the parts that are the pages of a book.
func (a *archive) spine(book string) (pages []string, err error) {
	if a.parts[book] == nil {
		return nil, damaged("it does not name its pages")
	}
	hrefs := make(map[string]string)
	err = a.elements(book, func(e xml.StartElement) {
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
	return pages, err
}
