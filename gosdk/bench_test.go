package gosdk_test

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/mcp-sse/mcp-sse/gateway"
	"github.com/mcp-sse/mcp-sse/gosdk"
	"github.com/mcp-sse/mcp-sse/internal/ssetest"
)

// echoServer has one tool, which returns its text.
func echoServer() *mcp.Server {
	s := mcp.NewServer(&mcp.Implementation{Name: "echo", Version: "1"}, nil)
	s.AddTool(&mcp.Tool{Name: "echo", InputSchema: map[string]any{"type": "object"}}, func(_ context.Context, r *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
		return &mcp.CallToolResult{Content: []mcp.Content{&mcp.TextContent{Text: string(r.Params.Arguments)}}}, nil
	})
	return s
}

// BenchmarkCalls compares the gateway with go-sdk's own handler: clients × calls in
// flight of each.
func BenchmarkCalls(b *testing.B) {
	for _, shape := range []struct{ clients, inFlight int }{{1, 1}, {64, 1}, {1, 64}} {
		for _, size := range []int{32, 16 << 10} {
			for _, kind := range []string{"theirs", "ours"} {
				b.Run(fmt.Sprintf("%dx%d/%dB/%s", shape.clients, shape.inFlight, size, kind), func(b *testing.B) {
					benchCalls(b, kind, shape.clients, shape.inFlight, size)
				})
			}
		}
	}
}

func benchCalls(b *testing.B, kind string, clients, inFlight, size int) {
	server := echoServer()
	get := func(*http.Request) *mcp.Server { return server }
	var h http.Handler = mcp.NewSSEHandler(get, nil)
	if kind == "ours" {
		gw := gosdk.NewSSEHandler(get, &gateway.Options{ConnectRate: -1})
		defer func() {
			ctx, cancel := context.WithTimeout(context.Background(), 100*time.Millisecond)
			defer cancel()
			_ = gw.Shutdown(ctx)
		}()
		h = gw
	}
	srv := httptest.NewServer(h)
	defer srv.Close()
	transport := &http.Transport{MaxIdleConnsPerHost: 256}
	defer transport.CloseIdleConnections()
	payload := strings.Repeat("x", size)
	var streams []*benchStream
	for range clients {
		s, err := openBench(&http.Client{Transport: transport}, srv.URL, inFlight)
		if err != nil {
			b.Fatal(err)
		}
		defer s.close()
		streams = append(streams, s)
	}
	b.ReportAllocs()
	var before, after syscall.Rusage
	_ = syscall.Getrusage(syscall.RUSAGE_SELF, &before)
	b.ResetTimer()
	var n atomic.Int64
	var workers sync.WaitGroup
	for _, s := range streams {
		for range inFlight {
			workers.Go(func() {
				for {
					i := n.Add(1)
					if i > int64(b.N) {
						return
					}
					if err := s.call(i, payload); err != nil {
						b.Error(err)
						return
					}
				}
			})
		}
	}
	workers.Wait()
	b.StopTimer()
	_ = syscall.Getrusage(syscall.RUSAGE_SELF, &after)
	cpu := after.Utime.Nano() + after.Stime.Nano() - before.Utime.Nano() - before.Stime.Nano()
	b.ReportMetric(float64(cpu)/float64(b.N), "cpu-ns/op")
}

// benchStream is a client that costs little.
type benchStream struct {
	http  *http.Client
	post  string
	body  io.ReadCloser
	mu    sync.Mutex
	waits map[int64]chan struct{}
}

func openBench(c *http.Client, at string, inFlight int) (*benchStream, error) {
	resp, err := c.Get(at)
	if err != nil {
		return nil, err
	}
	in := bufio.NewReaderSize(resp.Body, 32<<10)
	first, err := ssetest.ReadAny(in)
	if err != nil || resp.StatusCode != http.StatusOK {
		return nil, fmt.Errorf("%s: %v, %w", resp.Status, first, err)
	}
	ref, err := url.Parse(first.Data)
	if err != nil {
		return nil, err
	}
	s := &benchStream{http: c, post: resp.Request.URL.ResolveReference(ref).String(), body: resp.Body, waits: make(map[int64]chan struct{}, inFlight)}
	go s.read(in)
	if err := s.await(-1, `{"jsonrpc":"2.0","id":-1,"method":"initialize","params":{"protocolVersion":"2025-06-18","capabilities":{},"clientInfo":{"name":"b","version":"1"}}}`); err != nil {
		return nil, err
	}
	return s, s.send(`{"jsonrpc":"2.0","method":"notifications/initialized"}`)
}

func (s *benchStream) read(in *bufio.Reader) {
	for {
		e, err := ssetest.ReadAny(in)
		if err != nil {
			return
		}
		_, rest, ok := strings.Cut(e.Data[:min(64, len(e.Data))], `"id":`)
		digits, _, _ := strings.Cut(rest, ",")
		id, err := strconv.ParseInt(digits, 10, 64)
		if !ok || err != nil {
			continue
		}
		s.mu.Lock()
		wait := s.waits[id]
		delete(s.waits, id)
		s.mu.Unlock()
		if wait != nil {
			close(wait)
		}
	}
}

func (s *benchStream) send(msg string) error {
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

func (s *benchStream) await(id int64, msg string) error {
	done := make(chan struct{})
	s.mu.Lock()
	s.waits[id] = done
	s.mu.Unlock()
	if err := s.send(msg); err != nil {
		return err
	}
	<-done
	return nil
}

func (s *benchStream) call(id int64, payload string) error {
	return s.await(id, `{"jsonrpc":"2.0","id":`+strconv.FormatInt(id, 10)+`,"method":"tools/call","params":{"name":"echo","arguments":{"text":"`+payload+`"}}}`)
}

func (s *benchStream) close() { _ = s.body.Close() }
