package mcpgo_test

import (
	"testing"

	"github.com/mcp-sse/mcp-sse/jsonrpc"
	"github.com/mcp-sse/mcp-sse/mcpgo"
)

// Whatever a client sends, a session refuses it or handles it, and each request that it
// takes is answered with valid JSON.
func FuzzSend(f *testing.F) {
	for _, seed := range []string{
		`{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"echo","_meta":{"progressToken":1}}}`,
		`{"jsonrpc":"2.0","id":1,"method":"initialize","params":` + helloParams + `}`,
		`{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":1}}`,
		`{"jsonrpc":"2.0","id":1,"result":{}}`,
		`{"jsonrpc":"2.0","id":1,"error":5}`,
	} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, msg []byte) {
		conn, err := mcpgo.Server(newEverything().MCPServer).Dial(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		defer conn.Close()
		answered := make(chan []byte, 2)
		conn.(jsonrpc.Local).Push(func(msg []byte, _ error) { answered <- msg })
		m, err := jsonrpc.Parse(msg)
		if err != nil || m.Kind != jsonrpc.Request {
			_ = conn.Send(msg)
			return
		}
		if m.Method == "tools/call" {
			return // some tools wait
		}
		if err := conn.(jsonrpc.Local).SendRequest(m, 7); err != nil {
			t.Fatal(err)
		}
		got, err := jsonrpc.Parse(<-answered)
		if err != nil || got.Kind != jsonrpc.Response || got.ID != "7" {
			t.Errorf("%s: got %v, %v", msg, got, err)
		}
	})
}
