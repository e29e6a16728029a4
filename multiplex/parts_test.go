package multiplex_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"sync/atomic"
	"testing"

	"github.com/mcp-sse/mcp-sse/jsonrpc"
	"github.com/mcp-sse/mcp-sse/multiplex"
)

// partsConn is a server of this process that takes requests and gives responses in parts.
type partsConn struct {
	t       *testing.T
	result  func(number int64, result, fault json.RawMessage)
	receive func([]byte, error) bool
	ended   atomic.Bool
}

func (c *partsConn) Push(receive func([]byte, error) bool) { c.receive = receive }

func (c *partsConn) PushResults(result func(int64, json.RawMessage, json.RawMessage)) {
	c.result = result
}

func (c *partsConn) Send(msg []byte) error {
	c.t.Errorf("Send got %s, want SendRequest", msg)
	return nil
}

// SendRequest answers with the params that the server sees, fails requests of method fail,
// and answers others twice.
func (c *partsConn) SendRequest(m *jsonrpc.Message, number int64, token jsonrpc.Place) error {
	switch m.Method {
	case "fail":
		go c.result(number, nil, json.RawMessage(`{"code":-5,"message":"no"}`))
	case "twice":
		go func() {
			c.result(number, json.RawMessage(`1`), nil)
			c.result(number, json.RawMessage(`2`), nil)
			c.result(number+1000, json.RawMessage(`3`), nil)
		}()
	case "busy":
		return jsonrpc.ErrBusy
	default:
		go c.result(number, fmt.Appendf(nil, `{"saw":%s,"number":%d}`, m.ParamsWithNumber(number, token), number), nil)
	}
	return nil
}

func (c *partsConn) Recv() ([]byte, error) { return nil, errors.New("nobody reads") }

func (c *partsConn) Close() error {
	if c.ended.CompareAndSwap(false, true) { // receive closes again
		c.receive(nil, jsonrpc.ErrClosed)
	}
	return nil
}

// answers is a client that keeps the answers.
type answers chan string

func (a answers) Answer(id jsonrpc.ID, response []byte, errorType string) {
	a <- fmt.Sprintf("%s %s %s", id, response, errorType)
}
func (a answers) Fail(id jsonrpc.ID, e *jsonrpc.Error, errorType string) {
	a <- fmt.Sprintf("%s failed: %s", id, errorType)
}
func (a answers) Lost(m *jsonrpc.Message, _ *jsonrpc.Error) { a <- fmt.Sprintf("%s lost", m.ID) }
func (a answers) Deliver(string, jsonrpc.ID, []byte)        {}
func (a answers) Serves(*jsonrpc.Message) bool              { return true }

// A server that takes requests without their text, and gives responses in parts, is
// matched as any other: the client gets its own id and the server a token of the session's.
func TestRequestsAndResponsesInParts(t *testing.T) {
	s := multiplex.New(&partsConn{t: t}, multiplex.Options{})
	defer s.Close(errors.New("over"))
	client := make(answers, 4)
	c := attach(s, client, "c", "")
	for _, test := range []struct{ msg, want string }{
		{`{"jsonrpc":"2.0","id":"a","method":"x","params":{"_meta":{"progressToken":"mine"}}}`,
			`"a" {"jsonrpc":"2.0","id":"a","result":{"saw":{"_meta":{"progressToken":1}},"number":1}} `},
		{`{"jsonrpc":"2.0","id":9007199254740993,"method":"x","params":{"n":9007199254740993}}`,
			`9007199254740993 {"jsonrpc":"2.0","id":9007199254740993,"result":{"saw":{"n":9007199254740993},"number":2}} `},
		{`{"jsonrpc":"2.0","id":1,"method":"fail"}`, `1 {"jsonrpc":"2.0","id":1,"error":{"code":-5,"message":"no"}} -5`},
		{`{"jsonrpc":"2.0","id":1,"method":"twice"}`, `1 {"jsonrpc":"2.0","id":1,"result":1} `},
		{`{"jsonrpc":"2.0","id":2,"method":"busy"}`, `2 failed: busy`},
	} {
		m, err := jsonrpc.Parse([]byte(test.msg))
		if err != nil {
			t.Fatal(err)
		}
		if err := c.Forward(m); err != nil {
			t.Fatal(err)
		}
		if got := <-client; got != test.want {
			t.Errorf("%s:\ngot  %s\nwant %s", test.msg, got, test.want)
		}
	}
	got, err := s.Call(t.Context(), "x", json.RawMessage(`{"q":1}`))
	if err != nil || string(got.Result()) != `{"saw":{"q":1},"number":6}` {
		t.Errorf("Call: got %v, %v", got, err)
	}
}
