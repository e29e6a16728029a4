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
	"time"

	"github.com/mcp-sse/mcp-sse/docsearch/extract/internal/pdftest"
	"github.com/mcp-sse/mcp-sse/docsearch/extract/internal/plain"
)

const (
	hugeFile = 16 << 20  // bytes
	mostHeap = 112 << 20 // that the extraction of such a file adds, garbage included
	hugeXML  = 8 << 20   // bytes of a DOCX
)

func init() {
	workers["makes"] = func() error {
		path := os.Getenv(pathVariable)
		return os.WriteFile(path, hugeFiles[filepath.Base(path)](), 0o600)
	}
	workers["measures"] = measure
}

// pathVariable names the file that the worker makes or measures.
const pathVariable = "DOCSEARCH_TEST_PATH"

// hugeFiles are the files that need the most memory for their size.
var hugeFiles = map[string]func() []byte{
	"headings.md":        repeated("# h\n"),
	"long headings.md":   repeated("# " + strings.Repeat("heading ", 40) + "\n"),
	"declarations.go":    repeated("func f\n"),
	"headings.html":      repeated("<h1>a"),
	"one text.html":      repeated("text "),
	"one tag.html":       func() []byte { return append([]byte("<a b='"), repeated("text ")()...) },
	"currency.html":      func() []byte { return append([]byte("<meta charset=windows-1252>"), repeated("\x80")()...) },
	"currency.txt":       repeated("\x80"),
	"UTF-16.txt":         func() []byte { return append([]byte("\xff\xfe"), repeated("\x00\x08")()...) },
	"broken.txt":         repeated("üüüüü\xff\r\ue000"),
	"headings.docx":      hugeDOCX(`<p><pPr><outlineLvl val="1"/></pPr><t>h</t></p>`, ""),
	"long headings.docx": hugeDOCX(`<p><pPr><outlineLvl val="1"/></pPr><t>`+strings.Repeat("heading ", 40)+`</t></p>`, ""),
	"styles.docx":        hugeDOCX("<p><t>h</t></p>", `<style styleId="%08d"/>`),
	"text.pdf":           hugePDF,
}

// measure extracts a file and prints by how many bytes the heap has grown at its largest.
// Its process is new: HeapSys never shrinks, so that it tells the most that there was.
func measure() error {
	path := os.Getenv(pathVariable)
	data, err := os.ReadFile(path)
	if err != nil {
		return err
	}
	self, err := os.Executable()
	if err != nil {
		return err
	}
	e := New(Options{Worker: []string{self, "worker"}, Timeout: time.Hour})
	e.patience.least = time.Hour // however busy the machine is: this is about memory
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

// TestMemoryIsBounded makes and extracts the files in processes of their own.
func TestMemoryIsBounded(t *testing.T) {
	program := withoutRaceDetector(t)
	for name := range hugeFiles {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			path := filepath.Join(t.TempDir(), name)
			runWorker(t, program, "makes", path)
			out := runWorker(t, program, "measures", path)
			var grown, sections int
			if _, err := fmt.Sscan(out, &grown, &sections); err != nil {
				t.Fatalf("%q: %v", out, err)
			}
			t.Logf("%s: %d MiB, %d sections", name, grown>>20, sections)
			if grown > mostHeap || sections > plain.MaxSections {
				t.Errorf("the heap grows by %d MiB, and there are %d sections, want at most %d MiB and %d",
					grown>>20, sections, mostHeap>>20, plain.MaxSections)
			}
		})
	}
}

func repeated(part string) func() []byte {
	return func() []byte { return bytes.Repeat([]byte(part), hugeFile/len(part)) }
}

// hugeDOCX returns a function that makes a document of this paragraph and of numbered
// styles.
func hugeDOCX(paragraph, style string) func() []byte {
	return func() []byte {
		if style == "" {
			return buildDOCX(strings.Repeat(paragraph, hugeXML/len(paragraph)))
		}
		var styles strings.Builder
		for i := range hugeXML / len(style) {
			fmt.Fprintf(&styles, style, i)
		}
		return buildZip(map[string]string{"word/document.xml": wordXML(paragraph), "word/styles.xml": styles.String()})
	}
}

// hugePDF returns a PDF whose text is mostly characters that JSON escapes.
func hugePDF() []byte {
	font := "<< /Type /Font /Subtype /Type1 /ToUnicode 7 0 R >>"
	cmap := "1 beginbfchar <41> <0001> endbfchar"
	line := "(" + strings.Repeat("A", 1<<10) + ") Tj "
	content := "BT /X 10 Tf " + strings.Repeat(line, 15<<10) + "ET"
	return pdftest.Build("",
		"<< /Type /Catalog /Pages 2 0 R >>",
		"<< /Type /Pages /Kids [3 0 R] /Count 1 >>",
		"<< /Type /Page /Parent 2 0 R /Contents 4 0 R /Resources << /Font << /X 5 0 R >> >> >>",
		pdftest.Deflated("", content), font, "null", pdftest.Stream("", cmap))
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

// runWorker has a process of its own make or measure the file, and returns what it says.
func runWorker(t *testing.T, program, worker, path string) string {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), program, worker)
	cmd.Env = append(os.Environ(), pathVariable+"="+path)
	cmd.Stderr = os.Stderr
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("%s: %v", worker, err)
	}
	return string(out)
}
