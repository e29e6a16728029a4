package streamable

import (
	"testing"
)

// Which POSTs are of clients without sessions (MCP 2026-07-28, versioning).
func TestSpeaksModern(t *testing.T) {
	const (
		plain = `{"jsonrpc":"2.0","id":1,"method":"tools/list","params":{}}`
		meta  = `{"jsonrpc":"2.0","id":1,"method":"tools/list","params":{"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28"}}}`
		told  = `{"jsonrpc":"2.0","method":"n","params":{"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28"}}}`
	)
	for _, tc := range []struct {
		version, body string
		want          bool
	}{
		{"", plain, false},
		{"2025-11-25", plain, false},
		{"2026-07-28", plain, true},
		{"2027-01-01", plain, true},
		{"later", plain, false},
		{"", meta, true},
		{"2025-11-25", meta, true},
		{"", told, true},
		{"", "[" + meta + "," + meta + "]", false},
		{"2026-07-28", "[" + plain + "]", true},
	} {
		p := &post{request: &request{version: tc.version}}
		if refusal := p.parse([]byte(tc.body)); refusal != nil || p.speaksModern() != tc.want {
			t.Errorf("%+v: got %v, %v", tc, !tc.want, refusal)
		}
	}
}
