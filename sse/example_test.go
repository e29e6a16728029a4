package sse_test

import (
	"bufio"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"

	"github.com/mcp-sse/mcp-sse/connstate"
	"github.com/mcp-sse/mcp-sse/jsonrpc"
	"github.com/mcp-sse/mcp-sse/sse"
)

// greeter is a backend that answers every request with a greeting.
type greeter struct{}

func (greeter) Accept(c *connstate.Connection) connstate.Handler { return greeting{c} }

type greeting struct{ c *connstate.Connection }

func (g greeting) Receive(m *jsonrpc.Message) {
	if m.Kind == jsonrpc.Request {
		g.c.RespondNow("", jsonrpc.NewResult(m.ID, []byte(`{"greeting":"hello"}`)))
	}
}

func (greeting) Refused(*connstate.Request, error) {}
func (greeting) Closed()                           {}

// The package used by itself, with a backend that is no MCP server.
func Example() {
	registry := connstate.NewRegistry(connstate.Limits{MaxConnections: 100}, connstate.Options{})
	handler, err := sse.New(greeter{}, registry, sse.Options{})
	if err != nil {
		fmt.Println(err)
		return
	}
	srv := httptest.NewServer(handler)
	defer srv.Close()

	stream, err := http.Get(srv.URL + "/sse?event=message&auto=0")
	if err != nil {
		fmt.Println(err)
		return
	}
	defer stream.Body.Close()
	lines := bufio.NewScanner(stream.Body)
	next := func() string { // the data of the next event
		for lines.Scan() {
			if data, ok := strings.CutPrefix(lines.Text(), "data: "); ok {
				return data
			}
		}
		return ""
	}
	endpoint := next()

	answer, err := http.Post(srv.URL+endpoint, "application/json", strings.NewReader(`{"jsonrpc":"2.0","id":1,"method":"greet"}`))
	if err != nil {
		fmt.Println(err)
		return
	}
	answer.Body.Close()
	fmt.Println(answer.Status)
	fmt.Println(next())
	// Output:
	// 202 Accepted
	// {"jsonrpc":"2.0","id":1,"result":{"greeting":"hello"}}
}
