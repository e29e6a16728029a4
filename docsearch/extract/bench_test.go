package extract

import (
	"strings"
	"testing"

	"github.com/mcp-sse/mcp-sse/docsearch/extract/internal/pdftest"
)

func BenchmarkExtract(b *testing.B) {
	words := strings.Repeat("The quick brown fox jumps over the lazy dog, again and again.\n", 16<<10)
	paragraph := `<w:p><w:r><w:t>The quick brown fox jumps over the lazy dog, again and again.</w:t></w:r></w:p>`
	line := "(The quick brown fox jumps over the lazy dog, again and again.) Tj 0 -12 Td "
	e := withWorker(b, "worker", Options{})
	for name, data := range map[string][]byte{
		"text.txt":     []byte(words),
		"markdown.md":  []byte(strings.Repeat("# Heading\n\n"+words[:500]+"\n\n", 2000)),
		"code.go":      []byte(strings.Repeat("func f() {\n\treturn something(a, b)\n}\n\n", 25_000)),
		"html.html":    []byte(strings.Repeat("<h2>Heading</h2><p>"+words[:500]+"</p>", 2000)),
		"docx.docx":    buildDOCX(strings.Repeat(paragraph, 10_000)),
		"pdf.pdf":      pdftest.OnePage("/X Do", pdftest.Stream("/Subtype /Form", "BT /F 10 Tf "+strings.Repeat(line, 10_000)+" ET")),
		"report.pdf":   fixture(b, "libreoffice.pdf"),
		"smallest.pdf": pdftest.OnePage("BT /F 10 Tf (x) Tj ET"),
	} {
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				doc, err := e.Extract(b.Context(), name, data)
				if err != nil {
					b.Fatal(err)
				}
				b.SetBytes(int64(len(doc.Text)))
			}
		})
	}
}
