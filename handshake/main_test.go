package handshake_test

import (
	"context"
	"encoding/json"
	"strings"
	"testing"

	"go.uber.org/goleak"

	"github.com/mcp-sse/mcp-sse/handshake"
	"github.com/mcp-sse/mcp-sse/jsonrpc"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// caller is a session that follows a script and writes down what it is sent.
type caller struct {
	reply  string // the response message; "" for an error or a hang
	err    error
	notify error
	sent   []string
}

var _ handshake.Session = (*caller)(nil)

func (c *caller) Call(ctx context.Context, method string, params json.RawMessage) (*jsonrpc.Message, error) {
	c.sent = append(c.sent, method+" "+string(params))
	switch {
	case c.err != nil:
		return nil, c.err
	case c.reply == "": // a server that never answers
		<-ctx.Done()
		return nil, ctx.Err()
	}
	return jsonrpc.Parse([]byte(c.reply))
}

func (c *caller) Notify(method string, params json.RawMessage) error {
	c.sent = append(c.sent, strings.TrimSpace(method+" "+string(params)))
	return c.notify
}
