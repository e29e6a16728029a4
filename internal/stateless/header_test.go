package stateless_test

import (
	"encoding/json"
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

// FuzzParams: arguments that are found are at most so many, each with a name.
func FuzzParams(f *testing.F) {
	for _, seed := range []string{
		`{}`, `5`, `{"properties":{"a":{"type":"string","x-mcp-header":"A"}}}`, `{"properties":{"a":{"type":["integer","null"],"x-mcp-header":"A"}}}`,
		`{"properties":{"a":{"properties":{"b":{"type":"boolean","x-mcp-header":"B"}}}}}`, `{"x-mcp-header":"A"}`, `{"items":{"x-mcp-header":"A","type":"string"}}`,
	} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, schema string) {
		params, err := stateless.Params(json.RawMessage(schema))
		if err != nil && params != nil || len(params) > stateless.MaxParams {
			t.Fatalf("%d params, %v", len(params), err)
		}
		for _, p := range params {
			if p.Name == "" || len(p.Path) == 0 {
				t.Fatalf("%+v", p)
			}
		}
	})
}
