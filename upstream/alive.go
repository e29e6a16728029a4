package upstream

import (
	"context"
	"errors"
	"time"

	"github.com/mcp-sse/mcp-sse/internal/mcp"
	"github.com/mcp-sse/mcp-sse/jsonrpc"
)

// aliveTimeout bounds the question whether a server is still there. One that is
// slow to answer it is.
const aliveTimeout = 5 * time.Second

// lives finds out whether the server still has the session, after a response of it
// has broken off. A server that dies takes all responses along, and then the session
// is over: the requests are lost with it, and those that may be are repeated on the
// next. One question at a time is asked, for all of them.
func (c *streamable) lives(k *remoteCall) bool {
	if k.method == mcp.MethodInitialize { // there is no session to be asked about
		return true
	}
	c.mu.Lock()
	if c.err == nil && c.asking == nil {
		asking := make(chan struct{})
		c.asking = asking
		c.work.Go(func() { // ends after aliveTimeout, or with the session
			ctx, cancel := context.WithTimeout(c.ctx, aliveTimeout)
			defer cancel()
			question, _ := jsonrpc.Parse(jsonrpc.NewRequest(`"alive"`, mcp.MethodPing, nil)) // is one
			c.postOut(ctx, question)
			c.mu.Lock()
			c.asking = nil
			c.mu.Unlock()
			close(asking)
		})
	}
	asking := c.asking
	c.mu.Unlock()
	if asking != nil {
		select {
		case <-asking:
		case <-k.ctx.Done():
		}
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.err == nil
}

// lives returns why the server of a stateless session is gone, when that is why a
// response broke off with err; else err.
func (c *modernConn) lives(k *modernCall, err error) error {
	e, ok := errors.AsType[*jsonrpc.Error](err)
	if !ok {
		return err
	}
	if data, ok := e.Data.(remoteData); !ok || data.Reason != reasonLost {
		return err
	}
	ctx, cancel := context.WithTimeout(k.ctx, aliveTimeout)
	defer cancel()
	_, release, gone := c.post(ctx, own(mcp.MethodDiscover), nil, nil)
	release()
	if _, answered := errors.AsType[*jsonrpc.Error](gone); gone == nil || answered || ctx.Err() != nil {
		return err
	}
	return gone
}
