package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"github.com/mcp-sse/mcp-sse/docsearch/crawl"
	"github.com/mcp-sse/mcp-sse/docsearch/daemon"
	"github.com/mcp-sse/mcp-sse/docsearch/discovery"
	"github.com/mcp-sse/mcp-sse/docsearch/extract"
)

type daemonCommand struct {
	common  `embed:""`
	logging `embed:""`
	Folder  []string `short:"f" help:"A folder to index, beside those of earlier runs. May be repeated." sep:"none" placeholder:"PATH"`
}

// Run serves until ctx ends.
func (c *daemonCommand) Run(ctx context.Context, p *program) error {
	dir, err := c.stateDir(p)
	if err != nil {
		return err
	}
	folders, err := existing(c.Folder)
	if err != nil {
		return err
	}
	embedder, err := c.embedder(p)
	if err != nil {
		return err
	}
	self, err := os.Executable()
	if err != nil {
		return fmt.Errorf("find the path of docsearch itself: %w", err)
	}
	log := newLogger(p.stderr, c.LogLevel)
	d, err := daemon.New(daemon.Options{
		StateDir: dir, Addr: c.Addr, Folders: folders, Token: p.token(), IdleTimeout: c.IdleTimeout, Embedder: embedder, Language: c.Language,
		Extract: extract.Options{Worker: []string{self, "extract-worker"}, CacheDir: filepath.Join(dir, "pdfium")},
		Crawl:   crawl.Options{MaxFileBytes: c.MaxFileBytes, Logger: log},
		Version: version(), Logger: log,
	})
	if errors.Is(err, discovery.ErrHeld) {
		if r, err := discovery.Read(dir); err == nil {
			return fmt.Errorf("a daemon runs already at http://%s, with pid %d; docsearch stop ends it", r.Address, r.PID)
		}
	}
	if err != nil {
		return err
	}
	if bar := newProgress(p.stderr); bar != nil {
		shown, stop := context.WithCancel(ctx)
		done := make(chan struct{})
		go func() { // ends with Run
			defer close(done)
			bar.follow(shown, d)
		}()
		defer func() {
			stop()
			<-done
		}()
	}
	return d.Run(ctx)
}

const (
	stopTimeout = 15 * time.Second // how long stop waits for the daemon to end
	exitTimeout = time.Second      // and for its process, once it has released the lock
)

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
	return c.wait(ctx, p, dir, record)
}

// wait waits until the daemon of the record has released the lock, and its process has
// ended: the lock goes first. A process that has ended counts as alive while its parent
// does not wait for it, so exitTimeout bounds the wait for that.
func (c *stopCommand) wait(ctx context.Context, p *program, dir string, record discovery.Record) error {
	ctx, cancel := context.WithTimeout(ctx, stopTimeout)
	defer cancel()
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	var released time.Time
	for {
		held, err := discovery.Held(dir)
		if err != nil {
			return err
		}
		if !held && released.IsZero() {
			released = time.Now()
		}
		if !released.IsZero() && (!record.Alive() || time.Since(released) > exitTimeout) {
			fmt.Fprintf(p.stdout, "The daemon with pid %d has ended.\n", record.PID)
			return nil
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			return fmt.Errorf("the daemon has not ended after %s; end it with kill -9 %d", stopTimeout, record.PID)
		}
	}
}

type extractCommand struct{}

// Run extracts one document from stdin to stdout.
func (extractCommand) Run(p *program) error { return extract.Worker(p.stdin, p.stdout) }
