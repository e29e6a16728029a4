// Package pdftest makes PDFs for tests, small and hostile ones.
package pdftest

import (
	"bytes"
	"compress/zlib"
	"fmt"
	"strings"
)

// Build returns a PDF of these objects, the first of which has the number 1 and is the
// root, and a trailer with these entries more.
func Build(trailer string, objects ...string) []byte {
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

// OnePage returns a PDF of one page with this content, and more objects from
// number 6 on. Its resource F is a font, and X is object 6.
func OnePage(content string, more ...string) []byte {
	return Build("", append([]string{
		"<< /Type /Catalog /Pages 2 0 R >>",
		"<< /Type /Pages /Kids [3 0 R] /Count 1 >>",
		"<< /Type /Page /Parent 2 0 R /Contents 4 0 R /Resources << /Font << /F 5 0 R /X 6 0 R >> /XObject << /X 6 0 R >> >> >>",
		Stream("", content),
		"<< /Type /Font /Subtype /Type1 /BaseFont /Helvetica /Encoding /WinAnsiEncoding >>",
	}, more...)...)
}

// Stream returns a stream object with these entries more than its length.
func Stream(entries, content string) string {
	return fmt.Sprintf("<< /Length %d %s >>\nstream\n%s\nendstream", len(content), entries, content)
}

// Deflated is Stream with its content packed.
func Deflated(entries, content string) string {
	var b bytes.Buffer
	w, _ := zlib.NewWriterLevel(&b, zlib.BestSpeed) // the level is a valid one
	w.Write([]byte(content))
	w.Close()
	return Stream("/Filter /FlateDecode "+entries, b.String())
}

// WithXrefStream returns a PDF whose only object is its table of objects.
func WithXrefStream(entries string) []byte {
	const header = "%PDF-1.5\n"
	if !strings.Contains(entries, "/W") {
		entries += " /W [1 2 1]"
	}
	object := Stream("/Type /XRef "+entries, strings.Repeat("\x00", 40))
	return fmt.Appendf(nil, "%s1 0 obj\n%s\nendobj\nstartxref\n%d\n%%%%EOF\n", header, object, len(header))
}

// HostilePDF is a PDF from which no text comes.
type HostilePDF struct {
	Data    []byte
	Reasons []string // one of which extract skips it for
}

// The reasons of package extract, which uses this one.
const (
	damaged   = "damaged"
	empty     = "empty"
	encrypted = "encrypted"
	memory    = "memory"
	timeout   = "timeout"
	tooLarge  = "too_large"
)

// Hostile returns PDFs, by name, that take a reader which believes them out of time,
// memory or stack, and some that are merely broken. Most are of the kinds that
// github.com/ledongthuc/pdf/pull/78 lists.
func Hostile() map[string]HostilePDF {
	return map[string]HostilePDF{
		"xref of a billion objects": {
			WithXrefStream("/Size 1000000000"), []string{memory, damaged}},
		"xref of more objects than a slice holds": {
			WithXrefStream("/Size 9223372036854775807"), []string{damaged}},
		"xref entries of a billion bytes": {
			WithXrefStream("/Size 9 /W [1 30000000000 1]"), []string{memory, damaged}},
		"xref that is its own predecessor": {
			Build("/Prev XREF", "<< /Type /Catalog >>"), []string{timeout, memory}},
		"page that is its own parent": {
			Build("", "<< /Type /Catalog /Pages 2 0 R >>", "<< /Kids [3 0 R] /Count 1 >>", "<< /Type /Page /Parent 3 0 R >>"), []string{timeout}},
		"pages that contain themselves": {
			Build("", "<< /Pages 2 0 R >>", "<< /Type /Pages /Kids [2 0 R 2 0 R] /Count 9 >>"), []string{damaged}},
		"outline that contains itself": {
			Build("", "<< /Pages 2 0 R /Outlines 2 0 R >>", "<< /First 2 0 R /Next 2 0 R /Title (x) >>"), []string{damaged, empty}},
		"string without an end": {
			OnePage("BT /F 10 Tf <4141"), []string{timeout, memory, empty}},
		"arrays in arrays": {
			OnePage(strings.Repeat("[", 1<<20)), []string{damaged, memory, empty}},
		"form that shows itself": {
			OnePage("/X Do", Stream("/Subtype /Form /Resources << /XObject << /X 6 0 R >> >>", strings.Repeat("/X Do ", 10))), []string{timeout}},
		"stream of millions of arguments": {
			OnePage("/X Do", Deflated("/Subtype /Form", strings.Repeat("0 ", 4<<20))), []string{memory}},
		"lines of gigabytes": {
			OnePage("/X Do", Stream("/Filter /FlateDecode /DecodeParms << /Predictor 12 /Columns 9000000000 >> /Subtype /Form", "x")), []string{empty, memory}},
		"much text": {
			OnePage("/X Do", Deflated("/Subtype /Form", "BT /F 10 Tf "+strings.Repeat("(some text that is long) Tj 0 -20 Td ", 4_000))), []string{tooLarge}},
		"no pages":       {Build("", "<< /Type /Catalog >>"), []string{damaged}},
		"no text":        {OnePage("0 0 m 5 5 l f"), []string{empty}},
		"header only":    {[]byte("%PDF-1.7\n"), []string{damaged}},
		"not a PDF":      {[]byte("once upon a time"), []string{damaged}},
		"nothing":        {nil, []string{damaged}},
		"unknown filter": {OnePage("/X Do", Stream("/Subtype /Form /Filter /Nonsense", "x")), []string{empty, damaged}},
		"unknown cipher": {Build("/Encrypt << /Filter /Standard /V 5 /Length 256 >> /ID [(0123456789abcdef)]", "<< >>"), []string{encrypted}},
	}
}
