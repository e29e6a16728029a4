package extract

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"runtime/debug"
	"time"

	"github.com/mcp-sse/mcp-sse/docsearch/extract/internal/pdf"
	"github.com/mcp-sse/mcp-sse/docsearch/extract/internal/plain"
)

// A worker reads one order and one file, and writes one report and one text. Order and
// report are a line of JSON; the file is the rest of the input, and the text, which JSON
// would make up to six times as large, the rest of the output.
type order struct {
	MaxText   int           `json:"maxText"`
	MaxMemory int64         `json:"maxMemory"`
	Timeout   time.Duration `json:"timeout"`
}

type report struct {
	Document *Document `json:"document,omitempty"` // without its text
	Reason   string    `json:"reason,omitempty"`
	Cause    string    `json:"cause,omitempty"`
}

const (
	maxOrder    = 4096
	maxWorkerIn = 1 << 30
	maxStack    = 64 << 20
)

// Worker reads one PDF from in and writes the document, or why there is none, to out. It
// limits this process to the memory and processor time that the order names, so the
// process must do nothing else, and end when Worker returns. Options.Worker runs it.
func Worker(in io.Reader, out io.Writer) error {
	o, data, err := readOrder(in)
	if err != nil {
		return fmt.Errorf("read the order of a PDF worker, which docsearch starts itself: %w", err)
	}
	debug.SetMaxStack(maxStack)
	debug.SetMemoryLimit(o.MaxMemory / 4 * 3) // work harder before the hard limit
	if err := limitProcess(o); err != nil {
		return fmt.Errorf("limit the PDF worker: %w", err)
	}
	doc, err := readPDF(data, o.MaxText)
	return writeReport(out, doc, err)
}

// readPDF reads a PDF in this process.
func readPDF(data []byte, maxText int) (*Document, error) {
	doc, err := pdf.Read(data, maxText)
	switch {
	case errors.Is(err, pdf.ErrEncrypted):
		return nil, skip(ReasonEncrypted, err)
	case errors.Is(err, pdf.ErrTooLarge):
		return nil, skip(ReasonTooLarge, err)
	case err != nil:
		return nil, skip(ReasonDamaged, err)
	}
	return &Document{Type: TypePDF, Title: doc.Title, Text: doc.Text, Sections: doc.Sections}, nil
}

func readOrder(in io.Reader) (o order, data []byte, err error) {
	r := bufio.NewReaderSize(in, maxOrder)
	line, err := r.ReadSlice('\n')
	if err != nil {
		return o, nil, err
	}
	if err := json.Unmarshal(line, &o); err != nil {
		return o, nil, err
	}
	if o.MaxText <= 0 || o.MaxMemory <= 0 || o.Timeout <= 0 {
		return o, nil, errors.New("it has no limits")
	}
	data, err = io.ReadAll(io.LimitReader(r, maxWorkerIn))
	return o, data, err
}

func writeReport(out io.Writer, doc *Document, err error) error {
	text := ""
	if err == nil {
		text, doc.Text = doc.Text, ""
	}
	encoder := json.NewEncoder(out)
	encoder.SetEscapeHTML(false)
	if err := encoder.Encode(reportOf(doc, err)); err != nil {
		return err
	}
	_, err = io.WriteString(out, text)
	return err
}

func reportOf(doc *Document, err error) report {
	if err == nil {
		return report{Document: doc}
	}
	r := report{Reason: ReasonDamaged, Cause: plain.OneLine(err.Error())}
	if skipped, ok := errors.AsType[*SkipError](err); ok {
		r.Reason, r.Cause = skipped.Reason, ""
		if skipped.Err != nil {
			r.Cause = plain.OneLine(skipped.Err.Error())
		}
	}
	return r
}
