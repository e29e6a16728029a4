package crawl

import (
	"os"
	"path/filepath"
	"testing"

	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// tree makes files below a new directory: a path ending in / is a directory, and the
// content of a file is its path.
func tree(t testing.TB, paths ...string) string {
	t.Helper()
	dir, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	for _, p := range paths {
		full := filepath.Join(dir, filepath.FromSlash(p))
		if p[len(p)-1] == '/' {
			must(t, os.MkdirAll(full, 0o755))
			continue
		}
		write(t, dir, p, p)
	}
	return dir
}

func write(t testing.TB, dir, rel, content string) {
	t.Helper()
	full := filepath.Join(dir, filepath.FromSlash(rel))
	must(t, os.MkdirAll(filepath.Dir(full), 0o755))
	must(t, os.WriteFile(full, []byte(content), 0o644))
}

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func openFolder(t testing.TB, dir string, o Options) *Folder {
	t.Helper()
	f, err := Open(dir, o)
	if err != nil {
		t.Fatal(err)
	}
	return f
}

// walked returns the paths that a walk visits.
func walked(t testing.TB, f *Folder, at string) []string {
	t.Helper()
	paths, u := walkedBut(t, f, at)
	must(t, u.Err)
	return paths
}
