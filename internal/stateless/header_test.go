package stateless_test

import (
	"testing"

	"github.com/mcp-sse/mcp-sse/internal/stateless"
)

// FuzzHeader: what is encoded is plain, and decodes to what it was.
func FuzzHeader(f *testing.F) {
	for _, seed := range []string{"", "a", " a", "=?base64?YQ==?=", "=?base64?=", "\x00", "é", "a\r\nX: y"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, value string) {
		encoded := stateless.Encode(value)
		if got, ok := stateless.Decode(encoded); !ok || got != value || encoded == "" || !stateless.IsPlain(encoded) {
			t.Fatalf("%q became %q, and that %q, %v", value, encoded, got, ok)
		}
		stateless.Decode(value)
	})
}
