package extract

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"time"

	"github.com/klippa-app/go-pdfium"
	pdferrors "github.com/klippa-app/go-pdfium/errors"
	"github.com/klippa-app/go-pdfium/references"
	"github.com/klippa-app/go-pdfium/requests"
	"github.com/klippa-app/go-pdfium/responses"
	"github.com/klippa-app/go-pdfium/webassembly"
	"github.com/tetratelabs/wazero"
	"github.com/tetratelabs/wazero/api"
	"github.com/tetratelabs/wazero/experimental"

	"github.com/mcp-sse/mcp-sse/docsearch/extract/internal/plain"
)

// readPDF reads the pages with PDFium, which is WebAssembly here: it sees no file but
// this one. A line of a page that is also an entry of the outline, but for its number, is
// a heading.
func readPDF(o order, data []byte, text *plain.Builder) (title string, err error) {
	reader, err := openPDFium(o)
	if err != nil {
		return "", err
	}
	opened, err := reader.OpenDocument(&requests.OpenDocument{File: &data})
	switch {
	case errors.Is(err, pdferrors.ErrPassword), errors.Is(err, pdferrors.ErrSecurity):
		return "", skip(ReasonEncrypted, err)
	case err != nil:
		return "", err
	}
	doc := opened.Document
	count, err := reader.FPDF_GetPageCount(&requests.FPDF_GetPageCount{Document: doc})
	if err != nil {
		return "", err
	}
	headings := make(map[string]bool)
	if outline, err := reader.GetBookmarks(&requests.GetBookmarks{Document: doc}); err == nil {
		addHeadings(headings, outline.Bookmarks)
		delete(headings, "")
	}
	for page := range count.PageCount {
		if err := readPage(reader, doc, page, headings, text); err != nil {
			return "", fmt.Errorf("page %d: %w", page+1, err)
		}
		if text.Size() > o.MaxText {
			return "", tooMuchText(o.MaxText)
		}
	}
	info, err := reader.FPDF_GetMetaText(&requests.FPDF_GetMetaText{Document: doc, Tag: "Title"})
	if err != nil {
		return "", nil // it has none
	}
	return info.Value, nil
}

// openPDFium starts PDFium. Compiling it takes seconds, so the result is cached. A cache
// that cannot be used is replaced.
func openPDFium(o order) (pdfium.Pdfium, error) {
	config := wazero.NewRuntimeConfig().WithMemoryLimitPages(uint32(min(o.MaxMemory>>16, 1<<16))).
		WithCoreFeatures(api.CoreFeaturesV2 | experimental.CoreFeaturesExceptionHandling)
	for try := 0; try < 2 && o.CacheDir != ""; try++ {
		if cache, err := wazero.NewCompilationCacheWithDir(o.CacheDir); err == nil {
			if reader, err := startPDFium(config.WithCompilationCache(cache)); err == nil {
				return reader, nil
			}
		}
		_ = os.RemoveAll(o.CacheDir)
	}
	return startPDFium(config) // it is only slower
}

func startPDFium(config wazero.RuntimeConfig) (pdfium.Pdfium, error) {
	pool, err := webassembly.Init(webassembly.Config{
		Context: context.Background(), MaxIdle: 1, MaxTotal: 1, // they end with the process
		RuntimeConfig: config, FSConfig: wazero.NewFSConfig(), Stdout: os.Stderr,
	})
	if err != nil {
		return nil, fmt.Errorf("start PDFium: %w", err)
	}
	return pool.GetInstance(time.Hour) // the worker is killed before
}

func addHeadings(headings map[string]bool, outline []responses.GetBookmarksBookmark) {
	for _, entry := range outline {
		headings[unnumbered(entry.Title)] = true
		addHeadings(headings, entry.Children)
	}
}

func unnumbered(heading string) string {
	return strings.TrimLeft(plain.OneLine(plain.Clean(heading)), "0123456789. ")
}

// readPage appends a page. PDFium marks a hyphen at the end of a line, which it has
// joined with the next one, with the character 2.
func readPage(
	reader pdfium.Pdfium, doc references.FPDF_DOCUMENT, index int, headings map[string]bool, text *plain.Builder,
) error {
	text.Page()
	page, err := reader.GetPageText(
		&requests.GetPageText{Page: requests.Page{ByIndex: &requests.PageByIndex{Document: doc, Index: index}}})
	if err != nil {
		return err
	}
	for line := range strings.Lines(pdfSigns.Replace(page.Text)) {
		at := text.Len()
		text.Words(line)
		if headings[unnumbered(line)] {
			text.Heading(at)
		}
		text.NewLine()
	}
	return nil
}

var pdfSigns = strings.NewReplacer("\x02", "", "\u00ad", "", "ﬀ", "ff", "ﬁ", "fi", "ﬂ", "fl", "ﬃ", "ffi", "ﬄ", "ffl",
	"ﬅ", "st", "ﬆ", "st")
