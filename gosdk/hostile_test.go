//lint:file-ignore SA1019 SEP-2577 deprecates logging; servers use it as long as it exists.

package gosdk_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/mcp-sse/mcp-sse/gateway"
	"github.com/mcp-sse/mcp-sse/gosdk"
	"github.com/mcp-sse/mcp-sse/jsonrpc"
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
		e, err := readEvent(s)
		if err != nil {
			break
		}
		if strings.Contains(e, `"session_lost"`) {
			id, _, _ := strings.Cut(strings.TrimPrefix(e, `{"jsonrpc":"2.0","id":`), ",")
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
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	s.send(`{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"flood","_meta":{"progressToken":1}}}`)
	eventually(t, func() error {
		if held, _ := strconv.ParseFloat(heldBytes(w.gw), 64); held < 900<<10 { // the outbox has 1 MiB
			return fmt.Errorf("%g bytes are held", held)
		}
		return nil
	})
	runtime.GC()
	runtime.ReadMemStats(&after)
	if grown := int64(after.HeapAlloc) - int64(before.HeapAlloc); grown > 32<<20 {
		t.Errorf("the heap has grown by %d bytes", grown)
	}
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

// A handler that panics is answered with an error if the server has the middleware.
func TestRecover(t *testing.T) {
	w := newWorld(t, ours, mcp.ServerOptions{})
	tool(w.server, "panic", func(context.Context, *mcp.CallToolRequest) (*mcp.CallToolResult, error) { panic("oh no") })
	w.server.AddReceivingMiddleware(gosdk.Recover)
	s := w.open()
	s.send(`{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"panic","arguments":{}}}`)
	if got, want := s.await(`"id":1`), `{"jsonrpc":"2.0","id":1,"error":{"code":-32603,"message":"handler panicked: oh no"}}`; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
	s.send(`{"jsonrpc":"2.0","id":2,"method":"tools/call","params":{"name":"greet","arguments":{"name":"x"}}}`)
	s.await("Hi x")
}

// A handler that never returns keeps neither its client's stream nor the gateway.
func TestHandlerThatNeverReturns(t *testing.T) {
	w := newWorld(t, ours, mcp.ServerOptions{})
	release := make(chan struct{})
	begun := blocked(w.server, release)
	s := w.open()
	s.send(`{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"block","arguments":{}}}`)
	<-begun
	ctx, cancel := context.WithTimeout(t.Context(), 300*time.Millisecond)
	defer cancel()
	if err := w.gw.Shutdown(ctx); err == nil || !strings.Contains(err.Error(), "1 requests answered with an error") {
		t.Errorf("Shutdown: %v", err)
	}
	if got := s.await(`"id":1`); !strings.Contains(got, "draining") {
		t.Errorf("got %s", got)
	}
	close(release)
	w.awaitSessions(0)
}

// Of 10,000 sessions (4,000 with the race detector) that were opened, used and closed, nothing is left.
func TestNoLeaks(t *testing.T) {
	server := echoServer()
	dial(t, server).initialized().close() // go-sdk and the runtime keep some things
	before := runtime.NumGoroutine()
	var workers sync.WaitGroup
	for n := range 8 {
		workers.Go(func() {
			for i := range opened / 8 {
				l := dial(t, server).initialized()
				if got := l.call("echo", `{"n":1}`); !strings.Contains(got, "content") {
					t.Errorf("got %s", got)
				}
				switch {
				case (i+n)%3 == 0: // in the middle of a call
					if _, err := l.request("tools/call", `{"name":"echo","arguments":{}}`); err != nil {
						t.Error(err)
					}
				case (i+n)%3 == 1:
					if err := l.conn.Send([]byte(`{"jsonrpc":"2.0","method":"notifications/roots/list_changed"}`)); err != nil {
						t.Error(err)
					}
				}
				l.close()
				if got := <-l.pushed; got != jsonrpc.ErrClosed.Error() {
					t.Errorf("the end is %s", got)
				}
			}
		})
	}
	workers.Wait()
	awaitSessions(t, server, 0)
	eventually(t, func() error {
		if now := runtime.NumGoroutine(); now > before {
			return fmt.Errorf("%d goroutines, %d before", now, before)
		}
		return nil
	})
}
