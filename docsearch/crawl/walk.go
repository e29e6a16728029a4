package crawl

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"slices"
	"strings"
	"unicode/utf8"
)

// maxDepth is the depth of the deepest directory that is entered. The time to open a file
// without following links grows with the square of its depth.
const maxDepth = 64

// Walk calls visit for each regular file at and below a relative path that is not ignored,
// in the order of their paths. The path is "." for the whole folder, or one that Watcher
// reports, which need not be there. Nothing is visited if it is ignored, or is no file or
// directory.
//
// With an error visit gets the path of what could not be looked at, and why: a directory
// that may not be read, or whose ignore file cannot be read or is beyond the limits, or a
// file. The state of all files at and below it is unknown: they may be as they were, changed or gone. If that is
// a directory above the path of the walk, visit gets that. A file that is gone is not visited.
//
// After an error of Walk, any file that was not visited may be there: the error is that of
// visit, of ctx, that of a system that lacks resources, or wraps ErrChanged if an ignore file
// changed while it was read, or ErrGone if the folder went or was replaced.
func (f *Folder) Walk(ctx context.Context, rel string, visit func(file File, unreadable error) error) error {
	w := &walk{ctx: ctx, enter: f.watcher.add, visit: visit}
	root, err := f.open()
	if err != nil {
		return w.ofFolder(err)
	}
	defer root.Close()
	w.files = f.access(root)
	if err := w.descend(rel); err != nil {
		return err
	}
	return w.ofFolder(f.isAt(root)) // else what was not found may be there all the same
}

type walk struct {
	ctx   context.Context // of the one call that walks
	files files
	enter func(dir string) // before what is in it is looked at
	visit func(File, error) error
}

// ofFolder is unreadable for the folder itself, which must not be gone, unless err is nil.
func (w *walk) ofFolder(err error) error {
	if err == nil || isGone(err) {
		return err
	}
	return w.unreadable(".", err)
}

// unreadable visits what could not be looked at, unless the error says that it is gone. It
// returns the errors that are not of the path alone: they end the walk.
func (w *walk) unreadable(rel string, err error) error {
	switch {
	case isGone(err):
		return nil
	case !isOfPath(err):
		return fmt.Errorf("look at %s: %w", rel, reason(err))
	}
	return w.visit(File{Path: rel}, reason(err))
}

// descend goes to a path, as a walk from the top would come to it, and walks from there.
func (w *walk) descend(rel string) error {
	above, err := w.read(".", nil, ".git/info/exclude")
	if err != nil {
		return w.unreadable(".", err)
	}
	if rel == "." {
		return w.directory(".", above, 0)
	}
	if !isPath(rel) {
		return nil
	}
	above, err = w.rulesOf(".", above)
	if err != nil {
		return w.unreadable(".", err)
	}
	for i := range len(rel) {
		if rel[i] != '/' {
			continue
		}
		dir := rel[:i]
		info, err := w.files.Lstat(dir)
		switch {
		case err == nil && (!info.IsDir() || w.skips(dir, true, above)):
			return nil
		case err == nil:
			above, err = w.rulesOf(dir, above)
		}
		if err != nil {
			return w.unreadable(dir, err)
		}
	}
	return w.entry(rel, above, strings.Count(rel, "/")+1)
}

// isPath reports whether a walk can come to a path.
func isPath(rel string) bool {
	return fs.ValidPath(rel) && rel != "." && utf8.ValidString(rel) && !strings.Contains(rel, "\x00") &&
		strings.Count(rel, "/") <= maxDepth
}

// skips reports whether an entry is not visited.
func (w *walk) skips(rel string, isDir bool, above *rules) bool {
	return isHidden(rel, isDir) || above.ignores(rel, isDir)
}

// isHidden reports whether an entry is never visited, whatever the rules.
func isHidden(rel string, isDir bool) bool {
	name := rel[strings.LastIndexByte(rel, '/')+1:]
	return name[0] == '.' || isDir && vcsDirs[name]
}

// entry visits what is at a path.
func (w *walk) entry(rel string, above *rules, depth int) error {
	info, err := w.files.Lstat(rel)
	switch {
	case err != nil && w.skips(rel, false, above) && w.skips(rel, true, above):
		return nil
	case err != nil:
		return w.unreadable(rel, err)
	case info.IsDir():
		if w.skips(rel, true, above) || depth > maxDepth {
			return nil
		}
		return w.directory(rel, above, depth)
	case !info.Mode().IsRegular() || w.skips(rel, false, above):
		return nil
	}
	return w.visit(File{Path: rel, Size: info.Size(), ModTime: info.ModTime()}, nil)
}

// directory visits the entries of a directory.
func (w *walk) directory(rel string, above *rules, depth int) error {
	if err := w.ctx.Err(); err != nil {
		return err
	}
	names, err := w.names(rel)
	if err == nil && slices.ContainsFunc(ignoreFiles,
		func(name string) bool { _, ok := slices.BinarySearch(names, name); return ok }) {
		above, err = w.rulesOf(rel, above)
	}
	if err != nil {
		return w.unreadable(rel, err)
	}
	for _, name := range names {
		if err := w.entry(join(rel, strings.TrimSuffix(name, "/")), above, depth+1); err != nil {
			return err
		}
	}
	return nil
}

// names returns the entries of a directory in the order of the paths below them: a
// directory has a slash at its end. It fails also for a directory that may be read but not
// searched, in which nothing else can be done.
func (w *walk) names(rel string) ([]string, error) {
	if _, err := w.files.Lstat(join(rel, ignoreFiles[0])); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, err
	}
	dir, err := w.files.OpenFile(rel, os.O_RDONLY|nonBlocking, 0)
	if err != nil {
		return nil, err
	}
	defer dir.Close()
	w.enter(rel)
	entries, err := dir.ReadDir(-1)
	if err != nil {
		return nil, err
	}
	names := make([]string, 0, len(entries))
	for _, e := range entries {
		name := e.Name()
		switch {
		case !utf8.ValidString(name):
		case e.IsDir():
			names = append(names, name+"/")
		case e.Type().IsRegular():
			names = append(names, name)
		}
	}
	slices.Sort(names)
	return names, nil
}

// rulesOf returns the rules that apply to the entries of a directory. An error says that
// they are not known, so that the directory must not be entered.
func (w *walk) rulesOf(rel string, above *rules) (*rules, error) {
	return w.read(rel, above, ignoreFiles...)
}

// read returns the rules of files in a directory and above. A file has none if it is not
// there or is no regular file: git follows no link to patterns either.
func (w *walk) read(dir string, above *rules, names ...string) (*rules, error) {
	r := &rules{parent: above, dir: dir}
	if above != nil {
		r.total, r.globBytes = above.total, above.globBytes
	}
	for _, name := range names {
		data, _, err := readFile(w.files, join(dir, name), maxIgnoreBytes)
		switch {
		case errors.Is(err, ErrGone), errors.Is(err, ErrNotRegular):
			continue
		case errors.Is(err, ErrTooLarge):
			return nil, fmt.Errorf("its %s is larger than %d bytes", name, maxIgnoreBytes)
		case err != nil:
			return nil, fmt.Errorf("its %s cannot be read: %w", name, reason(err))
		}
		if err := r.add(data); err != nil {
			return nil, fmt.Errorf("its %s %w", name, err)
		}
	}
	if len(r.patterns) == 0 {
		return above, nil
	}
	return r, nil
}
