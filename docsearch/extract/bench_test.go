package extract

import (
	"strings"
	"testing"
)

func BenchmarkExtract(b *testing.B) {
	words := strings.Repeat("The quick brown fox jumps over the lazy dog, again and again.\n", 16<<10)
	paragraph := `<w:p><w:r><w:t>The quick brown fox jumps over the lazy dog, again and again.</w:t></w:r></w:p>`
	e := withWorker(b, "worker", Options{})
	for name, data := range map[string][]byte{
		"text.txt":    []byte(words),
		"markdown.md": []byte(strings.Repeat("# Heading\n\n"+words[:500]+"\n\n", 2000)),
		"code.go":     []byte(strings.Repeat("func f() {\n\treturn something(a, b)\n}\n\n", 25_000)),
		"html.html":   []byte(strings.Repeat("<h2>Heading</h2><p>"+words[:500]+"</p>", 2000)),
		"docx.docx":   buildDOCX(strings.Repeat(paragraph, 10_000)),
		"report.pdf":  fixture(b, "libreoffice.pdf"),
		"report.rtf":  fixture(b, "libreoffice.rtf"),
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
