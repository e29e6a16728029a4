package stdio

import (
	"strings"
	"testing"
)

// What a line of stdout is: the next report of a server's manners is one more case.
func TestLinesOfStdout(t *testing.T) {
	const (
		answer  = `{"jsonrpc":"2.0","id":1,"result":{}}`
		without = `{"id":1,"result":{}}` // "jsonrpc"
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
		"a batch":                     {line: "[" + answer + "]", message: answer, text: "["},

		"text":                {line: "Listening on stdio", text: "Listening on stdio"},
		"text in brackets":    {line: "[INFO] ready", text: "[INFO] ready"},
		"a list":              {line: "[1]", text: "[1]"},
		"pino":                {line: `{"level":30,"time":1,"id":1,"msg":"done"}`, text: `{"level":30,"time":1,"id":1,"msg":"done"}`},
		"zap, of a request":   {line: `{"level":"info","id":1,"method":"GET","result":"done"}`, text: `{"level":"info","id":1,"method":"GET","result":"done"}`},
		"structlog, an error": {line: `{"event":"x","id":1,"error":"boom"}`, text: `{"event":"x","id":1,"error":"boom"}`},
		"an error's code":     {line: `{"id":1,"error":{"code":"ECONNREFUSED"}}`, text: `{"id":1,"error":{"code":"ECONNREFUSED"}}`},
		"framing":             {line: "Content-Length: 36", text: "Content-Length: 36"},
		"begins several":      {line: "{", part: true},
		"nothing":             {line: " \x00\uFEFF"[:2]},
	} {
		got := read([]byte(c.line), false)
		if string(got.message) != c.message || string(got.text) != c.text || got.part != c.part {
			t.Errorf("%s: got %q, %q, %v, want %q, %q, %v", name, got.message, got.text, got.part, c.message, c.text, c.part)
		}
	}
	for _, part := range []string{`"jsonrpc": "2.0",`, `"id": 1`, `}`, `"secret": "x"`} {
		if got := read([]byte(part), true); len(got.message) > 0 || strings.Contains(string(got.text), "secret") {
			t.Errorf("%s after the first line of several: got %q, %q", part, got.message, got.text)
		}
	}
}

// A line in which a message might begin anywhere is read in time linear in its length.
func TestLineThatMightHaveManyMessages(t *testing.T) {
	line := []byte("x" + strings.Repeat(`{"`, 1<<20))
	if got := read(line, false); len(got.message) > 0 || len(got.text) != len(line) {
		t.Errorf("got %d bytes of a message, %d of text", len(got.message), len(got.text))
	}
}
