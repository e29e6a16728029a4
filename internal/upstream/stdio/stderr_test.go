package stdio

import (
	"bytes"
	"fmt"
	"io"
	"strings"
	"testing"
	"testing/iotest"
	"testing/synctest"
	"time"
	"unicode/utf8"

	"github.com/mcp-sse/mcp-sse/internal/ssetest"
)

func newStderrLog(w io.Writer) *stderrLog { return &stderrLog{log: ssetest.Logger(w)} }

func TestStderrLines(t *testing.T) {
	long := strings.Repeat("é", maxStderrLine)
	tests := []struct {
		name, text string
		want       []string // values of the attribute line
	}{
		{"lines", "a\nb c\r\n\n  \n  c  \n", []string{"a", `"b c"`, `"  c"`}},
		{"too long", strings.Repeat("x", 3*maxStderrLine) + "\ny\n", []string{strings.Repeat("x", maxStderrLine) + " truncated=true", "y"}},
		{"too long after a short one", "a\n" + strings.Repeat("x", maxStderrLine+1), []string{"a", strings.Repeat("x", maxStderrLine) + " truncated=true"}},
		{"cut between bytes of a rune", long + "\n", []string{long[:maxStderrLine] + " truncated=true"}},
		{"not UTF-8", "a\xffb\n", []string{"\"a\uFFFDb\""}},
		{"escape sequences are quoted", "\x1b[31mred\n", []string{`"\x1b[31mred"`}},
	}
	for _, test := range tests {
		for way, in := range map[string]io.Reader{
			"at once": strings.NewReader(test.text), "by byte": iotest.OneByteReader(strings.NewReader(test.text)), "by half": iotest.HalfReader(strings.NewReader(test.text)),
		} {
			var got bytes.Buffer
			newStderrLog(&got).read(in)
			var want strings.Builder
			for _, line := range test.want {
				fmt.Fprintf(&want, "level=INFO msg=\"server stderr\" line=%s\n", line)
			}
			ssetest.Want(t, test.name+", "+way, got.String(), want.String())
		}
	}
}

func TestStderrHint(t *testing.T) {
	tests := []struct{ name, text, want string }{
		{"nothing", "\n \n", ""},
		{"node", "node:internal/modules/cjs/loader:1148\n  throw err;\n  ^\n\nError: Cannot find module '/x.js'\n" +
			"    at node:internal/main:28:49 {\n  code: 'MODULE_NOT_FOUND'\n}\n\nNode.js v20.20.2\n", "Error: Cannot find module '/x.js'"},
		{"python", "Traceback (most recent call last):\n  File \"x\"\nModuleNotFoundError: No module named 'x'\n", "ModuleNotFoundError: No module named 'x'"},
		{"python, in the program", "Traceback (most recent call last):\n  File \"trace.py\", line 5, in <module>\n    main()\n  File \"trace.py\", line 3, in main\n" +
			"    raise KeyError(\"API_KEY\")\nKeyError: 'API_KEY'\n", `File "trace.py", line 3, in main | KeyError: 'API_KEY'`},
		{"python, one after the other", "Traceback (most recent call last):\n  File \"a.py\", line 1, in f\n    open(x)\n    ~~~~^^^\nFileNotFoundError: x\n\n" +
			"During handling of the above exception, another exception occurred:\n\nTraceback (most recent call last):\n  File \"a.py\", line 3, in <module>\n    f()\nValueError: y\n",
			`File "a.py", line 1, in f | FileNotFoundError: x | During handling of the above exception, another exception occurred: | File "a.py", line 3, in <module> | ValueError: y`},
		{"python, wrong syntax", "  File \"a.py\", line 1\n    def (\n        ^\nSyntaxError: invalid syntax\n", `File "a.py", line 1 | SyntaxError: invalid syntax`},
		{"python, cut off", "Traceback (most recent call last):\n  File \"a.py\", line 1, in f\n    open(x)\n", `File "a.py", line 1, in f`},
		{"what is indented elsewhere", "Usage:\n  run FILE\n", "Usage: | run FILE"},
		{"colours", "\x1b[31mred \x1b[1;4merror\x1b[0m\n\x1b]0;title\a\x1b]8;;http://a\x1b\\link\x1b]8;;\x1b\\\n\x1b[2K\x1b[1Gdone\x1b(B\n\x1b[0m\n", "red error | link | done"},
		{"a line that is written over", "10 %\r90 %\rno space left\r\n", "no space left"},
		{"go", "panic: boom\n\ngoroutine 1 [running]:\nexit status 2\n", "panic: boom"},
		{"npm", "npm error code E404\nnpm error 404 Not Found - GET https://registry.npmjs.org/@x%2fy - Not found\nnpm error 404\n" +
			"npm error 404  '@x/y@*' is not in this registry.\nnpm error 404\nnpm error 404 Note that you can also install from a\n" +
			"npm error 404 tarball, folder, http url, or git folder.\nnpm error A complete log of this run can be found in: /root/.npm/_logs/2026-debug-0.log\n",
			"npm error 404 Not Found - GET https://registry.npmjs.org/@x%2fy - Not found | npm error 404  '@x/y@*' is not in this registry."},
		{"docker", "docker: Error response from daemon: pull access denied for nope\n\nRun 'docker run --help' for more information\n",
			"docker: Error response from daemon: pull access denied for nope"},
		{"bash", "bash: line 1: foo: command not found\n", "bash: line 1: foo: command not found"},
		{"five lines", "1\n2\n3\n\n4\n5\n6\n", "2 | 3 | 4 | 5 | 6"},
		{"an error before the last lines", "error: no key\n1\n2\n3\n4\n5\n", "error: no key | 1 | 2 | 3 | 4 | 5"},
		{"long", strings.Repeat("ä", 400), strings.Repeat("ä", maxExcerpt/2) + "…"},
	}
	for _, test := range tests {
		s := newStderrLog(io.Discard)
		s.read(strings.NewReader(test.text))
		if got := s.hint(time.Time{}); got != test.want || !utf8.ValidString(got) {
			t.Errorf("%s: got %q, want %q", test.name, got, test.want)
		}
	}
}

// A line that a child wrote long before it died does not say why.
func TestStderrHintIsOfTheLastMoments(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newStderrLog(io.Discard)
		s.read(strings.NewReader("error: one page is missing\n"))
		time.Sleep(time.Minute)
		s.read(strings.NewReader("Traceback (most recent call last):\n  File \"a.py\", line 1, in f\nKeyError: 'x'\n"))
		time.Sleep(partingTime)
		ssetest.Want(t, "the last moments", s.hint(time.Now().Add(-partingTime)), `File "a.py", line 1, in f | KeyError: 'x'`)
		ssetest.Want(t, "all", s.hint(time.Time{}), `error: one page is missing | File "a.py", line 1, in f | KeyError: 'x'`)
		time.Sleep(time.Second)
		ssetest.Want(t, "later", s.hint(time.Now().Add(-partingTime)), "")
	})
}
