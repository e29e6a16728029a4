// Package index stores documents and searches them by their words and, with an Embedder,
// by their meaning.
//
//	Document ─ cut ─▶ passages ─┬─ words ──▶ a bleve index ──┐
//	                            └─ embed ──▶ a vectors file ─┴─ relevance ─▶ results
//
// Each folder has a directory of its own: removing it removes the folder, and damage costs
// no other. All files can be made anew.
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
	"syscall"
	"time"

	"github.com/blevesearch/bleve/v2/analysis"
	"github.com/blevesearch/bleve/v2/mapping"
	bolt "go.etcd.io/bbolt/errors"

	"github.com/mcp-sse/mcp-sse/docsearch/api"
)

var (
	// ErrNoFolder means that the index does not have the folder.
	ErrNoFolder = errors.New("no such folder")
	// ErrNoDocument means that the index does not have the document.
	ErrNoDocument = errors.New("no such document")
	// ErrCursor means that a cursor is not one that this query returned.
	ErrCursor = errors.New("the cursor does not belong to this query; repeat the query without a cursor")
	// ErrQuery means that a query has nothing to search for.
	ErrQuery = errors.New("the query has no word to search for")
	// ErrCorrupt means that files of the index are damaged, or cannot be read. The next
	// Open makes them anew.
	ErrCorrupt = errors.New("the index is damaged")
	// ErrDiskFull means that the index cannot grow. It stays readable.
	ErrDiskFull = errors.New("the disk is full")
	// ErrReadOnly means that the index cannot be written.
	ErrReadOnly = errors.New("the index cannot be written")
	// ErrClosed means that Close was called.
	ErrClosed = errors.New("the index is closed")
)

// classify returns err with the error of this package that it amounts to. An error that is neither
// a refusal of the system nor one of ours is damage.
func classify(err error) error {
	is := func(targets ...error) bool {
		return slices.ContainsFunc(targets, func(target error) bool {
			_, system := target.(syscall.Errno) // which bleve does not always wrap
			return errors.Is(err, target) || system && strings.Contains(err.Error(), target.Error())
		})
	}
	switch {
	case err == nil, is(ErrNoFolder, ErrNoDocument, ErrCursor, ErrQuery, ErrCorrupt, ErrDiskFull, ErrReadOnly,
		ErrClosed,
		context.Canceled, context.DeadlineExceeded, bolt.ErrTimeout, syscall.EMFILE, syscall.ENFILE, syscall.ENOMEM,
		syscall.EINTR):
		return err
	case is(syscall.ENOSPC, syscall.EDQUOT):
		return fmt.Errorf("%w (%w)", ErrDiskFull, err)
	case is(syscall.EROFS, syscall.EACCES, syscall.EPERM):
		return fmt.Errorf("%w (%w)", ErrReadOnly, err)
	}
	return fmt.Errorf("%w (%w)", ErrCorrupt, err)
}

// Embedder makes vectors of texts. Embed returns one vector for each text; all have the
// same length. A vector of zeros is of a text that the model does not understand: words alone
// find it. It is safe for concurrent use.
type Embedder interface {
	Model() string
	Embed(ctx context.Context, texts []string) ([][]float32, error)
}

// local is an Embedder that asks no other program, and is so fast that a folder counts as indexed for
// the first time only when its passages have vectors. Batch is how many texts it best gets at a time.
// Known is how much of a text it knows, from 0 to 1.
type local interface {
	Batch() int
	Known(text string) float64
}

// Options are the options of Open.
type Options struct {
	Embedder Embedder // nil: searches are lexical
	// Former returns the Embedder of a model that has made the vectors of a folder before, and
	// answers until those of Embedder are complete; nil if it is not known any more. Folders share
	// what it returns.
	Former   func(model string) Embedder
	Language string       // of stemming, one of Languages; "": the first
	Logger   *slog.Logger // nil: logs nothing

	queryTimeout time.Duration // for the vector of a query; 0: queryTimeout
}

// Index is an open index. Its methods are safe for concurrent use, but AddFolder and
// RemoveFolder are called one after the other.
type Index struct {
	dir     string
	opts    Options
	log     *slog.Logger
	mapping *mapping.IndexMappingImpl
	stop    analysis.TokenMap // words that queries leave out
	rebuilt []string
	asked   asked
	formers formers
	ended   context.Context // by Close
	end     context.CancelFunc

	mu      sync.Mutex // guards the rest
	folders map[string]*folder
	closed  bool
}

// The ends of the names of directories that are no index of a folder.
const (
	asideMark   = ".corrupt-"
	removedMark = ".removed"
)

// Open opens the index in the directory at path, and creates it if there is none. Indexes
// of folders that are damaged or that it does not understand are moved aside, to
// NAME.corrupt-TIME, and these folders are empty; Rebuilt tells why. No other process may
// have the index open.
func Open(ctx context.Context, path string, o Options) (_ *Index, err error) {
	o.Language = cmp.Or(o.Language, Languages[0])
	o.queryTimeout = cmp.Or(o.queryTimeout, queryTimeout)
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	x := &Index{dir: path, opts: o, log: o.Logger, folders: map[string]*folder{},
		formers: formers{open: o.Former, used: map[string]*former{}}}
	x.ended, x.end = context.WithCancel(context.Background())
	x.mapping, x.stop, err = newMapping(o.Language)
	if err == nil {
		err = os.Mkdir(x.dir, 0o700)
	}
	if err == nil || errors.Is(err, fs.ErrExist) {
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
		err = cmp.Or(err, ctx.Err())
		if err != nil {
			return err
		}
	}
	return nil
}

// openOrMove opens the index of a folder, or moves it aside and makes it anew.
func (x *Index) openOrMove(dir string) error {
	f, err := x.openFolder(dir, "")
	if errors.Is(err, ErrCorrupt) {
		x.log.Warn("index moved aside", "path", dir, "err", err)
		x.rebuilt = append(x.rebuilt, err.Error())
		path, _ := os.ReadFile(filepath.Join(dir, pathFile))
		if err := x.moveAside(dir); err != nil || DocumentID(string(path), "") != filepath.Base(dir) {
			return err
		}
		f, err = x.openFolder(dir, string(path))
	}
	if err == nil {
		x.folders[f.path] = f
	}
	return err
}

func (x *Index) moveAside(dir string) error {
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
	all, err := x.all(path)
	if err != nil {
		return nil, err
	}
	return all[0], nil
}

// all returns the indexes of some folders, or of all if none is named, by their paths.
func (x *Index) all(paths ...string) (all []*folder, err error) {
	x.mu.Lock()
	defer x.mu.Unlock()
	if x.closed {
		return nil, ErrClosed
	}
	if len(paths) == 0 {
		paths = slices.Sorted(maps.Keys(x.folders))
	}
	for _, path := range paths {
		f := x.folders[path]
		if f == nil {
			return nil, fmt.Errorf("%w: %s", ErrNoFolder, path)
		}
		all = append(all, f)
	}
	return all, nil
}

// AddFolder adds a folder, empty. Adding it again changes nothing.
func (x *Index) AddFolder(path string) error {
	if _, err := x.folder(path); !errors.Is(err, ErrNoFolder) {
		return err
	}
	dir := filepath.Join(x.dir, DocumentID(path, ""))
	f, err := x.openFolder(dir, path)
	if err != nil {
		_ = os.RemoveAll(dir) // else the next Open moves it aside
		return fmt.Errorf("add folder: %w", err)
	}
	x.mu.Lock()
	defer x.mu.Unlock()
	if x.closed {
		return errors.Join(ErrClosed, f.close())
	}
	x.folders[path] = f
	return nil
}

// RemoveFolder removes a folder and all that was indexed of it.
func (x *Index) RemoveFolder(path string) error {
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

// Folder returns what the index has of a folder.
func (x *Index) Folder(path string) (api.Folder, error) {
	f, err := x.folder(path)
	if err != nil {
		return api.Folder{}, err
	}
	return f.record.Load().Folder, nil
}

// Folders returns what the index has of each folder, in the order of their paths.
func (x *Index) Folders() ([]api.Folder, error) {
	all, err := x.all()
	stats := make([]api.Folder, 0, len(all))
	for _, f := range all {
		stats = append(stats, f.record.Load().Folder)
	}
	return stats, err
}

// Release gives back the memory of what was read of the files, which are mapped. Linux maps
// up to 2 MB around what is read, so that searches and batches, which look into each file,
// would come to have all of the index in memory.
func (x *Index) Release() {
	all, _ := x.all() // none when it is closed
	for _, f := range all {
		if err := f.release(); err != nil && !errors.Is(err, ErrClosed) {
			x.log.Warn("memory not given back", "path", f.dir, "err", err)
		}
	}
}

// Size returns how many bytes the files of the index take, and how many passages have a
// vector.
func (x *Index) Size() (bytes int64, vectors int, err error) {
	all, err := x.all()
	for _, f := range all {
		bytes += f.bytes()
		if x.opts.Embedder == nil {
			continue
		}
		passages, err := f.texts()
		if err != nil {
			return 0, 0, err
		}
		n := 0
		for key, some := range passages { // which counts some that are gone
			if f.current().Has(key) {
				n += some
			}
		}
		vectors += min(n, f.record.Load().Chunks)
	}
	return bytes, vectors, err
}
