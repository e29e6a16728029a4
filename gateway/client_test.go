package gateway_test

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/mcp-sse/mcp-sse/gateway"
	"github.com/mcp-sse/mcp-sse/internal/ssetest"
	"github.com/mcp-sse/mcp-sse/upstream"
)

// block is one block of a stream.
type block = ssetest.Event

// stream is a minimal client of an HTTP+SSE server: tests see each byte, and
// benchmarks measure the server.
type stream struct {
	http   *http.Client
	post   string // where messages go
	header http.Header
	body   io.ReadCloser
	in     *bufio.Reader
	cancel context.CancelFunc
}

var errRefused = errors.New("the stream was refused")

// dial opens a stream and reads its first event, the endpoint.
func dial(c *http.Client, base string, header http.Header) (*stream, error) {
	ctx, cancel := context.WithCancel(context.Background())
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, base, nil)
	if err != nil {
		cancel()
		return nil, err
	}
	for name, values := range header {
		r.Header[name] = values
	}
	resp, err := c.Do(r)
	if err != nil {
		cancel()
		return nil, err
	}
	s := &stream{http: c, header: resp.Header, body: resp.Body, in: bufio.NewReaderSize(resp.Body, 4<<10), cancel: cancel}
	if resp.StatusCode != http.StatusOK {
		s.close()
		return nil, fmt.Errorf("%w: %s", errRefused, resp.Status)
	}
	first, err := s.read()
	if err != nil {
		s.close()
		return nil, err
	}
	at, err := url.Parse(first.Data)
	if err != nil || first.Name != "endpoint" {
		s.close()
		return nil, fmt.Errorf("first event %+v: %w", first, err)
	}
	s.post = r.URL.ResolveReference(at).String()
	return s, nil
}

// read returns the next block.
func (s *stream) read() (block, error) { return ssetest.ReadAny(s.in) }

// send posts a message and expects a 202.
func (s *stream) send(msg string) error {
	resp, err := s.http.Post(s.post, "application/json", strings.NewReader(msg))
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

// call sends a request and returns the first block that holds id.
func (s *stream) call(msg, id string) (block, error) {
	if err := s.send(msg); err != nil {
		return block{}, err
	}
	return s.until(func(b block) bool { return strings.Contains(b.Data, `"id":`+id) })
}

func (s *stream) until(found func(block) bool) (block, error) {
	for {
		b, err := s.read()
		if err != nil || found(b) {
			return b, err
		}
	}
}

func (s *stream) close() {
	s.cancel()
	_ = s.body.Close()
}

// serve runs a gateway behind a real socket until the end of the test.
func serve[O options](t testing.TB, up upstream.Upstream, opts O, mount ...func(http.Handler) http.Handler) (string, *http.Client, *gateway.Gateway) {
	t.Helper()
	g, err := gateway.NewWith(up, settings(opts))
	if err != nil {
		t.Fatal(err)
	}
	var h http.Handler = g
	for _, m := range mount {
		h = m(h)
	}
	s := httptest.NewServer(h)
	transport := &http.Transport{MaxIdleConnsPerHost: 256}
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
		defer cancel()
		if err := g.Shutdown(ctx); err != nil {
			t.Errorf("Shutdown: %v", err)
		}
		if held := metric(t, g, "mcp_sse_held_bytes"); held != 0 {
			t.Errorf("%v bytes are held after the end", held)
		}
		transport.CloseIdleConnections()
		s.Close()
	})
	return s.URL, &http.Client{Transport: transport}, g
}

// open is dial for tests.
func open(t testing.TB, c *http.Client, base string, header http.Header) *stream {
	t.Helper()
	s, err := dial(c, base, header)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(s.close)
	guard := time.AfterFunc(20*time.Second, s.close) // a test that waits in vain fails, and does not hang
	t.Cleanup(func() { guard.Stop() })
	return s
}

// next returns the next block of a stream.
func (s *stream) next(t testing.TB) block {
	t.Helper()
	b, err := s.read()
	if err != nil {
		t.Fatalf("read: %v", err)
	}
	return b
}

// must sends a message and fails the test on an error.
func (s *stream) must(t testing.TB, msgs ...string) {
	t.Helper()
	for _, m := range msgs {
		if err := s.send(m); err != nil {
			t.Fatal(err)
		}
	}
}
