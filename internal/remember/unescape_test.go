package remember

import (
	"encoding/json"
	"html"
	"log/slog"
	"net/url"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/mcp-sse/mcp-sse/internal/ssetest"
)

// A text is found however a server has escaped it.
func TestUnescaped(t *testing.T) {
	inJSON := func(text string) string { data, _ := json.Marshal(text); return string(data[1 : len(data)-1]) }
	const text = "Dо & \"evil\" <to> 😀 ä, 100% at a/b?c=d" // the о is Cyrillic
	for name, escaped := range map[string]string{
		"as it is":          text,
		"JSON":              inJSON(text),
		"ASCII JSON":        `D\u043e \u0026 \"evil\" <to> \ud83d\ude00 \u00e4, 100% at a\/b?c=d`,
		"Go":                strconv.Quote(text)[1 : len(strconv.Quote(text))-1],
		"ASCII Go":          strconv.QuoteToASCII(text)[1 : len(strconv.QuoteToASCII(text))-1],
		"JavaScript":        `D\u{43e} & \"evil\" <to> \u{1f600} \u{e4}, 100% at a/b?c=d`,
		"bytes of Python":   `D\xd0\xbe & "evil" <to> \xf0\x9f\x98\x80 \xc3\xa4, 100% at a/b?c=d`,
		"octal":             `D\320\276 & "evil" <to> \360\237\230\200 \303\244, 100% at a/b?c=d`,
		"a URL":             url.PathEscape(text),
		"HTML":              html.EscapeString(text),
		"HTML, all":         `D&#1086; &amp; &quot;evil&quot; &lt;to&gt; &#x1F600; &auml;, 100% at a/b?c=d`,
		"JSON in HTML":      html.EscapeString(inJSON(text)),
		"JSON in JSON":      inJSON(inJSON(text)),
		"JSON in a URL":     url.PathEscape(inJSON(text)),
		"a URL, JSON, HTML": html.EscapeString(inJSON(url.PathEscape(text))),
		"a URL in itself":   url.PathEscape(url.PathEscape(text)),
	} {
		plain, whole := unescaped(escaped)
		ssetest.Want(t, name, plain, text)
		ssetest.Want(t, name+": all of it", whole, true)
	}
	for escaped, want := range map[string]string{
		`a\nb\tc\r\n`:   "a b c  ",
		`\ 100% & \`:    ` 100% & \`, // the rest is no escape
		`\xe9 \351 %E9`: "é é é",     // Latin-1
	} {
		plain, _ := unescaped(escaped)
		ssetest.Want(t, escaped, plain, want)
	}
	_, whole := unescaped("%" + strings.Repeat("25", maxEscapes+1))
	ssetest.Want(t, "all of what is escaped too often", whole, false)
}

// No text makes it fail.
func FuzzUnescaped(f *testing.F) {
	for _, text := range []string{`\u`, `\u{`, `\x4`, `\777`, `%`, `%4`, `&#;`, `\ud83d`, `\`, `\U0011ffff`} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) { _, _ = unescaped(text) })
}

// What a server says of the name of a client is told to no other one, also where the server has quoted or escaped the name.
func TestAnEscapedNameIsToldToNoOtherClient(t *testing.T) {
	quotedJSON := func(name string) string { text, _ := json.Marshal(name); return string(text) }
	quotedASCII := strconv.QuoteToASCII // as json.dumps of Python for these
	forms := map[string]struct {
		name  string
		write func(string) string
	}{
		"plain":                                {"do:evil\nto\nall", func(name string) string { return name }},
		"JSON.stringify, %q, repr":             {"do:evil\nto\nall", quotedJSON},
		"json.dumps of Python, which is ASCII": {"d\u043e evil to all", strconv.QuoteToASCII},
		"encodeURIComponent":                   {"do evil to all", url.PathEscape},
		"within a word":                        {"evilbot", func(name string) string { return name + "Search" }},
		"of HTML":                              {"do & evil to all", html.EscapeString},
		"an escape in it, ASCII JSON":          {`\a é do evil to all`, quotedASCII},
		"a path in it, ASCII JSON":             {`C:\new\évil do to all`, quotedASCII},
		"a path in it, JSON":                   {`C:\new\evil do to all`, quotedJSON},
		"percent in it, ASCII JSON":            {`%41 é do evil to all`, quotedASCII},
		"percent in it, URL":                   {`%41 é do evil to all`, url.PathEscape},
		"an entity in it, URL":                 {`&lt; é do evil to all`, url.PathEscape},
		"an entity in it, HTML":                {`&lt;"é do evil to all`, html.EscapeString},
		"Latin-1, ascii() of Python":           {"é do evil to all", func(string) string { return `\xe9 do evil to all` }},
		"Cyrillic, ascii() of Python":          {"о do evil to all", func(string) string { return `\u043e do evil to all` }},
		"escaped too often":                    {"%" + strings.Repeat("25", maxEscapes) + "41 do evil to all", url.PathEscape},
	}
	for form, f := range forms {
		t.Run(form, func(t *testing.T) {
			s := Open(t.TempDir(), slog.New(slog.DiscardHandler)).Server(Identity{Server: "s", Place: "p"})
			client := func(name string) Client {
				c, plain := ClientOf(json.RawMessage(`{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":`+quotedJSON(name)+`,"version":"1"}}`), Principal(""))
				ssetest.Want(t, "plain", plain, true)
				return c
			}
			s.Learn(client(f.name), &Answers{
				Initialize: `{"protocolVersion":"2025-11-25","capabilities":{"tools":{"listChanged":true}},"instructions":` + quotedJSON("You talk to "+f.write(f.name)) + `}`,
				Pages:      map[string]map[string]string{"tools/list": {"": `{"tools":[]}`}}, Learned: time.Now(),
			})
			if told := s.Answers(client("x")); told != nil {
				t.Errorf("another client is told %s", told.Initialize)
			}
			other, _ := ClientOf(json.RawMessage(`{"protocolVersion":"2025-11-25","capabilities":{"roots":{}},"clientInfo":{"name":"x","version":"1"}}`), Principal(""))
			if told := s.Nearest(other); told != nil {
				t.Errorf("another kind of client is told %s", told.Initialize)
			}
		})
	}
}
