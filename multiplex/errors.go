package multiplex

import (
	"bytes"

	"github.com/mcp-sse/mcp-sse/jsonrpc"
	"github.com/mcp-sse/mcp-sse/metrics"
)

// errorType names the outcome of a response for the metrics: "" for a result,
// metrics.ErrorTool for a tool's own error, else the JSON-RPC code.
func errorType(m *jsonrpc.Message) string {
	if raw := m.Error(); raw != nil {
		code, _ := jsonrpc.Member(raw, "code")
		return string(code)
	}
	result := m.Result()
	if !bytes.Contains(result, []byte(`"isError"`)) {
		return ""
	}
	if v, _ := jsonrpc.Member(result, "isError"); string(v) == "true" {
		return metrics.ErrorTool
	}
	return ""
}

// busyError returns the error for a request that had to wait, and had no room for that
// because of err.
func busyError(err error) *jsonrpc.Error {
	return jsonrpc.ReasonError(err.Error(), "server_busy", true)
}
