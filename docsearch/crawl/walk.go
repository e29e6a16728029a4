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

// visitor receives the entries that are not ignored.
type visitor struct {
	dir  func(rel string) error // before what is in it
	file func(File) error
}

// Walk calls visit for each regular file that is not ignored, in the order of their
// paths. Directories that may not be read count as empty. Unless the error is nil, files
// that were not visited may be there: the error is that of visit, of ctx, that of a system
// that lacks resources, or wraps ErrChanged if a .gitignore changed while it was read, or
// ErrGone if the folder went or was replaced.
func (f *Folder) Walk(ctx context.Context, visit func(File) error) error {
	return f.WalkAt(ctx, ".", visit)
}

// WalkAt is Walk for the files at and below a relative path, which need not be there:
// it is for paths that Watcher reports. Nothing is visited if the path is ignored, or is
// no file or directory.
func (f *Folder) WalkAt(ctx context.Context, rel string, visit func(File) error) error {
	return f.walkAt(ctx, rel, visitor{file: visit})
}

func (f *Folder) walkAt(ctx context.Context, rel string, v visitor) error {
	root, err := f.current()
	if err != nil {
		return err
	}
	w := &walk{ctx: ctx, folder: f, root: root, visitor: v}
	if err := w.descend(rel); err != nil {
		return err
	}
	if now, err := f.current(); err != nil || now != root {
		return fmt.Errorf("folder %s: %w", f.path, ErrGone) // what was not found may be there all the same
	}
	return nil
}

type walk struct {
	visitor
	ctx    context.Context // of the one call that walks
	folder *Folder
	root   *os.Root
	failed error // of a file with patterns: without them, what is ignored would be visited
}

// descend goes to a path, as a walk from the top would come to it, and walks from there.
func (w *walk) descend(rel string) error {
	if rel == "." {
		return w.directory(".", w.exclude(), 0)
	}
	above, ok := w.reach(rel)
	if !ok || w.failed != nil {
		return w.failed
	}
	return w.entry(rel, above, strings.Count(rel, "/")+1)
}

// reach returns the rules that apply to the entry at a path. It returns false if a walk
// does not come to the directory of the entry.
func (w *walk) reach(rel string) (above *rules, ok bool) {
	if !fs.ValidPath(rel) || rel == "." || !utf8.ValidString(rel) || strings.Count(rel, "/") > maxDepth {
		return nil, false
	}
	above = w.rulesOf(".", w.exclude())
	for i := range len(rel) {
		if rel[i] != '/' {
			continue
		}
		dir := rel[:i]
		if info, err := w.root.Lstat(dir); err != nil || !info.IsDir() || w.skips(dir, true, above) {
			return nil, false
		}
		above = w.rulesOf(dir, above)
	}
	return above, true
}

// ignored reports whether a walk does not visit the entry at a path. An entry that is
// gone is taken for a file.
func (f *Folder) ignored(ctx context.Context, rel string) bool {
	root, err := f.current()
	if err != nil {
		return false
	}
	w := &walk{ctx: ctx, folder: f, root: root}
	above, ok := w.reach(rel)
	if !ok {
		return false // it may have gone with its directory
	}
	info, err := root.Lstat(rel)
	return w.skips(rel, err == nil && info.IsDir(), above)
}

// skips reports whether an entry is not visited.
func (w *walk) skips(rel string, isDir bool, above *rules) bool {
	name := rel[strings.LastIndexByte(rel, '/')+1:]
	return isDir && vcsDirs[name] || above.ignores(rel, isDir)
}

// entry visits what is at a path.
func (w *walk) entry(rel string, above *rules, depth int) error {
	info, err := w.root.Lstat(rel)
	switch {
	case isTransient(err):
		return err
	case err != nil:
		return nil // gone since its directory was read
	case info.IsDir():
		if w.skips(rel, true, above) || depth > maxDepth {
			return nil
		}
		return w.directory(rel, above, depth)
	case !info.Mode().IsRegular() || w.file == nil || w.skips(rel, false, above):
		return nil
	}
	return w.file(File{Path: rel, Size: info.Size(), ModTime: info.ModTime()})
}

// directory visits the entries of a directory.
func (w *walk) directory(rel string, above *rules, depth int) error {
	if err := w.ctx.Err(); err != nil {
		return err
	}
	if w.dir != nil {
		if err := w.dir(rel); err != nil {
			return err
		}
	}
	names, err := w.names(rel)
	if isTransient(err) {
		return err
	}
	if err != nil {
		if !errors.Is(err, fs.ErrNotExist) {
			w.folder.log.Warn("directory cannot be read", "path", rel, "err", err)
		}
		return nil
	}
	if slices.ContainsFunc(ignoreFiles, func(name string) bool { _, ok := slices.BinarySearch(names, name); return ok }) {
		above = w.rulesOf(rel, above)
	}
	if w.failed != nil {
		return w.failed
	}
	for _, name := range names {
		if w.file == nil && !strings.HasSuffix(name, "/") {
			continue
		}
		if err := w.entry(join(rel, strings.TrimSuffix(name, "/")), above, depth+1); err != nil {
			return err
		}
	}
	return nil
}

// names returns the entries of a directory in the order of the paths below them: a
// directory has a slash at its end.
func (w *walk) names(rel string) ([]string, error) {
	dir, err := w.root.OpenFile(rel, os.O_RDONLY|nonBlocking, 0)
	if err != nil {
		return nil, err
	}
	defer dir.Close()
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

// rulesOf returns the rules that apply to the entries of a directory.
func (w *walk) rulesOf(rel string, above *rules) *rules {
	r := &rules{parent: above, dir: rel}
	for _, name := range ignoreFiles {
		r.patterns = append(r.patterns, w.patterns(join(rel, name))...)
	}
	if len(r.patterns) == 0 {
		return above
	}
	return r
}

// exclude returns the rules of .git/info/exclude.
func (w *walk) exclude() *rules {
	if patterns := w.patterns(".git/info/exclude"); len(patterns) > 0 {
		return &rules{dir: ".", patterns: patterns}
	}
	return nil
}

// patterns returns the patterns of a file, none if there is no such file.
func (w *walk) patterns(rel string) []pattern {
	const most = 16 << 20
	data, _, err := readFile(w.ctx, w.root, rel, most)
	switch {
	case err == nil:
	case errors.Is(err, ErrGone):
		return nil
	case errors.Is(err, ErrChanged), isTransient(err), w.ctx.Err() != nil:
		w.failed = fmt.Errorf("read %q: %w", rel, err)
		return nil
	default:
		w.folder.log.Warn("ignore file cannot be read", "path", rel, "err", err)
		return nil
	}
	patterns, complete := parsePatterns(data)
	if !complete {
		w.folder.log.Warn("ignore file is beyond the limits, some patterns are not followed", "path", rel)
	}
	return patterns
}
