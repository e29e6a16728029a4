package streamable

import (
	"context"
	"errors"
	"net/http"
	"sync"
	"time"

	"github.com/mcp-sse/mcp-sse/internal/backoff"
	"github.com/mcp-sse/mcp-sse/internal/upstream/exchange"
	"github.com/mcp-sse/mcp-sse/jsonrpc"
)

const (
	// maxResumes bounds the failed attempts in a row to resume a response.
	maxResumes = 5
	// Pauses before another GET double from the first to the last; each is drawn at random
	// between zero and twice its mean. A server that asks for a pause has itself polled: it
	// gets at least that pause, and leastRetry, and pauses start over when something came.
	firstPause = 100 * time.Millisecond
	leastRetry = time.Second
	lastPause  = 15 * time.Second
	// steadyTime is how long a stream must last for the pauses to start over.
	steadyTime = 5 * time.Second
)

// pauses gives the pauses between GETs.
type pauses struct {
	next   *backoff.Backoff
	opened time.Time // when the last stream began; zero: the GET failed
	useful bool      // something came on it
}

func newPauses() *pauses {
	return &pauses{next: backoff.New(firstPause, lastPause), opened: time.Now()}
}

// wait waits for the next pause, and reports false when ctx ends. retry is the pause
// that the server asks for; 0: none.
func (p *pauses) wait(ctx context.Context, retry time.Duration) bool {
	// The server has itself polled.
	if steady := !p.opened.IsZero() && time.Since(p.opened) > steadyTime; steady || p.useful && retry > 0 {
		p.next.Reset()
	}
	d := p.next.Next()
	if retry > 0 {
		d = max(d, retry, leastRetry)
	}
	p.opened, p.useful = time.Time{}, false
	return backoff.Wait(ctx, d) == nil
}

// resume continues the response to a request, which broke off with err. It answers
// the request, or returns why it cannot.
func (c *Conn) resume(k *postedCall, err error) error {
	pause := newPauses()
	for failed := 0; failed < maxResumes && k.reader.Resumable(); {
		if !pause.wait(k.Ctx, k.reader.Cursor.Retry) {
			return err
		}
		resp, failure := c.x.Do(k.Ctx, http.MethodGet, nil, c.header(k.reader.Cursor.LastID))
		if failure != nil {
			failed++
			continue
		}
		switch c.streamed(resp, true, k.reader.Cursor.LastID) {
		case streamOpen:
			failed, pause.opened, pause.useful = 0, time.Now(), true // the server holds the answer
			err = c.receive(k, resp)
		case streamLater:
			failed++
		case streamNever:
			failed = maxResumes
		}
		resp.Body.Close()
	}
	return err
}

// listen reads the stream on which the server sends what belongs to no request, and
// opens it again when it ends. listen returns when the session ends, or the server
// has no such stream.
func (c *Conn) listen() {
	var at exchange.Cursor
	opened, tried := false, sync.OnceFunc(func() { close(c.tried) })
	for pause := newPauses(); ; {
		resp, err := c.x.Do(c.ctx, http.MethodGet, nil, c.header(at.LastID))
		state := streamLater
		if err == nil {
			state = c.streamed(resp, opened, at.LastID)
		}
		opened = opened || state == streamOpen
		c.setListening(opened && (state != streamNever || at.LastID != ""))
		tried()
		switch {
		case err != nil: // requests tell whether the server is gone
		case state == streamOpen:
			pause.opened = time.Now()
			c.hear(resp, &at, pause)
		case state == streamNever && at.LastID != "":
			at.LastID = "" // it cannot be resumed; a new one may do
		case state == streamNever:
			c.x.Log.Debug("server has no stream for its own messages", "status", resp.StatusCode)
			resp.Body.Close()
			return
		}
		if err == nil {
			resp.Body.Close()
		}
		if !pause.wait(c.ctx, at.Retry) {
			return
		}
	}
}

// hear passes on the messages of one stream to its end, of which any is a reason to open it
// again.
func (c *Conn) hear(resp *http.Response, at *exchange.Cursor, pause *pauses) {
	events := exchange.NewEventReader(resp.Body, c.x.Limit, *at)
	push := func(m *jsonrpc.Message) error {
		pause.useful = true
		return c.arrived(m)
	}
	if errors.Is(c.x.Deliver(push, events), jsonrpc.ErrTooLong) {
		c.End(c.x.TooLong(), false)
	}
	*at = events.Cursor
}

func (c *Conn) setListening(listens bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.listens = listens
}

// arrived passes on a message of the stream that belongs to no request. It may be the answer
// to one all the same.
func (c *Conn) arrived(m *jsonrpc.Message) error {
	if m.Kind != jsonrpc.Response {
		return c.Queue.Push(m.Raw(), "")
	}
	c.mu.Lock()
	k := c.calls.Open(m.ID)
	if k != nil {
		c.calls.Answer(k)
		c.calls.Linger(k)
	}
	c.mu.Unlock()
	if k == nil {
		return c.Queue.Push(m.Raw(), "")
	}
	return c.Queue.Push(m.Raw(), k.ID)
}

// streamState is what the response to a GET means.
type streamState int

const (
	streamOpen  streamState = iota // here is the stream
	streamLater                    // not now
	streamNever                    // not at all
)

// streamed returns what the response to a GET means. With lost, the server has had the session:
// the session ends if the response says that it is forgotten. Without lost, the same may come
// from a server that has no such streams. After a GET with lastID, 410 is about the event.
func (c *Conn) streamed(resp *http.Response, lost bool, lastID string) streamState {
	code := resp.StatusCode
	if lost && code >= 400 && (code != http.StatusGone || lastID == "") {
		c.endIfOver(resp)
	}
	switch {
	case exchange.IsStream(resp):
		if err := exchange.Encoded(resp); err != nil {
			c.x.Log.Warn("event stream not read", "err", err)
			return streamNever
		}
		return streamOpen
	case code >= 500 && code != http.StatusNotImplemented,
		code == http.StatusConflict, // it has not noticed the end of the last one
		code == http.StatusTooManyRequests, code == http.StatusRequestTimeout:
		return streamLater
	}
	return streamNever
}
