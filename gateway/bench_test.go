package gateway_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"slices"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	mcpgo "github.com/mark3labs/mcp-go/mcp"
	mcpgoserver "github.com/mark3labs/mcp-go/server"
	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/mcp-sse/mcp-sse/gateway"
	"github.com/mcp-sse/mcp-sse/jsonrpc"
	"github.com/mcp-sse/mcp-sse/upstream"
)

// Each pair serves the same echo over a real loopback socket, with the same client:
// once by our gateway, once by the other implementation. Compare only within one run.

func BenchmarkRaw(b *testing.B) {
	compare(b, upstream.Handle(echo), "net-http", bareServer())
}

func BenchmarkMCPGo(b *testing.B) {
	srv := mcpgoserver.NewMCPServer("echo", "1.0")
	srv.AddTool(mcpgo.NewTool("echo", mcpgo.WithString("text")), func(_ context.Context, r mcpgo.CallToolRequest) (*mcpgo.CallToolResult, error) {
		return mcpgo.NewToolResultText(r.GetString("text", "")), nil
	})
	up := upstream.Handle(func(ctx context.Context, msg json.RawMessage) any { return srv.HandleMessage(ctx, msg) })
	compare(b, up, "mcp-go", mcpgoserver.NewSSEServer(srv))
}

func BenchmarkGoSDK(b *testing.B) {
	srv := mcp.NewServer(&mcp.Implementation{Name: "sdk", Version: "1.0"}, &mcp.ServerOptions{Logger: slog.New(slog.DiscardHandler)})
	mcp.AddTool(srv, &mcp.Tool{Name: "echo"}, func(_ context.Context, _ *mcp.CallToolRequest, in echoParams) (*mcp.CallToolResult, any, error) {
		return &mcp.CallToolResult{Content: []mcp.Content{&mcp.TextContent{Text: in.Text}}}, nil, nil
	})
	up := upstream.Serve(func(ctx context.Context, in io.ReadCloser, out io.WriteCloser) error {
		return srv.Run(ctx, &mcp.IOTransport{Reader: in, Writer: out})
	})
	compare(b, up, "go-sdk", mcp.NewSSEHandler(func(*http.Request) *mcp.Server { return srv }, nil))
}

// compare measures calls per second of the gateway and of another handler.
func compare(b *testing.B, up upstream.Upstream, name string, other http.Handler) {
	for _, connections := range []int{1, 64} {
		b.Run(fmt.Sprintf("%dx1/gateway", connections), func(b *testing.B) {
			base, c, _ := serve(b, up, gateway.Options{})
			calls(b, c, base+"/sse", connections)
		})
		b.Run(fmt.Sprintf("%dx1/%s", connections, name), func(b *testing.B) {
			s := httptest.NewServer(other)
			transport := &http.Transport{MaxIdleConnsPerHost: 256}
			b.Cleanup(func() {
				transport.CloseIdleConnections()
				s.CloseClientConnections()
				s.Close()
			})
			calls(b, &http.Client{Transport: transport}, s.URL+"/sse", connections)
		})
	}
}

// calls measures calls on a number of connections, one in flight on each.
func calls(b *testing.B, c *http.Client, at string, connections int) {
	turns := make(chan struct{})
	var workers sync.WaitGroup
	for range connections {
		s, err := dial(c, at, nil)
		if err != nil {
			b.Fatal(err)
		}
		b.Cleanup(s.close)
		if _, err := s.call(initialize("0", "2025-06-18", "{}"), "0"); err != nil {
			b.Fatal(err)
		}
		if err := s.send(initialized); err != nil {
			b.Fatal(err)
		}
		workers.Go(func() {
			id := 0
			for range turns {
				id++
				n := strconv.Itoa(id)
				if _, err := s.call(`{"jsonrpc":"2.0","id":`+n+`,"method":"tools/call","params":{"name":"echo","arguments":{"text":"hello"}}}`, n); err != nil {
					b.Error(err)
				}
			}
		})
	}
	b.ReportAllocs()
	for b.Loop() {
		turns <- struct{}{}
	}
	close(turns)
	workers.Wait()
	b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "calls/s")
}

// bareServer is an HTTP+SSE echo with net/http alone: the minimum work of any server
// of this transport.
func bareServer() http.Handler {
	var (
		streams sync.Map // id → chan []byte
		last    atomic.Int64
	)
	routes := http.NewServeMux()
	routes.HandleFunc("GET /sse", func(w http.ResponseWriter, r *http.Request) {
		id := strconv.FormatInt(last.Add(1), 10)
		out := make(chan []byte, 64)
		streams.Store(id, out)
		defer streams.Delete(id)
		w.Header().Set("Content-Type", "text/event-stream")
		control := http.NewResponseController(w)
		write := func(event string, data []byte) {
			_, _ = fmt.Fprintf(w, "event: %s\ndata: %s\n\n", event, data)
			_ = control.Flush()
		}
		write("endpoint", []byte("/message/"+id))
		for {
			select {
			case data := <-out:
				write("message", data)
			case <-r.Context().Done():
				return
			}
		}
	})
	routes.HandleFunc("POST /message/{id}", func(w http.ResponseWriter, r *http.Request) {
		out, ok := streams.Load(r.PathValue("id"))
		if !ok {
			http.NotFound(w, r)
			return
		}
		var m struct {
			ID     json.RawMessage `json:"id"`
			Params json.RawMessage `json:"params"`
		}
		if err := json.NewDecoder(r.Body).Decode(&m); err != nil {
			http.Error(w, err.Error(), http.StatusBadRequest)
			return
		}
		if m.ID != nil {
			out.(chan []byte) <- jsonrpc.NewResult(jsonrpc.ID(m.ID), bytes.TrimSpace(m.Params))
		}
		w.WriteHeader(http.StatusAccepted)
	})
	return routes
}

// BenchmarkOpen measures the time from a GET to its endpoint event and to the
// result of the handshake with a server in process.
func BenchmarkOpen(b *testing.B) {
	base, c, _ := serve(b, upstream.Handle(echo), gateway.Options{AnnounceDelay: -1})
	var endpoint, ready []time.Duration
	b.ReportAllocs()
	for b.Loop() {
		began := time.Now()
		s, err := dial(c, base+"/sse", nil)
		if err != nil {
			b.Fatal(err)
		}
		endpoint = append(endpoint, time.Since(began))
		if _, err := s.until(func(e block) bool { return e.Name == "mcp-response" }); err != nil {
			b.Fatal(err)
		}
		ready = append(ready, time.Since(began))
		s.close()
	}
	toEndpoint, toReady := p99(endpoint), p99(ready)
	b.ReportMetric(float64(toEndpoint.Microseconds()), "endpoint-p99-µs")
	b.ReportMetric(float64(toReady.Microseconds()), "ready-p99-µs")
	b.ReportMetric(float64(toReady)/float64(toEndpoint), "ready/endpoint")
}

func p99(all []time.Duration) time.Duration {
	slices.Sort(all)
	return all[(len(all)-1)*99/100]
}
