package load

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"time"
)

// Headers of Streamable HTTP.
const (
	headerSession = "Mcp-Session-Id"
	headerVersion = "MCP-Protocol-Version"
	headerMethod  = "Mcp-Method"
	headerName    = "Mcp-Name"
)

// versionStateless is the version of clients without sessions.
const versionStateless = "2026-07-28"

var errNoAnswer = errors.New("the response ended without the answer")

// openSession opens a session and its own stream, if the server has one. Without
// initialize, another request opens the session.
func (c *client) openSession(ctx context.Context) error {
	if c.run.opts.Transport == Stateless {
		c.headers.Set(headerVersion, versionStateless)
		return nil
	}
	p := c.poster()
	defer p.close()
	if c.run.opts.NoInitialize {
		if _, err := c.ask(ctx, p, 0, "tools/list", "{}"); err != nil {
			return fmt.Errorf("a request without initialize: %w", err)
		}
	} else if err := c.initialize(ctx, p); err != nil {
		return fmt.Errorf("initialize: %w", err)
	}
	return c.openOwnStream(ctx)
}

// enter notes the session that the server has named, for all requests that follow.
func (c *client) enter(p *poster) {
	if p.session == "" || c.headers.Get(headerSession) != "" {
		return
	}
	for _, h := range []http.Header{c.headers, p.post.Header} {
		h.Set(headerSession, p.session)
		h.Set(headerVersion, versionInitialized)
	}
}

// openOwnStream opens the stream of what belongs to no request. A server need not have
// one.
func (c *client) openOwnStream(ctx context.Context) error {
	conn, err := c.site.dial(ctx)
	if err != nil {
		return err
	}
	st := &stream{conn: conn, sentAt: time.Now()}
	switch resp, err := c.site.get(st, c.headers); {
	case resp != nil && resp.StatusCode == http.StatusMethodNotAllowed:
		return conn.Close()
	case err != nil:
		_ = conn.Close()
		return err
	}
	c.stream = st
	return conn.SetDeadline(time.Time{})
}

// endSession tells the server that the session is over. The server may do with that what it likes.
func (c *client) endSession() {
	p := c.poster()
	defer p.close()
	p.post.Method = http.MethodDelete
	_ = p.send(context.Background(), nil, nil)
}

// take passes the messages of a response on. The connection is in use until its end.
func (p *poster) take(resp *http.Response, take func(event)) error {
	var err error
	if mediaType(resp) == eventStream {
		err = takeEvents(resp.Body, take)
	} else {
		var body []byte
		body, err = io.ReadAll(io.LimitReader(resp.Body, maxEvent))
		if err == nil && len(body) > 0 {
			take(event{data: body})
		}
	}
	p.used = time.Now()
	if err != nil || resp.Close {
		p.close()
	}
	return err
}

// takeEvents passes on the events of a response that ends in order.
func takeEvents(body io.Reader, take func(event)) error {
	for events := newEventReader(body, maxEvent); ; {
		e, err := events.next()
		switch {
		case errors.Is(err, io.EOF):
			return nil
		case err != nil:
			return err
		}
		take(e)
	}
}

// post sends a message. Without HTTP+SSE the response to a request must hold the answer.
// k is nil for what is no request.
func (c *client) post(ctx context.Context, p *poster, k *call, message []byte) error {
	if k == nil || c.run.opts.Transport == SSE {
		return p.send(ctx, message, nil)
	}
	if c.run.opts.Transport == Stateless {
		p.post.Header.Set(headerMethod, k.method)
		p.post.Header.Del(headerName)
		if k.tool != "" {
			p.post.Header.Set(headerName, k.tool)
		}
	}
	err := p.send(ctx, message, func(e event) { c.handleEvent(e, k) })
	if err == nil && c.isWaiting(k) {
		err = errNoAnswer
	}
	return err
}

func (c *client) isWaiting(k *call) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return k.state == waiting
}

// checkPlace counts a message of a call that came elsewhere than in the response to its
// POST: on, or on the client's own stream if on is nil.
func (c *client) checkPlace(k, on *call, what string) {
	switch {
	case c.run.opts.Transport == SSE || k == on:
	case on == nil:
		c.run.tally.countFault(Misplaced, "client %d got %s id %d on its own stream", c.number, what, k.id)
	default:
		c.run.tally.countFault(Misplaced, "client %d got %s id %d in the response to id %d", c.number, what, k.id,
			on.id)
	}
}

// meta returns the members of _meta that each request of the client has.
func (c *client) meta() string {
	if c.run.opts.Transport != Stateless {
		return ""
	}
	const prefix = `"io.modelcontextprotocol/`
	return prefix + `protocolVersion":"` + versionStateless + `",` + prefix + `clientCapabilities":` +
		c.run.opts.Capabilities +
		`,` + prefix + `clientInfo":{"name":"leaktest","version":"1.0"}`
}
