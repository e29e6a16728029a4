package extract

import (
	"errors"
	"slices"
	"strings"
	"testing"
	"time"
)

func TestPDFText(t *testing.T) {
	const object = "<< /Type /Font /Subtype /Type0 /Encoding /Identity-H /ToUnicode 7 0 R /DescendantFonts [<< /W [1 [600 600] 3 9 250] /DW 500 >>] >>"
	cmap := "/CIDInit /ProcSet findresource begin 12 dict begin begincmap\n" +
		"2 beginbfchar <0001> <0041> <0002> <00660069> endbfchar\n" +
		"2 beginbfrange <0003> <0005> <0061> <0006> <0007> [<0058> <D83DDE00>] endbfrange endcmap"
	for name, tc := range map[string]struct {
		content string
		more    []string
		want    string
	}{
		"words":               {"BT /F 10 Tf (Hello ) Tj (World) Tj ET", nil, "Hello World\n"},
		"windows-1252":        {"BT /F 10 Tf (na\xefve caf\xe9 \x84quoted\x93) Tj ET", nil, "naïve café „quoted“\n"},
		"kerning":             {"BT /F 10 Tf [(H) 20 (ello) -300 (World)] TJ ET", nil, "Hello World\n"},
		"lines":               {"BT /F 10 Tf 1 0 0 1 50 700 Tm (one) Tj 0 -12 Td (two) Tj 12 TL T* (three) Tj (four) ' ET", nil, "one\ntwo\nthree\nfour\n"},
		"paragraphs":          {"BT /F 10 Tf 50 700 Td (one) Tj 0 -30 Td (two) Tj ET", nil, "one\n\ntwo\n"},
		"columns":             {"BT /F 10 Tf 50 700 Td (one) Tj 100 0 Td (two) Tj -100 0 Td (three) Tj ET", nil, "one two three\n"},
		"superscript":         {"BT /F 10 Tf 50 700 Td (note) Tj 20 4 Td (1) Tj ET", nil, "note1\n"},
		"scaled by cm":        {"q 10 0 0 10 0 0 cm BT /F 1 Tf 5 70 Td (one) Tj 0 -1.2 Td (two) Tj ET Q", nil, "one\ntwo\n"},
		"spacing operator":    {"BT /F 10 Tf 14 TL 0 0 (one) \" (more) Tj ET", nil, "onemore\n"},
		"characters are kept": {"BT /F 10 Tf (\\(a\\) \\\\ \\101) Tj ET", nil, "(a) \\ A\n"},
		"reserved characters": {"BT /F 10 Tf (a\x00b) Tj ET", nil, "ab\n"},
		"form":                {"BT /F 10 Tf (before) Tj ET /X Do BT 0 -20 Td (after) Tj ET", []string{stream("/Subtype /Form /Matrix [1 0 0 1 0 -40]", "BT /F 10 Tf (inside) Tj ET")}, "before\n\ninside\nafter\n"},
		"map of codes":        {"BT /X 10 Tf <000100020003000400050006> Tj ET", []string{object, stream("", cmap)}, "AfiabcX\n"},
		"broken at the end":   {"BT /F 10 Tf (kept) Tj ET BT /F 10 Tf ] >> (lost", nil, "kept\n"},
		"unbalanced Q":        {"Q Q BT /F 10 Tf (kept) Tj ET", nil, "kept\n"},
		"no arguments":        {"BT /F 10 Tf Tm Td TJ Tj cm (kept) Tj ET", nil, "kept\n"},
	} {
		t.Run(name, func(t *testing.T) {
			doc, err := pdfDocument(onePage(tc.content, tc.more...), 1<<20)
			if err != nil {
				t.Fatal(err)
			}
			if doc.Text != tc.want {
				t.Errorf("got %q, want %q", doc.Text, tc.want)
			}
		})
	}
}

func TestPDFThatViewersAccept(t *testing.T) {
	good := onePage("BT /F 10 Tf (text) Tj ET")
	for name, data := range map[string][]byte{
		"as it is":      good,
		"newer version": []byte(strings.Replace(string(good), "%PDF-1.4", "%PDF-2.0", 1)),
		"junk before":   append([]byte("junk\n"), good...),
		"junk after":    append(good[:len(good):len(good)], strings.Repeat("junk\n", 100)...),
		"blank in head": []byte(strings.Replace(string(good), "%PDF-1.4\n", "%PDF-1.4 ", 1)),
	} {
		doc, err := pdfDocument(data, 1<<20)
		if err != nil || doc.Text != "text\n" {
			t.Errorf("%s: got %v, %v", name, doc, err)
		}
	}
}

// hostilePDFs take a reader that believes them out of time, memory or stack. Most are of
// the kinds that github.com/ledongthuc/pdf/pull/78 lists.
func hostilePDFs() map[string]hostilePDF {
	return map[string]hostilePDF{
		"xref of a billion objects": {
			buildPDFWithXrefStream("/Size 1000000000"), []string{ReasonMemory, ReasonDamaged}},
		"xref of more objects than a slice holds": {
			buildPDFWithXrefStream("/Size 9223372036854775807"), []string{ReasonDamaged}},
		"xref entries of a billion bytes": {
			buildPDFWithXrefStream("/Size 9 /W [1 30000000000 1]"), []string{ReasonMemory, ReasonDamaged}},
		"xref that is its own predecessor": {
			buildPDF("/Prev XREF", "<< /Type /Catalog >>"), []string{ReasonTimeout, ReasonMemory}},
		"page that is its own parent": {
			buildPDF("", "<< /Type /Catalog /Pages 2 0 R >>", "<< /Kids [3 0 R] /Count 1 >>", "<< /Type /Page /Parent 3 0 R >>"), []string{ReasonTimeout}},
		"pages that contain themselves": {
			buildPDF("", "<< /Pages 2 0 R >>", "<< /Type /Pages /Kids [2 0 R 2 0 R] /Count 9 >>"), []string{ReasonDamaged}},
		"outline that contains itself": {
			buildPDF("", "<< /Pages 2 0 R /Outlines 2 0 R >>", "<< /First 2 0 R /Next 2 0 R /Title (x) >>"), []string{ReasonDamaged, ReasonEmpty}},
		"string without an end": {
			onePage("BT /F 10 Tf <4141"), []string{ReasonTimeout, ReasonMemory, ReasonEmpty}},
		"arrays in arrays": {
			onePage(strings.Repeat("[", 1<<20)), []string{ReasonDamaged, ReasonMemory, ReasonEmpty}},
		"form that shows itself": {
			onePage("/X Do", stream("/Subtype /Form /Resources << /XObject << /X 6 0 R >> >>", strings.Repeat("/X Do ", 10))), []string{ReasonTimeout}},
		"stream of millions of arguments": {
			onePage("/X Do", deflated("/Subtype /Form", strings.Repeat("0 ", 4<<20))), []string{ReasonMemory}},
		"lines of gigabytes": {
			onePage("/X Do", stream("/Filter /FlateDecode /DecodeParms << /Predictor 12 /Columns 9000000000 >> /Subtype /Form", "x")), []string{ReasonEmpty, ReasonMemory}},
		"much text": {
			onePage("/X Do", deflated("/Subtype /Form", "BT /F 10 Tf "+strings.Repeat("(some text that is long) Tj 0 -20 Td ", 60_000))), []string{ReasonTooLarge}},
		"no pages":       {buildPDF("", "<< /Type /Catalog >>"), []string{ReasonDamaged}},
		"no text":        {onePage("0 0 m 5 5 l f"), []string{ReasonEmpty}},
		"header only":    {[]byte("%PDF-1.7\n"), []string{ReasonDamaged}},
		"not a PDF":      {[]byte("once upon a time"), []string{ReasonDamaged}},
		"nothing":        {nil, []string{ReasonDamaged}},
		"unknown filter": {onePage("/X Do", stream("/Subtype /Form /Filter /Nonsense", "x")), []string{ReasonEmpty, ReasonDamaged}},
		"unknown cipher": {buildPDF("/Encrypt << /Filter /Standard /V 5 /Length 256 >> /ID [(0123456789abcdef)]", "<< >>"), []string{ReasonEncrypted}},
	}
}

type hostilePDF struct {
	data    []byte
	reasons []string
}

func TestHostilePDFIsSkipped(t *testing.T) {
	for name, tc := range hostilePDFs() {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			o := Options{MaxMemory: 128 << 20, MaxText: 1 << 20}
			if slices.Contains(tc.reasons, ReasonTimeout) {
				o.Timeout = 300 * time.Millisecond
			}
			e := withWorker(t, "worker", o)
			doc, err := e.Extract(t.Context(), "file.pdf", tc.data)
			skipped, ok := errors.AsType[*SkipError](err)
			if !ok || !slices.Contains(tc.reasons, skipped.Reason) {
				t.Errorf("got %v, %v, want a reason of %q", doc, err, tc.reasons)
			}
		})
	}
}

func TestEncryptedPDF(t *testing.T) {
	_, err := withWorker(t, "worker", Options{}).Extract(t.Context(), "a.pdf", fixture(t, "encrypted.pdf"))
	wantReason(t, err, ReasonEncrypted)
}
