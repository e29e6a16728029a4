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
	largeFile = 4 << 20  // bytes
	mostHeap  = 48 << 20 // that the extraction of such a file adds, garbage included
)

func init() {
	workers["measures"] = measure
}

// pathVariable names the file that the worker measures.
const pathVariable = "DOCSEARCH_TEST_PATH"

// largeFiles are the files that need the most memory for their size.
var largeFiles = map[string]func() []byte{
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
	e := New(Options{Worker: []string{self, "worker"}, MaxText: largeFile, Timeout: time.Hour}) // however busy the machine is
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

// TestMemoryIsBounded extracts the files in processes of their own.
func TestMemoryIsBounded(t *testing.T) {
	program, err := plainProgram()
	if err != nil {
		t.Fatal(err)
	}
	for name, file := range largeFiles {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			path := filepath.Join(t.TempDir(), name)
			if err := os.WriteFile(path, file(), 0o600); err != nil {
				t.Fatal(err)
			}
			cmd := exec.CommandContext(t.Context(), program, "measures")
			cmd.Env = append(os.Environ(), pathVariable+"="+path)
			cmd.Stderr = os.Stderr
			out, err := cmd.Output()
			if err != nil {
				t.Fatal(err)
			}
			var grown, sections int
			if _, err := fmt.Sscan(string(out), &grown, &sections); err != nil {
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
	return func() []byte { return bytes.Repeat([]byte(part), largeFile/len(part)) }
}
