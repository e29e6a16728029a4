package bridge

import (
	"bytes"
	"encoding/json"

	"github.com/mcp-sse/mcp-sse/handshake"
	"github.com/mcp-sse/mcp-sse/internal/remember"
)

// question is a question to memory: what is there for a client like this one? It may read a file.
type question struct {
	supplier *handshake.Supplier
	memory   *remember.Server // nil: nothing is remembered
	params   json.RawMessage  // of the initialize that the client has sent, or would get

	answer handshake.Recalled
}

// askMemory gets the answer, and then calls done with the question. Without a memory it calls done at once, otherwise
// in the background: memory answers in bounded time.
func (q *question) askMemory(c *client, done func(*question)) {
	if q.memory == nil || q.params == nil {
		done(q)
		return
	}
	q.supplier.Go(func() {
		q.answer = q.supplier.Recall(q.memory, q.params, c.who(), c.c.Client().Version)
		done(q)
	})
}

// equals reports whether another question would get the same answer.
func (q *question) equals(other *question) bool {
	return q.supplier == other.supplier && q.memory == other.memory && bytes.Equal(q.params, other.params)
}
