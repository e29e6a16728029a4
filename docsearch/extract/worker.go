package extract

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"runtime/debug"
	"time"

	"github.com/mcp-sse/mcp-sse/docsearch/extract/internal/plain"
)

// A worker reads one order and one file, and writes one report and one text. Order and
// report are a line of JSON; the file is the rest of the input, and the text, which JSON
// would make up to six times as large, the rest of the output.
type order struct {
	Type      string        `json:"type"`
	CacheDir  string        `json:"cacheDir,omitempty"`
	MaxText   int           `json:"maxText"`
	MaxMemory int64         `json:"maxMemory"`
	Timeout   time.Duration `json:"timeout"`
}

// A report without a document and a reason is of an error that was not expected.
type report struct {
	Document *Document `json:"document,omitempty"` // without its text
	Reason   string    `json:"reason,omitempty"`
	Cause    string    `json:"cause,omitempty"`
}

const (
	maxOrder    = 8192
	maxWorkerIn = 1 << 30
	maxStack    = 64 << 20
)

// readers append the text of a file of a type, and return its title, in a process that
// has nothing else to do and is limited. Function failure says what an error means that is no
// SkipError.
var readers = map[string]func(o order, data []byte, text *plain.Builder) (title string, err error){
	TypePDF:          readPDF,
	TypeWord:         inArchive(readWord),
	TypePresentation: inArchive(readPresentation),
	TypeSpreadsheet:  inArchive(readSpreadsheet),
	TypeOpenDocument: inArchive(readOpenDocument),
	TypeEPUB:         inArchive(readEPUB),
	TypeRTF:          readRTF,
	TypeNotebook:     readNotebook,
}

// Worker reads one file from in and writes the document, or why there is none, to out. It
// limits this process to the memory and processor time that the order names, so the
// process must do nothing else, and end when Worker returns. Options.Worker runs it.
func Worker(in io.Reader, out io.Writer) error {
	o, data, err := readOrder(in)
	if err != nil {
		return fmt.Errorf("read the order of a worker, which docsearch starts itself: %w", err)
	}
	debug.SetMaxStack(maxStack)
	debug.SetMemoryLimit(o.MaxMemory / 4 * 3) // work harder before the hard limit
	if err := limitProcess(o); err != nil {
		return fmt.Errorf("limit the worker: %w", err)
	}
	doc, err := read(o, data)
	return writeReport(out, doc, err)
}

// read reads a file in this process.
func read(o order, data []byte) (doc *Document, err error) {
	defer func() {
		if r := recover(); r != nil {
			err = damaged("%v", r)
		}
	}()
	var text plain.Builder
	title, err := readers[o.Type](o, data, &text)
	if err != nil {
		return nil, err
	}
	return documentFrom(o.Type, title, &text), nil
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
	if o.MaxText <= 0 || o.MaxMemory <= 0 || o.Timeout <= 0 || readers[o.Type] == nil {
		return o, nil, errors.New("it lacks limits or a type")
	}
	data, err = io.ReadAll(io.LimitReader(r, maxWorkerIn))
	return o, data, err
}

func writeReport(out io.Writer, doc *Document, err error) error {
	text, r := "", report{Document: doc}
	if skipped, ok := errors.AsType[*SkipError](err); ok {
		r.Reason, err = skipped.Reason, skipped.Err
	}
	if doc != nil {
		text, doc.Text = doc.Text, ""
	} else if err != nil {
		r.Cause = plain.OneLine(err.Error())
	}
	encoder := json.NewEncoder(out)
	encoder.SetEscapeHTML(false)
	if err := encoder.Encode(r); err != nil {
		return err
	}
	_, err = io.WriteString(out, text)
	return err
}
