package stdio

import (
	"bytes"
	"encoding/json"
	"strings"
	"testing"

	"github.com/mcp-sse/mcp-sse/internal/ssetest"
)

// What a line of stdout is: the next report of a server's manners is one more case.
func TestLinesOfStdout(t *testing.T) {
	const (
		answer  = `{"jsonrpc":"2.0","id":1,"result":{}}`
		without = `{"id":1,"result":{}}` // "jsonrpc"
		broken  = `{"jsonrpc":"2.0","id":2,"result":{"v":NaN}}`
	)
	for name, c := range map[string]struct {
		line, message, text string
		part                bool
	}{
		"a message":                   {line: answer, message: answer},
		"one with blanks":             {line: " " + answer + "\r", message: answer},
		"a byte order mark":           {line: "\uFEFF" + answer, message: answer},
		"NULs":                        {line: "\x00" + answer + "\x00", message: answer},
		"no version":                  {line: without, message: without},
		"no version, an error":        {line: `{"id":1,"error":{"code":-1,"message":"m"}}`, message: `{"id":1,"error":{"code":-1,"message":"m"}}`},
		"not JSON: NaN":               {line: `{"jsonrpc":"2.0","id":1,"result":NaN}`, message: `{"jsonrpc":"2.0","id":1,"result":NaN}`},
		"not JSON: single quotes":     {line: `{'jsonrpc': '2.0', 'id': 1}`, message: `{'jsonrpc': '2.0', 'id': 1}`},
		"cut short":                   {line: `{"jsonrpc":"2.0","id":1,"result":{"a":"b`, message: `{"jsonrpc":"2.0","id":1,"result":{"a":"b`, part: true},
		"after an escape sequence":    {line: "\x1b[0m" + answer, message: answer, text: "\x1b[0m"},
		"after a title":               {line: "\x1b]0;title\a" + answer, message: answer, text: "\x1b]0;title\a"},
		"after a prompt":              {line: "ready> " + answer, message: answer, text: "ready> "},
		"after what is like one":      {line: `{"a":1} {"b" ` + without, message: without, text: `{"a":1} {"b" `},
		"before an escape sequence":   {line: answer + "\x1b[0m", message: answer},
		"in a prompt without version": {line: "> " + without, message: without, text: "> "},
		"a batch":                     {line: "[" + answer + "]", message: answer},
		"a batch of two":              {line: "[" + answer + "," + without + "]", message: answer + "\n" + without},
		"two on one line":             {line: answer + without, message: answer + "\n" + without},
		"two with text between":       {line: "> " + answer + " and " + without, message: answer + "\n" + without, text: "> "},
		"a whole and a broken one":    {line: answer + broken, message: answer + "\n" + broken},
		"after a line of a log":       {line: `{"level":30,"msg":"hi"}` + answer, message: answer, text: `{"level":30,"msg":"hi"}`},
		"after braces":                {line: "{ready} " + answer, message: answer, text: "{ready} "},
		"broken after a prompt":       {line: "ready> " + broken, message: broken, text: "ready> "},
		"cut after an escape":         {line: "\x1b[0m" + `{"jsonrpc":"2.0","id":2,"result":{"v":`, message: `{"jsonrpc":"2.0","id":2,"result":{"v":`, text: "\x1b[0m"},
		"broken without version":      {line: `{"id":2,"result":{"v":NaN}}`, message: `{"id":2,"result":{"v":NaN}}`},
		"only the brace is missing":   {line: `{"result":{},"jsonrpc":"2.0","id":2`, message: `{"result":{},"jsonrpc":"2.0","id":2`, part: true},
		"broken, with the id twice":   {line: `{"jsonrpc":"2.0","id":2,"result":{"v":NaN},"id":2}`, message: `{"jsonrpc":"2.0","id":2,"result":{"v":NaN},"id":2}`},

		"broken, with an answer inside": {line: `{"jsonrpc":"2.0","id":2,"result":{"v":NaN,"a":[` + without + `]}}`, message: `{"jsonrpc":"2.0","id":2,"result":{"v":NaN,"a":[` + without + `]}}`},
		"cut, with an answer inside":    {line: `{"jsonrpc":"2.0","id":2,"result":{"a":[` + without + `],"b":"x`, message: `{"jsonrpc":"2.0","id":2,"result":{"a":[` + without + `],"b":"x`, part: true},
		"a broken and a whole one":      {line: broken + answer, message: broken + "\n" + answer},
		"two broken ones":               {line: broken + broken, message: broken + "\n" + broken},
		"broken after a log with an id": {line: `{"level":30,"id":9,"msg":"hi"}` + broken, message: broken, text: `{"level":30,"id":9,"msg":"hi"}`},
		"broken after an apostrophe":    {line: "{it's} " + broken, message: broken, text: "{it's} "},
		"a batch with a broken one":     {line: "[" + broken + "," + answer + "]", message: broken + "\n" + answer, text: "["},
		"cut by another's whole one":    {line: `{"jsonrpc":"2.0","id":2,"result":{"v":"x` + answer, message: `{"jsonrpc":"2.0","id":2,"result":{"v":"x` + "\n" + answer},
		"cut in its id by a whole one":  {line: `{"jsonrpc":"2.0","id":2` + answer, message: `{"jsonrpc":"2.0","id":2` + "\n" + answer},
		"cut before its id by a whole":  {line: `{"jsonrpc":"2` + answer, message: answer, text: `{"jsonrpc":"2`},
		"no id, after a log with one":   {line: `{"id":2,"msg":"log"} {"jsonrpc":"2.0","x":NaN}`, message: `{"id":2,"msg":"log"} {"jsonrpc":"2.0","x":NaN}`},
		"after many progress bars":      {line: strings.Repeat("[#  ] [1/3]\r", 20) + answer, message: answer, text: strings.Repeat("[#  ] [1/3]\r", 20)},
		"after many braces":             {line: strings.Repeat("{x} ", 20) + answer, message: answer, text: strings.Repeat("{x} ", 20)},

		"its repr, of Python": {line: "Sending response: {'jsonrpc': '2.0', 'id': 3, 'result': {'ok': True}}", text: "Sending response: {'jsonrpc': '2.0', 'id': 3, 'result': {'ok': True}}"},
		"a log's own result":  {line: `2026 INFO done {"id": 3, "result": {"ok": true}, "took": NaN}`, text: `2026 INFO done {"id": 3, "result": {"ok": true}, "took": NaN}`},
		"a shortened one":     {line: `sent {"jsonrpc":"2.0","id":3,"result":{"text":"abc...`, text: `sent {"jsonrpc":"2.0","id":3,"result":{"text":"abc...`},
		"a repr in colour":    {line: "\x1b[32mINFO\x1b[0m {'jsonrpc': '2.0', 'id': 3, 'result': {'ok': True}}", text: "\x1b[32mINFO\x1b[0m {'jsonrpc': '2.0', 'id': 3, 'result': {'ok': True}}"},
		"text":                {line: "Listening on stdio", text: "Listening on stdio"},
		"text in brackets":    {line: "[INFO] ready", text: "[INFO] ready"},
		"a list":              {line: "[1]", text: "[1]"},
		"pino":                {line: `{"level":30,"time":1,"id":1,"msg":"done"}`, text: `{"level":30,"time":1,"id":1,"msg":"done"}`},
		"zap, of a request":   {line: `{"level":"info","id":1,"method":"GET","result":"done"}`, text: `{"level":"info","id":1,"method":"GET","result":"done"}`},
		"structlog, an error": {line: `{"event":"x","id":1,"error":"boom"}`, text: `{"event":"x","id":1,"error":"boom"}`},
		"an error's code":     {line: `{"id":1,"error":{"code":"ECONNREFUSED"}}`, text: `{"id":1,"error":{"code":"ECONNREFUSED"}}`},
		"a word in a text":    {line: `{"level":"error","id":2,"error":"boom","msg":"jsonrpc call failed"}`, text: `{"level":"error","id":2,"error":"boom","msg":"jsonrpc call failed"}`},
		"a word as a value":   {line: `{"logger":"jsonrpc","id":2,"error":{"msg":"x"}}`, text: `{"logger":"jsonrpc","id":2,"error":{"msg":"x"}}`},
		"a word and a result": {line: `{"id":2,"result":"done","msg":"jsonrpc response"}`, text: `{"id":2,"result":"done","msg":"jsonrpc response"}`},
		"an answer inside":    {line: `{"level":30,"msg":"sent","res":{"id":2,"result":{"content":[]}}}`, text: `{"level":30,"msg":"sent","res":{"id":2,"result":{"content":[]}}}`},
		"an error inside":     {line: `{"level":50,"msg":"x","err":{"id":2,"error":{"code":5,"message":"e"}}}`, text: `{"level":50,"msg":"x","err":{"id":2,"error":{"code":5,"message":"e"}}}`},
		"a message inside":    {line: `{"level":10,"sent":{"jsonrpc":"2.0","id":2,"result":{}}}`, text: `{"level":10,"sent":{"jsonrpc":"2.0","id":2,"result":{}}}`},
		"inside a broken log": {line: `{"level":30,"took":NaN,"res":` + without + `}`, text: `{"level":30,"took":NaN,"res":` + without + `}`},
		"framing":             {line: "Content-Length: 36", text: "Content-Length: 36"},
		"begins several":      {line: "{", part: true},
		"nothing":             {line: " \x00\uFEFF"[:2]},
	} {
		got := read([]byte(c.line), false)
		messages := string(bytes.Join(got.messages, []byte("\n")))
		if messages != c.message || string(got.text) != c.text || got.part != c.part {
			t.Errorf("%s: got %q, %q, %v, want %q, %q, %v", name, messages, got.text, got.part, c.message, c.text, c.part)
		}
	}
	for _, part := range []string{`"jsonrpc": "2.0",`, `"id": 1`, `}`, `"secret": "x"`} {
		if got := read([]byte(part), true); len(got.messages) > 0 || strings.Contains(string(got.text), "secret") {
			t.Errorf("%s after the first line of several: got %q, %q", part, got.messages, got.text)
		}
	}
}

// A line in which a message might begin anywhere is read in time linear in its length.
func TestLineThatMightHaveManyMessages(t *testing.T) {
	for _, piece := range []string{`{"`, `{x}`, `{"a":{}`, `{'`, `'{`, `[`, `[{`, `[1/2]`, `{"jsonrpc":`, `{"jsonrpc":"2.0","id":2`} {
		line := []byte("x" + strings.Repeat(piece, 1<<20/len(piece)))
		if got := read(line, false); len(got.messages) > 0 || len(got.text) != len(line) {
			t.Errorf("%s: got %d messages, %d bytes of text", piece, len(got.messages), len(got.text))
		}
	}
}

// A line with many values before its message is text: reading all of them would cost the server's
// other clients their time.
func TestMessageAfterManyValues(t *testing.T) {
	const message = `{"jsonrpc":"2.0","id":1,"result":{}}`
	for values, want := range map[int]int{maxOthers - 1: 1, maxOthers: 0} {
		line := []byte("x " + strings.Repeat("{} ", values) + message)
		ssetest.Want(t, "messages", len(read(line, false).messages), want)
	}
}

// The messages of a line stand in it, in their order and apart, after its text. A line that is one
// object has nothing inside it that is one.
func FuzzRead(f *testing.F) {
	for _, line := range []string{`> {"jsonrpc":"2.0","id":1,"result":{}}{"id":2,"result":{}} x`, `[{"jsonrpc":1},{"jsonrpc":2}]`, `{'jsonrpc':'2.0','id':1`, "\uFEFF{\"a\":{\"jsonrpc\":1}}"} {
		f.Add([]byte(line), true)
	}
	f.Fuzz(func(t *testing.T, line []byte, parts bool) {
		got, rest := read(line, parts), line
		for _, part := range append([][]byte{got.text}, got.messages...) {
			_, after, found := bytes.Cut(rest, part)
			if !found {
				t.Fatalf("%q has no %q after what came before", line, part)
			}
			rest = after
		}
		if object := bytes.Trim(line, " \t\r\n\x00"); json.Valid(object) && object[0] == '{' {
			for _, m := range got.messages {
				ssetest.Want(t, "a message of a line that is one object", string(m), string(object))
			}
		}
	})
}

// BenchmarkRead reads lines that are one message.
func BenchmarkRead(b *testing.B) {
	for name, n := range map[string]int{"200B": 150, "16KiB": 16 << 10, "1MiB": 1 << 20} {
		line := []byte(`{"jsonrpc":"2.0","id":1,"result":{"content":[{"type":"text","text":"` + strings.Repeat("x", n) + `"}]}}`)
		b.Run(name, func(b *testing.B) {
			b.SetBytes(int64(len(line)))
			for b.Loop() {
				read(line, false)
			}
		})
	}
}
