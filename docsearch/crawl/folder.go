// Package crawl walks, reads and watches one folder.
//
// It reads nothing outside the folder, whatever happens in it meanwhile: it opens files
// through an os.Root, walks through no symbolic link, waits for no FIFO, reads only regular
// files and at most so many bytes of them. It follows .gitignore and .docsearchignore.
package crawl

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"log/slog"
	"os"
	"path"
	"path/filepath"
	"strings"
	"time"
)

// The errors of reading, for errors.Is.
var (
	// ErrGone reports that the file, or the folder, is not there.
	ErrGone = errors.New("it is gone")
	// ErrNotRegular reports a directory, a symbolic link, a FIFO, a socket or a device.
	ErrNotRegular = errors.New("it is not a regular file")
	// ErrTooLarge reports a file of more than Options.MaxFileBytes.
	ErrTooLarge = errors.New("it is too large")
	// ErrChanged reports that the file changed while it was read.
	ErrChanged = errors.New("it changed while it was read")
)

// Options limit a Folder. The zero value is the default.
type Options struct {
	// MaxFileBytes is the size of the largest file that Read reads, 16 MiB if zero.
	MaxFileBytes int64
	// Logger receives what goes wrong in the background. Nil discards it.
	Logger *slog.Logger
}

// File is a regular file.
type File struct {
	Path    string // relative to the folder, with slashes
	Size    int64
	ModTime time.Time
}

// files is what walks and reads do with an os.Root.
type files interface {
	Lstat(name string) (fs.FileInfo, error)
	OpenFile(name string, flag int, perm fs.FileMode) (*os.File, error)
}

// Folder is a folder. It is safe for concurrent use, but for Watch.
type Folder struct {
	path    string
	opts    Options
	log     *slog.Logger
	notify  func() (notifier, error)
	access  func(*os.Root) files // how walks and reads access the folder
	watcher *Watcher             // the last one, or nil
}

// Open returns the folder at an absolute path. It follows symbolic links in that path
// once; a link that later takes the place of the folder is not followed.
func Open(path string, o Options) (*Folder, error) {
	if !filepath.IsAbs(path) {
		return nil, fmt.Errorf("open folder %q: the path is not absolute", path)
	}
	resolved, err := filepath.EvalSymlinks(path)
	if err != nil {
		return nil, fmt.Errorf("open folder: %w", err)
	}
	if o.MaxFileBytes <= 0 {
		o.MaxFileBytes = 16 << 20
	}
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	f := &Folder{path: resolved, opts: o, log: o.Logger.With("folder", resolved), notify: newNotifier}
	f.access = func(root *os.Root) files { return root }
	root, err := f.open()
	if err != nil {
		return nil, fmt.Errorf("open folder: %w", err)
	}
	return f, root.Close()
}

// Path returns the path of the folder, absolute and without symbolic links.
func (f *Folder) Path() string { return f.path }

// Exists reports whether the folder is there and can be opened.
func (f *Folder) Exists() bool {
	root, err := f.open()
	return err == nil && root.Close() == nil
}

// open opens the directory that is at the path now.
func (f *Folder) open() (*os.Root, error) {
	if err := f.isAt(nil); err != nil {
		return nil, err
	}
	root, err := os.OpenRoot(f.path)
	if err != nil {
		return nil, err
	}
	if err := f.isAt(root); err != nil {
		root.Close()
		return nil, err
	}
	return root, nil
}

// isAt returns an error that wraps ErrGone if there is no directory at the path, or
// another one than root, which may be nil. While root is open, no other directory looks
// the same.
func (f *Folder) isAt(root *os.Root) error {
	now, err := os.Lstat(f.path)
	switch {
	case isGone(err):
		return fmt.Errorf("folder %s: %w: %w", f.path, ErrGone, err)
	case err != nil:
		return err
	case !now.IsDir():
		return fmt.Errorf("folder %s: %w", f.path, ErrGone)
	case root == nil:
		return nil
	}
	held, err := root.Stat(".")
	if err == nil && !os.SameFile(held, now) {
		err = fmt.Errorf("folder %s: %w", f.path, ErrGone)
	}
	return err
}

// Read returns the content of the file at a relative path with slashes, and what Stat
// said of it before and after. It reads ignored files too. The error is, or wraps, one
// of the Err variables, that of ctx, or one of the operating system.
func (f *Folder) Read(ctx context.Context, path string) ([]byte, File, error) {
	if err := ctx.Err(); err != nil {
		return nil, File{}, err
	}
	root, err := f.open()
	if err != nil {
		return nil, File{}, err
	}
	defer root.Close()
	data, info, err := readFile(f.access(root), path, f.opts.MaxFileBytes)
	if err != nil {
		return nil, File{}, fmt.Errorf("read %q: %w", path, err)
	}
	return data, File{Path: path, Size: info.Size(), ModTime: info.ModTime()}, nil
}

// readFile reads a regular file of at most limit bytes.
func readFile(root files, name string, limit int64) ([]byte, fs.FileInfo, error) {
	file, before, err := openFile(root, name)
	if err != nil {
		return nil, nil, err
	}
	defer file.Close()
	if before.Size() > limit {
		return nil, nil, fmt.Errorf("%w: %d bytes, at most %d are read", ErrTooLarge, before.Size(), limit)
	}
	data := make([]byte, before.Size()+1) // one more, to see that it grows
	n, err := io.ReadFull(file, data)
	if err != nil && !errors.Is(err, io.EOF) && !errors.Is(err, io.ErrUnexpectedEOF) {
		return nil, nil, err
	}
	after, err := file.Stat()
	if err != nil {
		return nil, nil, err
	}
	if int64(n) != before.Size() || after.Size() != before.Size() || !after.ModTime().Equal(before.ModTime()) {
		return nil, nil, ErrChanged
	}
	return data[:n], after, nil
}

// openFile opens a regular file. The root keeps everything inside the folder.
func openFile(root files, name string) (*os.File, fs.FileInfo, error) {
	before, err := root.Lstat(name)
	if err != nil {
		return nil, nil, readError(err)
	}
	if !before.Mode().IsRegular() { // to open a device may have effects
		return nil, nil, ErrNotRegular
	}
	file, err := root.OpenFile(name, os.O_RDONLY|nonBlocking, 0)
	if err != nil {
		return nil, nil, readError(err)
	}
	info, err := file.Stat()
	if err == nil && !os.SameFile(before, info) { // a link took its place
		err = ErrChanged
	}
	if err != nil {
		file.Close()
		return nil, nil, err
	}
	return file, info, nil
}

func readError(err error) error {
	if isGone(err) {
		return fmt.Errorf("%w: %w", ErrGone, err)
	}
	return err
}

// relative returns the slash path of an absolute one below the folder.
func (f *Folder) relative(absolute string) (string, bool) {
	rel, err := filepath.Rel(f.path, absolute)
	if err != nil || rel == ".." || strings.HasPrefix(rel, ".."+string(filepath.Separator)) {
		return "", false
	}
	return filepath.ToSlash(rel), true
}

func (f *Folder) absolute(rel string) string { return filepath.Join(f.path, filepath.FromSlash(rel)) }

// join is path.Join without cleaning, for names that are clean.
func join(dir, name string) string {
	if dir == "." {
		return name
	}
	return dir + "/" + name
}

func parent(rel string) string { return path.Dir(rel) }
