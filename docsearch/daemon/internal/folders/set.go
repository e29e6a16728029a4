// Package folders keeps the index in step with the files of the configured folders.
//
// Each folder has a goroutine of its own, which compares the files with what the index
// knows of them, indexes what is new or changed, and then watches. Set holds them all.
package folders

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"

	"github.com/mcp-sse/mcp-sse/docsearch/api"
	"github.com/mcp-sse/mcp-sse/docsearch/crawl"
	"github.com/mcp-sse/mcp-sse/docsearch/extract"
	"github.com/mcp-sse/mcp-sse/docsearch/index"
)

// ErrInvalid means that a path cannot be that of a folder to index.
var ErrInvalid = errors.New("not a folder that can be indexed")

// Options configure a Set. All are needed.
type Options struct {
	StateDir  string // which cannot be a folder
	Index     *index.Index
	Extractor *extract.Extractor
	Crawl     crawl.Options
	Logger    *slog.Logger
}

// Set is all folders of a daemon. Its methods may be called concurrently.
type Set struct {
	opts   Options
	ctx    context.Context // ends with Close; the goroutines of all folders live under it
	cancel context.CancelFunc
	wg     sync.WaitGroup
	reads  chan struct{} // a place for each file that is read and extracted at a time
	failed chan error    // gets the first damage of the index
	toFill chan struct{} // wakes the goroutine that fills in vectors

	adding sync.Mutex // serialises Add and Remove

	mu       sync.Mutex
	folders  map[string]*folder // by path
	noVector string             // why vectors are missing, "" when they are not
}

// Open starts with the folders that the index has. The caller must call Close.
func Open(ctx context.Context, opts Options) (*Set, error) {
	s := &Set{
		opts: opts, reads: make(chan struct{}, readers), failed: make(chan error, 1), toFill: make(chan struct{}, 1),
		folders: map[string]*folder{},
	}
	known, err := opts.Index.Folders()
	if err != nil {
		return nil, err
	}
	s.ctx, s.cancel = context.WithCancel(context.WithoutCancel(ctx))
	for _, f := range known {
		s.start(f.Path)
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

// Report has Failed deliver a damage of the index.
func (s *Set) Report(err error) {
	select {
	case s.failed <- err:
	default: // one is enough
	}
}

// start adds a folder and its goroutine.
func (s *Set) start(path string) *folder {
	f := newFolder(s, path)
	s.mu.Lock()
	s.folders[path] = f
	s.mu.Unlock()
	s.wg.Go(f.run)
	return f
}

// Add adds a folder and starts to index it. Adding one that is there changes nothing.
func (s *Set) Add(path string) (api.Folder, error) {
	s.adding.Lock()
	defer s.adding.Unlock()
	if known, err := s.Find(path); err == nil {
		return s.find(known).describe(), nil
	}
	resolved, err := resolve(path)
	if err != nil {
		return api.Folder{}, err
	}
	if own, err := filepath.EvalSymlinks(s.opts.StateDir); err == nil && resolved == own {
		return api.Folder{}, fmt.Errorf("%w: %s is the daemon's own state directory", ErrInvalid, path)
	}
	if err := s.opts.Index.AddFolder(resolved); err != nil {
		return api.Folder{}, err
	}
	s.opts.Logger.Info("folder added", "folder", resolved)
	return s.start(resolved).describe(), nil
}

// resolve returns the absolute path of a folder without symbolic links.
func resolve(path string) (string, error) {
	if !filepath.IsAbs(path) {
		return "", fmt.Errorf("%w: the path %q is not absolute", ErrInvalid, path)
	}
	resolved, err := filepath.EvalSymlinks(path)
	if err != nil {
		return "", fmt.Errorf("%w: %w", index.ErrNoFolder, err)
	}
	if info, err := os.Stat(resolved); err != nil || !info.IsDir() {
		return "", fmt.Errorf("%w: %s", ErrInvalid, path)
	}
	return resolved, nil
}

// Remove removes a folder and what was indexed of it, never a file.
func (s *Set) Remove(path string) error {
	s.adding.Lock()
	defer s.adding.Unlock()
	path, err := s.Find(path)
	if err != nil {
		return err
	}
	s.find(path).stop()
	s.mu.Lock()
	delete(s.folders, path)
	s.mu.Unlock()
	if err := s.opts.Index.RemoveFolder(path); err != nil && !errors.Is(err, index.ErrNoFolder) {
		return err
	}
	s.opts.Logger.Info("folder removed", "folder", path)
	return nil
}

// Find returns the path of a folder of the set as the index knows it, without symbolic
// links. It fails with index.ErrNoFolder.
func (s *Set) Find(path string) (string, error) {
	resolved, err := filepath.EvalSymlinks(path)
	if err != nil {
		resolved = filepath.Clean(path) // perhaps it is gone for now
	}
	if s.find(resolved) == nil {
		return "", fmt.Errorf("%w: the daemon does not have %s", index.ErrNoFolder, path)
	}
	return resolved, nil
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
	list := api.Folders{Folders: make([]api.Folder, 0, len(s.folders))}
	for _, f := range s.folders {
		list.Folders = append(list.Folders, f.describe())
	}
	slices.SortFunc(list.Folders, func(a, b api.Folder) int { return strings.Compare(a.Path, b.Path) })
	return list
}

// Status sums up all folders. The percentage is that of the folder that is least complete.
func (s *Set) Status() (status api.Status, percent int, warnings []string) {
	status, percent = api.StatusHealthy, 100
	for _, f := range s.List().Folders {
		if f.Warning != "" {
			warnings = append(warnings, f.Path+": "+f.Warning)
		}
		if f.Status == api.StatusIndexing {
			status, percent = api.StatusIndexing, min(percent, f.Percent)
		}
	}
	if len(warnings) > 0 && status == api.StatusHealthy {
		status = api.StatusDegraded
	}
	return status, percent, warnings
}
