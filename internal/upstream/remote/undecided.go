package remote

import (
	"context"
	"errors"
	"net/http"
	"sync"

	"github.com/mcp-sse/mcp-sse/internal/asker"
	"github.com/mcp-sse/mcp-sse/internal/buffer"
	"github.com/mcp-sse/mcp-sse/internal/mcp"
	"github.com/mcp-sse/mcp-sse/internal/upstream/exchange"
	"github.com/mcp-sse/mcp-sse/internal/upstream/httpsse"
	"github.com/mcp-sse/mcp-sse/internal/upstream/statelessserver"
	"github.com/mcp-sse/mcp-sse/internal/upstream/streamable"
	"github.com/mcp-sse/mcp-sse/jsonrpc"
)

// undecidedOf is what is known before the first message.
type undecidedOf struct {
	asked        bool // the server has not answered server/discover as a stateless one
	isStreamable bool // no other transport may be tried
}

// undecided is a session with a server whose transport is not known yet. The
// response to the first message, which must be initialize, decides. An initialize of
// the gateway's own would leave a useless session at the server.
type undecided struct {
	undecidedOf
	x    *exchange.Endpoint
	site *site
	// stand opens a session in the place of one with a server that needs a login; it may return nil.
	stand func() jsonrpc.Attributed
	// ctx ends when the session is closed. It is no caller's, so it is kept here.
	ctx    context.Context
	cancel context.CancelFunc
	work   sync.WaitGroup
	early  *buffer.Queue // messages sent before the decision
	done   chan struct{} // closed when conn is set
	posted chan struct{} // closed when the first message has its response, or gets none

	mu   sync.Mutex         // guards conn
	conn jsonrpc.Attributed // the session after the decision; nil before
}

var (
	_ jsonrpc.Attributed = (*undecided)(nil)
	_ jsonrpc.Stateless  = (*undecided)(nil)
)

func newUndecided(
	x *exchange.Endpoint, s *site, known undecidedOf, stand func() jsonrpc.Attributed,
) *undecided {
	u := &undecided{
		undecidedOf: known, x: x, site: s, stand: stand, early: buffer.NewQueue(buffer.SendLimit),
		done: make(chan struct{}), posted: make(chan struct{}),
	}
	u.ctx, u.cancel = context.WithCancel(x.Values)
	u.work.Go(u.decide) // ends with the first response, and with the session
	return u
}

// Stateless reports whether the server has turned out to be one of MCP 2026-07-28.
func (u *undecided) Stateless() bool {
	u.mu.Lock()
	defer u.mu.Unlock()
	c, ok := u.conn.(jsonrpc.Stateless)
	return ok && c.Stateless()
}

// Send sends msg, or keeps it until the transport is known. It fails with
// jsonrpc.ErrBusy while it keeps 8 MiB.
func (u *undecided) Send(msg []byte) error {
	u.mu.Lock()
	defer u.mu.Unlock()
	if u.conn != nil {
		return u.conn.Send(msg)
	}
	return u.early.Offer(msg)
}

// decide posts the first message, and tries other transports if the server does not
// take it.
func (u *undecided) decide() {
	posted := sync.OnceFunc(func() { close(u.posted) })
	defer posted()
	first, err := u.early.Recv()
	if err != nil {
		return
	}
	m, err := jsonrpc.Parse(first)
	if err != nil || m.Method != mcp.MethodInitialize {
		u.become(streamable.New(u.x), first)
		return
	}
	ctx, cancel := context.WithCancel(exchange.Quietly(asker.Opening(u.ctx)))
	resp, err := u.x.Do(ctx, http.MethodPost, first, nil)
	posted()
	if err == nil && exchange.NeedsPerson(resp) {
		if stand := u.stand(); stand != nil {
			exchange.Discard(resp)
			cancel()
			u.become(stand, first)
			return
		}
	}
	var failure *jsonrpc.Error
	switch {
	case err != nil:
	case exchange.IsRedirect(resp):
		failure = u.x.Redirected(resp)
		resp.Body.Close()
	case leadsElsewhere(resp) && !u.isStreamable:
		var other jsonrpc.Attributed
		other, failure = u.another(m.ID, resp)
		if other != nil {
			cancel()
			u.become(other, first)
			return
		}
	case resp.StatusCode < 300 && u.asked: // otherwise the site remembers it already
		u.site.remember(TransportStreamable)
	}
	s := streamable.New(u.x)
	if failure != nil {
		cancel()
		_ = s.Push(jsonrpc.NewError(m.ID, failure), m.ID) // has room
	} else {
		s.Posted(m, resp, err, cancel)
	}
	u.become(s, nil)
}

// become makes conn the session, and sends the first message, unless that is nil, and
// all early messages on it.
func (u *undecided) become(conn jsonrpc.Attributed, first []byte) {
	u.mu.Lock()
	defer u.mu.Unlock()
	if first != nil {
		_ = conn.Send(first) // Recv says why it fails
	}
	for msg, ok := u.early.Poll(); ok; msg, ok = u.early.Poll() {
		_ = conn.Send(msg)
	}
	u.conn = conn
	close(u.done)
}

// another tries the other transports after resp, the response to an initialize, and
// returns a session over one of them. If there is none, it returns the error to answer
// with; nil: resp itself is the answer.
func (u *undecided) another(id jsonrpc.ID, resp *http.Response) (jsonrpc.Attributed, *jsonrpc.Error) {
	m, own := exchange.ErrorResponse(resp, id)
	var denied *exchange.AccessError // of the question; nil: it was not refused for that
	if !u.asked {
		found, err := statelessserver.Discover(exchange.Quietly(asker.Opening(u.ctx)), u.x)
		if err == nil && found != nil {
			u.site.remember(TransportStateless)
			return statelessserver.New(u.x, found), nil
		}
		denied, _ = errors.AsType[*exchange.AccessError](err)
	}
	c, err := u.site.dialSSE(u.ctx, u.x)
	if err == nil {
		u.site.remember(TransportSSE)
		return c, nil
	}
	if denied != nil && statelessserver.KnowsNoInitialize(exchange.ErrorCode(m)) {
		return u.refused(denied)
	}
	// The server may refuse the POST for its method alone.
	if noStream, ok := errors.AsType[*exchange.AccessError](err); ok && !own {
		return u.refused(noStream)
	}
	if of, ok := errors.AsType[*httpsse.EndpointError](err); ok { // it is a server of HTTP+SSE, which does not fit
		u.x.Log.Warn("no mcp server found", "url", u.x.Place(), "err", err)
		return nil, jsonrpc.Errorf(jsonrpc.CodeInternalError, "the server speaks HTTP+SSE, but %v", of)
	}
	if m != nil && resp.StatusCode != http.StatusMethodNotAllowed { // else it says no more than the status
		return nil, nil
	}
	if refusal := u.x.Refusal(resp); refusal != nil {
		u.x.Log.Warn("server refused a request", "err", refusal.Message)
		return nil, refusal
	}
	if denied != nil {
		return u.refused(denied)
	}
	u.x.Log.Warn("no mcp server found", "url", u.x.Place(), "err", err)
	return nil, noServer(u.x, resp, err)
}

// refused returns a session in the place of one with a server that wants a person, or the error for a client, which
// does not have the address.
func (u *undecided) refused(denied *exchange.AccessError) (jsonrpc.Attributed, *jsonrpc.Error) {
	if denied.NeedsPerson {
		if stand := u.stand(); stand != nil {
			return stand, nil
		}
	}
	e := *denied.Reason
	return nil, &e
}

// noServer returns the error for an address where no transport finds a server. It is
// for a client, so it does not name the address. It has the status, and what the server said: an older
// server may have refused the version in initialize.
func noServer(x *exchange.Endpoint, post *http.Response, get error) *jsonrpc.Error {
	data := exchange.ErrorData{Reason: exchange.ReasonRefused, Status: post.StatusCode}
	// The Python SDK's, for a Host that is not in its allowed_hosts.
	if post.StatusCode == http.StatusMisdirectedRequest {
		return exchange.NewError(data,
			"the server does not take requests for the host name in its URL (%s): "+
				"allow that name in the server, or use one that it allows", exchange.Status(post))
	}
	of, ok := errors.AsType[*httpsse.NotStreamError](get)
	if !ok {
		return exchange.NewError(data, "no MCP server found: it answered %s to POST, and no stream came by GET",
			x.Said(post))
	}
	return exchange.NewError(data,
		"no MCP server found: it answered %s to POST and %s to GET: "+
			"check the path, usually /mcp or /sse, and whether it is http or https", x.Said(post), of.Status)
}

// leadsElsewhere reports whether a response to initialize means that the server does
// not take POSTs at this URL (MCP 2025-11-25, basic/transports, backwards
// compatibility).
func leadsElsewhere(resp *http.Response) bool {
	switch code := resp.StatusCode; code {
	case http.StatusUnauthorized, http.StatusForbidden, http.StatusProxyAuthRequired,
		http.StatusRequestTimeout, http.StatusTooManyRequests:
		return false
	default:
		return code >= 400 && code < 500 || code == http.StatusNotImplemented
	}
}

// Recv is RecvFor without the request.
func (u *undecided) Recv() ([]byte, error) {
	msg, _, err := u.RecvFor()
	return msg, err
}

// RecvFor waits for the decision, and is that of the session then.
func (u *undecided) RecvFor() ([]byte, jsonrpc.ID, error) {
	select {
	case <-u.done:
		return u.conn.RecvFor()
	case <-u.ctx.Done():
		return nil, "", jsonrpc.ErrClosed
	}
}

// Close ends the session. It waits for the answer to initialize, as that session does. It takes at most 2 s.
func (u *undecided) Close() error {
	ctx, cancel := context.WithTimeout(context.Background(), exchange.CloseTimeout)
	defer cancel()
	u.early.Abort(jsonrpc.ErrClosed)
	select {
	case <-u.posted:
	case <-ctx.Done():
	}
	u.cancel()
	u.work.Wait()
	switch c := u.conn.(type) {
	case nil: // nothing was sent, and nobody sets it any more
		return nil
	case *streamable.Conn:
		return c.CloseWithin(ctx)
	}
	return u.conn.Close()
}
