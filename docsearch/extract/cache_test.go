//go:build all

package extract

import (
	"os"
	"path/filepath"
	"testing"
)

// TestBrokenCacheIsReplaced has a compiled reader of PDFs that is cut off, as a full disk
// may leave it.
func TestBrokenCacheIsReplaced(t *testing.T) {
	t.Parallel()
	pdf := fixture(t, "weasyprint.pdf")
	if _, err := withWorker(t, "worker", Options{}).Extract(t.Context(), "a.pdf", pdf); err != nil {
		t.Fatal(err)
	}
	e := withWorker(t, "worker", Options{CacheDir: t.TempDir()})
	if err := os.CopyFS(e.opts.CacheDir, os.DirFS(cacheDir())); err != nil {
		t.Fatal(err)
	}
	files, err := filepath.Glob(filepath.Join(e.opts.CacheDir, "*", "*"))
	if err != nil || len(files) == 0 {
		t.Fatalf("the cache has %q, %v", files, err)
	}
	for _, file := range files {
		if err := os.Truncate(file, 1<<20); err != nil {
			t.Fatal(err)
		}
	}
	for range 2 {
		if _, err := e.Extract(t.Context(), "a.pdf", pdf); err != nil {
			t.Error(err)
		}
	}
	for _, file := range files {
		if info, err := os.Stat(file); err == nil && info.Size() == 1<<20 {
			t.Errorf("%s is not replaced", file)
		}
	}
}
