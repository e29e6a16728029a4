package main

import (
	"context"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"

	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// remoteEcho is a server with the tool echo over Streamable HTTP. It wants a token,
// and notes the header X-User of each request.
func remoteEcho(t *testing.T) (url string, users func() []string) {
	t.Helper()
	server := mcp.NewServer(&mcp.Implementation{Name: "remote", Version: "1"}, nil)
	type input struct {
		Message string `json:"message"`
	}
	mcp.AddTool(server, &mcp.Tool{Name: "echo"}, func(_ context.Context, _ *mcp.CallToolRequest, in input) (*mcp.CallToolResult, any, error) {
		return &mcp.CallToolResult{Content: []mcp.Content{&mcp.TextContent{Text: in.Message}}}, nil, nil
	})
	handler := mcp.NewStreamableHTTPHandler(func(*http.Request) *mcp.Server { return server }, nil)
	var seen lockedBuffer
	ts := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get("Authorization") != "Bearer "+secret {
			http.Error(w, "no", http.StatusUnauthorized)
			return
		}
		if user := r.Header.Get("X-User"); user != "" {
			seen.Write([]byte(user + "\n"))
		}
		handler.ServeHTTP(w, r)
	}))
	t.Cleanup(ts.Close)
	return ts.URL + "/mcp", func() []string { return strings.Fields(seen.String()) }
}

func TestServeARemoteServer(t *testing.T) {
	url, users := remoteEcho(t)
	env := map[string]string{"UPSTREAM_TOKEN": secret}
	p := startWith(t, env, "--addr", "127.0.0.1:0", "--log-level", "debug", "--url", url+"?key="+secret,
		"--header", "Authorization: Bearer ${UPSTREAM_TOKEN}", "--forward-header", "X-User")
	client := mcp.NewClient(&mcp.Implementation{Name: "test", Version: "1"}, nil)
	session, err := client.Connect(t.Context(), &mcp.SSEClientTransport{
		Endpoint: p.url, HTTPClient: &http.Client{Transport: headerSetter{newClient(t, &http.Transport{}).Transport, "X-User", "ada"}},
	}, nil)
	if err != nil {
		t.Fatalf("%v\n%s", err, p.log.String())
	}
	if got, want := firstText(t, call(t, session, "echo", map[string]any{"message": "hi"})), "hi"; got != want {
		t.Errorf("echo: got %q, want %q", got, want)
	}
	session.Close()
	p.stop()
	if seen := users(); len(seen) == 0 || slices.ContainsFunc(seen, func(user string) bool { return user != "ada" }) {
		t.Errorf("the remote server saw the users %q, want ada", seen)
	}
	if !strings.Contains(p.out.String(), "what "+url+" offers") {
		t.Errorf("the banner does not name the server:\n%s", p.out.String())
	}
	if strings.Contains(p.out.String()+p.log.String(), secret) {
		t.Errorf("the secret is in the output:\n%s%s", p.out.String(), p.log.String())
	}
}

// A remote server that refuses access is told by its status, not by the token.
func TestRemoteServerThatRefuses(t *testing.T) {
	url, _ := remoteEcho(t)
	p := start(t, "--addr", "127.0.0.1:0", "--log-level", "debug", "--error-details", "full", "--url", url+"?key="+secret, "--header", "X-Key: "+secret)
	client := newClient(t, &http.Transport{})
	code, body := get(t, client, p.base()+"/readyz", "")
	if code != http.StatusServiceUnavailable || !strings.Contains(body, "401") {
		t.Errorf("/readyz: got %d %s, want 503 with the status of the remote server", code, body)
	}
	p.stop()
	if strings.Contains(body+p.out.String()+p.log.String(), secret) {
		t.Errorf("the secret is in the output:\n%s\n%s", body, p.log.String())
	}
}

// headerSetter is a client with a header of its own.
type headerSetter struct {
	next        http.RoundTripper
	name, value string
}

func (s headerSetter) RoundTrip(r *http.Request) (*http.Response, error) {
	r = r.Clone(r.Context())
	r.Header.Set(s.name, s.value)
	return s.next.RoundTrip(r)
}
