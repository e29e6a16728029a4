package index

import (
	"cmp"
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

	"github.com/blevesearch/bleve/v2/mapping"
)

// Embedder makes vectors of texts. Embed returns one vector for each text; all have the
// same length. It is safe for concurrent use.
type Embedder interface {
	Model() string
	Embed(ctx context.Context, texts []string) ([][]float32, error)
}

// Options are the options of Open.
type Options struct {
	Embedder Embedder     // nil: searches are lexical
	Language string       // of stemming, one of Languages; "": the first
	Logger   *slog.Logger // nil: logs nothing

	queryTimeout time.Duration // for the vector of a query; 0: queryTimeout
}

// Index is an open index. Its methods are safe for concurrent use.
type Index struct {
	dir     string
	opts    Options
	log     *slog.Logger
	mapping *mapping.IndexMappingImpl
	stop    map[string]bool // words that queries leave out
	rebuilt []string
	queries queries
	ended   context.Context // by Close
	end     context.CancelFunc

	adding sync.Mutex // held by AddFolder and RemoveFolder

	mu      sync.Mutex // guards the rest
	folders map[string]*folder
	closed  bool
}

// FolderStats describes what the index has of a folder.
type FolderStats struct {
	Path              string
	Documents, Chunks int
	TextBytes         int64
	IndexedAt         time.Time      // when it was last complete; zero: never
	Skipped           map[string]int // number of files by the reason why they are not indexed
}

// Stats describes the whole index.
type Stats struct {
	Documents, Chunks    int
	TextBytes, FileBytes int64
	Vectors              int // number of chunks that have a vector
}

// The ends of the names of directories that are no index of a folder.
const (
	asideMark   = ".corrupt-"
	removedMark = ".removed"
)

// Open opens the index in the directory at path, and creates it if there is none. Indexes
// of folders that are damaged or that it does not understand are moved aside, to
// NAME.corrupt-TIME; Rebuilt tells why. The caller adds these folders again. No other
// process may have the index open.
func Open(ctx context.Context, path string, o Options) (_ *Index, err error) {
	o.Language = cmp.Or(o.Language, Languages[0])
	o.queryTimeout = cmp.Or(o.queryTimeout, queryTimeout)
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	x := &Index{opts: o, log: o.Logger, folders: map[string]*folder{}}
	x.ended, x.end = context.WithCancel(context.Background())
	if x.dir, err = filepath.Abs(path); err != nil {
		return nil, fmt.Errorf("open index: %w", err)
	}
	if x.mapping, err = newMapping(o.Language); err == nil {
		x.stop, err = stopWords(o.Language)
	}
	if err == nil {
		err = os.Mkdir(x.dir, 0o700)
	}
	if errors.Is(err, fs.ErrExist) {
		err = nil
	}
	if err == nil {
		err = x.openFolders(ctx)
	}
	if err != nil {
		return nil, fmt.Errorf("open index %s: %w", x.dir, errors.Join(classify(err), x.Close()))
	}
	return x, nil
}

func (x *Index) openFolders(ctx context.Context) error {
	entries, err := os.ReadDir(x.dir)
	if err != nil {
		return err
	}
	for _, e := range entries {
		dir := filepath.Join(x.dir, e.Name())
		if strings.HasSuffix(e.Name(), removedMark) {
			err = os.RemoveAll(dir)
		} else if e.IsDir() && !strings.Contains(e.Name(), asideMark) {
			err = x.openOrMove(dir)
		}
		if err = cmp.Or(err, ctx.Err()); err != nil {
			return err
		}
	}
	return nil
}

// openOrMove opens the index of a folder, or moves it aside.
func (x *Index) openOrMove(dir string) error {
	f, err := openFolder(dir, x.opts.Language, x.log)
	if err == nil {
		f.vectors.open(filepath.Join(dir, vectorsFile), x.opts.Embedder)
		x.folders[f.path] = f
		return nil
	}
	if !errors.Is(err, ErrCorrupt) {
		return err
	}
	x.log.Warn("index moved aside", "path", dir, "err", err)
	x.rebuilt = append(x.rebuilt, err.Error())
	old, _ := filepath.Glob(dir + asideMark + "*") // of the same folder: one is enough
	for _, path := range old {
		if err := os.RemoveAll(path); err != nil {
			x.log.Warn("old index not removed", "err", err)
		}
	}
	return os.Rename(dir, dir+asideMark+time.Now().UTC().Format("20060102T150405.000"))
}

// Rebuilt returns why Open moved an index aside, or "".
func (x *Index) Rebuilt() string { return strings.Join(x.rebuilt, "; ") }

// Close interrupts EmbedMissing, waits for the other running calls, and closes the files.
// Later calls fail with ErrClosed.
func (x *Index) Close() error {
	x.end()
	x.mu.Lock()
	x.closed = true
	all := slices.Collect(maps.Values(x.folders))
	x.mu.Unlock()
	var errs []error
	for _, f := range all {
		errs = append(errs, f.close())
	}
	return errors.Join(errs...)
}

// folder returns the index of a folder.
func (x *Index) folder(path string) (*folder, error) {
	x.mu.Lock()
	defer x.mu.Unlock()
	f := x.folders[path]
	switch {
	case x.closed:
		return nil, ErrClosed
	case f == nil:
		return nil, fmt.Errorf("%w: %s", ErrNoFolder, path)
	}
	return f, nil
}

// all returns the indexes of some folders, or of all if none is named, by their paths.
func (x *Index) all(paths ...string) (all []*folder, err error) {
	x.mu.Lock()
	if len(paths) == 0 {
		paths = slices.Sorted(maps.Keys(x.folders))
	}
	closed := x.closed
	x.mu.Unlock()
	if closed {
		return nil, ErrClosed
	}
	for _, path := range paths {
		f, err := x.folder(path)
		if err != nil {
			return nil, err
		}
		all = append(all, f)
	}
	return all, nil
}

// AddFolder adds a folder, empty. Adding it again changes nothing.
func (x *Index) AddFolder(_ context.Context, path string) error {
	x.adding.Lock()
	defer x.adding.Unlock()
	if _, err := x.folder(path); !errors.Is(err, ErrNoFolder) {
		return err
	}
	dir := filepath.Join(x.dir, DocumentID(path, ""))
	f, err := createFolder(dir, x.mapping, record{Version: version, Language: x.opts.Language, Path: path}, x.log)
	if err != nil {
		_ = os.RemoveAll(dir) // else the next Open moves it aside
		return fmt.Errorf("add folder: %w", err)
	}
	f.vectors.open(filepath.Join(dir, vectorsFile), x.opts.Embedder)
	x.mu.Lock()
	defer x.mu.Unlock()
	if x.closed {
		return errors.Join(ErrClosed, f.close())
	}
	x.folders[path] = f
	return nil
}

// RemoveFolder removes a folder and all that was indexed of it.
func (x *Index) RemoveFolder(_ context.Context, path string) error {
	x.adding.Lock()
	defer x.adding.Unlock()
	f, err := x.folder(path)
	if err != nil {
		return err
	}
	x.mu.Lock()
	delete(x.folders, path)
	x.mu.Unlock()
	if err := f.close(); err != nil {
		x.log.Warn("index not closed", "path", f.dir, "err", err)
	}
	gone := f.dir + removedMark
	if err := errors.Join(os.RemoveAll(gone), os.Rename(f.dir, gone)); err != nil {
		return fmt.Errorf("remove folder: %w", classify(err))
	}
	if err := os.RemoveAll(gone); err != nil {
		x.log.Warn("index not removed", "err", err) // the next Open tries again
	}
	return nil
}

// Folders returns the folders in the order of their paths.
func (x *Index) Folders(context.Context) (stats []FolderStats, err error) {
	all, err := x.all()
	for _, f := range all {
		stats = append(stats, f.stats())
	}
	return stats, err
}

// Complete records that a folder was indexed whole at that time.
func (x *Index) Complete(_ context.Context, path string, at time.Time) error {
	f, err := x.folder(path)
	if err != nil {
		return err
	}
	f.writing.Lock()
	defer f.writing.Unlock()
	return f.call("complete folder", func() error {
		r := f.record // which only writers change
		r.IndexedAt = at
		return f.writeRecord(r)
	})
}

// Stats returns the sizes of the index.
func (x *Index) Stats(context.Context) (s Stats, err error) {
	all, err := x.all()
	for _, f := range all {
		one := f.stats()
		s.Documents += one.Documents
		s.Chunks += one.Chunks
		s.TextBytes += one.TextBytes
		s.FileBytes += f.bytes()
		if x.opts.Embedder != nil {
			s.Vectors += max(0, one.Chunks-f.vectors.missing())
		}
	}
	return s, err
}
