package jsonrpc_test

import (
	"testing"

	"github.com/mcp-sse/mcp-sse/jsonrpc"
)

func TestParamsWithNumber(t *testing.T) {
	for _, test := range []struct{ msg, want string }{
		{`{"jsonrpc":"2.0","id":1,"method":"x"}`, ``},
		{`{"jsonrpc":"2.0","id":1,"method":"x","params":{"a":1}}`, `{"a":1}`},
		{`{"params":{"_meta":{"progressToken":"t"},"a":1},"jsonrpc":"2.0","id":1,"method":"x"}`, `{"_meta":{"progressToken":42},"a":1}`},
	} {
		m, err := jsonrpc.Parse([]byte(test.msg))
		if err != nil {
			t.Fatal(err)
		}
		at, _ := m.Param("_meta", "progressToken")
		if got := m.ParamsWithNumber(42, at); string(got) != test.want {
			t.Errorf("%s: got %s, want %s", test.msg, got, test.want)
		}
		if again, err := jsonrpc.Parse(m.Raw()); err != nil || string(again.Raw()) != test.msg {
			t.Errorf("%s: changed to %s, %v", test.msg, m.Raw(), err)
		}
	}
}
