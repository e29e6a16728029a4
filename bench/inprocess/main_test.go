package main

import (
	"bufio"
	"context"
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"
)

func TestMain(m *testing.M) {
	goleak.VerifyTestMain(m)
}

// Each kind answers the same calls, so that they can be compared.
func TestEachKindEchoes(t *testing.T) {
	for _, kind := range kinds() {
		if strings.HasSuffix(kind, "-stream") {
			continue
		}
		t.Run(kind, func(t *testing.T) {
			h, err := newHandler(kind)
			if err != nil {
				t.Fatal(err)
			}
			srv := httptest.NewServer(withStats(h))
			client := srv.Client()
			ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
			s := open(t, ctx, client, srv.URL)
			s.ask(t, ctx, `{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-06-18","capabilities":{},"clientInfo":{"name":"test","version":"1"}}}`, `"protocolVersion":"2025-06-18"`)
			s.send(t, ctx, `{"jsonrpc":"2.0","method":"notifications/initialized"}`)
			s.ask(t, ctx, `{"jsonrpc":"2.0","id":2,"method":"ping"}`, `"id":2`)
			s.ask(t, ctx, `{"jsonrpc":"2.0","id":3,"method":"tools/list"}`, `"message"`)
			s.ask(t, ctx, `{"jsonrpc":"2.0","id":4,"method":"tools/call","params":{"name":"echo","arguments":{"message":"hello"}}}`, `hello`)
			cancel()
			if err := h.stop(); err != nil {
				t.Error(err)
			}
			srv.CloseClientConnections()
			srv.Close()
		})
	}
}

// And so does each kind that is compared over Streamable HTTP, with JSON.
func TestEachStreamableKindEchoes(t *testing.T) {
	for _, kind := range []string{"raw", "bare", "mcpgo-gateway", "mcpgo-stream", "gosdk-gateway", "gosdk-stream"} {
		t.Run(kind, func(t *testing.T) {
			h, err := newHandler(kind)
			if err != nil {
				t.Fatal(err)
			}
			srv := httptest.NewServer(withStats(h))
			session := post(t, srv, "", `{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-06-18","capabilities":{},"clientInfo":{"name":"test","version":"1"}}}`, `"protocolVersion":"2025-06-18"`)
			post(t, srv, session, `{"jsonrpc":"2.0","method":"notifications/initialized"}`, "")
			post(t, srv, session, `{"jsonrpc":"2.0","id":3,"method":"tools/list"}`, `"message"`)
			post(t, srv, session, `{"jsonrpc":"2.0","id":4,"method":"tools/call","params":{"name":"echo","arguments":{"message":"hello"}}}`, `hello`)
			leave(t, srv, session)
			if err := h.stop(); err != nil {
				t.Error(err)
			}
			srv.CloseClientConnections()
			srv.Close()
		})
	}
}

// leave ends a session.
func leave(t *testing.T, srv *httptest.Server, session string) {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), http.MethodDelete, srv.URL+"/mcp", http.NoBody)
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("Mcp-Session-Id", session)
	resp, err := srv.Client().Do(req)
	if err != nil {
		t.Fatal(err)
	}
	if resp.Body.Close(); resp.StatusCode/100 != 2 {
		t.Errorf("DELETE: %s", resp.Status)
	}
}

// post sends a message over Streamable HTTP, to which the answer must be JSON with want,
// or nothing. It returns the session that a response names.
func post(t *testing.T, srv *httptest.Server, session, message, want string) string {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, srv.URL+"/mcp", strings.NewReader(message))
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("Content-Type", "application/json")
	req.Header.Set("Accept", "application/json, text/event-stream")
	if session != "" {
		req.Header.Set("Mcp-Session-Id", session)
	}
	resp, err := srv.Client().Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	isJSON := resp.Header.Get("Content-Type") == "application/json"
	if err != nil || resp.StatusCode/100 != 2 || !strings.Contains(string(body), want) || want != "" && !isJSON {
		t.Fatalf("POST: %s, %q, %v, want JSON with %q", resp.Status, body, err, want)
	}
	return resp.Header.Get("Mcp-Session-Id")
}

// stream is an open stream of a server under test.
type stream struct {
	client   *http.Client
	endpoint string
	lines    *bufio.Scanner
}

func open(t *testing.T, ctx context.Context, client *http.Client, url string) *stream {
	t.Helper()
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, url+"/sse", nil)
	if err != nil {
		t.Fatal(err)
	}
	resp, err := client.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = resp.Body.Close() })
	s := &stream{client: client, lines: bufio.NewScanner(resp.Body)}
	s.endpoint = url + s.next(t, "/")
	return s
}

// next returns the next data that holds a text.
func (s *stream) next(t *testing.T, text string) string {
	t.Helper()
	for s.lines.Scan() {
		if data, ok := strings.CutPrefix(s.lines.Text(), "data: "); ok && strings.Contains(data, text) {
			return data
		}
	}
	t.Fatalf("the stream ended before %s: %v", text, s.lines.Err())
	return ""
}

func (s *stream) send(t *testing.T, ctx context.Context, message string) {
	t.Helper()
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, s.endpoint, strings.NewReader(message))
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("Content-Type", "application/json")
	resp, err := s.client.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	if _, err := io.Copy(io.Discard, resp.Body); err != nil || resp.StatusCode/100 != 2 {
		t.Fatalf("POST: %s, %v", resp.Status, err)
	}
}

func (s *stream) ask(t *testing.T, ctx context.Context, message, want string) {
	t.Helper()
	s.send(t, ctx, message)
	s.next(t, want)
}

func TestStatsGrow(t *testing.T) {
	srv := httptest.NewServer(withStats(http.NotFoundHandler()))
	defer srv.Close()
	read := func(query string) (s stats) {
		resp, err := srv.Client().Get(srv.URL + "/stats" + query)
		if err != nil {
			t.Fatal(err)
		}
		defer resp.Body.Close()
		if err := json.NewDecoder(resp.Body).Decode(&s); err != nil {
			t.Fatal(err)
		}
		return s
	}
	first, second := read(""), read("?gc")
	if first.CPU <= 0 || first.Heap <= 0 || first.Stacks <= 0 || first.Goroutines <= 0 ||
		second.CPU < first.CPU || second.Allocs <= first.Allocs || second.Allocated <= first.Allocated {
		t.Errorf("stats = %+v, then %+v", first, second)
	}
}

func TestBareRefusesWhatItCannotServe(t *testing.T) {
	srv := httptest.NewServer(newBare())
	defer srv.Close()
	resp, err := srv.Client().Post(srv.URL+"/message/none", "application/json", strings.NewReader("{}"))
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	if resp.StatusCode != http.StatusNotFound {
		t.Errorf("status = %s, want 404", resp.Status)
	}
}

func TestRunEndsWithItsContext(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := run(ctx, "127.0.0.1:0", "raw"); err != nil {
		t.Error(err)
	}
	if err := run(t.Context(), "127.0.0.1:0", "none"); err == nil || !strings.Contains(err.Error(), "gosdk-sse") {
		t.Errorf("run of no kind = %v, want the kinds that there are", err)
	}
}
