package crawl

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

func TestWalkVisitsFilesInTheOrderOfTheirPaths(t *testing.T) {
	dir := tree(t, "b/x", "b.txt", "a/z/1", "a/y", "a.b/c", "empty/", "ä/ö.md", ".hidden", ".git/config", "sub/.hg/x", "sub/CVS")
	got := walked(t, openFolder(t, dir, Options{}), ".")
	want := []string{"a.b/c", "a/y", "a/z/1", "b.txt", "b/x", "sub/CVS", "ä/ö.md"}
	if !slices.Equal(got, want) {
		t.Errorf("visited %q, want %q", got, want)
	}
	if !slices.IsSorted(got) {
		t.Errorf("%q is not in order", got)
	}
}

func TestWalkOfAPathVisitsWhatAWholeWalkWouldVisitThere(t *testing.T) {
	dir := tree(t, "a/b/c.txt", "a/b/skip.log", "a/d.txt", "out/x.txt", "a/.git/x")
	write(t, dir, ".gitignore", "*.log\nout/\n")
	f := openFolder(t, dir, Options{})
	for at, want := range map[string][]string{
		"a":              {"a/b/c.txt", "a/d.txt"},
		"a/b":            {"a/b/c.txt"},
		"a/b/c.txt":      {"a/b/c.txt"},
		"a/b/skip.log":   nil,
		"out":            nil,
		"out/x.txt":      nil,
		"a/.git":         nil,
		"a/.git/x":       nil,
		"nothing/there":  nil,
		"a/b/c.txt/more": nil,
		"../escape":      nil,
		"/etc":           nil,
		"":               nil,
	} {
		if got := walked(t, f, at); !slices.Equal(got, want) {
			t.Errorf("Walk(%q) visited %q, want %q", at, got, want)
		}
	}
}

func TestWalkSkipsLinksAndNamesThatAreNotText(t *testing.T) {
	outside := tree(t, "secret.txt")
	dir := tree(t, "real/file.txt")
	must(t, os.Symlink(outside, filepath.Join(dir, "out")))
	must(t, os.Symlink(filepath.Join(outside, "secret.txt"), filepath.Join(dir, "secret.txt")))
	must(t, os.Symlink("..", filepath.Join(dir, "real", "cycle")))
	must(t, os.Symlink("real/file.txt", filepath.Join(dir, "inside.txt")))
	must(t, os.Symlink("nothing", filepath.Join(dir, "dangling")))
	if err := os.WriteFile(filepath.Join(dir, "bad\xff.txt"), nil, 0o644); err != nil {
		t.Log("this file system takes no such names:", err)
	}
	if got, want := walked(t, openFolder(t, dir, Options{}), "."), []string{"real/file.txt"}; !slices.Equal(got, want) {
		t.Errorf("visited %q, want %q", got, want)
	}
}

func TestWalkEndsWithItsContextAndItsVisitor(t *testing.T) {
	f := openFolder(t, tree(t, "a", "b/c", "b/d", "e/f"), Options{})
	ctx, cancel := context.WithCancel(t.Context())
	n := 0
	err := f.Walk(ctx, ".", func(File, error) error { n++; cancel(); return nil })
	if !errors.Is(err, context.Canceled) || n != 1 {
		t.Errorf("a cancelled walk visits %d files and returns %v, want 1 and %v", n, err, context.Canceled)
	}
	stop := errors.New("stop")
	if err := f.Walk(t.Context(), ".", func(File, error) error { return stop }); err != stop {
		t.Errorf("got %v, want the visitor's error", err)
	}
}

func TestWalkOfAFolderThatIsGone(t *testing.T) {
	dir := tree(t, "folder/a")
	f := openFolder(t, filepath.Join(dir, "folder"), Options{})
	must(t, os.Rename(filepath.Join(dir, "folder"), filepath.Join(dir, "moved")))
	err := f.Walk(t.Context(), ".", func(File, error) error { return nil })
	if !errors.Is(err, ErrGone) || f.Exists() {
		t.Errorf("got %v, exists %t, want ErrGone and false", err, f.Exists())
	}
	write(t, dir, "folder/new", "")
	if got := walked(t, f, "."); !slices.Equal(got, []string{"new"}) || !f.Exists() {
		t.Errorf("the folder that returned has %q, want its new file", got)
	}
	err = f.Walk(t.Context(), ".", func(File, error) error {
		return os.Rename(filepath.Join(dir, "folder"), filepath.Join(dir, "again"))
	})
	if !errors.Is(err, ErrGone) {
		t.Errorf("the folder goes during the walk: got %v, want ErrGone", err)
	}
}

func TestWalkOfAFolderThatIsReplaced(t *testing.T) {
	dir := tree(t, "folder/a", "folder/b/c")
	folder := filepath.Join(dir, "folder")
	f := openFolder(t, folder, Options{})
	err := f.Walk(t.Context(), ".", func(file File, _ error) error {
		if file.Path == "a" {
			must(t, os.Rename(folder, folder+"2"))
			write(t, folder, "other", "")
		}
		return nil
	})
	if !errors.Is(err, ErrGone) {
		t.Errorf("got %v, want %v", err, ErrGone)
	}
	if got := walked(t, f, "."); !slices.Equal(got, []string{"other"}) {
		t.Errorf("visited %q, want the new folder's file", got)
	}
}

func TestWalkSurvivesADeepTree(t *testing.T) {
	dir := tree(t, "top.txt")
	root, err := os.OpenRoot(dir)
	must(t, err)
	defer root.Close()
	rel := "d"
	for range maxDepth + 20 { // its full path is short enough for the clean-up
		must(t, root.Mkdir(rel, 0o755))
		rel += "/d"
	}
	must(t, root.WriteFile(strings.TrimSuffix(rel, "/d")+"/deep.txt", nil, 0o644))
	if got := walked(t, openFolder(t, dir, Options{}), "."); !slices.Equal(got, []string{"top.txt"}) {
		t.Errorf("visited %q, want top.txt", got)
	}
}

func TestOpenWantsAnAbsoluteDirectory(t *testing.T) {
	dir := tree(t, "file")
	for _, path := range []string{"relative", filepath.Join(dir, "file"), filepath.Join(dir, "nothing"), ""} {
		if _, err := Open(path, Options{}); err == nil {
			t.Errorf("Open(%q) succeeds", path)
		}
	}
	link := filepath.Join(t.TempDir(), "link")
	must(t, os.Symlink(dir, link))
	if f := openFolder(t, link, Options{}); f.Path() != dir {
		t.Errorf("the path of a link to %s is %s", dir, f.Path())
	}
}

func BenchmarkWalk(b *testing.B) {
	var paths []string
	for i := range 10_000 {
		paths = append(paths, fmt.Sprintf("dir%d/sub%d/file%d.txt", i%10, i%100, i))
	}
	dir := tree(b, paths...)
	write(b, dir, ".gitignore", "*.log\n*.o\nbuild/\n/dist\nnode_modules/\n")
	f := openFolder(b, dir, Options{})
	b.ReportAllocs()
	for b.Loop() {
		n := 0
		must(b, f.Walk(b.Context(), ".", func(File, error) error { n++; return nil }))
		if n != len(paths)+1 {
			b.Fatalf("visited %d, want %d", n, len(paths)+1)
		}
	}
}
