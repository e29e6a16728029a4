package extract

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
)

const (
	hugeFile = 16 << 20  // bytes
	mostHeap = 112 << 20 // that the extraction of such a file adds, garbage included
	hugeXML  = 8 << 20   // of a DOCX: with the race detector it takes seconds to make
)

func init() { workers["measures"] = measure }

// measuredVariable names the file that measure extracts.
const measuredVariable = "DOCSEARCH_TEST_MEASURE"

// measure extracts a file and prints by how many bytes the heap has grown at its largest.
// Its process is new: HeapSys never shrinks, so that it tells the most that there was.
func measure() error {
	path := os.Getenv(measuredVariable)
	data, err := os.ReadFile(path)
	if err != nil {
		return err
	}
	self, err := os.Executable()
	if err != nil {
		return err
	}
	e := New(Options{Worker: []string{self, "worker"}})
	var before, after runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&before)
	doc, err := e.Extract(context.Background(), path, data)
	runtime.ReadMemStats(&after)
	sections := 0
	if err == nil {
		sections = len(doc.Sections)
	} else if reason := reasonOf(err); reason != ReasonTooLarge && reason != ReasonEmpty {
		return err
	}
	_, err = fmt.Println(after.HeapSys-before.HeapInuse, sections)
	runtime.KeepAlive(data)
	return err
}

// TestMemoryIsBounded extracts the files that need the most memory for their size.
func TestMemoryIsBounded(t *testing.T) {
	program := withoutRaceDetector(t)
	for name, data := range map[string]func() []byte{
		"headings.md":      repeated("# h\n"),
		"long headings.md": repeated("# " + strings.Repeat("heading ", 40) + "\n"),
		"declarations.go":  repeated("func f\n"),
		"headings.html":    repeated("<h1>a"),
		"one text.html":    repeated("text "),
		"one tag.html":     func() []byte { return append([]byte("<a b='"), repeated("text ")()...) },
		"currency.html":    func() []byte { return append([]byte("<meta charset=windows-1252>"), repeated("\x80")()...) },
		"currency.txt":     repeated("\x80"),
		"UTF-16.txt":       func() []byte { return append([]byte("\xff\xfe"), repeated("\x00\x08")()...) },
		"broken.txt":       repeated("üüüüü\xff\r\ue000"),
		"headings.docx":    func() []byte { return hugeDOCX(t, `<p><pPr><outlineLvl val="1"/></pPr><t>h</t></p>`, "") },
		"long headings.docx": func() []byte {
			return hugeDOCX(t, `<p><pPr><outlineLvl val="1"/></pPr><t>`+strings.Repeat("heading ", 40)+`</t></p>`, "")
		},
		"styles.docx": func() []byte { return hugeDOCX(t, "<p><t>h</t></p>", `<style styleId="%08d"/>`) },
		"text.pdf":    func() []byte { return hugePDF() },
	} {
		t.Run(name, func(t *testing.T) {
			grown, sections := measured(t, program, name, data())
			t.Logf("%s: %d MiB, %d sections", name, grown>>20, sections)
			if grown > mostHeap || sections > maxSections {
				t.Errorf("the heap grows by %d MiB, and there are %d sections, want at most %d MiB and %d",
					grown>>20, sections, mostHeap>>20, maxSections)
			}
		})
	}
}

func repeated(part string) func() []byte {
	return func() []byte { return bytes.Repeat([]byte(part), hugeFile/len(part)) }
}

// hugeDOCX returns a document of this paragraph and of numbered styles.
func hugeDOCX(t testing.TB, paragraph, style string) []byte {
	parts := map[string]string{"word/document.xml": wordXML(strings.Repeat(paragraph, hugeXML/len(paragraph)))}
	if style != "" {
		var styles strings.Builder
		for i := range hugeXML / len(style) {
			fmt.Fprintf(&styles, style, i)
		}
		parts = map[string]string{"word/document.xml": wordXML(paragraph), "word/styles.xml": styles.String()}
	}
	return buildZip(t, parts)
}

// hugePDF returns a PDF whose text is mostly characters that JSON escapes.
func hugePDF() []byte {
	font := "<< /Type /Font /Subtype /Type1 /ToUnicode 7 0 R >>"
	cmap := "1 beginbfchar <41> <0001> endbfchar"
	line := "(" + strings.Repeat("A", 1<<10) + ") Tj "
	content := "BT /X 10 Tf " + strings.Repeat(line, 15<<10) + "ET"
	return buildPDF("",
		"<< /Type /Catalog /Pages 2 0 R >>",
		"<< /Type /Pages /Kids [3 0 R] /Count 1 >>",
		"<< /Type /Page /Parent 2 0 R /Contents 4 0 R /Resources << /Font << /X 5 0 R >> >> >>",
		deflated("", content), font, "null", stream("", cmap))
}

// withoutRaceDetector returns the path of these tests, built as users build: the race
// detector takes memory, and minutes.
func withoutRaceDetector(t *testing.T) string {
	t.Helper()
	program := filepath.Join(t.TempDir(), "extract.test")
	if out, err := exec.CommandContext(t.Context(), "go", "test", "-c", "-o", program, ".").CombinedOutput(); err != nil {
		t.Fatalf("go test -c: %v\n%s", err, out)
	}
	return program
}

// measured has a process of its own extract the data.
func measured(t *testing.T, program, name string, data []byte) (grown, sections int) {
	t.Helper()
	path := filepath.Join(t.TempDir(), name)
	if err := os.WriteFile(path, data, 0o600); err != nil {
		t.Fatal(err)
	}
	cmd := exec.CommandContext(t.Context(), program, "measures")
	cmd.Env = append(os.Environ(), measuredVariable+"="+path, "GORACE=atexit_sleep_ms=0")
	cmd.Stderr = os.Stderr
	out, err := cmd.Output()
	if err != nil {
		t.Fatal(err)
	}
	if _, err := fmt.Sscan(string(out), &grown, &sections); err != nil {
		t.Fatalf("%q: %v", out, err)
	}
	return grown, sections
}
