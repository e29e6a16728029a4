package connstate

import (
	"github.com/mcp-sse/mcp-sse/jsonrpc"
)

// BeginID is Begin for a request that has only an id and a method.
func (c *Connection) BeginID(id jsonrpc.ID, method string) error {
	_, err := c.Begin(&jsonrpc.Message{Kind: jsonrpc.Request, ID: id, Method: method})
	return err
}

// Finish answers a request without sending anything, and reports whether it had no
// answer yet.
func (c *Connection) Finish(id jsonrpc.ID, errorType string) bool {
	r := c.Request(id)
	if r == nil {
		return false
	}
	if _, ok := c.removeRequest(r); !ok {
		return false
	}
	c.requestsDone.Add(1)
	r.report(nil, errorType)
	c.noteAnswered()
	return true
}

// Answer is Request.Answer with Backpressure, and AnswerNow without.
func (c *Connection) Answer(id jsonrpc.ID, response []byte, errorType string) bool {
	r := c.Request(id)
	return r != nil && r.answer(response, errorType, true)
}

func (c *Connection) AnswerNow(id jsonrpc.ID, response []byte, errorType string) bool {
	r := c.Request(id)
	return r != nil && r.answer(response, errorType, false)
}

// AdmitMessage is Admit for a message that need not be begun, and WithdrawID Withdraw.
func (c *Connection) AdmitMessage(m *jsonrpc.Message) (bool, error) {
	if r := c.Request(m.ID); r != nil && m.Kind == jsonrpc.Request {
		r.Message = m
		return c.Admit(r)
	}
	return c.Admit(&Request{Message: m})
}

func (c *Connection) WithdrawID(id jsonrpc.ID) bool {
	c.mu.Lock()
	var found *Request
	for _, w := range c.gate.queue {
		if w.r.Message.Kind == jsonrpc.Request && w.r.Message.ID == id {
			found = w.r
		}
	}
	c.mu.Unlock()
	return found != nil && c.Withdraw(found)
}

// Respond sends a response under the names of the connection's dialect: both
// while that is undecided. It waits for room as Send does.
func (c *Connection) Respond(response []byte) error {
	return c.send(responseEvents(new([2]Event), c.Dialect(), "", response))
}

// Release opens the gate and releases all that waits to a forward that takes
// everything.
func (c *Connection) Release(forward func(*jsonrpc.Message)) error {
	release, err := c.Open()
	if err == nil {
		release(func(r *Request) bool {
			forward(r.Message)
			return true
		})
	}
	return err
}

// MaxUnwritten and MaxRated are bounds that only tests name.
const (
	MaxUnwritten = maxUnwritten
	MaxRated     = maxRated
)

// Networks returns the number of networks whose connect rate is remembered.
func (r *Registry) Networks() int {
	r.mu.Lock()
	defer r.mu.Unlock()
	return len(r.rates.buckets)
}

// PerIP returns the number of networks whose connections are counted.
func (r *Registry) PerIP() int {
	r.mu.Lock()
	defer r.mu.Unlock()
	return len(r.perIP)
}
