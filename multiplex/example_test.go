package multiplex_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/mcp-sse/mcp-sse/connstate"
	"github.com/mcp-sse/mcp-sse/jsonrpc"
	"github.com/mcp-sse/mcp-sse/multiplex"
	"github.com/mcp-sse/mcp-sse/upstream"
)

// nobody is a client that takes no messages beside the answers to its requests.
type nobody struct{}

func (nobody) Lost(r *connstate.Request, e *jsonrpc.Error) { r.Fail(e, "session_lost") }
func (nobody) Deliver(string, jsonrpc.ID, []byte)          {}
func (nobody) Serves(*jsonrpc.Message) bool                { return false }

// Two clients that use the same id share a session.
func Example() {
	server := upstream.Handle(func(_ context.Context, msg json.RawMessage) any {
		m, err := jsonrpc.Parse(msg)
		if err != nil || m.Kind != jsonrpc.Request {
			return nil
		}
		return json.RawMessage(jsonrpc.NewResult(m.ID, m.Params()))
	})
	conn, err := server.Dial(context.Background())
	if err != nil {
		fmt.Println(err)
		return
	}
	session := multiplex.New(conn, multiplex.Options{Shared: true})
	registry := connstate.NewRegistry(connstate.Limits{}, connstate.Options{})
	for _, name := range []string{"ann", "bob"} {
		c, err := registry.Open(connstate.Client{Dialect: connstate.EventMessage})
		if err != nil {
			fmt.Println(err)
			return
		}
		defer registry.Remove(c)
		answered := make(chan struct{})
		c.Attach(func(e connstate.Event) bool {
			fmt.Printf("%s: %s\n", name, e.Data)
			close(answered)
			return true
		})
		m, err := jsonrpc.Parse([]byte(`{"jsonrpc":"2.0","id":1,"method":"echo","params":{"from":"` + name + `"}}`))
		if err != nil {
			fmt.Println(err)
			return
		}
		r, err := c.Begin(m)
		if err != nil {
			fmt.Println(err)
			return
		}
		if err := session.Attach(nobody{}, name, "").Send(r); err != nil {
			fmt.Println(err)
			return
		}
		<-answered
	}
	session.Close(errors.New("the example is over"))
	<-session.Done()
	// Output:
	// ann: {"jsonrpc":"2.0","id":1,"result":{"from":"ann"}}
	// bob: {"jsonrpc":"2.0","id":1,"result":{"from":"bob"}}
}
