package folders

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"path"
	"path/filepath"
	"runtime"
	"slices"
	"sync"
	"syscall"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/mcp-sse/mcp-sse/docsearch/api"
	"github.com/mcp-sse/mcp-sse/docsearch/crawl"
	"github.com/mcp-sse/mcp-sse/docsearch/extract"
	"github.com/mcp-sse/mcp-sse/docsearch/index"
)

// The index is written when this much text has come, or so many files, or after this time,
// whichever is first: large batches are fast, small ones are found early, and show progress.
const (
	batchText  = 1 << 20
	batchFiles = 1000
	batchTime  = 2 * time.Second
)

// readers is how many files are read and extracted at a time, of all folders.
var readers = runtime.GOMAXPROCS(0)

// announced is how many changed files make a folder "indexing": a file that is saved
// does not.
const announced = 100

// freshness is how old a file must be for its time to tell it from a later version: the
// clocks of file systems tick that coarsely.
const freshness = 2 * time.Second

// reconcile makes the index agree with the files at and below some paths.
func (f *folder) reconcile(dir *crawl.Folder, roots []string) error {
	if f.stamps == nil {
		stamps, err := f.set.opts.Index.Stamps(f.ctx, f.path)
		if err != nil {
			return err
		}
		f.stamps = stamps
	}
	c, err := f.compare(dir, roots)
	if err != nil {
		return err
	}
	work, all := len(c.todo)+len(c.gone), slices.Contains(roots, ".")
	if work == 0 && !all {
		return nil
	}
	if work > announced || f.indexed().IndexedAt.IsZero() {
		f.enter(api.StatusIndexing, "", work)
	}
	if err := f.apply(dir, c.todo, c.gone); err != nil {
		return err
	}
	if !dir.Exists() {
		return errMissing // some files may not have been read
	}
	if err := f.embedFirst(); err != nil {
		return err
	}
	if err := f.set.opts.Index.Complete(f.path, time.Now()); err != nil {
		return err
	}
	status := api.StatusHealthy
	if f.unreadable != "" {
		status = api.StatusDegraded
	}
	f.enter(status, f.unreadable, 0)
	return nil
}

// embedFirst gives a folder that is indexed for the first time its vectors, if that takes no
// longer than to index it: the first search finds by meaning, too.
func (f *folder) embedFirst() error {
	x := f.set.opts.Index
	if !x.EmbedsAtOnce() || !f.indexed().IndexedAt.IsZero() {
		return nil
	}
	err := x.EmbedFolder(f.ctx, f.path)
	if errors.Is(err, index.ErrCorrupt) || f.ctx.Err() != nil {
		return cmp.Or(err, f.ctx.Err())
	}
	if err != nil { // fillVectors tries again
		f.set.noteVectors(err)
	}
	return nil
}

// comparison is what compare has found.
type comparison struct {
	seen    map[string]bool
	unknown map[string]bool // paths that cannot be looked at; what is below them stays as it is
	todo    []crawl.File    // that the index does not know as they are
	gone    []string        // that it knows and that are gone
}

// compare compares the files at and below roots with what the index knows of them.
func (f *folder) compare(dir *crawl.Folder, roots []string) (*comparison, error) {
	c := &comparison{seen: map[string]bool{}, unknown: map[string]bool{}}
	below := map[string]bool{}
	for _, root := range roots {
		below[root] = true
		if err := f.compareBelow(dir, root, c); err != nil {
			return nil, err
		}
	}
	for known := range f.stamps {
		if !c.seen[known] && isWithin(known, below) && !isWithin(known, c.unknown) {
			c.gone = append(c.gone, known)
		}
	}
	return c, nil
}

// compareBelow is compare for one root. It leaves out files that it has seen before.
func (f *folder) compareBelow(dir *crawl.Folder, root string, c *comparison) error {
	unwanted, unreadable, first := 0, 0, ""
	err := dir.Walk(f.ctx, root, func(file crawl.File, err error) error {
		switch known, ok := f.stamps[file.Path]; {
		case err != nil:
			c.unknown[file.Path] = true
			unreadable++
			if unreadable == 1 {
				first = fmt.Sprintf("%s cannot be read: %v", path.Join(filepath.Base(f.path), file.Path), err)
			}
			return nil
		case c.seen[file.Path]:
			return nil
		case !f.set.opts.Extractor.Wants(file.Path):
			unwanted++
			return nil
		// A file that the watcher names has changed, whatever its time says.
		case !ok || known.Size != file.Size || known.Modified != file.ModTime.UnixNano() || file.Path == root:
			c.todo = append(c.todo, file)
		}
		c.seen[file.Path] = true
		return nil
	})
	switch {
	case errors.Is(err, crawl.ErrGone):
		return errMissing // the walk says nothing about the files
	case err != nil:
		return fmt.Errorf("list the files: %w", err)
	case unreadable > 1:
		f.unreadable = fmt.Sprintf("%d files or directories cannot be read, the first: %s", unreadable, first)
	case unreadable == 1 || root == ".":
		f.unreadable = first
	}
	if root == "." {
		f.mu.Lock()
		f.unwanted = unwanted
		f.mu.Unlock()
	}
	return nil
}

// isWithin reports whether a relative path is one of roots or below one.
func isWithin(file string, roots map[string]bool) bool {
	for ; file != "."; file = path.Dir(file) {
		if roots[file] {
			return true
		}
	}
	return roots["."]
}

// apply brings what compare found into the index, in batches.
func (f *folder) apply(dir *crawl.Folder, todo []crawl.File, gone []string) error {
	var deleted []index.Change
	for _, name := range gone {
		deleted = append(deleted, index.Change{Path: name, Delete: true})
	}
	if err := f.update(deleted); err != nil {
		return err
	}
	for len(todo) > 0 {
		changes, done, err := f.readBatch(dir, todo)
		err = cmp.Or(err, f.ctx.Err())
		if err != nil {
			return err
		}
		if err := f.update(changes); err != nil {
			return err
		}
		todo = todo[done:]
		f.mu.Lock()
		f.left = min(f.left, len(todo))
		f.mu.Unlock()
	}
	return nil
}

// readBatch turns the first files into changes, as many as make a batch.
func (f *folder) readBatch(dir *crawl.Folder, todo []crawl.File) (changes []index.Change, done int, err error) {
	group, ctx := errgroup.WithContext(f.ctx)
	group.SetLimit(readers)
	var mu sync.Mutex
	text := 0
	full := func() bool {
		mu.Lock()
		defer mu.Unlock()
		return text >= batchText
	}
	for began := time.Now(); done < len(todo) && done < batchFiles && time.Since(began) < batchTime &&
		ctx.Err() == nil && !full(); done++ {
		file := todo[done]
		group.Go(func() error {
			f.set.reads <- struct{}{}
			defer func() { <-f.set.reads }()
			change, err := f.read(ctx, dir, file)
			if change == nil || err != nil {
				return err
			}
			mu.Lock()
			defer mu.Unlock()
			changes = append(changes, *change)
			if change.Document != nil {
				text += len(change.Document.Text)
			}
			return nil
		})
	}
	err = group.Wait()
	return changes, done, err
}

// read reads and extracts one file. It returns nil when there is nothing to tell the
// index: the file is gone, or changes at this moment, and will be reported again. The
// error says that this and probably other files cannot be read now.
func (f *folder) read(ctx context.Context, dir *crawl.Folder, file crawl.File) (*index.Change, error) {
	known := f.stamps[file.Path]
	change := &index.Change{Path: file.Path, Stamp: stampFor(file)}
	data, found, err := dir.Read(ctx, file.Path)
	switch {
	case err == nil:
	case ctx.Err() != nil:
		return nil, ctx.Err()
	case errors.Is(err, crawl.ErrGone), errors.Is(err, crawl.ErrChanged):
		return nil, nil
	case errors.Is(err, syscall.EMFILE), errors.Is(err, syscall.ENFILE):
		return nil, fmt.Errorf("read the files: %w", err)
	case errors.Is(err, crawl.ErrTooLarge):
		change.Stamp.Skipped = "too_large"
		return change, nil
	case errors.Is(err, crawl.ErrNotRegular):
		change.Stamp.Skipped = "not_regular"
		return change, nil
	case known.Hash != "":
		return nil, nil // it cannot be read now, and what was indexed stays
	case errors.Is(err, fs.ErrPermission):
		change.Stamp.Skipped = "permission"
		return change, nil
	default:
		change.Stamp.Skipped = "unreadable"
		return change, nil
	}
	change.Stamp = stampFor(found)
	sum := sha256.Sum256(data)
	change.Stamp.Hash = hex.EncodeToString(sum[:])
	if known.Hash == change.Stamp.Hash && known.Size == change.Stamp.Size {
		change.Stamp.Skipped = known.Skipped
		return change, nil
	}
	change.Document, err = f.set.opts.Extractor.Extract(ctx, path.Base(file.Path), data)
	if skip, ok := errors.AsType[*extract.SkipError](err); ok {
		change.Stamp.Skipped = skip.Reason
		f.set.opts.Logger.Debug("file skipped", "folder", f.path, "file", file.Path, "err", skip)
	} else if err != nil {
		return nil, fmt.Errorf("extract the text of %s: %w", file.Path, err)
	}
	return change, nil
}

// stampFor returns the stamp of a file as it was read. If the file was written just
// now, the time is a nanosecond off, so that the next scan looks at its content again.
func stampFor(file crawl.File) index.Stamp {
	stamp := index.Stamp{Size: file.Size, Modified: file.ModTime.UnixNano()}
	if time.Since(file.ModTime) < freshness {
		stamp.Modified--
	}
	return stamp
}

// update writes one batch, and notes it in the stamps.
func (f *folder) update(batch []index.Change) error {
	if len(batch) == 0 {
		return nil
	}
	if err := f.set.opts.Index.Update(f.ctx, f.path, batch); err != nil {
		return err
	}
	for _, c := range batch {
		if c.Delete {
			delete(f.stamps, c.Path)
		} else {
			f.stamps[c.Path] = c.Stamp
		}
	}
	select {
	case f.set.toFill <- struct{}{}:
	default: // the goroutine that fills in vectors is awake
	}
	return nil
}
