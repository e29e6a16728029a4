package handshake_test

import (
	"context"
	"encoding/json"
	"fmt"

	"github.com/mcp-sse/mcp-sse/handshake"
	"github.com/mcp-sse/mcp-sse/jsonrpc"
	"github.com/mcp-sse/mcp-sse/metrics"
)

// server answers initialize, as an MCP server does.
type server struct{}

func (server) Call(_ context.Context, method string, _ json.RawMessage) (*jsonrpc.Message, error) {
	fmt.Println("server got", method)
	return jsonrpc.Parse(jsonrpc.NewResult("1", json.RawMessage(
		`{"protocolVersion":"2025-11-25","capabilities":{"tools":{}},"serverInfo":{"name":"demo","version":"1"}}`)))
}

func (server) Notify(method string, _ json.RawMessage) error {
	fmt.Println("server got", method)
	return nil
}

// The handshake is run once. A client that initializes later is answered from
// its result, under its own id and version.
func Example() {
	params := handshake.Synthetic(handshake.ClientInfo{Name: "my-gateway", Version: "1.0"})
	result, err := handshake.Run(context.Background(), server{}, params)
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println("tools:", result.Advertises("tools"))

	request, err := jsonrpc.Parse([]byte(`{"jsonrpc":"2.0","id":"init","method":"initialize","params":{"protocolVersion":"2024-11-05","capabilities":{}}}`))
	if err != nil {
		fmt.Println(err)
		return
	}
	if handshake.Exceeds(request.Params(), params) {
		fmt.Println("the client can more than the session was told")
	}
	fmt.Printf("%s\n", result.Answer(request.ID, handshake.RequestedVersion(request.Params())))
	// Output:
	// server got initialize
	// server got notifications/initialized
	// tools: true
	// {"jsonrpc":"2.0","id":"init","result":{"protocolVersion":"2024-11-05","capabilities":{"tools":{}},"serverInfo":{"name":"demo","version":"1"}}}
}

// What a client gets when no session could be started.
func ExampleFailure() {
	f := &handshake.Failure{Phase: handshake.PhaseCreation, Reason: metrics.ReasonStartFailed, Details: "no server is configured", Attempt: 1}
	fmt.Println(f)
	fmt.Printf("%s\n", f.Response("7"))
	// Output:
	// initialization failed: no server is configured
	// {"jsonrpc":"2.0","id":7,"error":{"code":-32603,"message":"initialization failed: no server is configured","data":{"type":"initialization_error","phase":"request_creation","reason":"start_failed","details":"no server is configured","attempt":1,"retryAfterMs":0}}}
}
