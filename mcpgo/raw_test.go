package mcpgo_test

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/mark3labs/mcp-go/mcp"
	"github.com/mark3labs/mcp-go/server"

	"github.com/mcp-sse/mcp-sse/internal/ssetest"
)

// raw is a minimal client: tests see each byte.
type raw struct {
	http   *http.Client
	post   string // where messages go
	body   io.ReadCloser
	in     *bufio.Reader
	cancel context.CancelFunc
	header http.Header     // of POSTs
	events []ssetest.Event // all that until has read
	begun  int             // of events: those of the handshake
	quiet  bool            // do not keep events
}

// dial opens a stream and reads its first event, the endpoint.
func dial(c *http.Client, stream string, header http.Header) (*raw, error) {
	ctx, cancel := context.WithCancel(context.Background())
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, stream, nil)
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
	s := &raw{http: c, body: resp.Body, in: bufio.NewReaderSize(resp.Body, 4<<10), cancel: cancel}
	first, err := ssetest.ReadAny(s.in)
	if err != nil || resp.StatusCode != http.StatusOK || first.Name != "endpoint" {
		s.close()
		return nil, fmt.Errorf("%s, first event %+v, %w", resp.Status, first, err)
	}
	at, err := url.Parse(first.Data)
	if err != nil {
		s.close()
		return nil, err
	}
	s.post = r.URL.ResolveReference(at).String()
	return s, nil
}

// open is dial for tests. It initializes the session with the capabilities.
func open(t testing.TB, c *http.Client, stream, capabilities string, header http.Header) *raw {
	t.Helper()
	s, err := dial(c, stream, header)
	if err != nil {
		t.Fatal(err)
	}
	s.header = header
	t.Cleanup(s.close)
	guard := time.AfterFunc(30*time.Second, s.close) // a test that waits in vain fails, and does not hang
	t.Cleanup(func() { guard.Stop() })
	if _, err := s.call(`{"jsonrpc":"2.0","id":"init","method":"initialize","params":{"protocolVersion":"2025-06-18",`+
		`"clientInfo":{"name":"raw","version":"1"},"capabilities":`+capabilities+`}}`, `"init"`); err != nil {
		t.Fatal(err)
	}
	s.begun = len(s.events)
	s.mustSend(t, `{"jsonrpc":"2.0","method":"notifications/initialized"}`)
	return s
}

// send posts a message and expects it to be accepted.
func (s *raw) send(msg string) error {
	r, err := http.NewRequest(http.MethodPost, s.post, strings.NewReader(msg))
	if err != nil {
		return err
	}
	r.Header.Set("Content-Type", "application/json")
	for name, values := range s.header {
		r.Header[name] = values
	}
	resp, err := s.http.Do(r)
	if err != nil {
		return err
	}
	_, _ = io.Copy(io.Discard, resp.Body)
	_ = resp.Body.Close()
	if resp.StatusCode != http.StatusAccepted {
		return fmt.Errorf("POST: %s", resp.Status)
	}
	return nil
}

func (s *raw) mustSend(t testing.TB, msg string) {
	t.Helper()
	if err := s.send(msg); err != nil {
		t.Fatal(err)
	}
}

// call sends a request and returns the data of the first event with id.
func (s *raw) call(msg, id string) (string, error) {
	if err := s.send(msg); err != nil {
		return "", err
	}
	return s.until(`"id":` + id)
}

// until returns the data of the next event that holds text.
func (s *raw) until(text string) (string, error) {
	for {
		e, err := ssetest.ReadAny(s.in)
		if err != nil {
			return "", err
		}
		if !s.quiet {
			s.events = append(s.events, e)
		}
		if strings.Contains(e.Data, text) && e.Name == "message" {
			return e.Data, nil
		}
	}
}

// has reports whether an event with text has come since the handshake.
func (s *raw) has(text string) bool {
	for _, e := range s.events[min(len(s.events), s.begun):] {
		if e.Name == "message" && strings.Contains(e.Data, text) {
			return true
		}
	}
	return false
}

// mustGet is until for tests.
func (s *raw) mustGet(t testing.TB, text string) string {
	t.Helper()
	got, err := s.until(text)
	if err != nil {
		t.Fatalf("waiting for %s: %v", text, err)
	}
	return got
}

func (s *raw) close() {
	s.cancel()
	_ = s.body.Close()
}

func echo() *server.MCPServer {
	s := server.NewMCPServer("echo", "1.0")
	s.AddTool(mcp.NewTool("echo", mcp.WithString("text")), func(_ context.Context, r mcp.CallToolRequest) (*mcp.CallToolResult, error) {
		return mcp.NewToolResultText(r.GetString("text", "")), nil
	})
	return s
}

// shutdown ends a gateway whose clients have left.
func shutdown(t testing.TB, g interface{ Shutdown(context.Context) error }) {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()
	if err := g.Shutdown(ctx); err != nil {
		t.Errorf("Shutdown: %v", err)
	}
}
