package acceptance

import (
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"net/http/httptest"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	gw "github.com/mcp-sse/mcp-sse/gateway"
	"github.com/mcp-sse/mcp-sse/internal/ssetest"
	"github.com/mcp-sse/mcp-sse/upstream"
)

// Rules about time are tested with the library, in fake time: it passes when all wait.

// library is a gateway in this process, with a client of Streamable HTTP.
type library struct {
	t       *testing.T
	handler *gw.Gateway
	session string
	log     ssetest.Output
}

// inFakeTime runs a test with a gateway in front of a server.
func inFakeTime(t *testing.T, options gw.Options, server upstream.Handle, test func(l *library)) {
	t.Helper()
	inFakeTimeWith(t, options, server, test)
}

// inFakeTimeWith is inFakeTime with any upstream.
func inFakeTimeWith(t *testing.T, options gw.Options, server upstream.Upstream, test func(l *library)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		l := &library{t: t}
		options.Logger = slog.New(slog.NewJSONHandler(&l.log, &slog.HandlerOptions{Level: slog.LevelDebug}))
		var err error
		l.handler, err = gw.New(server, options)
		ssetest.Must(t, err)
		test(l)
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		ssetest.Must(t, l.handler.Shutdown(ctx))
	})
}

// initialized opens a session. Half a minute later it is no news.
func (l *library) initialized() {
	l.t.Helper()
	l.post(`{"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":"2025-06-18","capabilities":{},"clientInfo":{"name":"c","version":"1"}}}`)
	time.Sleep(30 * time.Second)
}

// silent is a server that never answers.
func silent(ctx context.Context, _ json.RawMessage) any {
	<-ctx.Done()
	return nil
}

// sleeper is a server that answers a call after the time that it asks for.
func sleeper(ctx context.Context, message json.RawMessage) any {
	var r struct {
		ID     json.RawMessage `json:"id"`
		Params struct {
			Arguments struct {
				For time.Duration `json:"for"`
			} `json:"arguments"`
		} `json:"params"`
	}
	if json.Unmarshal(message, &r) != nil || r.ID == nil {
		return nil
	}
	select {
	case <-time.After(r.Params.Arguments.For * time.Second):
	case <-ctx.Done():
	}
	return json.RawMessage(fmt.Sprintf(`{"jsonrpc":"2.0","id":%s,"result":{"protocolVersion":"2025-06-18","capabilities":{"tools":{}},`+
		`"serverInfo":{"name":"sleeper","version":"1"},"content":[{"type":"text","text":"%d s"}]}}`, r.ID, r.Params.Arguments.For))
}

// post posts a message over Streamable HTTP, and returns the answer when it has come.
func (l *library) post(message string) response {
	l.t.Helper()
	answer := httptest.NewRecorder()
	r := ssetest.Request(l.t.Context(), "POST", "/mcp", message)
	if l.session != "" {
		r.Header.Set("Mcp-Session-Id", l.session)
	}
	l.handler.ServeHTTP(answer, r)
	if id := answer.Header().Get("Mcp-Session-Id"); id != "" {
		l.session = id
	}
	body := answer.Body.String()
	if _, last, ok := strings.Cut(body, "data: {"); ok { // it took so long that it became a stream
		body, _, _ = strings.Cut("{"+last, "\n")
	}
	return parse(l.t, body)
}

// sleep calls a tool of sleeper, whose answer takes so many seconds.
func (l *library) sleep(id, seconds int) response {
	l.t.Helper()
	return l.post(fmt.Sprintf(`{"jsonrpc":"2.0","id":%d,"method":"tools/call","params":{"name":"sleep","arguments":{"for":%d}}}`, id, seconds))
}
