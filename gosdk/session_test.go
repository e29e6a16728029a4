//lint:file-ignore SA1019 SEP-2577 deprecates sampling; servers use it as long as it exists.

package gosdk_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	sdk "github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/mcp-sse/mcp-sse/gosdk"
	"github.com/mcp-sse/mcp-sse/internal/ssetest"
	"github.com/mcp-sse/mcp-sse/jsonrpc"
)

// blocked adds a tool whose calls wait until release is closed, whatever their context
// says. begun gets one value for each.
func blocked(server *mcp.Server, release chan struct{}) (begun chan struct{}) {
	begun = make(chan struct{}, 1<<16)
	tool(server, "block", func(context.Context, *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
		begun <- struct{}{}
		<-release
		return &mcp.CallToolResult{}, nil
	})
	return begun
}

func sessions(server *mcp.Server) int { return len(slices.Collect(server.Sessions())) }

func TestDialFails(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := gosdk.Server(echoServer()).Dial(ctx); !errors.Is(err, context.Canceled) {
		t.Errorf("with an ended context: %v", err)
	}
	if _, err := gosdk.Server(nil).Dial(t.Context()); err == nil || !strings.Contains(err.Error(), "nil") {
		t.Errorf("of a nil server: %v", err)
	}
}

// Close ends the contexts of the handlers, and waits until they have returned.
func TestCloseEndsHandlers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		server := echoServer()
		begun, ended := make(chan struct{}), false
		tool(server, "wait", func(ctx context.Context, _ *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
			close(begun)
			<-ctx.Done()
			time.Sleep(time.Second)
			ended = true
			return nil, ctx.Err()
		})
		l := dial(t, server).initialized()
		ssetest.Must(t, l.request("tools/call", `{"name":"wait"}`))
		<-begun
		l.close()
		if !ended || sessions(server) != 0 {
			t.Errorf("handler ended %t, %d sessions are left", ended, sessions(server))
		}
		ssetest.Want(t, "end", <-l.pushed, jsonrpc.ErrClosed.Error())
		l.close() // again
		ssetest.WantError(t, "a request after Close", l.request("ping", `{}`), jsonrpc.ErrClosed)
		ssetest.WantError(t, "a notification after Close", l.conn.Send([]byte(`{"jsonrpc":"2.0","method":"x"}`)), jsonrpc.ErrClosed)
	})
}

// A handler that never returns does not keep Close.
func TestCloseGivesUpOnAHandler(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		server, release := echoServer(), make(chan struct{})
		begun := blocked(server, release)
		l := dial(t, server).initialized()
		ssetest.Must(t, l.request("tools/call", `{"name":"block"}`))
		<-begun
		began := time.Now()
		err := l.conn.Close()
		if err == nil || time.Since(began) != 2*time.Second {
			t.Errorf("Close returned %v after %s", err, time.Since(began))
		}
		if got := <-l.pushed; got != jsonrpc.ErrClosed.Error() || sessions(server) != 1 {
			t.Errorf("the end is %q, with %d sessions", got, sessions(server))
		}
		close(release)
		synctest.Wait()
		ssetest.Want(t, "sessions after the handler has returned", sessions(server), 0)
		l.close()
	})
}

// A session that the server closes ends with the reason, and is not one for another.
func TestServerCloses(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		server := echoServer()
		for _, early := range []bool{true, false} {
			l := dial(t, server)
			if !early {
				l.initialized()
			}
			for s := range server.Sessions() {
				ssetest.Want(t, "Close", s.Close(), nil)
			}
			if early {
				l.push()
			}
			ssetest.Want(t, "end", <-l.pushed, jsonrpc.ErrDismissed.Error())
			ssetest.WantError(t, "a request after the end", l.request("ping", `{}`), jsonrpc.ErrDismissed)
			l.close()
			synctest.Wait()
			if len(l.pushed) > 0 {
				t.Errorf("after the end came %s", <-l.pushed)
			}
		}
	})
}

// A message that a server sends before anybody receives waits; a session that nobody receives from
// can be closed.
func TestServerSendsEarly(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		server := echoServer()
		l, unused := dial(t, server), dial(t, server)
		tool(server, "late", nil)
		time.Sleep(time.Second) // go-sdk waits for more changes
		l.push()
		ssetest.WantText(t, "text", <-l.pushed, "tools/list_changed")
		unused.close()
		l.close()
	})
}

func TestProtocolVersions(t *testing.T) {
	l := dial(t, echoServer()).initialized()
	defer l.close()
	ssetest.Must(t, l.request("server/discover", `{"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{}}}`))
	if got := <-l.results; strings.Contains(got, `"2026-07-28"`) || !strings.Contains(got, `"2025-11-25"`) {
		t.Errorf("the server offers %s", got)
	}
}

// Whatever a server returns that has a JSON form, its request is answered once with one line
// of it. go-sdk does not answer if a result has none; the gateway does after its timeout.
func TestOddResults(t *testing.T) {
	server := echoServer()
	server.AddReceivingMiddleware(gosdk.Recover)
	var result *mcp.CallToolResult
	var fault error
	tool(server, "odd", func(context.Context, *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
		switch fault {
		case errPanics:
			panic("<oh>\nno")
		case errExits:
			runtime.Goexit()
		}
		return result, fault
	})
	l := dial(t, server).initialized()
	defer l.close()
	for _, test := range []struct {
		result *mcp.CallToolResult
		fault  error
		want   string
	}{
		{nil, nil, "2 null"}, // as go-sdk sends it
		{nil, &sdk.Error{Code: 1, Message: "\xff", Data: json.RawMessage("no JSON")}, `{"code":-32603,"message":"the server's answer has no JSON form`},
		{nil, &sdk.Error{Code: -5, Message: "<x>", Data: json.RawMessage("{\n}")}, `{"code":-5,"message":"<x>","data":{}}`},
		{nil, fmt.Errorf("plain"), `{"code":0,"message":"plain"}`},
		{nil, errPanics, `{"code":-32603,"message":"handler panicked: <oh>\nno"}`},
		{nil, errExits, `{"code":-32603,"message":"handler ended its goroutine"}`},
	} {
		result, fault = test.result, test.fault
		if got := l.call("odd", `{}`); !strings.Contains(got, test.want) || strings.ContainsAny(got, "\n\r") {
			t.Errorf("%v, %v: got %s, want %s", test.result, test.fault, got, test.want)
		}
	}
	ssetest.WantText(t, "afterwards", l.call("echo", `{}`), "content")
}

var (
	errPanics = errors.New("the handler panics")
	errExits  = errors.New("the handler ends its goroutine")
)

// The answer of a client to a request of the server reaches the handler, whatever it is.
func TestOddAnswersOfClients(t *testing.T) {
	server := echoServer()
	tool(server, "ask", func(ctx context.Context, r *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
		got, err := r.Session.CreateMessage(ctx, &mcp.CreateMessageParams{MaxTokens: 1, Messages: []*mcp.SamplingMessage{}})
		return &mcp.CallToolResult{Content: []mcp.Content{&mcp.TextContent{Text: fmt.Sprintf("%s|%v", asJSON(got), err)}}}, nil
	})
	l := dial(t, server).initialized()
	defer l.close()
	for answer, want := range map[string]string{
		`"result":{"role":"user","model":"m","content":{"type":"text","text":"hi"}}`: `hi`,
		`"error":{"code":-7,"message":"no"}`:                                         `no`,
		`"error":"no object"`:                                                        `wrong form`,
		`"error":{"code":1.5,"message":{}}`:                                          `wrong form`,
		`"result":5`:                                                                 `cannot unmarshal`,
	} {
		ssetest.Must(t, l.request("tools/call", `{"name":"ask","arguments":{}}`))
		asked, err := jsonrpc.Parse([]byte(<-l.pushed))
		if err != nil || asked.Method != "sampling/createMessage" {
			t.Fatalf("the server asks %v, %v", asked, err)
		}
		for _, id := range []string{`"x"`, "1.5", "99", string(asked.ID), string(asked.ID)} { // others are dropped
			if err := l.conn.Send([]byte(`{"jsonrpc":"2.0","id":` + id + `,` + answer + `}`)); err != nil {
				t.Errorf("%s: %v", id, err)
			}
		}
		ssetest.WantText(t, answer, <-l.results, want)
	}
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
	ssetest.Want(t, "answered requests", len(left), 4)
	w.awaitSessions(0)
}
