package main

import (
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/mcp-sse/mcp-sse/cmd/sse-server/internal/clitest"
	"github.com/mcp-sse/mcp-sse/internal/ssetest"
)

// The login of a person on this machine is for no request that a proxy has brought there: it gets neither the login nor
// a link. With login: shared it is meant for all.
func TestLoginIsNotForProxies(t *testing.T) {
	t.Parallel()
	remote, env := newProtected(t), clitest.State(t)
	file := clitest.WriteFile(t, "gw.yaml", "servers:\n  docs: {url: \""+remote.URL+"/mcp\"}\n  demo: {}\n"+
		"views:\n  both: {servers: {docs: {}, demo: {}}}\n")
	p := startWith(t, env, "--addr", "127.0.0.1:0", "-c", file, "--no-start-check")
	send := func(p *program, path, header, value string) (int, string) {
		t.Helper()
		request := clitest.Must(http.NewRequestWithContext(t.Context(), http.MethodPost, strings.TrimSuffix(p.base(), "/docs")+path, strings.NewReader(
			`{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"t","version":"1"}}}`)))
		request.Header.Set("Content-Type", "application/json")
		request.Header.Set("Accept", "application/json, text/event-stream")
		if header != "" {
			request.Header.Set(header, value)
		}
		resp, err := newClient(t, &http.Transport{}).Do(request)
		ssetest.Must(t, err)
		defer resp.Body.Close()
		return resp.StatusCode, string(clitest.Must(io.ReadAll(resp.Body)))
	}
	headers := map[string]string{"X-Forwarded-For": "192.0.2.1", "X-Forwarded-Proto": "https", "Forwarded": "for=192.0.2.1",
		"Via": "1.1 x", "Cf-Connecting-Ip": "192.0.2.1", "Cf-Ray": "1"}
	for header, value := range headers {
		_, body := send(p, "/docs/mcp", header, value)
		if strings.Contains(body, "Nobody is logged in") || strings.Contains(body, "/authorize") {
			t.Errorf("before the login, with %s: %s", header, body)
		}
	}
	code, body := send(p, "/docs/mcp", "", "")
	ssetest.Want(t, "status before the login", code, http.StatusOK)
	ssetest.WantText(t, "answer before the login", body, "Nobody is logged in")
	remote.logIn(t, env)
	awaitTools(t, connectTo(t, p.url), "whoami")
	for header, value := range headers {
		for _, path := range []string{"/docs/mcp", "/both/mcp"} {
			code, body := send(p, path, header, value)
			ssetest.Want(t, "status of "+path+" with "+header, code, http.StatusForbidden)
			ssetest.WantText(t, "answer", body, "for this machine alone")
		}
		code, _ := send(p, "/demo/mcp", header, value)
		ssetest.Want(t, "status of a server without a login", code, http.StatusOK)
	}
	shared := startWith(t, env, "--addr", "127.0.0.1:0", "--url", remote.URL+"/mcp", "--no-start-check", "--login", "shared")
	code, _ = send(shared, "/mcp", "Via", "1.1 x")
	ssetest.Want(t, "status where the login is meant for all", code, http.StatusOK)
}
