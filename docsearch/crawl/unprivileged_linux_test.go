package crawl

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
)

// asNobody tells a process that it is to run one test, for a user who is not root.
const asNobody = "DOCSEARCH_TEST_AS_NOBODY"

// unprivileged reports whether this user may not read everything, so that modes count.
// If it may, unprivileged runs the test in a process of another user.
func unprivileged(t *testing.T) bool {
	t.Helper()
	path := filepath.Join(t.TempDir(), "closed")
	must(t, os.WriteFile(path, nil, 0))
	file, err := os.Open(path)
	if err != nil {
		return true
	}
	file.Close()
	if os.Getenv(asNobody) != "" {
		t.Fatal("this user may read everything too")
	}
	runAsNobody(t)
	return false
}

func runAsNobody(t *testing.T) {
	t.Helper()
	const nobody = 65534
	dir, err := os.MkdirTemp("", "") // the parent of t.TempDir is closed to others
	must(t, err)
	defer os.RemoveAll(dir)
	must(t, os.Chown(dir, nobody, nobody))
	// The path of this program may be closed to others.
	cmd := exec.CommandContext(t.Context(), "/proc/self/exe", "-test.run=^"+t.Name()+"$", "-test.v", "-test.timeout=1m")
	cmd.Dir = dir
	cmd.Env = append(os.Environ(), asNobody+"=1", "TMPDIR="+dir, "GORACE=atexit_sleep_ms=0")
	cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: nobody, Gid: nobody}}
	out, err := cmd.CombinedOutput()
	if err != nil || !strings.Contains(string(out), "--- PASS: "+t.Name()) {
		t.Errorf("as another user: %v\n%s", err, out)
	}
}

// TestFolderThatCannotBeLookedAtIsNotGone puts the folder where it is, but out of reach.
func TestFolderThatCannotBeLookedAtIsNotGone(t *testing.T) {
	if !unprivileged(t) {
		return
	}
	dir := tree(t, "above/folder/a", "above/folder/b/c")
	above, folder := filepath.Join(dir, "above"), filepath.Join(dir, "above", "folder")
	f := openFolder(t, folder, Options{})
	for _, closed := range []string{above, folder, filepath.Join(folder, "b")} {
		must(t, os.Chmod(closed, 0))
		_, u := walkedBut(t, f, ".")
		must(t, os.Chmod(closed, 0o755))
		if !errors.Is(u.Err, fs.ErrPermission) {
			t.Errorf("without %s: got %v", closed, u.Err)
		}
	}
	if got := walked(t, f, "."); len(got) != 2 {
		t.Errorf("visited %q afterwards", got)
	}
}

// TestWatchOfTheSystemBesideAClosedDirectory opens the directory while the rest is
// watched. Other systems than Linux may not tell of the mode of a directory that they
// cannot open.
func TestWatchOfTheSystemBesideAClosedDirectory(t *testing.T) {
	if !unprivileged(t) {
		return
	}
	dir := tree(t, "a.txt", "sub/deep/b.txt")
	sub := filepath.Join(dir, "sub")
	must(t, os.Chmod(sub, 0))
	t.Cleanup(func() { os.Chmod(sub, 0o755) })
	ctx, cancel := context.WithCancel(t.Context())
	f := openFolder(t, dir, Options{})
	w, err := f.Watch(ctx)
	must(t, err)
	defer w.Wait()
	defer cancel()
	walkedBut(t, f, ".")
	for want, do := range map[string]func(){
		"a.txt": func() { write(t, dir, "a.txt", "new") },
		"sub":   func() { must(t, os.Chmod(sub, 0o755)) },
	} {
		do()
		if got := collect(t, w, []string{want}); !slices.Equal(got, []string{want}) {
			t.Errorf("got %q, want %q", got, want)
		}
	}
	write(t, dir, "sub/deep/b.txt", "new")
	if got, want := collect(t, w, []string{"sub/deep/b.txt"}), []string{"sub/deep/b.txt"}; !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
}
