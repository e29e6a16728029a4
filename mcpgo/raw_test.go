package mcpgo_test

import (
	"context"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/mark3labs/mcp-go/mcp"
	"github.com/mark3labs/mcp-go/server"

	"github.com/mcp-sse/mcp-sse/internal/ssetest"
)

// raw is a client that keeps what it has seen.
type raw struct {
	*ssetest.Client
	events []ssetest.Event // all that mustGet has read
	begun  int             // of events: those of the handshake
}

// open opens a stream and initializes the session with the capabilities.
func open(t testing.TB, c *http.Client, stream, capabilities string, header http.Header) *raw {
	t.Helper()
	s := &raw{Client: ssetest.Open(t, c, stream, header)}
	s.mustSend(t, `{"jsonrpc":"2.0","id":"init","method":"initialize","params":{"protocolVersion":"2025-06-18",`+
		`"clientInfo":{"name":"raw","version":"1"},"capabilities":`+capabilities+`}}`)
	s.mustGet(t, `"id":"init"`)
	s.begun = len(s.events)
	s.mustSend(t, `{"jsonrpc":"2.0","method":"notifications/initialized"}`)
	return s
}

func (s *raw) mustSend(t testing.TB, msg string) {
	t.Helper()
	ssetest.Must(t, s.Send(msg))
}

// mustGet returns the data of the next event message that has text.
func (s *raw) mustGet(t testing.TB, text string) string {
	t.Helper()
	for {
		e, err := s.Next()
		if err != nil {
			t.Fatalf("waiting for %s: %v", text, err)
		}
		s.events = append(s.events, e)
		if strings.Contains(e.Data, text) && e.Name == "message" {
			return e.Data
		}
	}
}

// count returns how many messages with text have come since the handshake.
func (s *raw) count(text string) (n int) {
	for _, e := range s.events[min(len(s.events), s.begun):] {
		if e.Name == "message" && strings.Contains(e.Data, text) {
			n++
		}
	}
	return n
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
