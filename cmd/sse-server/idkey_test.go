package main

import (
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// post sends a message to /mcp, in a session or to open one, and returns the status and the
// session.
func (p *program) post(session, message string) (status int, opened string) {
	p.t.Helper()
	req, err := http.NewRequestWithContext(p.t.Context(), http.MethodPost, p.base()+"/mcp", strings.NewReader(message))
	if err != nil {
		p.t.Fatal(err)
	}
	req.Header = http.Header{
		"Accept": {"application/json, text/event-stream"}, "Content-Type": {"application/json"}, "Mcp-Session-Id": {session},
	}
	if session == "" {
		req.Header.Del("Mcp-Session-Id")
	}
	res, err := http.DefaultClient.Do(req)
	if err != nil {
		p.t.Fatal(err)
	}
	defer res.Body.Close()
	return res.StatusCode, res.Header.Get("Mcp-Session-Id")
}

// Processes with one key know each other's sessions, also at the same time. They read it once.
func TestProcessesWithOneKey(t *testing.T) {
	defer http.DefaultClient.CloseIdleConnections()
	const list = `{"jsonrpc":"2.0","id":1,"method":"tools/list"}`
	dir := t.TempDir()
	env := map[string]string{"STATE_DIRECTORY": dir}
	one, two := startWith(t, env, "--addr", "127.0.0.1:0"), startWith(t, env, "--addr", "127.0.0.1:0")
	status, session := one.post("", `{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{}}}`)
	if status != http.StatusOK || session == "" {
		t.Fatalf("initialize: got %d, session %q", status, session)
	}
	if status, _ := two.post(session, list); status != http.StatusOK {
		t.Errorf("the other process: got %d", status)
	}
	if err := os.WriteFile(filepath.Join(dir, "id-key"), []byte(strings.Repeat("x", 32)), 0o600); err != nil {
		t.Fatal(err)
	}
	for process, want := range map[*program]int{one: http.StatusOK, two: http.StatusOK, startWith(t, env, "--addr", "127.0.0.1:0"): http.StatusNotFound} {
		if status, _ := process.post(session, list); status != want {
			t.Errorf("after the key has changed: got %d, want %d", status, want)
		}
	}
}
