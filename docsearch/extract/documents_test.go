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
	for name, pages := range map[string]int{"libreoffice.pdf": 2, "weasyprint.pdf": 3, "libreoffice.docx": 0, "pandoc.docx": 0, "report.md": 0} {
		t.Run(name, func(t *testing.T) {
			doc, err := e.Extract(t.Context(), name, fixture(t, name))
			if err != nil {
				t.Fatal(err)
			}
			if doc.Title != "The Zürich Office Report" {
				t.Errorf("title %q", doc.Title)
			}
			flat := strings.Join(strings.Fields(doc.Text), " ")
			for _, want := range []string{
				"a straße in Köln, the naïve café, and a very efficient waffle office whose affluent staff flies first class to find difficult ligatures",
				"Second", "2,480", "Überraschung", "hidden albatross",
				"a long item that runs over the end of its line, because a paragraph in a narrow column has to be broken somewhere, and the words must still be told apart",
			} {
				if !strings.Contains(flat, want) {
					t.Errorf("the text lacks %q:\n%s", want, doc.Text)
				}
			}
			checkHeadings(t, doc)
			checkPages(t, doc, pages)
		})
	}
}

func checkHeadings(t *testing.T, doc *Document) {
	t.Helper()
	var headings []string
	for _, s := range doc.Sections {
		if s.Heading == "" || s.Heading == doc.Title {
			continue
		}
		headings = append(headings, s.Heading)
		if at := strings.TrimLeft(doc.Text[s.Offset:], "# "); !strings.HasPrefix(at, s.Heading) {
			t.Errorf("section %q begins at %.30q", s.Heading, at)
		}
	}
	want := []string{"Introduction", "Quarterly figures", "Second chapter", "Conclusion"}
	if !slices.Equal(headings, want) {
		t.Errorf("headings %q, want %q", headings, want)
	}
}

// checkPages checks that the unique words stand on the last pages but one and on the
// last one.
func checkPages(t *testing.T, doc *Document, pages int) {
	t.Helper()
	for word, want := range map[string]int{"marmalade": pages - 1, "xylophone": pages} {
		if got := pageOf(doc, strings.Index(doc.Text, word)); got != max(0, want) {
			t.Errorf("%q is on page %d, want %d", word, got, want)
		}
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
