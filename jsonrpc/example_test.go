package jsonrpc_test

import (
	"errors"
	"fmt"

	"github.com/mcp-sse/mcp-sse/jsonrpc"
)

// A gateway forwards requests under its own ids and gives the answers the client's
// ids back. All other bytes stay.
func Example() {
	request, err := jsonrpc.Parse([]byte(`{"jsonrpc":"2.0","id":9007199254740993,"method":"tools/call","params":{"n":1.50}}`))
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Printf("%s\n", request.WithID("7"))

	response, err := jsonrpc.Parse([]byte(`{"jsonrpc":"2.0","id":7,"result":{"n":1.50}}`))
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Printf("%s\n", response.WithID(request.ID))
	// Output:
	// {"jsonrpc":"2.0","id":7,"method":"tools/call","params":{"n":1.50}}
	// {"jsonrpc":"2.0","id":9007199254740993,"result":{"n":1.50}}
}

// The error of Parse can be sent to the peer, under the message's id if that is
// certain.
func ExampleParse_refused() {
	m, err := jsonrpc.Parse([]byte(`{"id":5,"method":"ping"}`))
	if e, ok := errors.AsType[*jsonrpc.Error](err); ok {
		fmt.Printf("%s\n", jsonrpc.NewError(m.ID, e))
	}
	// Output:
	// {"jsonrpc":"2.0","id":5,"error":{"code":-32600,"message":"member \"jsonrpc\" must be \"2.0\""}}
}
