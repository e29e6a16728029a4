package folders

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"sync"
	"time"

	"github.com/mcp-sse/mcp-sse/docsearch/api"
	"github.com/mcp-sse/mcp-sse/docsearch/crawl"
	"github.com/mcp-sse/mcp-sse/docsearch/index"
)

const (
	missingPause = 2 * time.Second // between two looks for a folder that is gone
	changedPause = time.Second     // after a scan that met a change
	failurePause = 5 * time.Second // before indexing is tried again after an error

	unreadablePause = time.Minute // before files that could not be looked at are tried again
)

// errMissing ends the work on a folder that is gone.
var errMissing = errors.New("the folder is gone; what was indexed stays, and is kept up to date again when it returns")

// folder is one folder and the goroutine that keeps its part of the index up to date.
type folder struct {
	set    *Set
	path   string
	ctx    context.Context
	cancel context.CancelFunc
	done   chan struct{} // closed when the goroutine has ended

	// Of the goroutine alone.
	stamps     map[string]index.Stamp // what the index knows of each file, nil before it was read
	unreadable string                 // what cannot be looked at, "" if all can

	mu       sync.Mutex
	status   api.Status
	warning  string
	unwanted int // files whose names say that they hold no text
	total    int // files to index in the scan that runs
	left     int
}

func newFolder(s *Set, path string) *folder {
	f := &folder{set: s, path: path, done: make(chan struct{}), status: api.StatusHealthy}
	if f.indexed().IndexedAt.IsZero() {
		f.status = api.StatusIndexing
	}
	f.ctx, f.cancel = context.WithCancel(s.ctx)
	return f
}

// stop ends the goroutine and waits for it.
func (f *folder) stop() {
	f.cancel()
	<-f.done
}

// indexed returns what the index has of the folder.
func (f *folder) indexed() api.Folder {
	stats, err := f.set.opts.Index.Folder(f.path)
	if err != nil {
		return api.Folder{Path: f.path} // the index is closed
	}
	return stats
}

// describe returns the state as clients see it.
func (f *folder) describe() api.Folder {
	state := f.indexed()
	f.mu.Lock()
	defer f.mu.Unlock()
	state.Status, state.Warning, state.Percent = f.status, f.warning, 100
	switch {
	case f.total > 0:
		state.Percent = min(99, 100*(f.total-f.left)/f.total)
	case state.IndexedAt.IsZero(): // the files are not counted yet
		state.Percent = 0
	case f.status == api.StatusIndexing:
		state.Percent = 99
	}
	state.Skipped = maps.Clone(state.Skipped)
	if f.unwanted > 0 {
		if state.Skipped == nil {
			state.Skipped = map[string]int{}
		}
		state.Skipped["unsupported"] += f.unwanted
	}
	return state
}

// run follows the folder until it is stopped.
func (f *folder) run() {
	defer close(f.done)
	for f.ctx.Err() == nil {
		f.pause(f.follow())
	}
}

// follow indexes the folder and then what changes in it. It returns when that is not
// possible any more.
func (f *folder) follow() error {
	dir, err := crawl.Open(f.path, f.set.opts.Crawl)
	if errors.Is(err, fs.ErrNotExist) || errors.Is(err, crawl.ErrGone) {
		return errMissing
	}
	if err != nil {
		return fmt.Errorf("open the folder: %w", err)
	}
	ctx, cancel := context.WithCancel(f.ctx)
	watcher, err := dir.Watch(ctx) // before the scan, which then misses no change
	if err != nil {
		cancel()
		return err
	}
	defer watcher.Wait()
	defer cancel()
	if err := f.reconcile(dir, []string{"."}); err != nil {
		return err
	}
	var again <-chan time.Time // nil while all files can be looked at
	for {
		if again == nil && f.unreadable != "" {
			again = time.After(unreadablePause)
		}
		paths, ok := []string{"."}, true
		select {
		case paths, ok = <-watcher.Changes():
		case <-again:
			again = nil
		}
		if !ok {
			return f.ctx.Err()
		}
		if err := f.reconcile(dir, paths); err != nil {
			return err
		}
	}
}

// pause makes err the state of the folder and waits until it is worth another try.
func (f *folder) pause(err error) {
	if f.ctx.Err() != nil || err == nil {
		return
	}
	wait, status := failurePause, api.StatusDegraded
	switch {
	case errors.Is(err, index.ErrCorrupt):
		f.set.Report(err)
		<-f.ctx.Done()
		return
	case errors.Is(err, crawl.ErrChanged): // what is ignored changed during the walk
		wait, status = changedPause, ""
	case errors.Is(err, errMissing):
		wait, status = missingPause, api.StatusMissing
	default:
		f.stamps = nil // some of it may not have been written
	}
	f.mu.Lock()
	same := status == "" || f.status == status && f.warning == err.Error()
	f.mu.Unlock()
	if !same {
		f.set.opts.Logger.Warn("folder is not kept up to date", "folder", f.path, "err", err)
		f.enter(status, err.Error(), 0)
	}
	select {
	case <-time.After(wait):
	case <-f.ctx.Done():
	}
}

// enter changes the status, with so many files to index.
func (f *folder) enter(status api.Status, warning string, files int) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.status, f.warning, f.total, f.left = status, warning, files, files
}
