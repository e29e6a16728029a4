package stdio

import (
	"bytes"
	"encoding/json"
	"strings"
	"testing"
	"unicode"
	"unicode/utf8"

	"github.com/mcp-sse/mcp-sse/internal/ssetest"
	"github.com/mcp-sse/mcp-sse/internal/wire"
	"github.com/mcp-sse/mcp-sse/jsonrpc"
)

// A line of stdout is one of these: the next report of a server's manners is one more case.
func TestLinesOfStdout(t *testing.T) {
	const (
		answer  = `{"jsonrpc":"2.0","id":1,"result":{}}`
		without = `{"id":1,"result":{}}` // "jsonrpc"
		broken  = `{"jsonrpc":"2.0","id":2,"result":{"v":NaN}}`
	)
	for name, c := range map[string]struct {
		line, message, text string
		part                bool
		form                wire.Form // of the first message
	}{
		"a message":                   {line: answer, message: answer},
		"one with blanks":             {line: " " + answer + "\r", message: answer},
		"a byte order mark":           {line: "\uFEFF" + answer, message: answer},
		"NULs":                        {line: "\x00" + answer + "\x00", message: answer},
		"no version":                  {line: without, message: without},
		"no version, an error":        {line: `{"id":1,"error":{"code":-1,"message":"m"}}`, message: `{"id":1,"error":{"code":-1,"message":"m"}}`},
		"not JSON: NaN":               {line: `{"jsonrpc":"2.0","id":1,"result":NaN}`, message: `{"jsonrpc":"2.0","id":1,"result":NaN}`},
		"not JSON: single quotes":     {line: `{'jsonrpc': '2.0', 'id': 1}`, message: `{'jsonrpc': '2.0', 'id': 1}`, form: wire.Broken},
		"cut short":                   {line: `{"jsonrpc":"2.0","id":1,"result":{"a":"b`, message: `{"jsonrpc":"2.0","id":1,"result":{"a":"b`, part: true, form: wire.Broken},
		"after an escape sequence":    {line: "\x1b[0m" + answer, message: answer, text: "\x1b[0m"},
		"after a title":               {line: "\x1b]0;title\a" + answer, message: answer, text: "\x1b]0;title\a", form: wire.AfterPrompt},
		"after a title and a prompt":  {line: "\x1b]0;title\x1b\\\x1b[1m$ \x1b[0m" + answer, message: answer, text: "\x1b]0;title\x1b\\\x1b[1m$ \x1b[0m", form: wire.AfterPrompt},
		"before a title":              {line: answer + "\x1b]0;title\a", message: answer},
		"after a prompt":              {line: "> " + answer, message: answer, text: ">", form: wire.AfterPrompt},
		"after one of Python":         {line: ">>> " + answer, message: answer, text: ">>>", form: wire.AfterPrompt},
		"after one of a root shell":   {line: "\x1b[?2004h# " + answer, message: answer, text: "\x1b[?2004h#", form: wire.AfterPrompt},
		"after a prompt with a word":  {line: "ready> " + answer, message: answer, text: "ready>", form: wire.AfterWords},
		"after progress":              {line: "loading 100%\r" + answer, message: answer, text: "loading 100%\r", form: wire.AfterWords},
		"after a backspace":           {line: "\b\x1b[2K\r" + answer, message: answer, text: "\b\x1b[2K\r"},
		"after what is like one":      {line: `{"a":1} {"b" ` + without, text: `{"a":1} {"b" ` + without},
		"before an escape sequence":   {line: answer + "\x1b[0m", message: answer},
		"in a prompt without version": {line: "> " + without, message: without, text: ">", form: wire.AfterPrompt},
		"a batch":                     {line: "[" + answer + "]", message: answer, text: "", form: wire.InList},
		"a batch of two":              {line: "[" + answer + "," + without + "]", message: answer + "\n" + without, form: wire.InList},
		"two on one line":             {line: answer + without, message: answer + "\n" + without},
		"two with what is no text":    {line: answer + " \x1b[0m\x00\uFEFF" + without, message: answer + "\n" + without},
		"two with text between":       {line: answer + " and " + without, text: "and " + without},
		"a whole and a broken one":    {line: answer + broken, message: answer + "\n" + broken},
		"after a line of a log":       {line: `{"level":30,"msg":"hi"}` + answer, text: `{"level":30,"msg":"hi"}` + answer},
		"after braces":                {line: "{ready} " + answer, text: "{ready} " + answer},
		"broken after a prompt":       {line: "> " + broken, message: broken, text: ">", form: wire.AfterPrompt},
		"cut after an escape":         {line: "\x1b[0m" + `{"jsonrpc":"2.0","id":2,"result":{"v":`, message: `{"jsonrpc":"2.0","id":2,"result":{"v":`, text: "\x1b[0m", part: true, form: wire.Broken},
		"broken without version":      {line: `{"id":2,"result":{"v":NaN}}`, message: `{"id":2,"result":{"v":NaN}}`},
		"only the brace is missing":   {line: `{"result":{},"jsonrpc":"2.0","id":2`, message: `{"result":{},"jsonrpc":"2.0","id":2`, part: true, form: wire.Broken},
		"broken, with the id twice":   {line: `{"jsonrpc":"2.0","id":2,"result":{"v":NaN},"id":2}`, message: `{"jsonrpc":"2.0","id":2,"result":{"v":NaN},"id":2}`},

		"broken, with an answer inside": {line: `{"jsonrpc":"2.0","id":2,"result":{"v":NaN,"a":[` + without + `]}}`, message: `{"jsonrpc":"2.0","id":2,"result":{"v":NaN,"a":[` + without + `]}}`},
		"cut, with an answer inside":    {line: `{"jsonrpc":"2.0","id":2,"result":{"a":[` + without + `],"b":"x`, message: `{"jsonrpc":"2.0","id":2,"result":{"a":[` + without + `],"b":"x`, part: true, form: wire.Broken},
		"a broken and a whole one":      {line: broken + answer, message: broken + "\n" + answer},
		"two broken ones":               {line: broken + broken, message: broken + "\n" + broken},
		"broken after a log with an id": {line: `{"level":30,"id":9,"msg":"hi"}` + broken, text: `{"level":30,"id":9,"msg":"hi"}` + broken},
		"broken after an apostrophe":    {line: "{it's} " + broken, text: "{it's} " + broken},
		"a batch with a broken one":     {line: "[" + broken + "," + answer + "]", message: broken + "\n" + answer, form: wire.InList},
		"cut by another's whole one":    {line: `{"jsonrpc":"2.0","id":2,"result":{"v":"x` + answer, message: `{"jsonrpc":"2.0","id":2,"result":{"v":"x` + "\n" + answer, form: wire.Broken},
		"cut in its id by a whole one":  {line: `{"jsonrpc":"2.0","id":2` + answer, message: `{"jsonrpc":"2.0","id":2` + "\n" + answer, form: wire.Broken},
		"cut before its id by a whole":  {line: `{"jsonrpc":"2` + answer, message: answer},
		"no id, after a log with one":   {line: `{"id":2,"msg":"log"} {"jsonrpc":"2.0","x":NaN}`, text: `{"id":2,"msg":"log"} {"jsonrpc":"2.0","x":NaN}`},
		"broken, without an id":         {line: `{"jsonrpc":"2.0","x":NaN}`, message: `{"jsonrpc":"2.0","x":NaN}`},
		"its secrets are not logged":    {line: answer + "done", text: "done"},
		"after many progress bars":      {line: strings.Repeat("[#  ] [1/3]\r", 20) + answer, text: strings.Repeat("[#  ] [1/3]\r", 20) + answer},
		"after many braces":             {line: strings.Repeat("{x} ", 20) + answer, text: strings.Repeat("{x} ", 20) + answer},

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
		messages, form := messagesOf(got)
		if messages != c.message || string(got.text) != c.text || got.part != c.part || form != c.form {
			t.Errorf("%s: got %q, %q, %v, form %d, want %q, %q, %v, %d", name, messages, got.text, got.part, form, c.message, c.text,
				c.part, c.form)
		}
	}
	for _, part := range []string{`"jsonrpc": "2.0",`, `"id": 1`, `}`, `"secret": "x"`} {
		if got := read([]byte(part), true); len(got.messages) > 0 || strings.Contains(string(got.text), "secret") {
			t.Errorf("%s after the first line of several: got %q, %q", part, got.messages, got.text)
		}
	}
}

// messagesOf returns the messages of a line, and the form of the first.
func messagesOf(c content) (all string, form wire.Form) {
	var each []string
	for _, m := range c.messages {
		each = append(each, string(m.data))
	}
	if len(each) > 0 {
		form = c.messages[0].form
	}
	return strings.Join(each, "\n"), form
}

// A text of others that a server prints is no message, however it prints it. Each line has the text of a
// stranger at %s.
func TestTextOfAStrangerIsNoMessage(t *testing.T) {
	lines := []string{
		`INFO fetched page, title '%s'`, `INFO fetched page, title "%s"`, "title: `%s`", `title=“%s”`, `titles: ['%s']`, `['%s']`, `["%s"]`, `'%s'`, `"%s"`,
		`('%s',)`, `[%s, 'x']`, `[1, %s]`, `{%s}`, `{'title': '%s'}`, `{'title': %s}`, `{"level":30,"page":%s}`, `{"level":30,"took":NaN,"page":%s}`,
		`{"level":30,"msg":"hi"}%s`, `{"level":30} {"page":%s`, `<title>%s</title>`, `[INFO] %s`, `[12:00] <alice> %s`, `%s fetched`, `%s: said alice`, `%s%%`, `%s,`,
		`%s]`, `title %s again`, `title %s}`, `{'jsonrpc': '2.0', 'id': 9, 'result': {'text': '%s`,
		`{"jsonrpc":"2.0","method":"notifications/message","params":{"data":%s}}`, `{"jsonrpc":"2.0","method":"notifications/message","params":{"data":NaN,"page":%s}}`,
		"> %s < quoted", "$ echo '%s'", `> "%s"`, `# [%s, 1]`, `>>> '%s'`, "\x1b]0;%s\a", `{page} %s`, `-> (%s)`, "{'a': 1}\t%s",
	}
	texts := []string{`{"jsonrpc":"2.0","id":6,"result":{"v":1}}`, `{"id":6,"result":{"v":1}}`, `{"jsonrpc":"2.0","id":6,"result":{"v":NaN}}`,
		`{'jsonrpc': '2.0', 'id': 6, 'result': {'v': 1}}`, `{"jsonrpc":"2.0","id":6,"method":"elicitation/create","params":{"message":"enter your password"}}`,
		`{"jsonrpc":"2.0","id":6,"result":{"v":"x{"jsonrpc":"2.0","id":6,"result":{}}`}
	for _, line := range lines {
		for _, text := range texts {
			printed := strings.Replace(strings.ReplaceAll(line, "%%", "%"), "%s", text, 1)
			for _, m := range read([]byte(printed), false).messages {
				if m.form != wire.Broken && isFor(m.data, "6") {
					t.Errorf("%s: got %s", printed, m.data)
				}
			}
		}
	}
	for _, line := range []string{"INFO %s", "alice> %s", "2026-11-29 12:00:00 sent %s", "- %s", "é %s", "INFO \x1b[0m%s", "\x1b[32mINFO\x1b[0m %s", "a\r%s", ">> %s", "> > %s", "$$ %s", "> # %s", ">%s"} {
		for _, m := range read([]byte(strings.Replace(line, "%s", texts[0], 1)), false).messages {
			ssetest.Want(t, "form in "+line, m.form, wire.AfterWords)
		}
	}
}

// A server that merges what it got into its lines of a log answers nothing: an object with members of a log is no
// message, wherever they stand.
func TestMembersOfALogMakeNoMessage(t *testing.T) {
	for _, line := range []string{
		`{"level":30,"time":1,"jsonrpc":"2.0","id":6,"result":{"v":1},"msg":"webhook"}`,
		`{"event":"x","jsonrpc":"2.0","id":6,"error":{"code":-1,"message":"m"}}`,
		`{"level":30,"jsonrpc":"2.0","id":6,"method":"elicitation/create","params":{}}`,
		`{"jsonrpc":"2.0","id":6,"result":{"v":1},"event":"x"}`,
		`{"id":6,"result":{"v":1},"jsonrpc":"2.0","level":"info"}`,
		`{"jsonrpc":"2.0","id":6,"method":"elicitation/create","params":{},"event":"x"}`,
		`{"jsonrpc":"2.0","id":6,"result":{"v":NaN},"event":"x"}`,
		`{'jsonrpc': '2.0', 'id': 6, 'result': {'v': 1}, 'event': 'x'}`,
		`> {"jsonrpc":"2.0","id":6,"result":{"v":1},"event":"x"}`,
		`[{"jsonrpc":"2.0","id":6,"result":{"v":1},"event":"x"}]`,
		`[{"jsonrpc":"2.0","id":6,"result":{"v":1}},`,
	} {
		for _, m := range read([]byte(line), false).messages {
			if isFor(m.data, "6") {
				t.Errorf("%s: got %s", line, m.data)
			}
		}
	}
}

// isFor reports whether a message would answer a request.
func isFor(message []byte, id jsonrpc.ID) bool {
	if m, err := jsonrpc.Parse(message); err == nil {
		return m.ID == id
	}
	answered, _, _ := wire.AnsweredID(message)
	return answered == id
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

// The messages of a line stand in it, in their order and apart, after its text. A line that is one
// object has nothing inside it that is one.
func FuzzRead(f *testing.F) {
	for _, line := range []string{`> {"jsonrpc":"2.0","id":1,"result":{}}{"id":2,"result":{}} x`, `[{"jsonrpc":1},{"jsonrpc":2}]`, `{'jsonrpc':'2.0','id':1`, "\uFEFF{\"a\":{\"jsonrpc\":1}}"} {
		f.Add([]byte(line), true)
	}
	f.Fuzz(func(t *testing.T, line []byte, parts bool) {
		got, rest := read(line, parts), line
		for _, part := range append([]message{{data: got.text}}, got.messages...) {
			_, after, found := bytes.Cut(rest, part.data)
			if !found {
				t.Fatalf("%q has no %q after what came before", line, part.data)
			}
			rest = after
		}
		if begin := bytes.Trim(line, " \t\r\n\x00"); startsWithLetter(begin) {
			for _, m := range got.messages { // which a session takes as the answer to initialize alone
				ssetest.Want(t, "form after a letter", m.form, wire.AfterWords)
			}
		}
		if len(got.messages) > 1 {
			ssetest.Want(t, "one message after words", got.messages[0].form != wire.AfterWords, true)
		}
		if object := bytes.Trim(line, " \t\r\n\x00"); json.Valid(object) && object[0] == '{' {
			for _, m := range got.messages {
				ssetest.Want(t, "a message of a line that is one object", string(m.data), string(object))
			}
		}
	})
}

func startsWithLetter(text []byte) bool {
	first, _ := utf8.DecodeRune(text)
	return unicode.IsLetter(first)
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
