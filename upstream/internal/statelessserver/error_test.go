package statelessserver

import (
	"testing"

	"github.com/mcp-sse/mcp-sse/jsonrpc"
)

func TestErrorsOfTheNewVersionAreTranslated(t *testing.T) {
	for raw, want := range map[string]string{
		`{"code":-32601,"message":"x","data":1.50}`: `{"code":-32601,"message":"x","data":1.50}`,
		`{"code":-32020,"message":"Mcp-Name"}`: `{"code":-32603,"message":"the server refused the headers of the request: Mcp-Name",` +
			`"data":{"reason":"header_mismatch","retryable":false}}`,
		`{"code":-32021,"message":"m","data":{"requiredCapabilities":{"sampling":{},"elicitation":{}}}}`: `{"code":-32603,` +
			`"message":"the server needs capabilities that the client has not declared: elicitation, sampling",` +
			`"data":{"reason":"missing_capability","retryable":false,"requiredCapabilities":{"sampling":{},"elicitation":{}}}}`,
		`{"code":-32021,"message":"needs roots"}`: `{"code":-32603,"message":"the server needs capabilities that the client has not declared: needs roots",` +
			`"data":{"reason":"missing_capability","retryable":false}}`,
		`{"code":-32022,"message":"m"}`: `{"code":-32603,"message":"the server no longer speaks MCP 2026-07-28","data":{"reason":"unsupported_version","retryable":true}}`,
	} {
		m, err := jsonrpc.Parse([]byte(`{"jsonrpc":"2.0","id":1,"error":` + raw + `}`))
		if err != nil {
			t.Fatal(err)
		}
		got := raw
		if e := translateError(m); e != nil {
			got = string(jsonrpc.NewError("1", e))
			want = `{"jsonrpc":"2.0","id":1,"error":` + want + `}`
		}
		if got != want {
			t.Errorf("%s:\ngot  %s\nwant %s", raw, got, want)
		}
	}
}
