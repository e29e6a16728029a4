package main

import (
	"context"
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/mark3labs/mcp-go/client"
	"github.com/mark3labs/mcp-go/mcp"
	"go.uber.org/goleak"
)

func TestMain(m *testing.M) {
	goleak.VerifyTestMain(m)
}

// echo builds the child.
func echo(t *testing.T) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "echo")
	if out, err := exec.CommandContext(t.Context(), "go", "build", "-o", path, "../echo").CombinedOutput(); err != nil {
		t.Fatalf("build echo: %v\n%s", err, out)
	}
	return path
}

func TestToolsAreThoseOfTheChild(t *testing.T) {
	child, tools, err := start(t.Context(), []string{echo(t)})
	if err != nil {
		t.Fatal(err)
	}
	defer child.Close()
	srv := httptest.NewServer(serverOf(child, tools))
	defer srv.Close()
	defer srv.CloseClientConnections()
	defer http.DefaultClient.CloseIdleConnections()
	c, err := client.NewSSEMCPClient(srv.URL + "/sse")
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	if err := c.Start(context.Background()); err != nil {
		t.Fatal(err)
	}
	if _, err := c.Initialize(t.Context(), mcp.InitializeRequest{}); err != nil {
		t.Fatal(err)
	}
	var call mcp.CallToolRequest
	call.Params.Name, call.Params.Arguments = "echo", map[string]any{"message": "hello"}
	result, err := c.CallTool(t.Context(), call)
	if err != nil {
		t.Fatal(err)
	}
	if text, err := json.Marshal(result.Content); err != nil || string(text) != `[{"type":"text","text":"hello"}]` {
		t.Errorf("echo = %s, %v", text, err)
	}
}

func TestRunFailsWithoutAServer(t *testing.T) {
	for name, command := range map[string][]string{"None": nil, "NoSuch": {filepath.Join(os.TempDir(), "no-such-server")}} {
		t.Run(name, func(t *testing.T) {
			if err := run(t.Context(), "127.0.0.1:0", command); err == nil {
				t.Error("run = nil, want an error")
			}
		})
	}
}
