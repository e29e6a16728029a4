package demo

import (
	"context"
	"io"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// The demo answers a client of the SDK, with progress each second of a sleep, whose time is
// bounded and which can be cancelled.
func TestDemo(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		fromClient, toServer := io.Pipe()
		fromServer, toClient := io.Pipe()
		served := make(chan error, 1)
		go func() {
			err := Serve(t.Context(), fromClient, toClient)
			toClient.Close()
			served <- err
		}()
		var progress atomic.Int64
		client := mcp.NewClient(&mcp.Implementation{Name: "test", Version: "1"}, &mcp.ClientOptions{
			ProgressNotificationHandler: func(_ context.Context, r *mcp.ProgressNotificationClientRequest) {
				progress.Store(int64(r.Params.Progress))
			},
		})
		session, err := client.Connect(t.Context(), &mcp.IOTransport{Reader: fromServer, Writer: toServer}, nil)
		if err != nil {
			t.Fatal(err)
		}
		call := func(ctx context.Context, name string, args map[string]any) (text string, isError bool, took time.Duration) {
			began := time.Now()
			params := &mcp.CallToolParams{Name: name, Arguments: args}
			params.SetProgressToken("p")
			result, err := session.CallTool(ctx, params)
			if err != nil {
				return err.Error(), true, time.Since(began)
			}
			return result.Content[0].(*mcp.TextContent).Text, result.IsError, time.Since(began)
		}
		if text, isError, _ := call(t.Context(), "echo", map[string]any{"message": "a\nb ü"}); isError || text != "a\nb ü" {
			t.Errorf("echo: got %q", text)
		}
		if text, isError, took := call(t.Context(), "sleep", map[string]any{"seconds": 2.5}); isError || took != 2500*time.Millisecond || progress.Load() != 2 {
			t.Errorf("sleep: got %q after %v, progress %v", text, took, progress.Load())
		}
		for _, seconds := range []float64{-1, 60.5, 1e300} {
			if text, isError, took := call(t.Context(), "sleep", map[string]any{"seconds": seconds}); !isError || took > 0 {
				t.Errorf("%v seconds: got %q after %v, want an error", seconds, text, took)
			}
		}
		ctx, cancel := context.WithTimeout(t.Context(), 1500*time.Millisecond)
		defer cancel()
		if text, isError, took := call(ctx, "sleep", map[string]any{"seconds": 60}); !isError || took != 1500*time.Millisecond {
			t.Errorf("cancelled: got %q after %v", text, took)
		}
		session.Close()
		if err := <-served; err != nil {
			t.Errorf("serve: got %v, want nil at the end of its input", err)
		}
	})
}
