package jsonrpc_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/mcp-sse/mcp-sse/jsonrpc"
)

// envelope is what a program decodes into that needs the same parts of a
// message as Parse gives.
type envelope struct {
	Version string          `json:"jsonrpc"`
	ID      json.RawMessage `json:"id"`
	Method  string          `json:"method"`
	Params  json.RawMessage `json:"params"`
	Result  json.RawMessage `json:"result"`
	Error   json.RawMessage `json:"error"`
}

// samples are messages as they travel: a call, its answer, a list of a hundred
// tools, and a file of a mebibyte.
func samples() []struct {
	name string
	data []byte
} {
	var tools strings.Builder
	for i := range 100 {
		if i > 0 {
			tools.WriteByte(',')
		}
		fmt.Fprintf(&tools, `{"name":"tool_%d","description":"Does one thing and \"no\" other.\nReturns text.","inputSchema":{"type":"object","properties":{"path":{"type":"string"},"limit":{"type":"integer","minimum":0}},"required":["path"]}}`, i)
	}
	line := `The quick brown fox jumps over the lazy dog, 0123456789 times and more.\n`
	text := strings.Repeat(line, 1<<20/len(line))
	result := func(body string) []byte { return []byte(`{"jsonrpc":"2.0","id":42,"result":{` + body + `}}`) }
	return []struct {
		name string
		data []byte
	}{
		{"call-130B", []byte(`{"jsonrpc":"2.0","id":42,"method":"tools/call","params":{"name":"echo","arguments":{"text":"hello"},"_meta":{"progressToken":"a1"}}}`)},
		{"answer-80B", result(`"content":[{"type":"text","text":"hello"}]`)},
		{"list-24KB", result(`"tools":[` + tools.String() + `]`)},
		{"file-1MB", result(`"content":[{"type":"text","text":"` + text + `"}]`)},
	}
}

// BenchmarkParse compares Parse with decoding the same members by
// encoding/json, in one run.
func BenchmarkParse(b *testing.B) {
	for _, s := range samples() {
		b.Run(s.name+"/by=Parse", func(b *testing.B) {
			b.SetBytes(int64(len(s.data)))
			b.ReportAllocs()
			for b.Loop() {
				if _, err := jsonrpc.Parse(s.data); err != nil {
					b.Fatal(err)
				}
			}
		})
		b.Run(s.name+"/by=json.Unmarshal", func(b *testing.B) {
			b.SetBytes(int64(len(s.data)))
			b.ReportAllocs()
			for b.Loop() {
				var e envelope
				if err := json.Unmarshal(s.data, &e); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

// BenchmarkParseIndented is the price of line breaks: the message is compacted.
func BenchmarkParseIndented(b *testing.B) {
	for _, s := range samples() {
		var indented bytes.Buffer
		if err := json.Indent(&indented, s.data, "", "  "); err != nil {
			b.Fatal(err)
		}
		b.Run(s.name, func(b *testing.B) {
			b.SetBytes(int64(indented.Len()))
			b.ReportAllocs()
			for b.Loop() {
				if _, err := jsonrpc.Parse(indented.Bytes()); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

// BenchmarkWithID compares splicing an id in with decoding and encoding again.
func BenchmarkWithID(b *testing.B) {
	for _, s := range samples() {
		m, err := jsonrpc.Parse(s.data)
		if err != nil {
			b.Fatal(err)
		}
		b.Run(s.name+"/by=WithID", func(b *testing.B) {
			b.SetBytes(int64(len(s.data)))
			b.ReportAllocs()
			for b.Loop() {
				m.WithID("9007199254740993")
			}
		})
		b.Run(s.name+"/by=json.Marshal", func(b *testing.B) {
			b.SetBytes(int64(len(s.data)))
			b.ReportAllocs()
			var members map[string]json.RawMessage
			if err := json.Unmarshal(s.data, &members); err != nil {
				b.Fatal(err)
			}
			for b.Loop() {
				members["id"] = json.RawMessage("9007199254740993")
				if _, err := json.Marshal(members); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

// BenchmarkMember finds what a hop looks for in a call's params.
func BenchmarkMember(b *testing.B) {
	params := json.RawMessage(`{"name":"echo","arguments":{"text":"hello"},"_meta":{"progressToken":"a1"}}`)
	b.ReportAllocs()
	for b.Loop() {
		if _, ok := jsonrpc.Member(params, "_meta", "progressToken"); !ok {
			b.Fatal("not found")
		}
	}
}
