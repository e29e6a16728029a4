package crawl

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestRead(t *testing.T) {
	dir := tree(t, "a/b.txt")
	f := openFolder(t, dir, Options{})
	data, file, err := f.Read(t.Context(), "a/b.txt")
	if err != nil || string(data) != "a/b.txt" || file.Path != "a/b.txt" || file.Size != 7 || file.ModTime.IsZero() {
		t.Errorf("got %q, %+v, %v", data, file, err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, _, err := f.Read(ctx, "a/b.txt"); !errors.Is(err, context.Canceled) {
		t.Errorf("got %v, want %v", err, context.Canceled)
	}
}

func TestReadStaysInTheFolder(t *testing.T) {
	outside := tree(t, "secret.txt")
	dir := tree(t, "file.txt", "real/file.txt")
	link := func(to, name string) { must(t, os.Symlink(to, filepath.Join(dir, name))) }
	link(filepath.Join(outside, "secret.txt"), "absolute")
	link(filepath.Join("..", filepath.Base(outside), "secret.txt"), "relative")
	link(outside, "dir")
	link("file.txt", "inside")
	link("loop", "loop")
	f := openFolder(t, dir, Options{})
	for _, path := range []string{"absolute", "relative", "inside", "loop", "real", "."} {
		if data, _, err := f.Read(t.Context(), path); !errors.Is(err, ErrNotRegular) {
			t.Errorf("Read(%q) = %q, %v, want %v", path, data, err, ErrNotRegular)
		}
	}
	for _, path := range []string{
		"nothing", "nothing/more", "file.txt\x00", "bad\xff", "dir/secret.txt", "",
		"../" + filepath.Base(outside) + "/secret.txt", filepath.Join(outside, "secret.txt"), "/etc/passwd", "/", strings.Repeat("a/", 300) + "b",
	} {
		if data, _, err := f.Read(t.Context(), path); err == nil {
			t.Errorf("Read(%q) = %q", path, data)
		}
	}
	for _, path := range []string{"nothing", "nothing/more"} {
		if _, _, err := f.Read(t.Context(), path); !errors.Is(err, ErrGone) {
			t.Errorf("Read(%q): %v, want %v", path, err, ErrGone)
		}
	}
}

func TestReadLimitsTheSize(t *testing.T) {
	dir := tree(t)
	write(t, dir, "fits", strings.Repeat("a", 100))
	write(t, dir, "large", strings.Repeat("a", 101))
	must(t, os.WriteFile(filepath.Join(dir, "sparse"), nil, 0o644))
	must(t, os.Truncate(filepath.Join(dir, "sparse"), 1<<40))
	f := openFolder(t, dir, Options{MaxFileBytes: 100})
	if data, _, err := f.Read(t.Context(), "fits"); err != nil || len(data) != 100 {
		t.Errorf("got %d bytes, %v", len(data), err)
	}
	for _, path := range []string{"large", "sparse"} {
		if _, _, err := f.Read(t.Context(), path); !errors.Is(err, ErrTooLarge) {
			t.Errorf("%s: got %v, want %v", path, err, ErrTooLarge)
		}
	}
}

// TestReadWhileTheFileChanges swaps the file for something else, and changes its size,
// while it is read again and again.
func TestReadWhileTheFileChanges(t *testing.T) {
	outside := filepath.Join(tree(t, "secret.txt"), "secret.txt")
	dir := tree(t, "spare/")
	path := filepath.Join(dir, "file")
	f := openFolder(t, dir, Options{})
	steps := []func() error{
		func() error { return os.WriteFile(path, []byte("short"), 0o644) },
		func() error { return os.WriteFile(path, []byte(strings.Repeat("long", 5000)), 0o644) },
		func() error { return os.Remove(path) },
		func() error { return os.Symlink(outside, path) },
		func() error { return os.Remove(path) },
		func() error { return makeFIFO(path) },
		func() error { return os.Remove(path) },
		func() error { return os.Mkdir(path, 0o755) },
		func() error { return os.Remove(path) },
	}
	done := make(chan error, 1)
	go func() { // ends after its rounds
		defer close(done)
		for range 200 {
			for _, step := range steps {
				if err := step(); err != nil {
					done <- err
					return
				}
			}
		}
	}()
	for {
		select {
		case err := <-done:
			must(t, err)
			return
		default:
		}
		data, _, err := f.Read(t.Context(), "file")
		if err == nil && strings.Contains(string(data), "secret") {
			t.Fatalf("read %q from outside", data)
		}
		if err == nil && strings.Trim(string(data), "long") != "" && string(data) != "short" {
			t.Fatalf("read %q, which the file never had", data)
		}
	}
}

func TestFolderThatBecomesALink(t *testing.T) {
	dir := tree(t, "folder/a.txt", "other/secret.txt")
	folder := filepath.Join(dir, "folder")
	f := openFolder(t, folder, Options{})
	must(t, os.Rename(folder, folder+"2"))
	must(t, os.Symlink(filepath.Join(dir, "other"), folder))
	if data, _, err := f.Read(t.Context(), "secret.txt"); !errors.Is(err, ErrGone) {
		t.Errorf("got %q, %v, want %v", data, err, ErrGone)
	}
	if f.Exists() {
		t.Error("a link in place of the folder exists as the folder")
	}
}

// FuzzRead reads any path in a folder with links to the outside.
func FuzzRead(f *testing.F) {
	outside := tree(f, "secret.txt")
	dir := tree(f, "file.txt", "sub/file.txt")
	must(f, os.Symlink(outside, filepath.Join(dir, "out")))
	must(f, os.Symlink(filepath.Join(outside, "secret.txt"), filepath.Join(dir, "sub", "link")))
	for _, path := range []string{"file.txt", "sub/link", "out/secret.txt", "../x", "sub/../out", "/etc/passwd", "a//b", "\x00"} {
		f.Add(path)
	}
	folder := openFolder(f, dir, Options{})
	f.Fuzz(func(t *testing.T, path string) {
		data, _, err := folder.Read(t.Context(), path)
		if err == nil && strings.Contains(string(data), "secret") {
			t.Errorf("Read(%q) = %q", path, data)
		}
		visited, _ := walkedBut(t, folder, path) // a name may be too long
		for _, visited := range visited {
			if !strings.HasSuffix(visited, "file.txt") {
				t.Errorf("Walk(%q) visits %q", path, visited)
			}
		}
	})
}
