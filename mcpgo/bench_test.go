package mcpgo_test

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/mark3labs/mcp-go/mcp"
	"github.com/mark3labs/mcp-go/server"

	"github.com/mcp-sse/mcp-sse/mcpgo"
)

// BenchmarkCall measures calls of a tool over a real socket, with the same client: served
// by mcp-go's own SSE server and by this package's. Compare only within one run.
func BenchmarkCall(b *testing.B) {
	for _, size := range []int{32, 16 << 10} {
		for _, load := range []struct{ connections, inFlight int }{{1, 1}, {64, 1}, {1, 64}} {
			name := fmt.Sprintf("%dB/%dx%d", size, load.connections, load.inFlight)
			b.Run(name+"/theirs", func(b *testing.B) {
				s := echo()
				calls(b, server.NewSSEServer(s), size, load.connections, load.inFlight)
			})
			b.Run(name+"/ours", func(b *testing.B) {
				h := mcpgo.NewSSEServer(echo())
				b.Cleanup(func() { shutdown(b, h) })
				calls(b, h, size, load.connections, load.inFlight)
			})
		}
	}
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

func calls(b *testing.B, h http.Handler, size, connections, inFlight int) {
	s := httptest.NewServer(h)
	transport := &http.Transport{MaxIdleConnsPerHost: 256}
	b.Cleanup(func() {
		transport.CloseIdleConnections()
		s.CloseClientConnections()
		s.Close()
	})
	turns := make(chan struct{})
	text := strings.Repeat("x", size)
	var workers sync.WaitGroup
	for range connections {
		r := open(b, &http.Client{Transport: transport}, s.URL+"/sse", "{}", nil)
		r.quiet = true
		callers(b, r, &workers, turns, text, inFlight)
	}
	b.ReportAllocs()
	for b.Loop() {
		turns <- struct{}{}
	}
	close(turns)
	workers.Wait()
	b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "calls/s")
}

// callers starts callers on one connection, and a reader that wakes them.
func callers(b *testing.B, r *raw, workers *sync.WaitGroup, turns <-chan struct{}, text string, inFlight int) {
	answered := make([]chan struct{}, inFlight)
	for i := range answered {
		answered[i] = make(chan struct{}, 1)
		id := strconv.Itoa(i)
		msg := `{"jsonrpc":"2.0","id":` + id + `,"method":"tools/call","params":{"name":"echo","arguments":{"text":"` + text + `"}}}`
		workers.Go(func() {
			for range turns {
				if err := r.send(msg); err != nil {
					b.Error(err)
					return
				}
				<-answered[i]
			}
		})
	}
	go func() { // ends when the stream is closed
		for {
			data, err := r.until(`"id":`)
			if err != nil {
				return
			}
			_, rest, _ := strings.Cut(data, `"id":`)
			digits, _, _ := strings.Cut(rest, ",")
			i, err := strconv.Atoi(strings.TrimRight(digits, "}"))
			if err != nil {
				b.Error(err)
				return
			}
			answered[i] <- struct{}{}
		}
	}()
}
