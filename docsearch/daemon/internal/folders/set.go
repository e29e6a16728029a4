// Package folders keeps the index in step with the files of the configured folders.
//
// Each folder has a goroutine of its own, which compares the files with what the index
// knows of them, indexes what is new or changed, and then watches. Set holds them all.
package folders

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/mcp-sse/mcp-sse/docsearch/api"
	"github.com/mcp-sse/mcp-sse/docsearch/crawl"
	"github.com/mcp-sse/mcp-sse/docsearch/extract"
	"github.com/mcp-sse/mcp-sse/docsearch/index"
)

// Errors of Add and Remove, for errors.Is.
var (
	ErrUnknown   = errors.New("the daemon does not have this folder")
	ErrNoFolder  = errors.New("no such folder")
	ErrNotFolder = errors.New("not a folder")
	ErrRelative  = errors.New("the path of a folder must be absolute")
	ErrOwn       = errors.New("the daemon does not index its own state directory")
)

// Options configure a Set. All but Crawl and Logger are needed.
type Options struct {
	List      string // the file with the paths of the folders
	Index     *index.Index
	Extractor *extract.Extractor
	Crawl     crawl.Options
	Logger    *slog.Logger // nil: no log
}

// Set is all folders of a daemon. Its methods may be called concurrently.
type Set struct {
	opts   Options
	log    *slog.Logger
	ctx    context.Context // ends with Close; the goroutines of all folders live under it
	cancel context.CancelFunc
	wg     sync.WaitGroup
	reads  chan struct{} // a place for each file that is read and extracted at a time
	failed chan error    // gets the first damage of the index
	toFill chan struct{} // wakes the goroutine that fills in vectors

	adding sync.Mutex // serialises Add and Remove

	mu       sync.Mutex
	folders  map[string]*folder // by path
	revision int64
	changed  chan struct{} // closed when revision changes
	noVector string        // why vectors are missing, "" when they are not
}

// Open starts with the folders of earlier runs. The caller must call Close.
func Open(ctx context.Context, opts Options) (*Set, error) {
	s := &Set{
		opts: opts, log: opts.Logger, reads: make(chan struct{}, readers),
		failed: make(chan error, 1), toFill: make(chan struct{}, 1),
		folders: map[string]*folder{}, changed: make(chan struct{}),
	}
	if s.log == nil {
		s.log = slog.New(slog.DiscardHandler)
	}
	s.revision = time.Now().UnixMilli() // more than any of the daemon before, which clients may know
	known, err := s.agree(ctx)
	if err != nil {
		return nil, err
	}
	s.ctx, s.cancel = context.WithCancel(context.WithoutCancel(ctx))
	for _, stats := range known {
		s.start(stats)
	}
	s.wg.Go(s.fillVectors)
	return s, nil
}

// Close stops all work on the folders and waits for its end.
func (s *Set) Close() {
	s.cancel()
	s.wg.Wait()
}

// Failed delivers an error when the index is damaged and must be made anew.
func (s *Set) Failed() <-chan error { return s.failed }

// start adds a folder and its goroutine.
func (s *Set) start(stats index.FolderStats) *folder {
	f := newFolder(s, stats)
	s.mu.Lock()
	s.folders[f.path] = f
	s.bumpLocked()
	s.mu.Unlock()
	s.wg.Go(f.run)
	return f
}

// Add adds a folder and starts to index it. Adding one that is there changes nothing.
func (s *Set) Add(ctx context.Context, path string) (api.Folder, error) {
	s.adding.Lock()
	defer s.adding.Unlock()
	if f := s.lookUp(path); f != nil {
		return f.describe(), nil
	}
	resolved, err := resolve(path)
	if err != nil {
		return api.Folder{}, err
	}
	if own, err := filepath.EvalSymlinks(filepath.Dir(s.opts.List)); err == nil && resolved == own {
		return api.Folder{}, fmt.Errorf("%w: %s", ErrOwn, path)
	}
	if err := s.opts.Index.AddFolder(ctx, resolved); err != nil {
		return api.Folder{}, fmt.Errorf("add folder: %w", err)
	}
	if err := writeList(s.opts.List, append(s.paths(), resolved)); err != nil {
		return api.Folder{}, err // the next start makes the index agree with the list
	}
	s.log.Info("folder added", "folder", resolved)
	return s.start(index.FolderStats{Path: resolved}).describe(), nil
}

// resolve returns the absolute path of a folder without symbolic links.
func resolve(path string) (string, error) {
	if !filepath.IsAbs(path) {
		return "", fmt.Errorf("%w: %q", ErrRelative, path)
	}
	if strings.ContainsRune(path, 0) {
		return "", fmt.Errorf("%w: %q", ErrNoFolder, path)
	}
	resolved, err := filepath.EvalSymlinks(path)
	if errors.Is(err, fs.ErrNotExist) {
		return "", fmt.Errorf("%w: %s", ErrNoFolder, path)
	}
	if err != nil {
		return "", fmt.Errorf("resolve %s: %w", path, err)
	}
	info, err := os.Stat(resolved)
	if err != nil {
		return "", fmt.Errorf("look at %s: %w", path, err)
	}
	if !info.IsDir() {
		return "", fmt.Errorf("%w: %s", ErrNotFolder, path)
	}
	return resolved, nil
}

// Remove removes a folder and what was indexed of it, never a file.
func (s *Set) Remove(ctx context.Context, path string) error {
	s.adding.Lock()
	defer s.adding.Unlock()
	f := s.lookUp(path)
	if f == nil {
		return fmt.Errorf("%w: %s", ErrUnknown, path)
	}
	f.stop()
	s.mu.Lock()
	delete(s.folders, f.path)
	s.bumpLocked()
	s.mu.Unlock()
	if err := writeList(s.opts.List, s.paths()); err != nil {
		s.start(index.FolderStats{Path: f.path})
		return err
	}
	// If this fails, the next start does it.
	if err := s.opts.Index.RemoveFolder(ctx, f.path); err != nil && !errors.Is(err, index.ErrNoFolder) {
		return fmt.Errorf("remove folder: %w", err)
	}
	s.log.Info("folder removed", "folder", f.path)
	return nil
}

// Find returns the path of a folder of the set as the index knows it, without symbolic
// links. It fails with ErrUnknown.
func (s *Set) Find(path string) (string, error) {
	if f := s.lookUp(path); f != nil {
		return f.path, nil
	}
	return "", fmt.Errorf("%w: %s", ErrUnknown, path)
}

// lookUp returns the folder at path, which may lead there by symbolic links, or nil.
func (s *Set) lookUp(path string) *folder {
	if f := s.find(filepath.Clean(path)); f != nil {
		return f // perhaps it is gone for now
	}
	resolved, err := resolve(path)
	if err != nil {
		return nil
	}
	return s.find(resolved)
}

func (s *Set) find(path string) *folder {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.folders[path]
}

// List returns the folders in the order of their paths.
func (s *Set) List() api.Folders {
	s.mu.Lock()
	defer s.mu.Unlock()
	list := api.Folders{Folders: make([]api.Folder, 0, len(s.folders)), Revision: s.revision}
	for _, f := range s.folders {
		list.Folders = append(list.Folders, f.describe())
	}
	slices.SortFunc(list.Folders, func(a, b api.Folder) int { return strings.Compare(a.Path, b.Path) })
	return list
}

// Wait waits until the revision is not the one given, or ctx ends.
func (s *Set) Wait(ctx context.Context, after int64) {
	for {
		s.mu.Lock()
		revision, changed := s.revision, s.changed
		s.mu.Unlock()
		if revision != after {
			return
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return
		case <-s.ctx.Done():
			return
		}
	}
}

// bumpLocked tells those who wait that something has changed.
func (s *Set) bumpLocked() {
	s.revision++
	close(s.changed)
	s.changed = make(chan struct{})
}

func (s *Set) bump() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.bumpLocked()
}

// Status sums up all folders.
func (s *Set) Status() (status api.Status, percent int, warnings []string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	var total, left int
	indexing := false
	for _, path := range slices.Sorted(maps.Keys(s.folders)) {
		w := s.folders[path].work()
		total, left = total+w.total, left+w.left
		indexing = indexing || w.indexing
		if w.warning != "" {
			warnings = append(warnings, path+": "+w.warning)
		}
	}
	if s.noVector != "" {
		warnings = append(warnings, s.noVector)
	}
	status, percent = api.StatusHealthy, 100
	if len(warnings) > 0 {
		status = api.StatusDegraded
	}
	if indexing {
		status, percent = api.StatusIndexing, 99 // unless the count below says less
	}
	switch {
	case total > 0:
		percent = min(percent, 100*(total-left)/total)
	case indexing: // the files are not counted yet
		percent = 0
	}
	return status, percent, warnings
}

// report hands a damage of the index to the daemon.
func (s *Set) report(err error) {
	select {
	case s.failed <- err:
	default: // one is enough
	}
}
