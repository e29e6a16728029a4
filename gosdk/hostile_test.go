//lint:file-ignore SA1019 SEP-2577 deprecates logging; servers use it as long as it exists.

package gosdk_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"sync"
	"testing"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/mcp-sse/mcp-sse/gateway"
)

// heldBytes returns what the gateway's metrics say of the bytes that wait.
func heldBytes(gw *gateway.Gateway) string {
	w := httptest.NewRecorder()
	gw.Admin().ServeHTTP(w, httptest.NewRequest(http.MethodGet, "http://localhost/metrics", nil))
	text, _ := io.ReadAll(w.Body)
	for line := range strings.Lines(string(text)) {
		if value, ok := strings.CutPrefix(line, "mcp_sse_held_bytes "); ok {
			return strings.TrimSpace(value)
		}
	}
	return "no such series"
}

// A server that closes its sessions while calls run: go-sdk drops their results, and the
// gateway answers each with an error before the stream ends.
func TestServerClosedWhileCallsRun(t *testing.T) {
	w := newWorld(t, ours, mcp.ServerOptions{})
	release := make(chan struct{})
	begun := blocked(w.server, release)
	s := w.open()
	for id := range 3 {
		s.send(fmt.Sprintf(`{"jsonrpc":"2.0","id":%d,"method":"tools/call","params":{"name":"block","arguments":{}}}`, id))
		<-begun
	}
	var closing sync.WaitGroup
	for session := range w.server.Sessions() {
		closing.Go(func() { _ = session.Close() })
		eventually(t, func() error {
			if err := session.Ping(t.Context(), nil); err == nil {
				return errors.New("the session is not closing")
			}
			return nil
		})
	}
	s.send(`{"jsonrpc":"2.0","id":3,"method":"tools/call","params":{"name":"greet","arguments":{"name":"x"}}}`) // go-sdk drops it
	close(release)
	closing.Wait()
	left := make(map[string]bool)
	for {
		e, err := s.Next()
		if err != nil {
			break
		}
		if strings.Contains(e.Data, `"session_lost"`) {
			id, _, _ := strings.Cut(strings.TrimPrefix(e.Data, `{"jsonrpc":"2.0","id":`), ",")
			if left[id] {
				t.Errorf("%s was answered twice", id)
			}
			left[id] = true
		}
	}
	if len(left) != 4 {
		t.Errorf("answered: %v, want 0 to 3", left)
	}
	w.awaitSessions(0)
}

// A client that does not read: the handler waits, within bounds, until the client is gone.
func TestNotificationsToAClientThatDoesNotRead(t *testing.T) {
	w := &world{t: t, kind: ours, saw: newJournal(t)}
	w.server = echoServer()
	written := make(chan string, 1)
	tool(w.server, "flood", func(ctx context.Context, r *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
		for n := range 100_000 {
			if err := r.Session.NotifyProgress(ctx, &mcp.ProgressNotificationParams{ProgressToken: r.Params.GetProgressToken(), Progress: float64(n), Message: strings.Repeat("x", 1000)}); err != nil {
				written <- fmt.Sprintf("ended by %v after some: %t", err, n > 10)
				return nil, err
			}
		}
		written <- "all were written"
		return &mcp.CallToolResult{}, nil
	})
	w.serve(func(*http.Request) *mcp.Server { return w.server }, &gateway.Options{})
	s := w.open()
	s.send(`{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"flood","_meta":{"progressToken":1}}}`)
	eventually(t, func() error {
		if held, _ := strconv.ParseFloat(heldBytes(w.gw), 64); held < 900<<10 { // the outbox has 1 MiB
			return fmt.Errorf("%g bytes are held", held)
		}
		return nil
	})
	w.cut()
	if got := <-written; !strings.Contains(got, "after some: true") {
		t.Error(got)
	}
	w.awaitSessions(0)
	eventually(t, func() error {
		if got := heldBytes(w.gw); got != "0" {
			return fmt.Errorf("%s bytes are held", got)
		}
		return nil
	})
}
