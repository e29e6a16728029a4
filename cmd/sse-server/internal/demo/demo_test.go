package demo

import (
	"context"
	"io"
	"testing"
	"testing/synctest"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// dialDemo connects a client of the SDK to the demo server over pipes.
func dialDemo(t *testing.T, options *mcp.ClientOptions) *mcp.ClientSession {
	t.Helper()
	fromClient, toServer := io.Pipe()
	fromServer, toClient := io.Pipe()
	served := make(chan error, 1)
	go func() {
		err := Serve(t.Context(), fromClient, toClient)
		toClient.Close()
		served <- err
	}()
	client := mcp.NewClient(&mcp.Implementation{Name: "test", Version: "1"}, options)
	session, err := client.Connect(t.Context(), &mcp.IOTransport{Reader: fromServer, Writer: toServer}, nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		session.Close()
		if err := <-served; err != nil {
			t.Errorf("serve: got %v, want nil at the end of its input", err)
		}
	})
	return session
}

func call(t *testing.T, session *mcp.ClientSession, name string, args any) *mcp.CallToolResult {
	t.Helper()
	result, err := session.CallTool(t.Context(), &mcp.CallToolParams{Name: name, Arguments: args})
	if err != nil {
		t.Fatalf("call %s: %v", name, err)
	}
	return result
}

func firstText(t *testing.T, result *mcp.CallToolResult) string {
	t.Helper()
	if len(result.Content) == 0 {
		t.Fatal("got no content")
	}
	content, ok := result.Content[0].(*mcp.TextContent)
	if !ok {
		t.Fatalf("got %T, want text", result.Content[0])
	}
	return content.Text
}

func TestDemoOffers(t *testing.T) {
	session := dialDemo(t, nil)
	tools, err := session.ListTools(t.Context(), nil)
	if err != nil {
		t.Fatal(err)
	}
	names := map[string]bool{}
	for _, tool := range tools.Tools {
		names[tool.Name] = true
	}
	if !names["echo"] || !names["sleep"] || len(names) != 2 {
		t.Errorf("got the tools %v, want echo and sleep", names)
	}
	if got, want := firstText(t, call(t, session, "echo", map[string]any{"message": "a\nb ü"})), "a\nb ü"; got != want {
		t.Errorf("echo: got %q, want %q", got, want)
	}
}

func TestDemoSleepReportsProgress(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		progress := make(chan float64, 8)
		session := dialDemo(t, &mcp.ClientOptions{
			ProgressNotificationHandler: func(_ context.Context, req *mcp.ProgressNotificationClientRequest) {
				progress <- req.Params.Progress
			},
		})
		params := &mcp.CallToolParams{Name: "sleep", Arguments: map[string]any{"seconds": 2.5}}
		params.SetProgressToken("p")
		start := time.Now()
		result, err := session.CallTool(t.Context(), params)
		if err != nil {
			t.Fatal(err)
		}
		if got, want := time.Since(start), 2500*time.Millisecond; got != want {
			t.Errorf("got %v, want %v", got, want)
		}
		if got, want := firstText(t, result), "slept 2.5 seconds"; got != want {
			t.Errorf("got %q, want %q", got, want)
		}
		synctest.Wait()
		if len(progress) != 2 || <-progress != 1 || <-progress != 2 {
			t.Error("want progress 1 and 2")
		}
	})
}

func TestDemoSleepIsBounded(t *testing.T) {
	session := dialDemo(t, nil)
	for _, seconds := range []float64{-1, 60.5, 1e300} {
		if result := call(t, session, "sleep", map[string]any{"seconds": seconds}); !result.IsError {
			t.Errorf("%v seconds: got %q, want an error", seconds, firstText(t, result))
		}
	}
}

func TestDemoSleepHonoursCancellation(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithTimeout(t.Context(), 1500*time.Millisecond)
		defer cancel()
		start := time.Now()
		req := &mcp.CallToolRequest{Params: &mcp.CallToolParamsRaw{}}
		if _, _, err := sleep(ctx, req, sleepInput{Seconds: 60}); err == nil {
			t.Error("got no error from a cancelled call")
		}
		if got, want := time.Since(start), 1500*time.Millisecond; got != want {
			t.Errorf("got %v, want %v", got, want)
		}
	})
}
