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

	"github.com/mcp-sse/mcp-sse/docsearch/extract/internal/plain"
)

const (
	hugeFile = 16 << 20  // bytes
	mostHeap = 112 << 20 // that the extraction of such a file adds, garbage included
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
	"text.rtf":         func() []byte { return append([]byte(`{\rtf1`), repeated("text \\par ")()...) },
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
	e := New(Options{Worker: []string{self, "worker"}, Timeout: time.Hour}) // however busy the machine is
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
	program, err := plainProgram()
	if err != nil {
		t.Fatal(err)
	}
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
