package e2e

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"testing"
)

// Documents that other programs made are found by what they say, with the page if they
// have pages; one with a password, and one that is damaged, are left out and counted.
func TestFormatsOfOtherPrograms(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	if race == "-race" { // PDFium would take half a minute to start, and much memory
		w.program = filepath.Join(t.TempDir(), "docsearch")
		if out, err := exec.CommandContext(t.Context(), "go", "build", "-o", w.program, "../cmd/docsearch").CombinedOutput(); err != nil {
			t.Fatalf("go build: %v\n%s", err, out)
		}
	}
	if cache, err := os.UserCacheDir(); err == nil { // the tests of extract keep PDFium there
		if err := os.MkdirAll(filepath.Join(cache, "docsearch-test"), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := errors.Join(os.Mkdir(w.state, 0o700), os.Symlink(filepath.Join(cache, "docsearch-test"), filepath.Join(w.state, "pdfium"))); err != nil {
			t.Fatal(err)
		}
	}
	want := []string{
		"figures.csv", "libreoffice.docx", "libreoffice.odp", "libreoffice.odt", "libreoffice.pdf", "libreoffice.xlsx",
		"pandoc.epub", "pandoc.ipynb", "pandoc.pptx", "pandoc.rtf", "report.md",
	}
	for _, name := range want {
		data, err := os.ReadFile(filepath.Join("../extract/testdata", name))
		if err != nil {
			t.Fatal(err)
		}
		w.write(name, string(data))
	}
	w.write("password.docx", "\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1")
	w.write("damaged.docx", "PK\x03\x04 this is no document")
	s := w.agent()
	w.ready(s)
	var got struct {
		Results []struct {
			Path     string `json:"path"`
			Location struct {
				Page int `json:"page"`
			} `json:"location"`
		} `json:"results"`
	}
	w.eventually("all documents are found", func() bool {
		if err := call(t.Context(), s, "search_content", map[string]any{"exact_terms": []string{"xylophone"}, "limit": 20}, &got); err != nil {
			t.Fatal(err)
		}
		var names []string
		for _, r := range got.Results {
			names = append(names, filepath.Base(r.Path))
		}
		slices.Sort(names)
		return fmt.Sprint(names) == fmt.Sprint(want)
	})
	for _, r := range got.Results {
		if paged := slices.Contains([]string{".pdf", ".pptx", ".odp"}, filepath.Ext(r.Path)); paged != (r.Location.Page > 0) {
			t.Errorf("%s: page %d", r.Path, r.Location.Page)
		}
	}
	out, err := w.command("status", "--json").Output()
	if err != nil {
		t.Fatal(err)
	}
	var status struct {
		Folders []struct {
			Skipped map[string]int `json:"skipped"`
		} `json:"folders"`
	}
	if err := json.Unmarshal(out, &status); err != nil {
		t.Fatal(err)
	}
	if skipped := status.Folders[0].Skipped; skipped["encrypted"] != 1 || skipped["damaged"] != 1 {
		t.Errorf("skipped = %v, want one encrypted and one damaged", skipped)
	}
}
