package extract

import (
	"slices"
	"strings"
	"testing"
)

// TestDocumentsOfOtherPrograms reads the same report as it comes from LibreOffice,
// pandoc and WeasyPrint.
func TestDocumentsOfOtherPrograms(t *testing.T) {
	e := withWorker(t, "worker", Options{})
	for name, pages := range map[string][2]int{ // of two words
		"libreoffice.pdf": {1, 2}, "weasyprint.pdf": {2, 3}, "libreoffice.pptx": {2, 4}, "pandoc.pptx": {2, 4}, "libreoffice.odp": {2, 4},
		"libreoffice.docx": {}, "pandoc.docx": {}, "libreoffice.odt": {}, "pandoc.epub": {}, "libreoffice.rtf": {}, "pandoc.rtf": {},
		"pandoc.ipynb": {}, "report.md": {},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			doc, err := e.Extract(t.Context(), name, fixture(t, name))
			if err != nil {
				t.Fatal(err)
			}
			checkDocument(t, doc)
			// Neither pandoc's RTF nor a notebook names its title.
			if want := "The Zürich Office Report"; doc.Title != want && name != "pandoc.rtf" && name != "pandoc.ipynb" {
				t.Errorf("title %q, want %q", doc.Title, want)
			}
			flat := strings.Join(strings.Fields(doc.Text), " ")
			for _, want := range []string{
				"a straße in Köln, the naïve café, and a very efficient waffle office whose affluent staff flies first class to find difficult ligatures",
				"Second", "2,480", "Überraschung", "hidden albatross", "apples from the garden",
			} {
				if !strings.Contains(flat, want) {
					t.Errorf("the text lacks %q:\n%s", want, doc.Text)
				}
			}
			checkHeadings(t, doc)
			for i, word := range []string{"marmalade", "xylophone"} {
				if got := pageOf(doc, strings.Index(doc.Text, word)); got != pages[i] {
					t.Errorf("%q is on page %d, want %d", word, got, pages[i])
				}
			}
		})
	}
}

func checkHeadings(t *testing.T, doc *Document) {
	t.Helper()
	var headings []string
	for _, s := range doc.Sections {
		if s.Heading == "" || s.Heading == "The Zürich Office Report" {
			continue
		}
		headings = append(headings, s.Heading)
		if at := strings.TrimLeft(doc.Text[s.Offset:], "# "); !strings.HasPrefix(at, s.Heading) {
			t.Errorf("section %q begins at %.30q", s.Heading, at)
		}
	}
	want := []string{"Introduction", "Quarterly figures", "Second chapter", "Conclusion"}
	if doc.Type == TypePresentation || doc.Type == TypeOpenDocument && doc.Sections[0].Page > 0 {
		want = []string{"Introduction", "Second chapter", "Notes"} // the titles of slides
	}
	if !slices.Equal(headings, want) {
		t.Errorf("headings %q, want %q", headings, want)
	}
}

func pageOf(doc *Document, offset int) int {
	page := 0
	for _, s := range doc.Sections {
		if s.Offset <= offset {
			page = s.Page
		}
	}
	return page
}

// TestSpreadsheetsOfOtherPrograms reads the same sheet as it comes from LibreOffice.
func TestSpreadsheetsOfOtherPrograms(t *testing.T) {
	e := withWorker(t, "worker", Options{})
	const rows = "Quarter\tRevenue\tDate\tRemark\nFirst\t1250\t2026-03-31\tmodest growth\nSecond\t2480\t2026-06-30\tÜberraschung\nThird\t3720\t2026-09-30\txylophone\n"
	for _, name := range []string{"libreoffice.xlsx", "libreoffice.ods"} {
		doc, err := e.Extract(t.Context(), name, fixture(t, name))
		if err != nil {
			t.Fatal(err)
		}
		if doc.Title != "" || doc.Text != "figures\n"+rows || !slices.Equal(doc.Sections, []Section{{Heading: "figures"}}) {
			t.Errorf("%s: got %q, %q, %v", name, doc.Title, doc.Text, doc.Sections)
		}
	}
	doc, err := e.Extract(t.Context(), "figures.csv", fixture(t, "figures.csv"))
	if want := strings.ReplaceAll(rows, "\t", ","); err != nil || doc.Text != want {
		t.Errorf("CSV: got %v, %v, want %q", doc, err, want)
	}
}
