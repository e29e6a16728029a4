package streamable

import (
	"testing"

	"github.com/mcp-sse/mcp-sse/jsonrpc"
)

// Which POSTs are of clients without sessions (MCP 2026-07-28, versioning).
func TestSpeaksModern(t *testing.T) {
	const (
		plain = `{"jsonrpc":"2.0","id":1,"method":"tools/list","params":{}}`
		meta  = `{"jsonrpc":"2.0","id":1,"method":"tools/list","params":{"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28"}}}`
		told  = `{"jsonrpc":"2.0","method":"n","params":{"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28"}}}`
	)
	for _, tc := range []struct {
		version  string
		messages []string
		want     bool
	}{
		{"", []string{plain}, false},
		{"2025-11-25", []string{plain}, false},
		{"2026-07-28", []string{plain}, true},
		{"2027-01-01", []string{plain}, true},
		{"later", []string{plain}, false},
		{"", []string{meta}, true},
		{"2025-11-25", []string{meta}, true},
		{"", []string{told}, true},
		{"2026-07-28", []string{told}, true},
		{"", []string{meta, meta}, false},
		{"2026-07-28", []string{plain, plain}, true},
		{"", nil, false},
	} {
		var messages []*jsonrpc.Message
		for _, text := range tc.messages {
			m, err := jsonrpc.Parse([]byte(text))
			if err != nil {
				t.Fatal(err)
			}
			messages = append(messages, m)
		}
		if got := (&post{version: tc.version, messages: messages}).speaksModern(); got != tc.want {
			t.Errorf("%+v: got %v", tc, got)
		}
	}
}
