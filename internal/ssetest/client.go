package ssetest

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"
	"time"
)

// Client is a client of an HTTP+SSE server that shows each event.
type Client struct {
	HTTP   *http.Client
	Post   string      // where messages go
	Sent   http.Header // with the GET and each POST
	Header http.Header // of the response to the GET

	body   io.Closer
	in     *bufio.Reader
	cancel context.CancelFunc
}

// Dial opens a stream and reads its first event, the endpoint. A refusal is an error with
// the status.
func Dial(c *http.Client, stream string, header http.Header) (*Client, error) {
	ctx, cancel := context.WithCancel(context.Background())
	s := &Client{HTTP: c, Sent: header, cancel: cancel}
	resp, err := s.do(ctx, http.MethodGet, stream, "")
	if err != nil {
		cancel()
		return nil, err
	}
	s.Header, s.body, s.in = resp.Header, resp.Body, bufio.NewReaderSize(resp.Body, 4<<10)
	first, err := s.Next()
	var at *url.URL
	if err == nil {
		at, err = url.Parse(first.Data)
	}
	if resp.StatusCode != http.StatusOK || err != nil || first.Name != "endpoint" {
		s.Close()
		return nil, fmt.Errorf("%s, first event %+v: %w", resp.Status, first, err)
	}
	s.Post = resp.Request.URL.ResolveReference(at).String()
	return s, nil
}

// Open opens a stream until the end of the test, or of its patience: a test that waits in vain
// fails, and does not hang.
func Open(t testing.TB, c *http.Client, stream string, header http.Header) *Client {
	t.Helper()
	s, err := Dial(c, stream, header)
	Must(t, err)
	guard := time.AfterFunc(Patience, s.Close)
	t.Cleanup(func() {
		guard.Stop()
		s.Close()
	})
	return s
}

func (c *Client) do(ctx context.Context, method, at, body string) (*http.Response, error) {
	r, err := http.NewRequestWithContext(ctx, method, at, strings.NewReader(body))
	if err != nil {
		return nil, err
	}
	if method == http.MethodPost {
		r.Header.Set("Content-Type", "application/json")
	} else {
		r.Header.Set("Accept", "text/event-stream")
	}
	for name, values := range c.Sent {
		r.Header[name] = values
	}
	return c.HTTP.Do(r)
}

// Next returns the next event.
func (c *Client) Next() (Event, error) { return ReadAny(c.in) }

// Until returns the next event whose data have text.
func (c *Client) Until(text string) (Event, error) {
	for {
		e, err := c.Next()
		if err != nil || strings.Contains(e.Data, text) {
			return e, err
		}
	}
}

// Send posts a message, which must be accepted.
func (c *Client) Send(msg string) error {
	resp, err := c.do(context.Background(), http.MethodPost, c.Post, msg)
	if err != nil {
		return err
	}
	_, _ = io.Copy(io.Discard, resp.Body)
	_ = resp.Body.Close()
	if resp.StatusCode/100 != 2 {
		return fmt.Errorf("POST: %s", resp.Status)
	}
	return nil
}

// Call sends a request and returns the first event with its id.
func (c *Client) Call(msg, id string) (Event, error) {
	if err := c.Send(msg); err != nil {
		return Event{}, err
	}
	return c.Until(`"id":` + id)
}

// WantAnswer sends a request and checks that the first event with its id has these parts.
func (c *Client) WantAnswer(t testing.TB, msg, id string, parts ...string) {
	t.Helper()
	e, err := c.Call(msg, id)
	Want(t, "error of request "+id, err, nil)
	WantText(t, "answer to "+id, e.Data, parts...)
}

// Close ends the stream.
func (c *Client) Close() {
	c.cancel()
	if c.body != nil {
		_ = c.body.Close()
	}
}

// Request returns a request as a client of MCP sends it, with header as name, value. One whose
// target has a host is for an http.Client, the others are for a handler.
func Request(ctx context.Context, method, target, body string, header ...string) *http.Request {
	var in io.Reader
	if body != "" {
		in = strings.NewReader(body)
	}
	r := httptest.NewRequestWithContext(ctx, method, target, in)
	if strings.Contains(target, "://") {
		r, _ = http.NewRequestWithContext(ctx, method, target, in) // it was valid a line above
	}
	r.Header.Set("Accept", "application/json, text/event-stream")
	if body != "" {
		r.Header.Set("Content-Type", "application/json")
	}
	for i := 0; i < len(header); i += 2 {
		r.Header.Set(header[i], header[i+1])
	}
	return r
}
