package extract

import (
	"archive/zip"
	"bytes"
	"compress/zlib"
	"errors"
	"fmt"
	"strings"
	"testing"
)

// buildZip returns an archive with these parts.
func buildZip(parts map[string]string) []byte {
	var b bytes.Buffer
	w := zip.NewWriter(&b)
	for name, content := range parts {
		part, err := w.Create(name)
		if err == nil {
			_, err = part.Write([]byte(content))
		}
		if err != nil {
			panic(err) // a buffer takes all
		}
	}
	if err := w.Close(); err != nil {
		panic(err)
	}
	return b.Bytes()
}

// buildDOCX returns a document with this body.
func buildDOCX(body string) []byte {
	return buildZip(map[string]string{"word/document.xml": wordXML(body)})
}

func wordXML(body string) string {
	return `<?xml version="1.0" encoding="UTF-8"?><w:document xmlns:w="http://schemas.openxmlformats.org/wordprocessingml/2006/main"><w:body>` +
		body + `</w:body></w:document>`
}

// buildPDF returns a PDF of these objects, the first of which has the number 1 and is
// the root, and a trailer with these entries more.
func buildPDF(trailer string, objects ...string) []byte {
	var b bytes.Buffer
	b.WriteString("%PDF-1.4\n")
	var offsets []int
	for i, object := range objects {
		offsets = append(offsets, b.Len())
		fmt.Fprintf(&b, "%d 0 obj\n%s\nendobj\n", i+1, object)
	}
	xref := b.Len()
	fmt.Fprintf(&b, "xref\n0 %d\n0000000000 65535 f \n", len(objects)+1)
	for _, offset := range offsets {
		fmt.Fprintf(&b, "%010d 00000 n \n", offset)
	}
	trailer = strings.ReplaceAll(trailer, "XREF", fmt.Sprint(xref))
	fmt.Fprintf(&b, "trailer\n<< /Size %d /Root 1 0 R %s >>\nstartxref\n%d\n%%%%EOF\n", len(objects)+1, trailer, xref)
	return b.Bytes()
}

// onePage returns a PDF of one page with this content, and more objects from number 6 on.
// Its resource F is a font, and X is object 6.
func onePage(content string, more ...string) []byte {
	return buildPDF("", append([]string{
		"<< /Type /Catalog /Pages 2 0 R >>",
		"<< /Type /Pages /Kids [3 0 R] /Count 1 >>",
		"<< /Type /Page /Parent 2 0 R /MediaBox [0 0 600 800] /Contents 4 0 R /Resources << /Font << /F 5 0 R >> /XObject << /X 6 0 R >> >> >>",
		deflated("", content),
		"<< /Type /Font /Subtype /Type1 /BaseFont /Helvetica /Encoding /WinAnsiEncoding >>",
	}, more...)...)
}

// deflated returns a stream object with these entries, packed.
func deflated(entries, content string) string {
	var b bytes.Buffer
	w, _ := zlib.NewWriterLevel(&b, zlib.BestSpeed) // the level is a valid one
	w.Write([]byte(content))
	w.Close()
	return fmt.Sprintf("<< /Length %d /Filter /FlateDecode %s >>\nstream\n%s\nendstream", b.Len(), entries, b.String())
}

func wantReason(t testing.TB, err error, reason string) {
	t.Helper()
	if skipped, ok := errors.AsType[*SkipError](err); !ok || skipped.Reason != reason {
		t.Errorf("got %v, want a file skipped as %s", err, reason)
	}
}

// extracted reads a file of that type in this process, and returns its text and headings.
func extracted(t *testing.T, typ string, data []byte) (title, text, headings string) {
	t.Helper()
	doc, err := read(order{Type: typ, MaxText: 1 << 20, MaxMemory: 1 << 30}, data)
	if err != nil {
		t.Error(err)
		return "", "", ""
	}
	checkDocument(t, doc)
	var all []string
	for _, s := range doc.Sections {
		all = append(all, s.Heading)
	}
	return doc.Title, doc.Text, strings.Join(all, "|")
}
