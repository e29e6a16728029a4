package multiplex

import (
	"context"
	"encoding/json"
	"errors"

	"github.com/mcp-sse/mcp-sse/jsonrpc"
)

// Call sends a request of the gateway's own and returns the response, which may
// be an error response. It fails with ctx, or when the session ends.
func (s *Session) Call(ctx context.Context, method string, params json.RawMessage) (*jsonrpc.Message, error) {
	p := &pending{method: method, reply: make(chan outcome, 1)}
	m, err := jsonrpc.Parse(jsonrpc.NewRequest("0", method, params))
	if err != nil {
		return nil, err
	}
	p.request = m
	if _, _, err := s.enter(p); err != nil {
		return nil, s.Err()
	}
	if err := s.conn.Send(m.WithNumber(p.id, p.tokenAt)); err != nil {
		s.takeOut(func(*table) *pending { return p })
		return nil, s.why(ctx, err)
	}
	return s.await(ctx, p)
}

// Call is Session.Call for a request that is made in the name of the client, as
// the subscriptions that a new session must be told. It is treated as a request of
// the client.
func (c *Port) Call(ctx context.Context, method string, params json.RawMessage) (*jsonrpc.Message, error) {
	s := c.session
	p := &pending{method: method, port: c, reply: make(chan outcome, 1), counted: true}
	m, err := jsonrpc.Parse(jsonrpc.NewRequest("0", method, params))
	if err != nil {
		return nil, err
	}
	p.client, p.request = m.ID, m
	if e := s.inspect(p, m); e != nil {
		return nil, e
	}
	if err := s.begin(p); err != nil {
		return nil, s.why(ctx, err)
	}
	return s.await(ctx, p)
}

// await waits for the answer to a call of the gateway's own.
func (s *Session) await(ctx context.Context, p *pending) (*jsonrpc.Message, error) {
	select {
	case o := <-p.reply:
		return o.response, o.err
	case <-ctx.Done():
	}
	s.locked(func(t *table) { t.abandon(p) })
	s.sendNext()
	return nil, ctx.Err()
}

// why returns the error of a send that failed: the reason of the session's end if
// it is over.
func (s *Session) why(ctx context.Context, err error) error {
	if errors.Is(err, jsonrpc.ErrBusy) || errors.Is(err, ErrLeft) {
		return err
	}
	select {
	case <-s.done:
		return s.Err()
	case <-ctx.Done():
		return err
	}
}

// Notify sends a notification of the gateway's own.
func (s *Session) Notify(method string, params json.RawMessage) error {
	s.noteNotified()
	return s.conn.Send(jsonrpc.NewNotification(method, params))
}
