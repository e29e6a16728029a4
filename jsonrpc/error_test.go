package jsonrpc_test

import (
	"encoding/json"
	"testing"

	"github.com/mcp-sse/mcp-sse/internal/ssetest"
	"github.com/mcp-sse/mcp-sse/jsonrpc"
)

func TestNewCalls(t *testing.T) {
	for _, tc := range []struct {
		got  []byte
		want string
	}{
		{jsonrpc.NewRequest("1", "a/b", nil), `{"jsonrpc":"2.0","id":1,"method":"a/b"}`},
		{jsonrpc.NewRequest(`"x"`, "a", json.RawMessage(`{"k":1.0}`)), `{"jsonrpc":"2.0","id":"x","method":"a","params":{"k":1.0}}`},
		{jsonrpc.NewRequest("9007199254740993", "a\n\"b", nil), `{"jsonrpc":"2.0","id":9007199254740993,"method":"a\n\"b"}`},
		{jsonrpc.NewNotification("a", nil), `{"jsonrpc":"2.0","method":"a"}`},
		{jsonrpc.NewNotification("a", json.RawMessage(`[]`)), `{"jsonrpc":"2.0","method":"a","params":[]}`},
		{jsonrpc.NewResult("1.5", json.RawMessage(`{}`)), `{"jsonrpc":"2.0","id":1.5,"result":{}}`},
		{jsonrpc.NewResult("", json.RawMessage(`null`)), `{"jsonrpc":"2.0","id":null,"result":null}`},
	} {
		ssetest.Want(t, "message", string(tc.got), tc.want)
		if _, err := jsonrpc.Parse(tc.got); err != nil {
			t.Errorf("Parse(%s): %v", tc.got, err)
		}
	}
}

func TestNewError(t *testing.T) {
	plain := jsonrpc.Errorf(jsonrpc.CodeInternalError, "no %s", "luck")
	withData := *plain
	withData.Data = map[string]any{"phase": "x", "attempt": 2}
	pretty := *plain
	pretty.Data = json.RawMessage("{\n \"a\": 1\n}")
	endless := *plain
	endless.Data = make(chan int) // has no JSON form
	broken := jsonrpc.Errorf(-1, "bad \xff, line\nbreak")
	for _, tc := range []struct {
		id   jsonrpc.ID
		err  *jsonrpc.Error
		want string
	}{
		{"1", plain, `{"jsonrpc":"2.0","id":1,"error":{"code":-32603,"message":"no luck"}}`},
		{"", plain, `{"jsonrpc":"2.0","id":null,"error":{"code":-32603,"message":"no luck"}}`},
		{`"x"`, &withData, `{"jsonrpc":"2.0","id":"x","error":{"code":-32603,"message":"no luck","data":{"attempt":2,"phase":"x"}}}`},
		{"1", &pretty, `{"jsonrpc":"2.0","id":1,"error":{"code":-32603,"message":"no luck","data":{"a":1}}}`},
		{"1", &endless, `{"jsonrpc":"2.0","id":1,"error":{"code":-32603,"message":"no luck"}}`},
		{"1", broken, `{"jsonrpc":"2.0","id":1,"error":{"code":-1,"message":"bad ` + `\ufffd` + `, line\nbreak"}}`},
	} {
		got := jsonrpc.NewError(tc.id, tc.err)
		ssetest.Want(t, "message", string(got), tc.want)
		if m, err := jsonrpc.Parse(got); err != nil || m.Kind != jsonrpc.Response {
			t.Errorf("Parse(%s): got %v, %v", got, m, err)
		}
	}
}
