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
	missingPause = 2 * time.Second  // between two looks for a folder that is gone
	changedPause = time.Second      // after a scan that met a change
	failurePause = 15 * time.Second // before indexing is tried again after an error

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
	unwanted   int                    // files whose names say that they hold no text
	unreadable string                 // what cannot be looked at, "" if all can

	mu    sync.Mutex
	state api.Folder
	total int // files to index in the scan that runs
	left  int
}

func newFolder(s *Set, stats index.FolderStats) *folder {
	f := &folder{set: s, path: stats.Path, done: make(chan struct{})}
	f.state = api.Folder{Status: api.StatusHealthy, Percent: 100, Path: stats.Path, IndexedAt: stats.IndexedAt, Skipped: stats.Skipped,
		Documents: stats.Documents, Chunks: stats.Chunks, TextBytes: stats.TextBytes}
	if stats.IndexedAt.IsZero() {
		f.state.Status, f.state.Percent = api.StatusIndexing, 0
	}
	f.ctx, f.cancel = context.WithCancel(s.ctx)
	return f
}

// stop ends the goroutine and waits for it.
func (f *folder) stop() {
	f.cancel()
	<-f.done
}

// describe returns the state as clients see it.
func (f *folder) describe() api.Folder {
	f.mu.Lock()
	defer f.mu.Unlock()
	state := f.state
	state.Skipped = maps.Clone(state.Skipped)
	return state
}

// work is what a folder adds to the status of its Set.
type work struct {
	total, left int // files to index in the scan that runs
	indexing    bool
	warning     string
}

func (f *folder) work() work {
	f.mu.Lock()
	defer f.mu.Unlock()
	return work{f.total, f.left, f.state.Status == api.StatusIndexing, f.state.Warning}
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
	wait := failurePause
	switch {
	case errors.Is(err, index.ErrCorrupt):
		f.set.report(err)
		<-f.ctx.Done()
		return
	case errors.Is(err, crawl.ErrChanged): // what is ignored changed during the walk
		wait = changedPause
	case errors.Is(err, errMissing):
		wait = missingPause
		f.enter(api.StatusMissing, errMissing.Error())
	default:
		f.stamps = nil // some of it may not have been written
		f.enter(api.StatusDegraded, err.Error())
	}
	select {
	case <-time.After(wait):
	case <-f.ctx.Done():
	}
}

// enter changes the status, and tells and logs it if it is another.
func (f *folder) enter(status api.Status, warning string) {
	f.mu.Lock()
	same := f.state.Status == status && f.state.Warning == warning
	f.state.Status, f.state.Warning = status, warning
	f.total, f.left = 0, 0
	f.mu.Unlock()
	if same {
		return
	}
	f.set.bump()
	if warning != "" {
		f.set.log.Warn("folder is not kept up to date", "folder", f.path, "err", warning)
	}
}
