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
	"slices"
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
	first, _, _ := strings.Cut(complaint, "\n")
	return failure(fmt.Sprint(err, "\n", complaint), fmt.Errorf("the worker ended: %w: %s", err, plain.OneLine(first)))
}

// failure returns the error of a file that a reader failed on, with the reason that its
// words tell, wherever they come from: Go, the kernel, which kills what lacks memory, or
// PDFium.
func failure(words string, err error) error {
	says := func(signs ...string) bool {
		return slices.ContainsFunc(signs, func(sign string) bool { return strings.Contains(words, sign) })
	}
	switch {
	case says("CPU time limit", "signal: cpu"):
		return skip(ReasonTimeout, err)
	case says("out of memory", "cannot allocate memory", "pthread_create failed", "signal: killed"):
		return skip(ReasonMemory, err)
	}
	return skip(ReasonDamaged, err)
}

// documentOf checks a report, which a hostile file may have had a hand in.
func documentOf(typ string, output []byte) (*Document, error) {
	var r report
	line, text, _ := bytes.Cut(output, []byte("\n"))
	if err := json.Unmarshal(line, &r); err != nil {
		return nil, damaged("read the report of the worker: %w", err)
	}
	doc := r.Document
	switch {
	case doc == nil && r.Reason == "":
		return nil, failure(r.Cause, errors.New(r.Cause))
	case doc == nil:
		return nil, skip(r.Reason, errors.New(r.Cause))
	}
	doc.Type, doc.Title, doc.Text = typ, plain.OneLine(plain.Clean(doc.Title)), plain.Clean(string(text))
	last := 0
	for i := range doc.Sections {
		s := &doc.Sections[i]
		if s.Offset < last || s.Offset > len(doc.Text) || s.Offset < len(doc.Text) &&
			!utf8.RuneStart(doc.Text[s.Offset]) {
			return nil, damaged("the worker reports a section at %d after %d of %d", s.Offset, last, len(doc.Text))
		}
		last, s.Heading = s.Offset, plain.OneLine(plain.Clean(s.Heading))
	}
	return doc, nil
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
