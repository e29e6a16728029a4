package jsonrpc_test

import (
	"encoding/json"
	"testing"

	"github.com/mcp-sse/mcp-sse/jsonrpc"
)

// A response made of parts is the one that Parse finds in its bytes.
func TestNewResponse(t *testing.T) {
	for _, test := range []struct {
		id            jsonrpc.ID
		result, fault string
		want          string
	}{
		{`7`, `{"a":[1,2]}`, ``, `{"jsonrpc":"2.0","id":7,"result":{"a":[1,2]}}`},
		{`"a\"b"`, `null`, ``, `{"jsonrpc":"2.0","id":"a\"b","result":null}`},
		{`12345678901234567890`, ``, `{"code":-1,"message":"x"}`, `{"jsonrpc":"2.0","id":12345678901234567890,"error":{"code":-1,"message":"x"}}`},
	} {
		var result, fault json.RawMessage
		if test.fault != "" {
			fault = json.RawMessage(test.fault)
		} else {
			result = json.RawMessage(test.result)
		}
		m := jsonrpc.NewResponse(test.id, result, fault)
		parsed, err := jsonrpc.Parse([]byte(test.want))
		if err != nil {
			t.Fatal(err)
		}
		if string(m.Raw()) != test.want || m.Kind != parsed.Kind || m.ID != parsed.ID ||
			string(m.Result()) != string(parsed.Result()) || string(m.Error()) != string(parsed.Error()) ||
			string(m.WithID(`"other"`)) != string(parsed.WithID(`"other"`)) || string(m.WithID(test.id)) != test.want {
			t.Errorf("got %s, want %s, and the same parts", m.Raw(), test.want)
		}
	}
}

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
