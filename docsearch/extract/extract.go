// Package extract turns the bytes of one file into a Document: plain text, Markdown,
// HTML, source code, PDF and DOCX.
//
// The bytes come from anyone. The time and memory to extract them are bounded by their
// number, and by Options. The formats that Go reads safely are read in this process;
// PDF is read in a child process that is killed when it exceeds its time or memory.
//
//	bytes → kind by name and first bytes → text, Markdown, HTML, code, DOCX → Document
//	                                     ↘ PDF → child: Worker → JSON ↗
package extract

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/mcp-sse/mcp-sse/docsearch/extract/internal/plain"
)

// The types of documents.
const (
	TypeText     = "text"
	TypeMarkdown = "markdown"
	TypeHTML     = "html"
	TypeCode     = "code"
	TypePDF      = "pdf"
	TypeDOCX     = "docx"
)

// Document is what a file says.
type Document struct {
	Type  string `json:"type"`
	Title string `json:"title,omitempty"` // one line, empty if the file has none
	// Text is valid UTF-8 without NUL, U+E000 and U+E001. Lines end with \n.
	Text     string    `json:"text"`
	Sections []Section `json:"sections,omitempty"` // in ascending order of their offsets
}

// Section is a part of a document, from its offset in bytes of Text to that of the next.
type Section = plain.Section

// The reasons for which a file is not indexed.
const (
	ReasonBinary      = "binary"      // neither text nor a format with text
	ReasonUnsupported = "unsupported" // a format that cannot be read, or not here
	ReasonTooLarge    = "too_large"   // more text than Options.MaxText
	ReasonDamaged     = "damaged"     // not what its name or first bytes say
	ReasonEncrypted   = "encrypted"   // readable with a password only
	ReasonTimeout     = "timeout"     // reading takes longer than Options.Timeout allows
	ReasonMemory      = "memory"      // reading takes more than Options.MaxMemory
	ReasonEmpty       = "empty"       // nothing but white space
)

var reasons = map[string]bool{
	ReasonBinary: true, ReasonUnsupported: true, ReasonTooLarge: true, ReasonDamaged: true,
	ReasonEncrypted: true, ReasonTimeout: true, ReasonMemory: true, ReasonEmpty: true,
}

// SkipError reports that a file cannot be indexed, as it is now.
type SkipError struct {
	Reason string // one of the Reason constants
	Err    error  // the cause, nil if the reason says it all
}

func (e *SkipError) Error() string {
	if e.Err == nil {
		return "skip file: " + e.Reason
	}
	return fmt.Sprintf("skip file: %s: %v", e.Reason, e.Err)
}

func (e *SkipError) Unwrap() error { return e.Err }

func skip(reason string, err error) error { return &SkipError{Reason: reason, Err: err} }

func damaged(format string, args ...any) error {
	return skip(ReasonDamaged, fmt.Errorf(format, args...))
}

func tooMuchText(most int) error {
	return skip(ReasonTooLarge, fmt.Errorf("more than %d bytes of text", most))
}

// Options limit an Extractor. The zero value is the default.
type Options struct {
	// Worker is the command line of a program that runs Worker. Without it, PDF is
	// unsupported.
	Worker []string
	// MaxText is the most bytes of text of a document, 16 MiB if zero.
	MaxText int
	// Timeout is the longest time that one PDF may take, 30 s if zero. Small ones get
	// less: 10 s, and 5 s more for each MiB. After five timeouts in a row, PDFs get 2 s for
	// a minute.
	Timeout time.Duration
	// MaxMemory is the most memory in bytes that one PDF may take, 512 MiB if zero.
	MaxMemory int64
}

func (o Options) withDefaults() Options {
	if o.MaxText <= 0 {
		o.MaxText = 16 << 20
	}
	if o.Timeout <= 0 {
		o.Timeout = 30 * time.Second
	}
	if o.MaxMemory <= 0 {
		o.MaxMemory = 512 << 20
	}
	return o
}

// Extractor extracts documents. It is safe for concurrent use.
type Extractor struct {
	opts     Options
	workers  chan struct{} // holds one item for each child process that runs
	patience patience
}

// New returns an Extractor.
func New(o Options) *Extractor {
	o = o.withDefaults()
	return &Extractor{opts: o, workers: make(chan struct{}, maxWorkers), patience: patience{least: leastTimeout, most: o.Timeout}}
}

// Extract returns the document that data, the content of the file of that name, is. The
// error is a *SkipError if the file cannot be indexed, or that of ctx.
func (e *Extractor) Extract(ctx context.Context, name string, data []byte) (*Document, error) {
	doc, err := e.extract(ctx, name, data)
	if err != nil {
		return nil, err
	}
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	if strings.TrimSpace(doc.Text) == "" {
		return nil, skip(ReasonEmpty, nil)
	}
	if len(doc.Text) > e.opts.MaxText {
		return nil, skip(ReasonTooLarge, fmt.Errorf("%d bytes of text, at most %d are indexed", len(doc.Text), e.opts.MaxText))
	}
	return doc, nil
}

func (e *Extractor) extract(ctx context.Context, name string, data []byte) (*Document, error) {
	switch kind := kindOf(name, data); kind {
	case kindIgnored:
		return nil, skip(ReasonUnsupported, nil)
	case kindPDF:
		return e.pdf(ctx, data)
	case kindDOCX:
		return docx(ctx, data, e.opts.MaxText)
	case kindHTML:
		return htmlDocument(ctx, data, e.opts.MaxText)
	default:
		text, err := decode(data, e.opts.MaxText)
		if err != nil {
			return nil, err
		}
		switch kind {
		case kindMarkdown:
			return markdown(text), nil
		case kindCode:
			return code(text), nil
		default:
			return &Document{Type: TypeText, Text: text}, nil
		}
	}
}
