package multiplex

import (
	"encoding/json"
	"time"

	"github.com/mcp-sse/mcp-sse/internal/mcp"
	"github.com/mcp-sse/mcp-sse/jsonrpc"
	"github.com/mcp-sse/mcp-sse/metrics"
	"github.com/mcp-sse/mcp-sse/multiplex/sharing"
)

// pending is a request that the server has not answered. Guarded by Session.mu
// while it is in the table; whoever takes it out of the table owns it, and answers it.
type pending struct {
	timed
	id      int64 // on the wire
	method  string
	started time.Duration // since the session began
	// caller and client, the id that the client gave the request, are set for what is
	// done in the name of a client; reply for what the gateway itself waits for.
	// Neither is set for what nobody waits for.
	caller     *Caller
	client     jsonrpc.ID
	reply      chan outcome
	prev, next *pending // of the same caller

	// token is the client's progress token, nil for none; tokenAt is where it was.
	token    json.RawMessage
	tokenBuf [24]byte // holds the token when it is as short as usual
	tokenAt  jsonrpc.Place

	// request is kept while it waits, and as long as it may be made again.
	request *jsonrpc.Message
	serial  *serialQueue // of the requests that go one after the other; nil for most
	task    string       // that the request is about; empty for most
	uri     string       // that it subscribes to or unsubscribes from; empty for most
	// level is what the client wants of logging/setLevel, and serverLevel what the
	// server gets.
	level, serverLevel sharing.Level

	canceled   bool // by the client
	sent       bool // the server has it
	counted    bool // towards MaxInFlight
	safe       bool // to make again
	more       bool // a page of a list that is not the first
	progressed bool // the server has reported progress
}

// outcome is what a call of the gateway's own returns.
type outcome struct {
	response *jsonrpc.Message
	err      error
}

// isProbe reports whether the request is the ping to a server that may hang.
func (p *pending) isProbe() bool {
	return p.caller == nil && p.reply == nil && p.method == mcp.MethodPing
}

// mayBlock reports whether the server may take its time with the request without
// being slow: it answers tasks/result when the task is over.
func (p *pending) mayBlock() bool { return p.method == mcp.MethodTaskResult }

// respond gives the caller the server's response.
func (p *pending) respond(response []byte, errorType string) {
	switch {
	case p.reply != nil:
		m, err := jsonrpc.Parse(response)
		p.reply <- outcome{m, err}
	case p.caller != nil:
		p.caller.client.Answer(p.client, response, errorType)
	}
}

// fail gives the caller an error of the gateway's own.
func (p *pending) fail(e *jsonrpc.Error, errorType string) {
	switch {
	case p.reply != nil:
		p.reply <- outcome{err: e}
	case p.caller != nil:
		p.caller.client.Fail(p.client, e, errorType)
	}
}

// lose tells the caller that the session ended before the answer came. m is the
// request if it may be made again, else nil.
func (p *pending) lose(m *jsonrpc.Message, e *jsonrpc.Error) {
	if m == nil || p.caller == nil || p.reply != nil {
		p.fail(e, metrics.ErrorSessionLost)
		return
	}
	p.caller.client.Lost(m, e)
}

// link and unlink keep the list of a caller's requests. Guarded by Session.mu.
func (c *Caller) link(p *pending) {
	p.next = c.requests
	if p.next != nil {
		p.next.prev = p
	}
	c.requests = p
}

func (c *Caller) unlink(p *pending) {
	if p.prev != nil {
		p.prev.next = p.next
	} else {
		c.requests = p.next
	}
	if p.next != nil {
		p.next.prev = p.prev
	}
	p.prev, p.next = nil, nil
}

// findLocked returns the request that the client calls id.
func (c *Caller) findLocked(id jsonrpc.ID) *pending {
	for p := c.requests; p != nil; p = p.next {
		if p.reply == nil && p.client == id {
			return p
		}
	}
	return nil
}
