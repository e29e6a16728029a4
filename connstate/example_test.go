package connstate_test

import (
	"fmt"

	"github.com/mcp-sse/mcp-sse/connstate"
	"github.com/mcp-sse/mcp-sse/jsonrpc"
	"github.com/mcp-sse/mcp-sse/metrics"
)

// echo answers each request with its params.
type echo struct{ c *connstate.Connection }

func (e echo) Receive(m *jsonrpc.Message) {
	r, err := e.c.Begin(m)
	if err != nil {
		return // a duplicate, or the connection is closed
	}
	if pass, err := e.c.Admit(r); err != nil {
		e.Refused(r, err)
	} else if pass {
		e.serve(r)
	}
}

func (e echo) serve(r *connstate.Request) bool {
	return r.Answer(jsonrpc.NewResult(r.ID, r.Message.Params()), "")
}

func (e echo) Refused(r *connstate.Request, reason error) {
	r.Fail(jsonrpc.Errorf(jsonrpc.CodeInternalError, "%v", reason), metrics.ErrorInitialization)
}

func (e echo) Closed() { fmt.Println("closed:", e.c.Reason()) }

// A connection by itself, with a stream that prints. What comes before the
// server is there waits at the gate.
func Example() {
	registry := connstate.NewRegistry(connstate.Limits{MaxConnections: 100}, connstate.Options{})
	c, err := registry.Open(connstate.Client{Dialect: connstate.EventMessage})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer registry.Remove(c)
	server := echo{c}
	c.Bind(server)
	var writing []connstate.Event
	c.Attach(func(e connstate.Event) bool {
		writing = append(writing, e)
		return true
	})

	for _, post := range []string{
		`{"jsonrpc":"2.0","id":1,"method":"echo","params":["first"]}`,
		`{"jsonrpc":"2.0","id":"two","method":"echo","params":["second"]}`,
	} {
		m, err := jsonrpc.Parse([]byte(post))
		if err != nil {
			fmt.Println(err)
			return
		}
		c.Observe(m, "")
		c.Receive(m)
	}
	fmt.Println(c.State(), "with", c.Snapshot().Queued, "messages at the gate")
	release, err := c.Open()
	if err != nil {
		fmt.Println(err)
		return
	}
	release(server.serve)
	fmt.Println(c.State(), "with", c.Snapshot().Queued)
	for _, e := range writing {
		fmt.Printf("%s: %s\n", e.Name, e.Data)
		c.Written(e.Size())
	}
	c.Close(metrics.ClosedClient)
	// Output:
	// initializing with 2 messages at the gate
	// ready with 0
	// message: {"jsonrpc":"2.0","id":1,"result":["first"]}
	// message: {"jsonrpc":"2.0","id":"two","result":["second"]}
	// closed: client
}
