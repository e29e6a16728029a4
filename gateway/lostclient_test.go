package gateway_test

import (
	"bytes"
	"context"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/mcp-sse/mcp-sse/connstate"
	"github.com/mcp-sse/mcp-sse/gateway"
	"github.com/mcp-sse/mcp-sse/internal/ssetest"
)

// A client that waits and leaves before its server is ready has no tools, and says nothing: the
// log does, once for each program and hour, and the metrics count each.
func TestClientsLostToTheStart(t *testing.T) {
	const lost = "mcp_sse_clients_lost_to_start_total"
	var log bytes.Buffer
	u := &server{dial: slow(2700 * time.Millisecond)}
	opts := gateway.Options{Logger: slog.New(slog.NewTextHandler(&log, nil))}
	inFakeTime(t, u, opts, func(t *testing.T, g *gateway.Gateway) {
		agent := plain
		agent.UserAgent = "impatient/1.0 (x)"
		leaves := func(after time.Duration, reason connstate.Reason) {
			p := connect(t, g, agent)
			time.Sleep(after)
			p.c.Close(reason)
			synctest.Wait()
		}
		leaves(100*time.Millisecond, connstate.ClosedClient) // it has only looked
		leaves(2*time.Second, connstate.ClosedShutdown)
		leaves(3*time.Second, connstate.ClosedClient) // it was ready in time
		equal(t, "clients lost", metric(t, g, lost), 0)
		leaves(2*time.Second, connstate.ClosedClient)
		leaves(2*time.Second, connstate.ClosedClient)
		equal(t, "clients lost", metric(t, g, lost), 2)
		wantText(t, "log", log.String(), "client left before its server was ready", "client=impatient waited=2s")
		time.Sleep(time.Hour)
		leaves(2*time.Second, connstate.ClosedClient)
		equal(t, "lines of the log", strings.Count(log.String(), "client left before"), 2)

		// Over Streamable HTTP the session stays, and shows when the server was ready.
		log.Reset()
		r := ssetest.Request(t.Context(), http.MethodPost, "/mcp", `{"jsonrpc":"2.0","id":1,"method":"initialize","params":`+
			`{"protocolVersion":"2025-06-18","capabilities":{},"clientInfo":{"name":"codex","version":"1"}}}`)
		ctx, leave := context.WithCancel(t.Context())
		go func() {
			defer func() { _ = recover() }() // the response is aborted
			g.ServeHTTP(httptest.NewRecorder(), r.WithContext(ctx))
		}()
		time.Sleep(2 * time.Second)
		leave()
		time.Sleep(3 * time.Second)
		equal(t, "clients lost", metric(t, g, lost), 4)
		wantText(t, "log", log.String(), "client left before its server was ready", "client=codex waited=2s ready=2.7")
	})
}

// The log says that the next such client is answered from memory only if that is so: one start at a time learns.
func TestRemedyIsTrue(t *testing.T) {
	var log bytes.Buffer
	u := &server{dial: slow(time.Minute)}
	opts := gateway.Options{Logger: slog.New(slog.NewTextHandler(&log, nil)), Remember: &gateway.Remember{}}
	inFakeTime(t, u, opts, func(t *testing.T, g *gateway.Gateway) {
		for i, kind := range []string{"first", "second"} {
			log.Reset()
			agent := plain
			agent.UserAgent = kind + "/1.0"
			p := connect(t, g, agent)
			p.post(`{"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{"experimental":{"` + kind + `":{}}}}}`)
			time.Sleep(2 * time.Second)
			p.c.Close(connstate.ClosedClient)
			synctest.Wait()
			wantText(t, "log", log.String(), "client left before its server was ready", "client="+kind)
			equal(t, kind+": it is answered from memory", strings.Contains(log.String(), "the next such client is answered from memory"), i == 0)
		}
	})
}
