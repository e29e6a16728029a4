package e2e

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"strings"
	"sync/atomic"
	"time"

	"github.com/mcp-sse/mcp-sse/internal/ssetest"
)

// chaosStreamable is a client over Streamable HTTP. It breaks responses, and comes back
// for the rest of those of which it has seen an event.
type chaosStreamable struct {
	*chaosClient
	url     string
	session string
	left    atomic.Bool // it has ended the session
}

var errBroken = errors.New("the client broke the response")

// open implements chaosLink: it opens a session, by initialize or by another request. A
// server that fails at that moment is asked again.
func (c *chaosStreamable) open(target string, m manner) error {
	c.url = target
	opening := requestJSON(`"first"`, "tools/list", "{}")
	if m.initializes {
		opening = requestJSON(`"first"`, "initialize", `{"protocolVersion":"2025-11-25","capabilities":`+
			c.choose("{}", `{"roots":{},"sampling":{},"elicitation":{}}`)+`,"clientInfo":{"name":"chaos","version":"1"}}`)
	}
	for deadline := time.Now().Add(patience); c.session == ""; {
		resp, err := c.sendInSession(c.ctx, http.MethodPost, opening, "")
		if err != nil {
			return err
		}
		body, err := io.ReadAll(resp.Body)
		resp.Body.Close()
		if err == nil && (!m.initializes || strings.Contains(string(body), "protocolVersion")) {
			c.session = resp.Header.Get("Mcp-Session-Id")
		}
		if time.Now().After(deadline) {
			return fmt.Errorf("no session: %s: %.300s: %w", resp.Status, body, errors.Join(err, context.DeadlineExceeded))
		}
	}
	if m.initializes {
		_, _ = c.post(`{"jsonrpc":"2.0","method":"notifications/initialized"}`) // the ledger sees what follows
	}
	return nil
}

// sendInSession sends an HTTP request of the session.
func (c *chaosStreamable) sendInSession(ctx context.Context, method, body, last string) (*http.Response, error) {
	return c.send(ctx, method, c.url, body, "Accept", "application/json, text/event-stream", "Mcp-Session-Id", c.session, "Last-Event-ID", last)
}

// post implements chaosLink.
func (c *chaosStreamable) post(body string) (int, error) {
	return status(c.sendInSession(c.ctx, http.MethodPost, body, ""))
}

// read implements chaosLink: it reads the session's own stream, which it breaks again and
// again.
func (c *chaosStreamable) read() {
	for last := ""; c.ctx.Err() == nil; {
		ctx, cut := context.WithTimeout(c.ctx, 100*time.Millisecond+rand.N(3*time.Second))
		resp, err := c.sendInSession(ctx, http.MethodGet, "", last)
		over := err == nil && resp.StatusCode != http.StatusOK
		if err == nil {
			last, _ = c.events(resp, last, "")
		}
		cut()
		if over {
			if !c.left.Load() {
				c.cut = fmt.Errorf("GET: %s", resp.Status)
			}
			return
		}
	}
}

// events takes the events of a response up to its end, or to the answer to a request, and
// returns the id of the last one. With an id of a request no other answer may come, without
// none.
func (c *chaosStreamable) events(resp *http.Response, last, id string) (_ string, answered bool) {
	defer resp.Body.Close()
	in := bufio.NewReader(resp.Body)
	for n := 0; ; n++ {
		e, err := ssetest.Read(in)
		if err != nil {
			return last, answered
		}
		if e.ID != "" {
			last = e.ID
		}
		if e.IsComment() || e.Data == "" {
			continue
		}
		answered = c.check(e.Data, id) || answered
		c.take("message", e.Data, n)
	}
}

// check reports whether a message is an answer. One to another request than id is a fault.
func (c *chaosStreamable) check(data, id string) bool {
	if strings.Contains(data, `"method":`) {
		return false
	}
	if id == "" || !strings.Contains(data, `"id":`+id+`,`) {
		c.fault(wrong, nil, "an answer in the response to %q: %.200s", id, data)
	}
	return true
}

// request implements chaosLink. It breaks one response in four.
func (c *chaosStreamable) request(id, body string) {
	ctx, cancel := context.WithCancel(c.ctx)
	defer cancel()
	breaks := rand.IntN(4) == 0
	if breaks {
		defer time.AfterFunc(rand.N(3*time.Second), cancel).Stop()
	}
	c.accept(id)
	resp, err := c.sendInSession(ctx, http.MethodPost, body, "")
	switch {
	case err != nil:
		c.forfeit(id, err)
		if ctx.Err() == nil {
			c.fault(wrong, nil, "a POST in an open session failed: %v", err)
		}
		return
	case resp.StatusCode != http.StatusOK:
		resp.Body.Close()
		c.forfeit(id, resp.Status)
		if !c.isOver() {
			c.fault(wrong, nil, "a POST in an open session got %s", resp.Status)
		}
		return
	case resp.Header.Get("Content-Type") == "application/json":
		c.whole(ctx, resp, id)
		return
	}
	last, answered := c.events(resp, "", id)
	for !answered && last != "" && c.ctx.Err() == nil {
		if !breaks {
			c.fault(wrong, nil, "the response to %s ended without the answer", id)
		}
		last, answered = c.resume(last, id)
	}
	if !answered {
		c.forfeit(id, errBroken)
	}
}

// whole takes an answer that is the whole response.
func (c *chaosStreamable) whole(ctx context.Context, resp *http.Response, id string) {
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	if err != nil {
		c.forfeit(id, err)
		if ctx.Err() == nil {
			c.fault(wrong, nil, "the response to %s broke: %v", id, err)
		}
		return
	}
	c.check(string(body), id)
	c.take("message", string(body), 0)
}

// resume comes back for the rest of a response, and may break it again.
func (c *chaosStreamable) resume(last, id string) (string, bool) {
	time.Sleep(rand.N(500 * time.Millisecond)) // clients wait before they come back
	ctx, cancel := context.WithTimeout(c.ctx, rand.N(5*time.Second))
	defer cancel()
	resp, err := c.sendInSession(ctx, http.MethodGet, "", last)
	if err != nil {
		return last, false
	}
	if resp.StatusCode != http.StatusOK {
		resp.Body.Close()
		if !c.isOver() {
			c.fault(wrong, nil, "a GET that resumes %s got %s", id, resp.Status)
		}
		return "", false
	}
	return c.events(resp, last, id)
}

// leave implements chaosLink.
func (c *chaosStreamable) leave() {
	c.left.Store(true)
	_, _ = status(c.sendInSession(c.ctx, http.MethodDelete, "", "")) // the gateway may be gone
}
