package upstream

import (
	"context"
	"net/http"
	"time"

	"github.com/cenkalti/backoff/v5"

	"github.com/mcp-sse/mcp-sse/jsonrpc"
	"github.com/mcp-sse/mcp-sse/metrics"
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
	exp    *backoff.ExponentialBackOff
	opened time.Time // when the last stream began; zero: the GET failed
}

func newPauses() *pauses {
	return &pauses{exp: newBackoff(firstPause, lastPause), opened: time.Now()}
}

// wait waits for the next pause, and reports whether ctx still goes on. retry is
// what the server asks for; 0: nothing.
func (p *pauses) wait(ctx context.Context, retry time.Duration) bool {
	open := !p.opened.IsZero()
	if open && time.Since(p.opened) > steadyTime {
		p.exp.Reset()
	}
	d := max(p.exp.NextBackOff(), retry)
	if open && retry > 0 {
		d = max(firstPause, retry)
	}
	p.opened = time.Time{}
	return pause(ctx, d) == nil
}

// resume goes on with the response to a request where it broke off. It answers the
// request, unless nobody waits any more.
func (c *streamable) resume(k *remoteCall) {
	pause := newPauses()
	for failed := 0; failed < maxResumes && k.cursor.id != ""; {
		if !pause.wait(k.ctx, k.cursor.retry) {
			return
		}
		resp, err := c.x.do(k.ctx, http.MethodGet, nil, c.header(k.cursor.id))
		if err != nil {
			failed++
			continue
		}
		switch c.streamed(resp, true) {
		case streamOpen:
			failed, pause.opened = 0, time.Now()
			c.x.metrics.RemoteResumed()
			_ = c.x.readEvents(resp.Body, k.cursor.id, func(in incoming) error { return c.receive(k, in) }) // what matters is whether it had the answer
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
	if k.ctx.Err() == nil {
		c.lose(k, nil)
	}
}

// listen keeps the stream open on which the server sends what belongs to no
// request. It ends with the session, or when the server has no such stream.
func (c *streamable) listen() {
	var at cursor
	opened := false
	for pause := newPauses(); ; {
		resp, err := c.x.do(c.ctx, http.MethodGet, nil, c.header(at.id))
		if err == nil {
			switch state := c.streamed(resp, opened); {
			case state == streamOpen:
				opened, pause.opened = true, time.Now()
				_ = c.x.readEvents(resp.Body, at.id, func(in incoming) error { return c.pushed(&at, in) }) // any end is a reason to go on
			case state == streamNever && at.id != "":
				at.id = "" // it cannot be resumed; a new one may do
			case state == streamNever:
				c.x.log.Debug("server has no stream for its own messages", "status", resp.StatusCode)
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
func (c *streamable) pushed(at *cursor, in incoming) error {
	at.note(in)
	if in.tooLong { // no answer comes here, so nobody waits for it
		c.x.metrics.Dropped(metrics.DroppedTooLong)
		c.x.log.Warn("server sent a message over the limit", "limit", c.x.limit)
	}
	return handOn(c.x, c.in, in)
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
func (c *streamable) streamed(resp *http.Response, lost bool) streamState {
	switch code := resp.StatusCode; {
	case code < 300 && contentType(resp) == typeEvents:
		return streamOpen
	case code == http.StatusNotFound && lost && c.hasSession():
		c.over(errForgotten, true)
	case code == http.StatusBadRequest && lost && refused(resp, jsonrpc.Null, c.hasSession()).over != nil:
		c.over(errForgotten, true)
	case code >= 500 && code != http.StatusNotImplemented,
		code == http.StatusConflict, // it has not noticed the end of the last one
		code == http.StatusTooManyRequests, code == http.StatusRequestTimeout:
		return streamLater
	}
	return streamNever
}
