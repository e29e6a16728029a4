package folders

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io/fs"
	"path"
	"runtime"
	"slices"
	"syscall"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/mcp-sse/mcp-sse/docsearch/api"
	"github.com/mcp-sse/mcp-sse/docsearch/crawl"
	"github.com/mcp-sse/mcp-sse/docsearch/extract"
	"github.com/mcp-sse/mcp-sse/docsearch/index"
)

// A transaction of the index takes this much text, or so many files, or what has come
// in this time, whichever is reached first: large ones are fast, small ones are found
// early.
const (
	batchText  = 16 << 20
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
	if err := f.readStamps(); err != nil {
		return err
	}
	c, err := f.compare(dir, roots)
	if err != nil {
		return err
	}
	work, all := len(c.todo)+len(c.gone), slices.Contains(roots, ".")
	if work == 0 && !all {
		return nil
	}
	if work > announced || f.describe().IndexedAt.IsZero() {
		f.begin(work)
	}
	if err := f.apply(dir, c.todo, c.gone); err != nil {
		return err
	}
	if !dir.Exists() {
		return errMissing // some files may not have been read
	}
	return f.finish()
}

// readStamps reads what the index knows of the files, once.
func (f *folder) readStamps() (err error) {
	if f.stamps == nil {
		f.stamps, err = f.set.opts.Index.Stamps(f.ctx, f.path)
	}
	return err
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

// compareBelow is compare for one root. What it has seen before it leaves out.
func (f *folder) compareBelow(dir *crawl.Folder, root string, c *comparison) error {
	unwanted := 0
	err := dir.WalkAt(f.ctx, root, func(file crawl.File) error {
		switch known, ok := f.stamps[file.Path]; {
		case c.seen[file.Path]:
			return nil
		case !f.set.opts.Extractor.Wants(file.Path):
			unwanted++
			return nil
		// What the watcher names has changed, whatever its time says.
		case !ok || known.Size != file.Size || !known.ModTime.Equal(file.ModTime) || file.Path == root:
			c.todo = append(c.todo, file)
		}
		c.seen[file.Path] = true
		return nil
	})
	partly, ok := errors.AsType[*crawl.UnreadableError](err)
	switch {
	case ok:
		for _, path := range partly.Paths {
			c.unknown[path] = true
		}
		f.unreadable = partly.Error()
	case errors.Is(err, crawl.ErrGone):
		return errMissing // the walk says nothing about the files
	case err != nil:
		return fmt.Errorf("list the files: %w", err)
	case root == ".":
		f.unreadable = ""
	}
	if root == "." {
		f.unwanted = unwanted
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

// apply brings what compare found into the index.
func (f *folder) apply(dir *crawl.Folder, todo []crawl.File, gone []string) error {
	group, ctx := errgroup.WithContext(f.ctx)
	files := make(chan crawl.File)
	changes := make(chan index.Change)
	group.Go(func() error {
		defer close(files)
		for _, file := range todo {
			select {
			case files <- file:
			case <-ctx.Done():
				return ctx.Err()
			}
		}
		return nil
	})
	group.Go(func() error {
		defer close(changes)
		inner, ctx := errgroup.WithContext(ctx)
		for range readers {
			inner.Go(func() error { return f.readAll(ctx, dir, files, changes) })
		}
		for _, name := range gone {
			select {
			case changes <- index.Change{Path: name, Delete: true}:
			case <-ctx.Done():
			}
		}
		return inner.Wait()
	})
	group.Go(func() error { return f.write(ctx, changes) })
	return group.Wait()
}

// readAll turns files into changes.
func (f *folder) readAll(ctx context.Context, dir *crawl.Folder, files <-chan crawl.File, changes chan<- index.Change) error {
	for file := range files {
		select {
		case f.set.reads <- struct{}{}:
		case <-ctx.Done():
			return ctx.Err()
		}
		change, ok, err := f.read(ctx, dir, file)
		<-f.set.reads
		if err != nil {
			return err
		}
		if !ok {
			f.progress(1)
			continue
		}
		select {
		case changes <- change:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	return nil
}

// read reads and extracts one file. ok is false when there is nothing to tell the
// index: the file is gone, or changes at this moment, and will be reported again. The
// error says that this and probably other files cannot be read now.
func (f *folder) read(ctx context.Context, dir *crawl.Folder, file crawl.File) (change index.Change, ok bool, err error) {
	known := f.stampOf(file.Path)
	change = index.Change{Path: file.Path, Stamp: stampFor(file)}
	data, found, err := dir.Read(ctx, file.Path)
	switch {
	case err == nil:
	case ctx.Err() != nil:
		return change, false, ctx.Err()
	case errors.Is(err, crawl.ErrGone), errors.Is(err, crawl.ErrChanged):
		return change, false, nil
	case errors.Is(err, syscall.EMFILE), errors.Is(err, syscall.ENFILE):
		return change, false, fmt.Errorf("read the files: %w", err)
	case known.Hash != [sha256.Size]byte{} && !errors.Is(err, crawl.ErrTooLarge) && !errors.Is(err, crawl.ErrNotRegular):
		return change, false, nil // it cannot be read now, and what was indexed stays
	default:
		change.Stamp.Skipped = skipReason(err)
		return change, true, nil
	}
	change.Stamp = stampFor(found)
	change.Stamp.Hash = sha256.Sum256(data)
	if known.Hash == change.Stamp.Hash && known.Size == change.Stamp.Size {
		change.Stamp.Skipped = known.Skipped
		return change, true, nil
	}
	change.Document, err = f.set.opts.Extractor.Extract(ctx, path.Base(file.Path), data)
	if skip, ok := errors.AsType[*extract.SkipError](err); ok {
		change.Stamp.Skipped = skip.Reason
		f.set.log.Debug("file skipped", "folder", f.path, "file", file.Path, "err", skip)
	} else if err != nil {
		return change, false, fmt.Errorf("extract the text of %s: %w", file.Path, err)
	}
	return change, true, nil
}

// stampOf returns what the index knows of a file. While a scan runs, only write
// changes the stamps, under mu.
func (f *folder) stampOf(name string) index.Stamp {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.stamps[name]
}

// stampFor returns the stamp of a file as it was read. If the file was written just
// now, the time is a nanosecond off, so that the next scan looks at its content again.
func stampFor(file crawl.File) index.Stamp {
	stamp := index.Stamp{Size: file.Size, ModTime: file.ModTime}
	if time.Since(file.ModTime) < freshness {
		stamp.ModTime = stamp.ModTime.Add(-1)
	}
	return stamp
}

// skipReason says in a word why a file cannot be read.
func skipReason(err error) string {
	switch {
	case errors.Is(err, crawl.ErrTooLarge):
		return "too_large"
	case errors.Is(err, crawl.ErrNotRegular):
		return "not_regular"
	case errors.Is(err, fs.ErrPermission):
		return "permission"
	}
	return "unreadable"
}

// write writes changes in batches, until there are no more.
func (f *folder) write(ctx context.Context, changes <-chan index.Change) error {
	tick := time.NewTicker(batchTime)
	defer tick.Stop()
	var batch []index.Change
	size := 0
	flush := func() (err error) {
		if len(batch) > 0 {
			err = f.update(ctx, batch)
		}
		batch, size = nil, 0
		return err
	}
	for {
		select {
		case change, ok := <-changes:
			if !ok {
				return flush()
			}
			batch = append(batch, change)
			if change.Document != nil {
				size += len(change.Document.Text)
			}
			if size < batchText && len(batch) < batchFiles {
				continue
			}
		case <-tick.C:
		}
		if err := flush(); err != nil {
			return err
		}
	}
}

// update writes one batch, and notes it in the stamps.
func (f *folder) update(ctx context.Context, batch []index.Change) error {
	if err := f.set.opts.Index.Update(ctx, f.path, batch); err != nil {
		return fmt.Errorf("write the index: %w", err)
	}
	f.mu.Lock()
	for _, c := range batch {
		if c.Delete {
			delete(f.stamps, c.Path)
		} else {
			f.stamps[c.Path] = c.Stamp
		}
	}
	f.mu.Unlock()
	f.progress(len(batch))
	f.set.wakeVectors()
	return nil
}

// begin notes that a scan has found so many files to bring into the index.
func (f *folder) begin(files int) {
	f.mu.Lock()
	before := f.state.Status
	f.state.Status, f.state.Warning = api.StatusIndexing, ""
	f.total, f.left = files, files
	f.state.Percent = 0
	f.mu.Unlock()
	if before != api.StatusIndexing {
		f.set.bump()
	}
}

// progress counts files that are done.
func (f *folder) progress(files int) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.left -= files
	if f.total > 0 {
		f.state.Percent = min(99, 100*(f.total-f.left)/f.total)
	}
}

// finish notes in the index and in the state that the folder is complete.
func (f *folder) finish() error {
	now := time.Now()
	if err := f.set.opts.Index.Complete(f.ctx, f.path, now); err != nil {
		return fmt.Errorf("write the index: %w", err)
	}
	all, err := f.set.opts.Index.Folders(f.ctx)
	if err != nil {
		return fmt.Errorf("read the index: %w", err)
	}
	f.mu.Lock()
	for _, stats := range all {
		if stats.Path == f.path {
			f.completeLocked(stats, now)
		}
	}
	f.mu.Unlock()
	f.set.bump()
	return nil
}

func (f *folder) completeLocked(stats index.FolderStats, now time.Time) {
	f.total, f.left = 0, 0
	f.state = api.Folder{Path: f.path, Status: api.StatusHealthy, Percent: 100, IndexedAt: now,
		Documents: stats.Documents, Chunks: stats.Chunks, TextBytes: stats.TextBytes, Skipped: stats.Skipped}
	if f.unreadable != "" {
		f.state.Status, f.state.Warning = api.StatusDegraded, f.unreadable
	}
	if f.unwanted > 0 {
		if f.state.Skipped == nil {
			f.state.Skipped = map[string]int{}
		}
		f.state.Skipped["unsupported"] += f.unwanted
	}
}
