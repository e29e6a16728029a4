//lint:file-ignore SA1019 SEP-2577 deprecates roots; servers use them as long as they exist.

package gosdk_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/mcp-sse/mcp-sse/gosdk"
	"github.com/mcp-sse/mcp-sse/jsonrpc"
	"github.com/mcp-sse/mcp-sse/multiplex"
)

const (
	propertyRuns  = 400
	propertySteps = 60
)

var errOver = errors.New("the test is over")

// TestAnyInterleaving has clients, a go-sdk server and time do anything in any order over
// one session of package multiplex, and checks that each request is answered once, under
// its own id and with its own text, and that nothing reaches another client. A run that
// fails names its seed.
func TestAnyInterleaving(t *testing.T) {
	for seed := range uint64(propertyRuns) {
		ok := t.Run(fmt.Sprint("seed=", seed), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) { interleave(t, seed) })
		})
		if !ok {
			return
		}
	}
}

// actor is a client.
type actor struct {
	t      *testing.T
	name   string
	caller *multiplex.Caller

	mu    sync.Mutex
	open  map[jsonrpc.ID]string // the secrets of the unanswered requests
	asked [][]byte              // requests of the server
}

func (a *actor) settle(id jsonrpc.ID, text string, checked bool) {
	a.mu.Lock()
	defer a.mu.Unlock()
	secret, ok := a.open[id]
	if !ok {
		a.t.Errorf("%s: %s was answered and not open: %s", a.name, id, text)
	}
	delete(a.open, id)
	if checked && !strings.Contains(text, secret) && !strings.Contains(text, `"error"`) {
		a.t.Errorf("%s: %s has not %s: %s", a.name, id, secret, text)
	}
	if checked && !strings.HasPrefix(text, `{"jsonrpc":"2.0","id":`+string(id)+`,`) {
		a.t.Errorf("%s: %s has another id: %s", a.name, id, text)
	}
}

func (a *actor) Answer(id jsonrpc.ID, response []byte, _ string) {
	a.settle(id, string(response), true)
}
func (a *actor) Fail(id jsonrpc.ID, e *jsonrpc.Error, _ string) { a.settle(id, e.Message, false) }
func (a *actor) Lost(m *jsonrpc.Message, _ *jsonrpc.Error)      { a.settle(m.ID, "lost", false) }
func (a *actor) Serves(*jsonrpc.Message) bool                   { return true }
func (a *actor) Deliver(method string, _ jsonrpc.ID, message []byte) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if method == "roots/list" {
		a.asked = append(a.asked, message)
	}
	if method == "notifications/progress" && !strings.Contains(string(message), `"progressToken":"token of `+a.name+`"`) {
		a.t.Errorf("%s: got %s", a.name, message)
	}
}

// erratic returns a server whose tools do what takes time, or asks, or fails.
func erratic() *mcp.Server {
	s := echoServer()
	text := func(r *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
		return &mcp.CallToolResult{Content: []mcp.Content{&mcp.TextContent{Text: string(r.Params.Arguments)}}}, nil
	}
	tool(s, "wait", func(ctx context.Context, r *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
		<-ctx.Done()
		return text(r)
	})
	tool(s, "late", func(ctx context.Context, r *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
		time.Sleep(time.Duration(len(r.Params.Arguments)%7) * 700 * time.Millisecond)
		return text(r)
	})
	tool(s, "work", func(ctx context.Context, r *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
		for n := range 3 {
			if token := r.Params.GetProgressToken(); token != nil {
				_ = r.Session.NotifyProgress(ctx, &mcp.ProgressNotificationParams{ProgressToken: token, Progress: float64(n)}) // the session may be over
			}
			time.Sleep(time.Second)
		}
		return text(r)
	})
	tool(s, "ask", func(ctx context.Context, r *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
		if _, err := r.Session.ListRoots(ctx, nil); err != nil {
			return nil, fmt.Errorf("%s: %w", r.Params.Arguments, err)
		}
		return text(r)
	})
	return s
}

type interleaving struct {
	t      *testing.T
	r      *rand.Rand
	serial int
	actors []*actor
}

func interleave(t *testing.T, seed uint64) {
	x := &interleaving{t: t, r: rand.New(rand.NewPCG(seed, 9))}
	server := erratic()
	conn, err := gosdk.Server(server).Dial(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	clients := 1 + x.r.IntN(3)
	s := multiplex.New(conn, multiplex.Options{
		Shared: clients > 1, MaxInFlight: []int{0, 0, 2}[x.r.IntN(3)],
		RequestTimeout: 10 * time.Second, MaxRequestTimeout: 20 * time.Second,
	})
	if _, err := s.Call(t.Context(), "initialize", json.RawMessage(`{"protocolVersion":"2025-06-18","capabilities":{"roots":{}},"clientInfo":{"name":"x","version":"1"}}`)); err != nil {
		t.Fatal(err)
	}
	for n := range clients {
		a := &actor{t: t, name: fmt.Sprint("client-", n), open: make(map[jsonrpc.ID]string)}
		a.caller = s.Attach(a, a.name, "")
		x.actors = append(x.actors, a)
	}
	end := x.r.IntN(2 * propertySteps)
	for n := range propertySteps {
		switch x.step(x.actors[x.r.IntN(clients)]); {
		case n != end:
		case x.r.IntN(2) == 0:
			s.Close(errOver)
		default:
			for session := range server.Sessions() {
				go func() { _ = session.Close() }() // returns when the handlers have
			}
		}
	}
	time.Sleep(time.Minute) // beyond every deadline
	synctest.Wait()
	s.Close(errOver)
	<-s.Done()
	synctest.Wait()
	for _, a := range x.actors {
		a.mu.Lock()
		for id, secret := range a.open {
			t.Errorf("%s: %s, %s, was never answered", a.name, id, secret)
		}
		a.mu.Unlock()
	}
	if n := sessions(server); n != 0 {
		t.Errorf("the server has %d sessions", n)
	}
}

// step has a client do one random thing.
func (x *interleaving) step(a *actor) {
	switch n := x.r.IntN(100); {
	case n < 55:
		x.call(a)
	case n < 65:
		x.cancel(a)
	case n < 80:
		x.answer(a)
	case n < 85:
		_ = a.caller.Forward(parse(x.t, `{"jsonrpc":"2.0","method":"notifications/roots/list_changed"}`))
	default:
		time.Sleep(time.Duration(x.r.IntN(3000)) * time.Millisecond)
	}
	if x.r.IntN(2) == 0 {
		synctest.Wait()
	}
}

func (x *interleaving) call(a *actor) {
	x.serial++
	id := jsonrpc.ID([]string{"1", "2", `"1"`, "9007199254740993"}[x.r.IntN(4)])
	secret := fmt.Sprintf("secret-%d-of-%s", x.serial, a.name)
	a.mu.Lock()
	if _, used := a.open[id]; used {
		a.mu.Unlock()
		return
	}
	a.open[id] = secret
	a.mu.Unlock()
	meta := ""
	if x.r.IntN(2) == 0 {
		meta = `,"_meta":{"progressToken":"token of ` + a.name + `"}`
	}
	name := []string{"echo", "wait", "late", "work", "ask", "missing"}[x.r.IntN(6)]
	m := parse(x.t, `{"jsonrpc":"2.0","id":`+string(id)+`,"method":"tools/call","params":{"name":"`+name+`","arguments":{"s":"`+secret+`"}`+meta+`}}`)
	if a.caller.Forward(m) != nil {
		a.mu.Lock()
		delete(a.open, id)
		a.mu.Unlock()
	}
}

func (x *interleaving) cancel(a *actor) {
	id := []string{"1", "2", `"1"`}[x.r.IntN(3)]
	a.mu.Lock()
	_, open := a.open[jsonrpc.ID(id)]
	a.mu.Unlock()
	if open {
		_ = a.caller.Forward(parse(x.t, `{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":`+id+`}}`))
	}
}

// answer has a client answer what the server has asked it.
func (x *interleaving) answer(a *actor) {
	a.mu.Lock()
	asked := a.asked
	a.asked = nil
	a.mu.Unlock()
	for _, request := range asked {
		_ = a.caller.Forward(parse(x.t, `{"jsonrpc":"2.0","id":`+string(parse(x.t, string(request)).ID)+`,"result":{"roots":[]}}`))
	}
}
