package main

import (
	"context"
	"io"
	"os"
	"time"

	"github.com/mattn/go-isatty"
	"github.com/schollz/progressbar/v3"

	"github.com/mcp-sse/mcp-sse/docsearch/api"
	"github.com/mcp-sse/mcp-sse/docsearch/daemon"
)

// progress shows on a terminal how far the index is.
type progress struct {
	out io.Writer
	bar *progressbar.ProgressBar // nil while nothing is indexed
}

// newProgress returns nil if w is no terminal.
func newProgress(w io.Writer) *progress {
	if !isTerminal(w) {
		return nil
	}
	return &progress{out: w}
}

func isTerminal(w io.Writer) bool {
	f, ok := w.(*os.File)
	return ok && isatty.IsTerminal(f.Fd())
}

// follow shows the progress until ctx ends.
func (p *progress) follow(ctx context.Context, d *daemon.Daemon) {
	tick := time.NewTicker(200 * time.Millisecond)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
			p.show(d.Health())
		}
	}
}

func (p *progress) show(h api.Health) {
	if h.Status != api.StatusIndexing {
		if p.bar != nil {
			_ = p.bar.Finish() // a terminal that is gone needs no bar
		}
		p.bar = nil
		return
	}
	if p.bar == nil {
		p.bar = progressbar.NewOptions(100, progressbar.OptionSetWriter(p.out),
			progressbar.OptionSetDescription("indexing"), progressbar.OptionSetPredictTime(true), progressbar.OptionClearOnFinish())
	}
	_ = p.bar.Set(h.Percent)
}
