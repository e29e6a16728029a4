package pdf

import (
	"errors"
	"strings"
	"testing"

	"github.com/mcp-sse/mcp-sse/docsearch/extract/internal/pdftest"
	"github.com/mcp-sse/mcp-sse/docsearch/extract/internal/plain"
)

func TestText(t *testing.T) {
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
		"form":                {"BT /F 10 Tf (before) Tj ET /X Do BT 0 -20 Td (after) Tj ET", []string{pdftest.Stream("/Subtype /Form /Matrix [1 0 0 1 0 -40]", "BT /F 10 Tf (inside) Tj ET")}, "before\n\ninside\nafter\n"},
		"map of codes":        {"BT /X 10 Tf <000100020003000400050006> Tj ET", []string{object, pdftest.Stream("", cmap)}, "AfiabcX\n"},
		"broken at the end":   {"BT /F 10 Tf (kept) Tj ET BT /F 10 Tf ] >> (lost", nil, "kept\n"},
		"unbalanced Q":        {"Q Q BT /F 10 Tf (kept) Tj ET", nil, "kept\n"},
		"no arguments":        {"BT /F 10 Tf Tm Td TJ Tj cm (kept) Tj ET", nil, "kept\n"},
	} {
		t.Run(name, func(t *testing.T) {
			doc, err := Read(pdftest.OnePage(tc.content, tc.more...), 1<<20)
			if err != nil {
				t.Fatal(err)
			}
			if doc.Text != tc.want {
				t.Errorf("got %q, want %q", doc.Text, tc.want)
			}
		})
	}
}

func TestReadsWhatViewersAccept(t *testing.T) {
	good := pdftest.OnePage("BT /F 10 Tf (text) Tj ET")
	for name, data := range map[string][]byte{
		"as it is":      good,
		"newer version": []byte(strings.Replace(string(good), "%PDF-1.4", "%PDF-2.0", 1)),
		"junk before":   append([]byte("junk\n"), good...),
		"junk after":    append(good[:len(good):len(good)], strings.Repeat("junk\n", 100)...),
		"blank in head": []byte(strings.Replace(string(good), "%PDF-1.4\n", "%PDF-1.4 ", 1)),
	} {
		doc, err := Read(data, 1<<20)
		if err != nil || doc.Text != "text\n" {
			t.Errorf("%s: got %v, %v", name, doc, err)
		}
	}
}

// FuzzCharacterMap reads the maps of fonts, which are the part of PDF that is read here.
func FuzzCharacterMap(f *testing.F) {
	f.Add([]byte("2 beginbfchar <0001> <0041> <0002> <00660069> endbfchar"), []byte{0, 1, 0, 2})
	f.Add([]byte("beginbfrange <00> <ff> <0041> <03> <05> [<0041> <d83dde00>] endbfrange"), []byte{4})
	f.Add([]byte("beginbfrange <> <ffffffff> [] <00000000> <ffffffff> <ffff> endbfrange"), []byte("a"))
	f.Fuzz(func(t *testing.T, program, raw []byte) {
		m := &font{toUnicode: make(map[string]string), glyphs: make(map[string]glyph), composite: len(raw)%2 == 0}
		m.readCharacterMap(program)
		if len(m.toUnicode) > maxCodes {
			t.Errorf("%d codes", len(m.toUnicode))
		}
		for code := range m.codes(string(raw)) {
			if text := m.glyph(code).text; plain.Clean(text) != text {
				t.Errorf("%q means %q", code, text)
			}
		}
	})
}

func TestReasons(t *testing.T) {
	for name, tc := range map[string]struct {
		data []byte
		want error
	}{
		"encrypted": {pdftest.Build("/Encrypt << /Filter /Standard /V 5 /Length 256 >> /ID [(0123456789abcdef)]", "<< >>"), ErrEncrypted},
		"much text": {pdftest.OnePage("BT /F 10 Tf (more than ten bytes) Tj ET"), ErrTooLarge},
		"no pages":  {pdftest.Build("", "<< /Type /Catalog >>"), nil},
		"not a PDF": {[]byte("once upon a time"), nil},
	} {
		_, err := Read(tc.data, 10)
		if err == nil || tc.want != nil && !errors.Is(err, tc.want) || tc.want == nil && (errors.Is(err, ErrEncrypted) || errors.Is(err, ErrTooLarge)) {
			t.Errorf("%s: got %v, want %v", name, err, tc.want)
		}
	}
}
