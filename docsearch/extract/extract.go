// Package extract turns the bytes of one file into a Document: text, Markdown, HTML,
// source code, PDF, Office and OpenDocument files, EPUB, RTF and notebooks.
//
// The bytes come from anyone. The time and memory to extract them are bounded by their
// number, and by Options. Formats that are read token by token are read in this process;
// all others in a child process that is killed when it exceeds its time or memory.
//
//	bytes → type by name and first bytes → text, Markdown, HTML, code → Document
//	                                     ↘ all others → child: Worker → JSON ↗
package extract

import (
	"context"
	"fmt"
	"strings"
	"sync/atomic"
	"time"

	"github.com/mcp-sse/mcp-sse/docsearch/extract/internal/plain"
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
	// Worker is the command line of a program that runs Worker. Without it, the formats
	// that are read in a child process are unsupported.
	Worker []string
	// CacheDir is a private directory in which workers keep the compiled reader of PDFs,
	// 21 MB. Without it, each PDF takes seconds more.
	CacheDir string
	// MaxText is the most bytes of text of a document, 16 MiB if zero.
	MaxText int
	// Timeout is the longest time that a worker may take, a minute if zero. After five
	// timeouts in a row it is 2 s, until a worker ends in time.
	Timeout time.Duration
	// MaxMemory is the most memory in bytes that a worker may take, 512 MiB if zero.
	MaxMemory int64
}

func (o Options) withDefaults() Options {
	if o.MaxText <= 0 {
		o.MaxText = 16 << 20
	}
	if o.Timeout <= 0 {
		o.Timeout = time.Minute
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
	timeouts atomic.Int32  // of workers, since the last one that ended in time
}

// New returns an Extractor.
func New(o Options) *Extractor {
	return &Extractor{opts: o.withDefaults(), workers: make(chan struct{}, maxWorkers)}
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
		return nil, skip(ReasonTooLarge, fmt.Errorf("%d bytes of text, at most %d are indexed", len(doc.Text),
			e.opts.MaxText))
	}
	return doc, nil
}

func (e *Extractor) extract(ctx context.Context, name string, data []byte) (*Document, error) {
	switch t := typeOf(name, data); {
	case t == unsupported:
		return nil, skip(ReasonUnsupported, nil)
	case len(data) == 0:
		return nil, skip(ReasonEmpty, nil)
	case t == TypeHTML:
		return htmlDocument(ctx, data, e.opts.MaxText)
	case readers[t] != nil:
		return e.inWorker(ctx, t, data)
	default:
		text, err := decode(data, e.opts.MaxText)
		if err != nil {
			return nil, err
		}
		doc := &Document{Type: t, Text: text}
		switch t {
		case TypeMarkdown:
			doc.Title, doc.Sections = markdown(text)
		case TypeCode:
			doc.Sections = code(text)
		}
		return doc, nil
	}
}

// documentFrom returns the document that a text is. One without a title has its first
// heading.
func documentFrom(typ, title string, text *plain.Builder) *Document {
	title = plain.OneLine(plain.Clean(title))
	if title == "" {
		title = text.Title()
	}
	return &Document{Type: typ, Title: title, Text: text.String(), Sections: text.List}
}
