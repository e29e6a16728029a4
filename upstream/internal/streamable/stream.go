package streamable

import (
	"context"
	"net/http"
	"time"

	"github.com/mcp-sse/mcp-sse/internal/backoff"
	"github.com/mcp-sse/mcp-sse/jsonrpc"
	"github.com/mcp-sse/mcp-sse/metrics"
	"github.com/mcp-sse/mcp-sse/upstream/internal/exchange"
)

const (
	// maxResumes bounds the attempts in a row to resume a response that fail.
	maxResumes = 5
	// The pauses before another GET: what the server asks for, but not less than the
	// first. If it asks for none, or fails: doubled from the first up to the last,
	// each drawn at random between zero and twice its mean.
	firstPause = 100 * time.Millisecond
	lastPause  = 15 * time.Second
	// steadyTime is how long a stream has to last for the pauses to begin anew.
	steadyTime = 5 * time.Second
)

// pauses gives the pauses between GETs.
type pauses struct {
	next   *backoff.Backoff
	opened time.Time // when the last stream began; zero: the GET failed
}

func newPauses() *pauses {
	return &pauses{next: backoff.New(firstPause, lastPause), opened: time.Now()}
}

// wait waits for the next pause, and reports whether ctx still goes on. retry is
// what the server asks for; 0: nothing.
func (p *pauses) wait(ctx context.Context, retry time.Duration) bool {
	open := !p.opened.IsZero()
	if open && time.Since(p.opened) > steadyTime {
		p.next.Reset()
	}
	d := max(p.next.Next(), retry)
	if open && retry > 0 {
		d = max(firstPause, retry)
	}
	p.opened = time.Time{}
	return exchange.Pause(ctx, d) == nil
}

// resume continues the response to a request where it broke off. It answers the
// request, unless nobody waits for it any more.
func (c *Conn) resume(k *Call) {
	pause := newPauses()
	for failed := 0; failed < maxResumes && k.cursor.id != ""; {
		if !pause.wait(k.Ctx, k.cursor.retry) {
			return
		}
		resp, err := c.x.Do(k.Ctx, http.MethodGet, nil, c.header(k.cursor.id))
		if err != nil {
			failed++
			continue
		}
		switch c.streamed(resp, true) {
		case streamOpen:
			failed, pause.opened = 0, time.Now()
			c.x.Metrics.RemoteResumed()
			_ = c.x.ReadEvents(resp.Body, k.cursor.id, func(in exchange.Incoming) error { return c.receive(k, in) }) // what matters is whether it had the answer
		case streamLater:
			failed++
		case streamNever:
			failed = maxResumes
		}
		resp.Body.Close()
		if k.answered {
			return
		}
	}
	if k.Ctx.Err() == nil {
		c.lose(k, nil)
	}
}

// listen keeps the stream open on which the server sends what belongs to no
// request. It ends with the session, or when the server has no such stream.
func (c *Conn) listen() {
	var at cursor
	opened := false
	for pause := newPauses(); ; {
		resp, err := c.x.Do(c.ctx, http.MethodGet, nil, c.header(at.id))
		if err == nil {
			switch state := c.streamed(resp, opened); {
			case state == streamOpen:
				opened, pause.opened = true, time.Now()
				_ = c.x.ReadEvents(resp.Body, at.id, func(in exchange.Incoming) error { return c.pushed(&at, in) }) // any end is a reason to go on
			case state == streamNever && at.id != "":
				at.id = "" // it cannot be resumed; a new one may do
			case state == streamNever:
				c.x.Log.Debug("server has no stream for its own messages", "status", resp.StatusCode)
				resp.Body.Close()
				return
			}
			resp.Body.Close()
		}
		if !pause.wait(c.ctx, at.retry) { // requests tell whether the server is gone
			return
		}
	}
}

// pushed takes one message that came with no request.
func (c *Conn) pushed(at *cursor, in exchange.Incoming) error {
	at.note(in)
	if in.TooLong { // no answer comes here, so nobody waits for it
		c.x.Metrics.Dropped(metrics.DroppedTooLong)
		c.x.Log.Warn("server sent a message over the limit", "limit", c.x.Limit)
	}
	return c.x.Deliver(c.in, in)
}

// streamState is what the response to a GET means.
type streamState int

const (
	streamOpen  streamState = iota // there is the stream
	streamLater                    // not now
	streamNever                    // not at all
)

// streamed tells what the response to a GET means. With lost, 404 means that the
// server has forgotten the session, which is over then, and so does a 400 that says
// so; both also are what a server without such streams may say.
func (c *Conn) streamed(resp *http.Response, lost bool) streamState {
	switch code := resp.StatusCode; {
	case code < 300 && exchange.ContentType(resp) == exchange.TypeEvents:
		return streamOpen
	case code == http.StatusNotFound && lost && c.hasSession():
		c.End(exchange.ErrForgotten, true)
	case code == http.StatusBadRequest && lost && exchange.ReadRefusal(resp, jsonrpc.Null, c.hasSession()).Over != nil:
		c.End(exchange.ErrForgotten, true)
	case code >= 500 && code != http.StatusNotImplemented,
		code == http.StatusConflict, // it has not noticed the end of the last one
		code == http.StatusTooManyRequests, code == http.StatusRequestTimeout:
		return streamLater
	}
	return streamNever
}
