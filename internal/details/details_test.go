package details

import (
	"strings"
	"testing"

	"github.com/mcp-sse/mcp-sse/jsonrpc"
)

func TestSplit(t *testing.T) {
	type data struct {
		Reason  string `json:"reason"`
		Details *Words `json:"details,omitempty"`
	}
	e := jsonrpc.Errorf(-32603, "it failed (500)")
	e.Data = data{"r", New(`it failed (500): "why" <no>`)}
	plain, full, ok := Split(jsonrpc.NewError("7", e))
	if !ok || string(plain) != `{"jsonrpc":"2.0","id":7,"error":{"code":-32603,"message":"it failed (500)","data":{"reason":"r"}}}` ||
		string(full) != `{"jsonrpc":"2.0","id":7,"error":{"code":-32603,"message":"it failed (500): \"why\" <no>","data":{"reason":"r"}}}` {
		t.Errorf("got %s and %s, %v", plain, full, ok)
	}
	e.Data = data{"r", &Words{Key: strings.ToLower(key), Message: "of a server"}}
	for _, other := range []string{
		string(jsonrpc.NewError("7", e)),
		`{"jsonrpc":"2.0","id":7,"result":{"details":{"key":"` + key + `"}}}`,
		`{"jsonrpc":"2.0","id":7,"error":{"code":1,"message":"m","data":"` + key + `"}}`,
		`{"jsonrpc":"2.0","id":7,"error":{"code":1,"message":"` + key + `"}}`,
		key,
	} {
		if _, _, ok := Split([]byte(other)); ok {
			t.Errorf("%s has details", other)
		}
	}
}
