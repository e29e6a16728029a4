package gosdk_test

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/mcp-sse/mcp-sse/gateway"
	"github.com/mcp-sse/mcp-sse/internal/rawjson"
	"github.com/mcp-sse/mcp-sse/internal/ssetest"
)

// stream is a client that shows each byte.
type stream struct {
	*ssetest.Client
	w *world
}

// open opens a stream and initializes it.
func (w *world) open() *stream {
	w.t.Helper()
	s := w.openOnly()
	s.send(`{"jsonrpc":"2.0","id":"init","method":"initialize","params":{"protocolVersion":"2025-06-18","capabilities":{},"clientInfo":{"name":"raw","version":"1"}}}`)
	s.await(`"id":"init"`)
	s.send(`{"jsonrpc":"2.0","method":"notifications/initialized"}`)
	return s
}

// openOnly opens a stream.
func (w *world) openOnly() *stream {
	w.t.Helper()
	return &stream{ssetest.Open(w.t, w.http, w.url, nil), w}
}

// send posts a message and returns the status.
func (s *stream) send(msg string) int {
	s.w.t.Helper()
	resp, err := s.w.http.Post(s.Post, "application/json", strings.NewReader(msg))
	ssetest.Must(s.w.t, err)
	defer func() { _ = resp.Body.Close() }()
	_, _ = io.Copy(io.Discard, resp.Body)
	return resp.StatusCode
}

// await returns the data of the next event that contains part.
func (s *stream) await(part string) string {
	s.w.t.Helper()
	e, err := s.Until(part)
	if err != nil {
		s.w.t.Fatalf("waiting for %s: %v", part, err)
	}
	return e.Data
}

// answerTo posts the request 1, and returns the status and the answer.
func answerTo(msg string) func(w *world) string {
	return func(w *world) string {
		s := w.open()
		status := s.send(msg)
		if status != http.StatusAccepted {
			return fmt.Sprint(status)
		}
		return fmt.Sprint(status, " ", s.await(`"id":1`))
	}
}

// TestDifferences has what is ours by design, as the doc of the package lists it.
func TestDifferences(t *testing.T) {
	const large, arguments = "9007199254740993", `{"n":9007199254740993,"d":1.50,"e":-0.0,"z":12345678901234567890}`
	for _, test := range []struct {
		name         string
		theirs, ours string
		play         func(w *world) string
	}{
		{"no server", "400", "404", func(w *world) string {
			w.serve(func(*http.Request) *mcp.Server { return nil }, nil)
			resp, err := w.http.Get(w.url)
			if err != nil {
				return err.Error()
			}
			_ = resp.Body.Close()
			return fmt.Sprint(resp.StatusCode)
		}},
		{"unknown method", "400", `202 {"jsonrpc":"2.0","id":1,"error":{"code":-32601,"message":"method not found: \"x/y\""}}`, answerTo(`{"jsonrpc":"2.0","id":1,"method":"x/y","params":{}}`)},
		{"large integers", "id 9007199254740992, all of the arguments true", "id " + large + ", all of the arguments true", func(w *world) string {
			s := w.open()
			s.send(`{"jsonrpc":"2.0","id":` + large + `,"method":"tools/call","params":{"name":"echo","arguments":` + arguments + `}}`)
			got := s.await(`"structuredContent"`)
			id, _ := rawjson.Member([]byte(got), "id")
			return fmt.Sprintf("id %s, all of the arguments %t", id, strings.Contains(got, `"structuredContent":`+arguments) && strings.Contains(got, `n\":`+large))
		}},
		{"missing params", "400", `202 {"jsonrpc":"2.0","id":1,"error":{"code":-32600,"message":"invalid request: missing required \"params\""}}`, answerTo(`{"jsonrpc":"2.0","id":1,"method":"tools/call"}`)},
		{"the client leaves during a call", "the handler goes on", "the handler is told to stop", func(w *world) string {
			ctx, cancel := context.WithCancel(context.Background())
			defer cancel()
			told := make(chan struct{})
			w.server.AddTool(&mcp.Tool{Name: "long", InputSchema: map[string]any{"type": "object"}}, func(handler context.Context, _ *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
				w.saw.Add("server: long began")
				select {
				case <-handler.Done():
					close(told)
				case <-ctx.Done():
				}
				return &mcp.CallToolResult{}, nil
			})
			s := w.connect("ada")
			call, hangUp := context.WithCancel(context.Background())
			defer hangUp()
			go func() { _, _ = s.CallTool(call, &mcp.CallToolParams{Name: "long"}) }()
			w.saw.Await(1, "server: long began")
			w.http.CloseIdleConnections()
			w.cut()
			select {
			case <-told:
				return "the handler is told to stop"
			case <-time.After(300 * time.Millisecond): // theirs shows nothing that could be waited for
				return "the handler goes on"
			}
		}},
		{"a client that does not initialize", `{"jsonrpc":"2.0","id":1,"error":{"code":0,"message":"method \"tools/list\" is invalid during session initialization"}}`, "tools", func(w *world) string {
			w.serve(func(*http.Request) *mcp.Server { return w.server }, &gateway.Options{})
			s := w.openOnly()
			s.send(`{"jsonrpc":"2.0","id":1,"method":"tools/list"}`)
			if got := s.await(`"id":1`); !strings.Contains(got, `"tools":[`) {
				return got
			}
			return "tools"
		}},
	} {
		t.Run(test.name, func(t *testing.T) {
			for kind, want := range map[string]string{theirs: test.theirs, ours: test.ours} {
				w := newWorld(t, kind, mcp.ServerOptions{})
				ssetest.Want(t, kind, test.play(w), want)
			}
		})
	}
}
