package multiplex_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/mcp-sse/mcp-sse/jsonrpc"
	"github.com/mcp-sse/mcp-sse/multiplex"
	"github.com/mcp-sse/mcp-sse/upstream"
)

// printer is a client that prints what reaches it.
type printer struct {
	name     string
	answered chan struct{}
}

func (p *printer) Answer(_ jsonrpc.ID, response []byte, _ string) {
	fmt.Printf("%s: %s\n", p.name, response)
	close(p.answered)
}

func (p *printer) Fail(id jsonrpc.ID, e *jsonrpc.Error, _ string) {
	fmt.Printf("%s: request %s: %v\n", p.name, id, e)
	close(p.answered)
}

func (p *printer) Lost(m *jsonrpc.Message, e *jsonrpc.Error) { p.Fail(m.ID, e, "") }

func (p *printer) Deliver(_ string, _ jsonrpc.ID, message []byte) {
	fmt.Printf("%s: %s\n", p.name, message)
}

func (p *printer) Serves(*jsonrpc.Message) bool { return false }

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
	for _, name := range []string{"ann", "bob"} {
		client := &printer{name: name, answered: make(chan struct{})}
		m, err := jsonrpc.Parse([]byte(`{"jsonrpc":"2.0","id":1,"method":"echo","params":{"from":"` + name + `"}}`))
		if err != nil {
			fmt.Println(err)
			return
		}
		session.Attach(client, name, "").Forward(m)
		<-client.answered
	}
	session.Close(errors.New("the example is over"))
	<-session.Done()
	// Output:
	// ann: {"jsonrpc":"2.0","id":1,"result":{"from":"ann"}}
	// bob: {"jsonrpc":"2.0","id":1,"result":{"from":"bob"}}
}
