package gateway

import (
	"context"
	"fmt"
	"net/http"

	"github.com/mcp-sse/mcp-sse/connstate"
	"github.com/mcp-sse/mcp-sse/internal/asker"
	"github.com/mcp-sse/mcp-sse/internal/caller"
	"github.com/mcp-sse/mcp-sse/jsonrpc"
)

var _ jsonrpc.Dialer = (*Gateway)(nil)

// Dial opens a connection of a client in this process, which is the program itself, or a gateway of which g is the
// upstream. Such a client has all that others have: memory, the gate, sessions that come and go, each request answered
// once. It counts towards MaxConnections, and towards no limit of one address. No Authenticate is asked about it,
// no IdleTimeout closes it, and its tool calls are not in the Audit: they are in that of the gateway in front.
//
// The Conn delivers messages in their order. Its Send waits neither for the server nor for the client. After Close,
// nothing of the connection is left. Dial does not wait; it fails if ctx has ended, if MaxConnections are open, and
// after Drain.
func (g *Gateway) Dial(ctx context.Context) (jsonrpc.Conn, error) {
	c, err := g.dial(ctx)
	if err != nil {
		return nil, fmt.Errorf("dial %s: %w", g.bridges.Server, err)
	}
	return c, nil
}

func (g *Gateway) dial(ctx context.Context) (*localConn, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	if err := g.countLocal(); err != nil {
		return nil, err
	}
	now := g.now.Load()
	opened, err := g.registry.Open(now.localClient(asker.FromContext(ctx)))
	if err != nil {
		return nil, err
	}
	now.checks.LogOpened(opened)
	return newLocalConn(g, opened), nil
}

// countLocal makes the series of clients in this process, at the first of them: most gateways have none.
func (g *Gateway) countLocal() error {
	if g.hasLocal.Load() {
		return nil
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.ending { // the registry refuses it
		return nil
	}
	if err := g.metrics.AddTransport(string(connstate.TransportInProcess)); err != nil {
		return err
	}
	g.reconfigureConnections(&g.now.Load().opts)
	g.hasLocal.Store(true)
	return nil
}

// localClient returns the client of a connection of Dial. a is nil if that is the program itself.
func (n *serving) localClient(a *asker.Asker) connstate.Client {
	client := connstate.Client{Transport: connstate.TransportInProcess, Dialect: connstate.EventMessage, Quiet: true}
	if a == nil {
		client.Local = true
		a = &asker.Asker{}
	} else {
		client.Principal, client.Addr, client.Local, client.Proxied = a.Principal, a.Addr, a.Local, a.Proxied
		client.UserAgent, client.Newest, client.Front = a.UserAgent, a.Credentials, a.Connection
		client.Header = chosen(n.opts.ForwardHeaders, a.Header)
	}
	client.Context = n.passed(a.Values, &caller.Caller{Principal: a.Principal, Addr: a.Addr, Header: a.Header})
	return client
}

// passed returns a context with the values of a client's request, if there are any, and with the caller, for the
// server; nil if the server gets neither. The caller gets the headers that PassRequest names.
func (n *serving) passed(values context.Context, from *caller.Caller) context.Context {
	if n.opts.PassRequest == nil {
		return nil
	}
	if values == nil {
		values = context.Background()
	}
	return caller.NewContext(values, &caller.Caller{Principal: from.Principal, Addr: from.Addr,
		Header: chosen(n.opts.PassRequest.Headers, from.Header)})
}

// chosen returns the headers of those names; nil for none.
func chosen(names []string, from http.Header) (kept http.Header) {
	for _, name := range names {
		if values := from.Values(name); len(values) > 0 {
			if kept == nil {
				kept = make(http.Header)
			}
			kept[http.CanonicalHeaderKey(name)] = values
		}
	}
	return kept
}
