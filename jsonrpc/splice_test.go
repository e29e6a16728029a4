package jsonrpc_test

import (
	"testing"

	"github.com/mcp-sse/mcp-sse/internal/ssetest"
	"github.com/mcp-sse/mcp-sse/jsonrpc"
)

func mustParse(t testing.TB, in string) *jsonrpc.Message {
	t.Helper()
	m, err := jsonrpc.Parse([]byte(in))
	if err != nil {
		t.Fatalf("Parse(%.80q): %v", in, err)
	}
	return m
}

func TestWithIDChangesTheIDAlone(t *testing.T) {
	for _, tc := range []struct{ in, want string }{
		{`{"jsonrpc":"2.0","id":1,"method":"a"}`, `{"jsonrpc":"2.0","id":"new","method":"a"}`},
		{`{"jsonrpc":"2.0","id":"a long one","method":"a"}`, `{"jsonrpc":"2.0","id":"new","method":"a"}`},
		{`{"jsonrpc":"2.0","result":{"id":1}, "id" : 1 }`, `{"jsonrpc":"2.0","result":{"id":1}, "id" : "new" }`},
		{`{"\u0069d":1,"jsonrpc":"2.0","result":0}`, `{"\u0069d":"new","jsonrpc":"2.0","result":0}`},
		{`{"jsonrpc":"2.0","id":null,"error":{}}`, `{"jsonrpc":"2.0","id":"new","error":{}}`},
		{`{"jsonrpc":"2.0","id":1,"method":"a","x":1.50}`, `{"jsonrpc":"2.0","id":"new","method":"a","x":1.50}`},
		// A response that names no request gets a name.
		{`{"jsonrpc":"2.0","result":{}}`, `{"id":"new","jsonrpc":"2.0","result":{}}`},
		{`{ "jsonrpc":"2.0","error":{}}`, `{"id":"new", "jsonrpc":"2.0","error":{}}`},
	} {
		m := mustParse(t, tc.in)
		got := m.WithID(`"new"`)
		ssetest.Want(t, "message", string(got), tc.want)
		ssetest.Want(t, "message itself", string(m.Raw()), tc.in)
		if again := mustParse(t, string(got)); again.ID != `"new"` || again.Kind != m.Kind {
			t.Errorf("got back %v with id %s from %s", again.Kind, again.ID, got)
		}
	}
}
