package stdio_test

import (
	"bytes"
	"strings"
	"testing"

	"github.com/mcp-sse/mcp-sse/internal/ssetest"
	"github.com/mcp-sse/mcp-sse/internal/stdio"
	"github.com/mcp-sse/mcp-sse/jsonrpc"
)

// Each request gets the error under its own id, and what cannot be read gets it without one.
func TestRefuse(t *testing.T) {
	const answer = `,"error":{"code":-32603,"message":"gw.yaml:2:3: no such option"}}` + "\n"
	for in, want := range map[string]string{
		"": "",
		`{"jsonrpc":"2.0","id":1,"method":"initialize","params":{}}` + "\n" + `{"jsonrpc":"2.0","id":"a","method":"tools/list"}`: `{"jsonrpc":"2.0","id":1` + answer + `{"jsonrpc":"2.0","id":"a"` + answer,
		`{"jsonrpc":"2.0","method":"notifications/initialized"}` + "\n" + `{"jsonrpc":"2.0","id":1,"result":{}}` + "\n":          "",
		"[]\n\n" + `{"id":7,"method":"ping"}` + "\n": `{"jsonrpc":"2.0","id":null` + answer + `{"jsonrpc":"2.0","id":7` + answer,
		`{"jsonrpc":"2.0","id":1,"method":"x","params":["` + strings.Repeat("x", 5<<20) + "\"]}\n" + `{"jsonrpc":"2.0","id":2,"method":"x"}`: `{"jsonrpc":"2.0","id":null` + answer + `{"jsonrpc":"2.0","id":2` + answer,
	} {
		var out bytes.Buffer
		stdio.Refuse(strings.NewReader(in), &out, jsonrpc.Errorf(jsonrpc.CodeInternalError, "gw.yaml:2:3: no such option"))
		ssetest.Want(t, in[:min(len(in), 80)], out.String(), want)
	}
	stdio.Refuse(strings.NewReader(`{"jsonrpc":"2.0","id":1,"method":"x"}`+"\n"), broken{}, jsonrpc.Errorf(jsonrpc.CodeInternalError, "x"))
}
