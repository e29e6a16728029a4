package extract

import (
	"os"
	"path/filepath"
	"testing"
)

// TestBrokenCacheIsReplaced cuts off the compiled reader of PDFs, as a full disk may.
func TestBrokenCacheIsReplaced(t *testing.T) {
	e := withWorker(t, "worker", Options{})
	pdf := fixture(t, "weasyprint.pdf")
	if _, err := e.Extract(t.Context(), "a.pdf", pdf); err != nil {
		t.Fatal(err)
	}
	files, err := filepath.Glob(filepath.Join(e.opts.CacheDir, "*", "*"))
	if err != nil || len(files) != 1 {
		t.Fatalf("the cache has %q, %v", files, err)
	}
	if err := os.Truncate(files[0], 1<<20); err != nil {
		t.Fatal(err)
	}
	for range 2 {
		if _, err := e.Extract(t.Context(), "a.pdf", pdf); err != nil {
			t.Error(err)
		}
	}
}
