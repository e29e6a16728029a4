package crawl

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"

	"github.com/fsnotify/fsnotify"
)

// denying is a folder in which some paths fail: those of lstat and open, and what is
// below those of search. Root may read everything, so modes do not do for a test.
type denying struct {
	files
	lstat, open, search map[string]error
}

func deny(f *Folder) *denying {
	d := &denying{lstat: map[string]error{}, open: map[string]error{}, search: map[string]error{}}
	f.access = func(root *os.Root) files {
		view := *d
		view.files = root
		return &view
	}
	return d
}

func (d *denying) check(m map[string]error, op, name string) error {
	err := m[name]
	for dir := name; dir != "." && err == nil; {
		dir = parent(dir)
		err = d.search[dir]
	}
	if err == nil {
		return nil
	}
	return &fs.PathError{Op: op, Path: name, Err: err}
}

func (d *denying) Lstat(name string) (fs.FileInfo, error) {
	if err := d.check(d.lstat, "lstatat", name); err != nil {
		return nil, err
	}
	return d.files.Lstat(name)
}

func (d *denying) OpenFile(name string, flag int, perm fs.FileMode) (*os.File, error) {
	if err := d.check(d.open, "openat", name); err != nil {
		return nil, err
	}
	return d.files.OpenFile(name, flag, perm)
}

// unreadable has the paths that a walk cannot look at, and why the first.
type unreadable struct {
	Paths []string
	Err   error
}

// walkedBut returns the paths that a walk visits, and those that it cannot look at.
func walkedBut(t testing.TB, f *Folder, at string) (visited []string, u unreadable) {
	t.Helper()
	must(t, f.Walk(t.Context(), at, func(file File, err error) error {
		if err == nil {
			visited = append(visited, file.Path)
			return nil
		}
		if u.Paths = append(u.Paths, file.Path); u.Err == nil {
			u.Err = err
		}
		return nil
	}))
	return visited, u
}

func TestWalkVisitsEverythingButWhatCannotBeRead(t *testing.T) {
	paths := []string{"a.b/x", "a/deep/x", "a/x", "b.txt", "c/x", "out/x"}
	for name, tc := range map[string]struct {
		deny    func(d *denying)
		at      string
		visited string
		paths   string
		cause   error
	}{
		"directory":        {func(d *denying) { d.open["a"] = syscall.EACCES }, ".", "a.b/x b.txt c/x", "a", syscall.EACCES},
		"directories":      {func(d *denying) { d.open["a"], d.open["a.b"] = syscall.EACCES, syscall.EIO }, ".", "b.txt c/x", "a.b a", syscall.EIO},
		"deep":             {func(d *denying) { d.open["a/deep"] = syscall.EPERM }, ".", "a.b/x a/x b.txt c/x", "a/deep", syscall.EPERM},
		"file":             {func(d *denying) { d.lstat["a/x"] = syscall.EIO }, ".", "a.b/x a/deep/x b.txt c/x", "a/x", syscall.EIO},
		"no search":        {func(d *denying) { d.search["a"] = syscall.EACCES }, ".", "a.b/x b.txt c/x", "a", syscall.EACCES},
		"the folder":       {func(d *denying) { d.open["."] = syscall.EACCES }, ".", "", ".", syscall.EACCES},
		"at it":            {func(d *denying) { d.open["a"] = syscall.EACCES }, "a", "", "a", syscall.EACCES},
		"at a file":        {func(d *denying) { d.lstat["b.txt"] = syscall.EACCES }, "b.txt", "", "b.txt", syscall.EACCES},
		"below it":         {func(d *denying) { d.search["a"] = syscall.EACCES }, "a/deep/x", "", "a", syscall.EACCES},
		"way to it":        {func(d *denying) { d.lstat["a/deep"] = syscall.EACCES }, "a/deep/x", "", "a/deep", syscall.EACCES},
		"elsewhere":        {func(d *denying) { d.open["a"] = syscall.EACCES }, "c", "c/x", "", nil},
		"ignored":          {func(d *denying) { d.open["out"], d.lstat["out"] = syscall.EACCES, syscall.EACCES }, ".", "a.b/x a/deep/x a/x b.txt c/x", "", nil},
		"gone":             {func(d *denying) { d.lstat["a"] = syscall.ENOENT }, ".", "a.b/x b.txt c/x", "", nil},
		"gone when opened": {func(d *denying) { d.open["a"] = syscall.ENOENT }, ".", "a.b/x b.txt c/x", "", nil},
		"a file by now":    {func(d *denying) { d.lstat["a/x"], d.open["a/deep"] = syscall.ENOTDIR, syscall.ENOTDIR }, ".", "a.b/x b.txt c/x", "", nil},
	} {
		t.Run(name, func(t *testing.T) {
			dir := tree(t, paths...)
			write(t, dir, ".git/info/exclude", "out\n")
			f := openFolder(t, dir, Options{})
			tc.deny(deny(f))
			visited, e := walkedBut(t, f, tc.at)
			if got := strings.Join(visited, " "); got != tc.visited {
				t.Errorf("visited %q, want %q", got, tc.visited)
			}
			if got := strings.Join(e.Paths, " "); got != tc.paths || !errors.Is(e.Err, tc.cause) {
				t.Errorf("unreadable %q by %v, want %q by %v", got, e.Err, tc.paths, tc.cause)
			}
		})
	}
}

// TestWalkEndsOnAnErrorOfTheProcess checks that a process without resources does not
// blame the paths.
func TestWalkEndsOnAnErrorOfTheProcess(t *testing.T) {
	for _, cause := range errorsOfProcess {
		for name, denied := range map[string]func(d *denying){
			"directory":   func(d *denying) { d.open["a"] = cause },
			"entry":       func(d *denying) { d.lstat["a"] = cause },
			"ignore file": func(d *denying) { d.open["a/.gitignore"] = cause },
		} {
			dir := tree(t, "a/x", "b")
			write(t, dir, "a/.gitignore", "y\n")
			f := openFolder(t, dir, Options{})
			denied(deny(f))
			err := f.Walk(t.Context(), ".", func(_ File, err error) error {
				if err != nil {
					t.Errorf("%s: %v is of a path", name, err)
				}
				return nil
			})
			if !errors.Is(err, cause) {
				t.Errorf("%s: got %v, want %v", name, err, cause)
			}
		}
	}
}

func TestIgnoreFileThatCannotBeFollowedClosesItsDirectory(t *testing.T) {
	for name, tc := range map[string]struct {
		file, content string
		deny          error
		at            string
		visited       string
		path, cause   string
	}{
		"unreadable":          {"sub/.gitignore", "x\n", syscall.EACCES, ".", "a sub2/x", "sub", "its .gitignore cannot be read: permission denied"},
		"bad disk":            {"sub/.docsearchignore", "x\n", syscall.EIO, ".", "a sub2/x", "sub", "its .docsearchignore cannot be read: " + syscall.EIO.Error()},
		"too large":           {"sub/.gitignore", strings.Repeat("#", maxIgnoreBytes+1), nil, ".", "a sub2/x", "sub", fmt.Sprintf("its .gitignore is larger than %d bytes", maxIgnoreBytes)},
		"huge":                {"sub/.gitignore", strings.Repeat("#", 20<<20), nil, ".", "a sub2/x", "sub", fmt.Sprintf("its .gitignore is larger than %d bytes", maxIgnoreBytes)},
		"too many patterns":   {"sub/.gitignore", strings.Repeat("y\n", maxPatterns+1), nil, ".", "a sub2/x", "sub", fmt.Sprintf("its .gitignore and those above have more than %d patterns", maxPatterns)},
		"at its directory":    {"sub/.gitignore", "x\n", syscall.EACCES, "sub", "", "sub", "its .gitignore cannot be read: permission denied"},
		"below its directory": {"sub/.gitignore", "x\n", syscall.EACCES, "sub/deep/y", "", "sub", "its .gitignore cannot be read: permission denied"},
		"at a sibling":        {"sub/.gitignore", "x\n", syscall.EACCES, "sub2", "sub2/x", "", ""},
		"top":                 {".gitignore", "x\n", syscall.EACCES, ".", "", ".", "its .gitignore cannot be read: permission denied"},
		"exclude":             {".git/info/exclude", "x\n", syscall.EACCES, "sub2/x", "", ".", "its .git/info/exclude cannot be read: permission denied"},
		"in an ignored place": {"sub/.git/.gitignore", "x\n", syscall.EACCES, ".", "a sub/deep/y sub/x sub2/x", "", ""},
	} {
		t.Run(name, func(t *testing.T) {
			dir := tree(t, "a", "sub/x", "sub/deep/y", "sub2/x")
			write(t, dir, tc.file, tc.content)
			f := openFolder(t, dir, Options{})
			if tc.deny != nil {
				deny(f).open[tc.file] = tc.deny
			}
			visited, e := walkedBut(t, f, tc.at)
			if got := strings.Join(visited, " "); got != tc.visited {
				t.Errorf("visited %q, want %q", got, tc.visited)
			}
			if got := strings.Join(e.Paths, " "); got != tc.path || tc.path != "" && e.Err.Error() != tc.cause {
				t.Errorf("unreadable %q: %v, want %q: %s", got, e.Err, tc.path, tc.cause)
			}
		})
	}
}

// TestIgnoreFileThatIsNoFileHasNoPatterns has what git does not follow either.
func TestIgnoreFileThatIsNoFileHasNoPatterns(t *testing.T) {
	dir := tree(t, "link/x.log", "dir/x.log", "dir/.gitignore/", "fifo/x.log", "dangling/x.log")
	write(t, dir, "patterns", "*.log\n")
	must(t, os.Symlink("../patterns", filepath.Join(dir, "link", ".gitignore")))
	must(t, os.Symlink("nothing", filepath.Join(dir, "dangling", ".gitignore")))
	git(t, dir, "", "init", "--quiet", "--template=")
	for _, p := range []string{"link/x.log", "dir/x.log", "dangling/x.log"} {
		if got := git(t, dir, p, "check-ignore", "-z", "--no-index", "--stdin"); got != "" {
			t.Errorf("git ignores %s", p)
		}
	}
	must(t, makeFIFO(filepath.Join(dir, "fifo", ".docsearchignore")))
	visited := slices.DeleteFunc(walked(t, openFolder(t, dir, Options{}), "."), func(p string) bool { return !strings.HasSuffix(p, "/x.log") })
	if want := []string{"dangling/x.log", "dir/x.log", "fifo/x.log", "link/x.log"}; !slices.Equal(visited, want) {
		t.Errorf("visited %q, want %q", visited, want)
	}
}

// A directory that cannot be looked at is watched from the walk on that can.
func TestUnreadableDirectories(t *testing.T) {
	dir := tree(t, "a/", "sub/deep/", "sub/x")
	f := openFolder(t, dir, Options{})
	d := deny(f)
	d.search["sub"] = syscall.EACCES
	inBubble(t, f, 100, func(w *watchTest) {
		w.wantWatched(".", "a")
		delete(d.search, "sub")
		w.send(fsnotify.Chmod, "sub")
		w.wantChanges("sub")
		w.wantWatched(".", "a", "sub", "sub/deep")
	})
}

// TestDirectoryThatMayNotBeWatched tells one that may be read, which has to be looked at
// from time to time, from one that may not.
func TestDirectoryThatMayNotBeWatched(t *testing.T) {
	for _, readable := range []bool{false, true} {
		dir := tree(t, "a/")
		f := openFolder(t, dir, Options{})
		if d := deny(f); !readable {
			d.open["sub"] = syscall.EACCES
		}
		inBubble(t, f, 100, func(w *watchTest) {
			w.refused = "sub"
			write(t, dir, "sub/x", "")
			w.send(fsnotify.Create, "sub")
			w.wantChanges("sub")
			if w.closed != readable {
				t.Errorf("readable %t: closed %t", readable, w.closed)
			}
		})
	}
}
