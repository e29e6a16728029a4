package multiplex

import (
	"encoding/json"
	"time"

	"github.com/mcp-sse/mcp-sse/connstate"
	"github.com/mcp-sse/mcp-sse/internal/mcp"
	"github.com/mcp-sse/mcp-sse/jsonrpc"
	"github.com/mcp-sse/mcp-sse/metrics"
	"github.com/mcp-sse/mcp-sse/multiplex/sharing"
)

// pending is a request that the server has not answered. Session.mu guards it while
// it is in the table. The function that removes it from the table owns it and must answer it.
type pending struct {
	timed
	id      int64 // on the wire
	method  string
	started time.Duration // since the session began
	// caller is set for a request on behalf of a client, r for one of the client's own,
	// and reply for one whose answer the gateway waits for.
	caller     *Caller
	r          *connstate.Request
	reply      chan outcome
	prev, next *pending // of the same caller

	// token is the client's progress token, nil for none; tokenAt is its place in the
	// request.
	token    json.RawMessage
	tokenBuf [24]byte // holds the token when it is as short as usual
	tokenAt  jsonrpc.Place

	// request is kept while it waits, and as long as it may be repeated.
	request *jsonrpc.Message
	serial  *serialQueue // the serial queue that it is in; nil for most
	task    string       // the task that it is about; empty for most
	uri     string       // the resource to subscribe to or unsubscribe from; empty for most
	// level is the log level that the client sets, serverLevel the one that the server
	// gets.
	level, serverLevel sharing.Level

	canceled   bool // by the client
	sent       bool // the server has it
	counted    bool // towards MaxInFlight
	safe       bool // to repeat
	more       bool // a later page of a list
	progressed bool // the server has reported progress
}

// outcome is what a Call returns.
type outcome struct {
	response *jsonrpc.Message
	err      error
}

// isHangPing reports whether the request is the ping to a server that may hang.
func (p *pending) isHangPing() bool {
	return p.caller == nil && p.reply == nil && p.method == mcp.MethodPing
}

// mayBlock reports whether the server may take long to answer without being slow: it
// answers tasks/result when the task is over.
func (p *pending) mayBlock() bool { return p.method == mcp.MethodTaskResult }

// respond passes the server's response to the caller.
func (p *pending) respond(response []byte, errorType string) {
	switch {
	case p.reply != nil:
		m, err := jsonrpc.Parse(response)
		p.reply <- outcome{m, err}
	case p.r != nil:
		p.r.Answer(response, errorType)
	}
}

// fail answers the caller with an error of the gateway.
func (p *pending) fail(e *jsonrpc.Error, errorType string) {
	switch {
	case p.reply != nil:
		p.reply <- outcome{err: e}
	case p.r != nil:
		p.r.Fail(e, errorType)
	}
}

// reportLost tells the caller that the session ended before the answer came. m is
// the request if it may be repeated, else nil.
func (p *pending) reportLost(m *jsonrpc.Message, e *jsonrpc.Error) {
	if p.r == nil {
		p.fail(e, metrics.ErrorSessionLost)
		return
	}
	p.r.Message = m
	p.caller.client.Lost(p.r, e)
}

// answerID is the id of the answer.
func (p *pending) answerID() jsonrpc.ID {
	if p.r != nil {
		return p.r.ID
	}
	return wireID(p.id)
}

// addRequest and removeRequest maintain the list of the caller's requests. Guarded
// by Session.mu.
func (c *Caller) addRequest(p *pending) {
	p.next = c.requests
	if p.next != nil {
		p.next.prev = p
	}
	c.requests = p
}

func (c *Caller) removeRequest(p *pending) {
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

// findLocked returns the entry of a client's request, nil if there is none.
func (c *Caller) findLocked(r *connstate.Request) *pending {
	for p := c.requests; p != nil; p = p.next {
		if p.r == r {
			return p
		}
	}
	return nil
}
