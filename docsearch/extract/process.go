package extract

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os/exec"
	"runtime"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/mcp-sse/mcp-sse/docsearch/extract/internal/plain"
)

const (
	maxWorkers   = 2           // children at once, of one Extractor
	maxComplaint = 64 << 10    // bytes kept of what a child says as it crashes
	killWait     = time.Second // for the pipes of a killed child
)

// pdf extracts a PDF, of which some are read at once.
func (e *Extractor) pdf(ctx context.Context, data []byte) (*Document, error) {
	if len(e.opts.Worker) == 0 {
		return nil, skip(ReasonUnsupported, errors.New("no worker for PDF is configured"))
	}
	select {
	case e.workers <- struct{}{}:
		defer func() { <-e.workers }()
	case <-ctx.Done():
		return nil, ctx.Err()
	}
	timeout := e.patience.timeout(len(data), time.Now())
	doc, err := e.runWorker(ctx, data, timeout)
	if ctx.Err() == nil {
		skipped, ok := errors.AsType[*SkipError](err)
		e.patience.note(ok && skipped.Reason == ReasonTimeout, time.Now())
	}
	return doc, err
}

// runWorker has a child process extract a PDF. Whatever the child does, it ends within
// the timeout and its report is bounded.
func (e *Extractor) runWorker(ctx context.Context, data []byte, timeout time.Duration) (*Document, error) {
	// The kernel ends the child when this thread ends.
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	limited, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()

	var complaint bounded
	complaint.most = maxComplaint
	cmd := exec.CommandContext(limited, e.opts.Worker[0], e.opts.Worker[1:]...)
	isolate(cmd)
	cmd.Env = []string{"GOTRACEBACK=none"} // the file must not meet the daemon's secrets
	cmd.Stderr = &complaint
	cmd.WaitDelay = killWait
	output, err := e.converse(cmd, data, timeout)
	switch {
	case ctx.Err() != nil:
		return nil, ctx.Err()
	case limited.Err() != nil:
		return nil, skip(ReasonTimeout, fmt.Errorf("reading it takes longer than %v", timeout))
	case err != nil && cmd.Process == nil:
		return nil, fmt.Errorf("start the PDF worker %q: %w", e.opts.Worker[0], err)
	case err != nil:
		return nil, workerError(err, string(complaint.kept))
	}
	return documentOf(output)
}

// converse runs the child and returns what it writes.
func (e *Extractor) converse(cmd *exec.Cmd, data []byte, timeout time.Duration) ([]byte, error) {
	line, err := json.Marshal(order{MaxText: e.opts.MaxText, MaxMemory: e.opts.MaxMemory, Timeout: timeout})
	if err != nil {
		return nil, err
	}
	output := bounded{most: maxReport + e.opts.MaxText}
	cmd.Stdin = io.MultiReader(bytes.NewReader(line), strings.NewReader("\n"), bytes.NewReader(data))
	cmd.Stdout = &output
	err = cmd.Run()
	return output.kept, err
}

// maxReport is the most bytes of a report. JSON makes up to six of one of a heading.
const maxReport = plain.MaxSections * 2048

// workerError says why a child ended without a report.
func workerError(err error, complaint string) error {
	exit, ok := errors.AsType[*exec.ExitError](err)
	status := ""
	if ok {
		status = exit.String()
	}
	switch {
	case strings.Contains(status, "CPU time limit"), strings.Contains(status, "signal: cpu"):
		return skip(ReasonTimeout, err)
	case strings.Contains(complaint, "out of memory"), strings.Contains(complaint, "cannot allocate memory"),
		strings.Contains(complaint, "failed to allocate"), // the race detector
		strings.Contains(status, "signal: killed"):        // the kernel, which lacks memory
		return skip(ReasonMemory, err)
	}
	first, _, _ := strings.Cut(complaint, "\n")
	return damaged("the PDF worker ended: %w: %s", err, plain.OneLine(first))
}

// documentOf checks a report, which a hostile file may have had a hand in.
func documentOf(output []byte) (*Document, error) {
	var r report
	line, text, _ := bytes.Cut(output, []byte("\n"))
	if len(line) > maxReport {
		return nil, damaged("the PDF worker writes a report of %d bytes", len(line))
	}
	if err := json.Unmarshal(line, &r); err != nil {
		return nil, damaged("read the report of the PDF worker: %w", err)
	}
	if r.Document == nil && !reasons[r.Reason] {
		return nil, damaged("the PDF worker reports the reason %q", plain.OneLine(r.Reason))
	}
	if r.Document == nil {
		return nil, skip(r.Reason, errors.New(r.Cause))
	}
	doc := r.Document
	doc.Type, doc.Title = TypePDF, plain.OneLine(plain.Clean(doc.Title))
	if doc.Text = string(text); plain.Clean(doc.Text) != doc.Text {
		return nil, damaged("the PDF worker reports text that is not clean")
	}
	if err := checkSections(doc); err != nil {
		return nil, err
	}
	return doc, nil
}

// checkSections checks the sections of a report, and makes their headings clean.
func checkSections(doc *Document) error {
	if len(doc.Sections) > plain.MaxSections {
		return damaged("the PDF worker reports %d sections", len(doc.Sections))
	}
	last := 0
	for i := range doc.Sections {
		s := &doc.Sections[i]
		if s.Offset < last || s.Offset > len(doc.Text) || s.Offset < len(doc.Text) && !utf8.RuneStart(doc.Text[s.Offset]) {
			return damaged("the PDF worker reports a section at %d after %d of %d", s.Offset, last, len(doc.Text))
		}
		last = s.Offset
		s.Heading = plain.OneLine(plain.Clean(s.Heading))
	}
	return nil
}

// bounded keeps the first bytes that are written to it.
type bounded struct {
	kept []byte
	most int
}

func (b *bounded) Write(p []byte) (int, error) {
	b.kept = append(b.kept, p[:min(len(p), b.most-len(b.kept))]...) // grows by less than a bytes.Buffer
	return len(p), nil
}
