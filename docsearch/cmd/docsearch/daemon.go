package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime/debug"
	"time"

	"github.com/mcp-sse/mcp-sse/docsearch/crawl"
	"github.com/mcp-sse/mcp-sse/docsearch/daemon"
	"github.com/mcp-sse/mcp-sse/docsearch/discovery"
	"github.com/mcp-sse/mcp-sse/docsearch/extract"
	"github.com/mcp-sse/mcp-sse/docsearch/internal/pause"
)

type daemonCommand struct {
	common  `embed:""`
	logging `embed:""`
	Folder  []string `short:"f" help:"A folder to index, beside those of earlier runs. May be repeated." sep:"none" placeholder:"PATH"`
}

// memoryLimit is for the garbage collector. Files that are mapped come on top, and installed models.
const memoryLimit = 200 << 20

// makeRoom raises the limit of memory by what a model takes. Without that, a large one would leave so
// little that the garbage collector runs all the time. The limit stays when a model is given up: it
// only tells how much may be garbage.
func (p *program) makeRoom(model any) {
	large, ok := model.(interface{ Bytes() int64 })
	if ok && p.getenv("GOMEMLIMIT") == "" {
		debug.SetMemoryLimit(debug.SetMemoryLimit(-1) + large.Bytes())
	}
}

// Run serves until ctx ends.
func (c *daemonCommand) Run(ctx context.Context, p *program) error {
	dir, err := c.stateDir(p)
	if err != nil {
		return err
	}
	folders, err := resolve(c.Folder, false)
	if err != nil {
		return err
	}
	endpoint, err := c.endpoint(p)
	if err != nil {
		return err
	}
	self, err := os.Executable()
	if err != nil {
		return fmt.Errorf("find the path of docsearch itself: %w", err)
	}
	if p.getenv("GOMEMLIMIT") == "" {
		debug.SetMemoryLimit(memoryLimit)
	}
	log := newLogger(p.stderr, c.LogLevel)
	embedder, fault := c.embedder(dir, endpoint)
	p.makeRoom(embedder)
	if fault != "" {
		log.Warn("searches are by words alone", "err", fault)
	}
	d, err := daemon.New(daemon.Options{
		StateDir: dir, Addr: c.Addr, Folders: folders, Token: p.token(),
		IdleTimeout: c.IdleTimeout, Embedder: embedder, Former: p.former(dir), ModelFault: fault, Language: c.Language,
		Extract: extract.Options{Worker: []string{self, "extract-worker"}, CacheDir: filepath.Join(dir, "pdfium")},
		Crawl:   crawl.Options{MaxFileBytes: c.MaxFileBytes, Logger: log},
		Version: version(), Logger: log,
	})
	if errors.Is(err, discovery.ErrHeld) {
		if r, err := discovery.Read(dir); err == nil {
			return fmt.Errorf("a daemon runs already at http://%s, with pid %d; docsearch stop ends it", r.Address,
				r.PID)
		}
	}
	if err != nil {
		return err
	}
	return d.Run(ctx)
}

const stopTimeout = 15 * time.Second // how long stop waits for the daemon to end

type stopCommand struct {
	StateDir string `help:"The state directory of the daemon to end." env:"DOCSEARCH_STATE_DIR" placeholder:"DIR"`
}

// Run ends the daemon of the state directory, if one runs.
func (c *stopCommand) Run(ctx context.Context, p *program) error {
	dir, err := (&common{StateDir: c.StateDir}).stateDir(p)
	if err != nil {
		return err
	}
	held, err := discovery.Held(dir)
	if err != nil {
		return err
	}
	if !held {
		fmt.Fprintln(p.stdout, "No daemon runs.")
		return nil
	}
	record, err := discovery.Read(dir)
	if err != nil {
		return fmt.Errorf("the daemon is only starting, try again: %w", err)
	}
	if !record.Alive() {
		return fmt.Errorf("process %d is not the daemon that wrote the record", record.PID)
	}
	process, err := os.FindProcess(record.PID)
	if err != nil {
		return fmt.Errorf("find process %d: %w", record.PID, err)
	}
	if err := process.Signal(os.Interrupt); err != nil {
		return fmt.Errorf("end process %d: %w", record.PID, err)
	}
	for began := time.Now(); record.Alive(); {
		if !pause.For(ctx, 20*time.Millisecond) || time.Since(began) > stopTimeout {
			return fmt.Errorf("the daemon has not ended; end it with kill -9 %d", record.PID)
		}
	}
	fmt.Fprintf(p.stdout, "The daemon with pid %d has ended.\n", record.PID)
	return nil
}

type extractCommand struct{}

// Run extracts one document from stdin to stdout.
func (extractCommand) Run(p *program) error { return extract.Worker(p.stdin, p.stdout) }
