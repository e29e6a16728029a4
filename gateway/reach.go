package gateway

import (
	"bytes"
	"context"
	"encoding/json"

	"github.com/mcp-sse/mcp-sse/upstream"
)

// Where sessions come from, for the log.
const (
	fromStart  = "start"
	fromPool   = "pool"
	fromShared = "shared"
)

// reach gets a session from where sessions are: the shared ones, the pool, or a
// start of its own.
func (b *bridge) reach(ctx context.Context, params json.RawMessage) (l *link, from string, err error) {
	if b.g.shared != nil {
		l, err = b.g.shared.join(ctx, b)
		return l, fromShared, err
	}
	if bytes.Equal(params, b.g.params) && len(b.c.Client().Header) == 0 {
		if s := b.g.pool.take(ctx); s != nil {
			return b.link(s), fromPool, nil
		}
	}
	_, err = b.g.open(ctx, params, func(s *session) { l = b.link(s) })
	if err != nil {
		return nil, fromStart, err
	}
	return l, fromStart, nil
}

// forwarded adds to ctx what is handed on of the client's request.
func (b *bridge) forwarded(ctx context.Context) context.Context {
	if header := b.c.Client().Header; len(header) > 0 {
		return upstream.WithHeader(ctx, header)
	}
	return ctx
}

// link makes the bridge the owner of a session.
func (b *bridge) link(s *session) *link {
	l := newLink(b, s)
	s.own(func(err error) { b.lost(l, err) }) // if it is over already, settle finds out
	return l
}
