package e2e

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"testing"
)

// Documents that other programs made are found by what they say, with the page of a
// PDF; one that is encrypted, and one that is damaged, are left out and counted.
func TestFormatsOfOtherPrograms(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	files, err := filepath.Glob("../extract/testdata/*.*")
	if err != nil {
		t.Fatal(err)
	}
	for _, file := range files {
		data, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		w.write(filepath.Base(file), string(data))
	}
	w.write("damaged.pdf", "%PDF-1.7\nthis is no PDF\n")
	s := w.agent()
	w.ready(s)
	want := []string{"libreoffice.docx", "libreoffice.pdf", "pandoc.docx", "report.md", "weasyprint.pdf"}
	var got struct {
		Results []struct {
			Path     string `json:"path"`
			Location struct {
				Page int `json:"page"`
			} `json:"location"`
		} `json:"results"`
	}
	w.eventually("all documents are found", func() bool {
		if err := call(t.Context(), s, "search_content", map[string]any{"exact_terms": []string{"xylophone"}}, &got); err != nil {
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
		if isPDF := filepath.Ext(r.Path) == ".pdf"; isPDF != (r.Location.Page > 0) {
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
