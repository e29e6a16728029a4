package main

import (
	"net/http"
	"strconv"
	"strings"
	"testing"
)

// BenchmarkPOST calls handlers of the Streamable HTTP pairs without sockets: what a POST costs
// beside net/http. The handler of go-sdk is left out, as nothing ends its sessions.
func BenchmarkPOST(b *testing.B) {
	for _, kind := range []string{
		"raw", "raw-selected", "raw-view-1", "raw-view-3", "bare", "mcpgo-gateway", "mcpgo-stream", "gosdk-gateway",
	} {
		b.Run(kind, func(b *testing.B) { benchmarkPOST(b, kind) })
	}
}

func benchmarkPOST(b *testing.B, kind string) {
	h, err := newHandler(kind)
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() {
		if err := h.stop(); err != nil {
			b.Error(err)
		}
	})
	session := ""
	post := func(id int, message string) *sink {
		w := &sink{header: http.Header{}}
		r, err := http.NewRequestWithContext(b.Context(), http.MethodPost, "/mcp", strings.NewReader(message))
		if err != nil {
			b.Fatal(err)
		}
		r.Host, r.RemoteAddr = "127.0.0.1", "127.0.0.1:1"
		r.Header = http.Header{"Content-Type": {"application/json"}, "Accept": {"application/json, text/event-stream"}, "Mcp-Protocol-Version": {"2025-06-18"}}
		if session != "" {
			r.Header["Mcp-Session-Id"] = []string{session}
		}
		h.ServeHTTP(w, r)
		if id > 0 && !strings.Contains(w.body, `"id":`+strconv.Itoa(id)) {
			b.Fatalf("got %d %s", w.status, w.body)
		}
		return w
	}
	session = post(1, `{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-06-18","capabilities":{},"clientInfo":{"name":"b","version":"1"}}}`).header.Get("Mcp-Session-Id")
	post(0, `{"jsonrpc":"2.0","method":"notifications/initialized"}`)
	b.ReportAllocs()
	id := 1
	for b.Loop() {
		id++
		post(id, `{"jsonrpc":"2.0","id":`+strconv.Itoa(id)+`,"method":"tools/call","params":{"name":"echo","arguments":{"text":"hello"}}}`)
	}
}

// sink is a ResponseWriter that keeps the last write.
type sink struct {
	header http.Header
	status int
	body   string
}

func (s *sink) Header() http.Header    { return s.header }
func (s *sink) WriteHeader(status int) { s.status = status }

func (s *sink) Write(p []byte) (int, error) {
	s.body = string(p)
	return len(p), nil
}

func (s *sink) Flush() {}
