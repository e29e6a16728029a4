package extract

import (
	"slices"
	"strings"
	"testing"
	"time"
)

// hostileFiles are files, by their names, that take a reader which believes them out of
// time, memory or stack, and some that are merely broken. None is indexed, for one of
// these reasons.
func hostileFiles() map[string]struct {
	data    []byte
	reasons string
} {
	type file = struct {
		data    []byte
		reasons string
	}
	bomb := strings.Repeat(" ", 8<<20)
	text := `<w:p><w:r><w:t>` + strings.Repeat("some text ", 1000) + `</w:t></w:r></w:p>`
	return map[string]file{
		"not an archive.docx":  {[]byte("PK\x03\x04 not really"), "damaged"},
		"nothing.docx":         {nil, "empty"},
		"password.docx":        {[]byte("\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1rest"), "encrypted"},
		"password.xlsx":        {[]byte("\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1rest"), "encrypted"},
		"password.odt":         {buildZip(map[string]string{"META-INF/manifest.xml": "<encryption-data/>", "content.xml": "x"}), "encrypted"},
		"no document.docx":     {buildZip(map[string]string{"a": "b"}), "damaged"},
		"no slides.pptx":       {buildZip(map[string]string{"a": "b"}), "damaged"},
		"no cells.xlsx":        {buildZip(map[string]string{"a": "b"}), "damaged empty"},
		"no book.epub":         {buildZip(map[string]string{"META-INF/container.xml": `<rootfile full-path="gone"/>`}), "damaged"},
		"bad XML.docx":         {buildDOCX("<w:p <w:r>"), "damaged"},
		"entities.docx":        {buildZip(map[string]string{"word/document.xml": `<!DOCTYPE a [<!ENTITY x "xxx">]><a>&x;</a>`}), "damaged"},
		"deep.docx":            {buildDOCX(strings.Repeat("<a>", 300_000)), "empty"},
		"much text.docx":       {buildDOCX(strings.Repeat(text, 7)), "too_large"},
		"nothing in it.docx":   {buildDOCX("<w:p/>"), "empty"},
		"PDF.docx":             {onePage(""), "damaged"},
		"bomb.docx":            {buildZip(map[string]string{"word/document.xml": bomb}), "too_large memory"},
		"bomb.odt":             {buildZip(map[string]string{"content.xml": bomb}), "too_large memory"},
		"bomb.xlsx":            {buildZip(map[string]string{"xl/workbook.xml": bomb}), "damaged memory"},
		"bomb.epub":            {buildZip(map[string]string{"META-INF/container.xml": `<rootfile full-path="b"/>`, "b": bomb}), "too_large memory"},
		"many attributes.docx": {buildDOCX("<a" + strings.Repeat(` b=""`, 150_000)), "damaged"},
		"deep.ipynb":           {[]byte(strings.Repeat(`{"cells":[`, 1<<20)), "damaged"},
		"no notebook.ipynb":    {[]byte(`{"cells":[]}`), "damaged"},
		"deep.rtf":             {[]byte(`{\rtf1` + strings.Repeat("{", 1<<20)), "empty memory"},
		"no RTF.rtf":           {[]byte("text"), "damaged"},

		"header only.pdf":         {[]byte("%PDF-1.7\n"), "damaged"},
		"no PDF.pdf":              {[]byte("once upon a time"), "damaged"},
		"nothing.pdf":             {nil, "empty"},
		"no text.pdf":             {onePage("0 0 m 5 5 l f"), "empty"},
		"cipher.pdf":              {buildPDF("/Encrypt << /Filter /Standard /V 9 /Length 256 >> /ID [(0123456789abcdef)]", "<< >>"), "encrypted"},
		"own predecessor.pdf":     {buildPDF("/Prev XREF", "<< /Type /Catalog >>"), "damaged empty"},
		"own parent.pdf":          {buildPDF("", "<< /Pages 2 0 R >>", "<< /Kids [3 0 R] /Count 1 >>", "<< /Type /Page /Parent 3 0 R >>"), "damaged empty"},
		"pages in themselves.pdf": {buildPDF("", "<< /Pages 2 0 R >>", "<< /Type /Pages /Kids [2 0 R 2 0 R] /Count 9 >>"), "damaged empty"},
		"a billion pages.pdf":     {buildPDF("", "<< /Pages 2 0 R >>", "<< /Type /Pages /Kids [] /Count 1000000000 >>"), "damaged empty too_large timeout"},
		"outline of itself.pdf":   {buildPDF("", "<< /Pages 2 0 R /Outlines 2 0 R >>", "<< /First 2 0 R /Next 2 0 R /Title (x) >>"), "damaged empty"},
		"form in itself.pdf":      {onePage("/X Do", deflated("/Subtype /Form /Resources << /XObject << /X 6 0 R >> >>", strings.Repeat("/X Do ", 4))), "empty timeout memory"},
		"arrays in arrays.pdf":    {onePage(strings.Repeat("[", 1<<20)), "empty memory damaged"},
		"bomb.pdf":                {onePage("/X Do", deflated("/Subtype /Form", bomb)), "empty memory damaged timeout"},
		"much text.pdf":           {onePage("BT /F 10 Tf 50 700 Td " + strings.Repeat("(some text that is long) Tj 0 -12 Td ", 4_000)), "too_large"},
	}
}

func TestHostileFilesAreSkipped(t *testing.T) {
	// PDFium's compilation, if it is not cached, takes more memory than the files may.
	if _, err := withWorker(t, "worker", Options{}).Extract(t.Context(), "good.pdf", fixture(t, "libreoffice.pdf")); err != nil {
		t.Fatal(err)
	}
	for name, tc := range hostileFiles() {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			e := withWorker(t, "worker", Options{MaxMemory: 512 << 20, MaxText: 64 << 10, Timeout: 20 * time.Second})
			doc, err := e.Extract(t.Context(), name, tc.data)
			if reason := reasonOf(err); err == nil || !slices.Contains(strings.Fields(tc.reasons), reason) {
				t.Errorf("got %v, %v, want a reason of %q", doc, err, tc.reasons)
			}
		})
	}
}

func TestEncryptedPDF(t *testing.T) {
	_, err := withWorker(t, "worker", Options{}).Extract(t.Context(), "a.pdf", fixture(t, "encrypted.pdf"))
	wantReason(t, err, ReasonEncrypted)
}

func TestPDFWithoutItsExtension(t *testing.T) {
	doc, err := withWorker(t, "worker", Options{}).Extract(t.Context(), "download", onePage("BT /F 10 Tf 50 700 Td (text) Tj ET"))
	if err != nil || doc.Type != TypePDF || doc.Text != "text\n" {
		t.Errorf("got %v, %v, want a PDF", doc, err)
	}
}
