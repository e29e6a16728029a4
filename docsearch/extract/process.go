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
	rowTimeouts  = 5           // after which files, such as hostile ones, get little time
	briefTimeout = 2 * time.Second
)

// inWorker has a child process extract a file. Some are read at once.
func (e *Extractor) inWorker(ctx context.Context, typ string, data []byte) (*Document, error) {
	if len(e.opts.Worker) == 0 {
		return nil, skip(ReasonUnsupported, errors.New("no worker is configured"))
	}
	select {
	case e.workers <- struct{}{}:
		defer func() { <-e.workers }()
	case <-ctx.Done():
		return nil, ctx.Err()
	}
	timeout := e.opts.Timeout
	if e.timeouts.Load() >= rowTimeouts {
		timeout = min(timeout, briefTimeout)
	}
	doc, err := e.runWorker(ctx, order{
		Type: typ, CacheDir: e.opts.CacheDir, MaxText: e.opts.MaxText, MaxMemory: e.opts.MaxMemory, Timeout: timeout,
	}, data)
	if skipped, ok := errors.AsType[*SkipError](err); ok && skipped.Reason == ReasonTimeout {
		e.timeouts.Add(1)
	} else if ctx.Err() == nil {
		e.timeouts.Store(0)
	}
	return doc, err
}

// runWorker has a child process follow an order. Whatever the child does, it ends within
// the timeout and its report is bounded.
func (e *Extractor) runWorker(ctx context.Context, o order, data []byte) (*Document, error) {
	// The kernel ends the child when this thread ends.
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	limited, cancel := context.WithTimeout(ctx, o.Timeout)
	defer cancel()

	line, err := json.Marshal(o)
	if err != nil {
		return nil, err
	}
	output, complaint := bounded{most: maxReport + o.MaxText}, bounded{most: maxComplaint}
	cmd := exec.CommandContext(limited, e.opts.Worker[0], e.opts.Worker[1:]...)
	isolate(cmd)
	cmd.Env = []string{"GOTRACEBACK=none"} // the file must not meet the daemon's secrets
	cmd.Stdin = io.MultiReader(bytes.NewReader(line), strings.NewReader("\n"), bytes.NewReader(data))
	cmd.Stdout, cmd.Stderr = &output, &complaint
	cmd.WaitDelay = killWait
	err = cmd.Run()
	switch {
	case ctx.Err() != nil:
		return nil, ctx.Err()
	case limited.Err() != nil:
		return nil, skip(ReasonTimeout, fmt.Errorf("reading it takes longer than %v", o.Timeout))
	case err != nil && cmd.Process == nil:
		return nil, fmt.Errorf("start the worker %q: %w", e.opts.Worker[0], err)
	case err != nil:
		return nil, workerError(err, string(complaint.kept))
	}
	return documentOf(o.Type, output.kept)
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
		strings.Contains(complaint, "pthread_create failed"),
		strings.Contains(status, "signal: killed"): // the kernel, which lacks memory
		return skip(ReasonMemory, err)
	}
	first, _, _ := strings.Cut(complaint, "\n")
	return damaged("the worker ended: %w: %s", err, plain.OneLine(first))
}

// documentOf checks a report, which a hostile file may have had a hand in.
func documentOf(typ string, output []byte) (*Document, error) {
	var r report
	line, text, _ := bytes.Cut(output, []byte("\n"))
	if len(line) > maxReport {
		return nil, damaged("the worker writes a report of %d bytes", len(line))
	}
	if err := json.Unmarshal(line, &r); err != nil {
		return nil, damaged("read the report of the worker: %w", err)
	}
	if r.Document == nil && !reasons[r.Reason] {
		return nil, damaged("the worker reports the reason %q", plain.OneLine(r.Reason))
	}
	if r.Document == nil {
		return nil, skip(r.Reason, errors.New(r.Cause))
	}
	doc := r.Document
	doc.Type, doc.Title = typ, plain.OneLine(plain.Clean(doc.Title))
	if doc.Text = string(text); plain.Clean(doc.Text) != doc.Text {
		return nil, damaged("the worker reports text that is not clean")
	}
	if err := checkSections(doc); err != nil {
		return nil, err
	}
	return doc, nil
}

// checkSections checks the sections of a report, and makes their headings clean.
func checkSections(doc *Document) error {
	if len(doc.Sections) > plain.MaxSections {
		return damaged("the worker reports %d sections", len(doc.Sections))
	}
	last := 0
	for i := range doc.Sections {
		s := &doc.Sections[i]
		if s.Offset < last || s.Offset > len(doc.Text) || s.Offset < len(doc.Text) && !utf8.RuneStart(doc.Text[s.Offset]) {
			return damaged("the worker reports a section at %d after %d of %d", s.Offset, last, len(doc.Text))
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
