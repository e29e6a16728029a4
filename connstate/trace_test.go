package connstate_test

import (
	"testing"

	"github.com/mcp-sse/mcp-sse/connstate"
	"github.com/mcp-sse/mcp-sse/jsonrpc"
)

type nobody struct{}

func (nobody) Receive(*jsonrpc.Message)          {}
func (nobody) Refused(*connstate.Request, error) {}
func (nobody) Closed()                           {}

// answerOne passes one request through a connection.
func answerOne(tb testing.TB, c *connstate.Connection, m *jsonrpc.Message, header map[string][]string) {
	c.SetParent(m, header)
	r, err := c.Begin(m)
	if err != nil {
		tb.Fatal(err)
	}
	if r.ToServer(m) != m {
		tb.Fatal("the message has changed")
	}
	r.Answer(nil, "")
}

// Without a tracer a request costs no more than it did before there was tracing.
func BenchmarkRequestUntraced(b *testing.B) {
	c, m, header := untraced(b)
	b.ReportAllocs()
	for b.Loop() {
		answerOne(b, c, m, header)
	}
}

func TestUntracedRequestAllocates(t *testing.T) {
	c, m, header := untraced(t)
	bare := testing.AllocsPerRun(100, func() {
		r, _ := c.Begin(m)
		r.Answer(nil, "")
	})
	equal(t, "allocations", testing.AllocsPerRun(100, func() { answerOne(t, c, m, header) }), bare)
}

func untraced(tb testing.TB) (*connstate.Connection, *jsonrpc.Message, map[string][]string) {
	c, err := connstate.NewRegistry(connstate.Limits{}, connstate.Options{}).Open(connstate.Client{Dialect: connstate.EventMessage})
	if err != nil {
		tb.Fatal(err)
	}
	c.Bind(nobody{})
	c.Attach(func(connstate.Event) bool { return true })
	m, err := jsonrpc.Parse([]byte(`{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"x","_meta":{"traceparent":"00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01"}}}`))
	if err != nil {
		tb.Fatal(err)
	}
	return c, m, map[string][]string{"Traceparent": {"00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01"}}
}
