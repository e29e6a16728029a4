package mcpgo_test

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"runtime"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/mark3labs/mcp-go/mcp"
	"github.com/mark3labs/mcp-go/server"

	"github.com/mcp-sse/mcp-sse/internal/budget"
	"github.com/mcp-sse/mcp-sse/jsonrpc"
	"github.com/mcp-sse/mcp-sse/mcpgo"
	"github.com/mcp-sse/mcp-sse/metrics"
	"github.com/mcp-sse/mcp-sse/multiplex"
	"github.com/mcp-sse/mcp-sse/upstream"
)

const helloParams = `{"protocolVersion":"2025-06-18","capabilities":{},"clientInfo":{"name":"x","version":"1"}}`

// session opens a session and initializes it.
func session(t testing.TB, up upstream.Upstream) *multiplex.Session {
	t.Helper()
	conn, err := up.Dial(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	s := multiplex.New(conn, multiplex.Options{})
	if _, err := s.Call(t.Context(), "initialize", json.RawMessage(helloParams)); err != nil {
		t.Fatal(err)
	}
	return s
}

func callTool(t testing.TB, s *multiplex.Session, tool string) (*jsonrpc.Message, error) {
	return s.Call(t.Context(), "tools/call", json.RawMessage(`{"name":"`+tool+`","arguments":{"text":"hi"}}`))
}

// sessions is how many sessions a server has.
func counting() (count func() int, hooks *server.Hooks) {
	var mu sync.Mutex
	n := 0
	add := func(by int) {
		mu.Lock()
		defer mu.Unlock()
		n += by
	}
	hooks = &server.Hooks{}
	hooks.AddOnRegisterSession(func(context.Context, server.ClientSession) { add(1) })
	hooks.AddOnUnregisterSession(func(context.Context, server.ClientSession) { add(-1) })
	return func() int {
		mu.Lock()
		defer mu.Unlock()
		return n
	}, hooks
}

// Sessions that are opened, used and closed leave nothing behind.
func TestSessionsLeaveNothing(t *testing.T) {
	count, hooks := counting()
	srv := server.NewMCPServer("x", "1", server.WithHooks(hooks))
	srv.AddTool(mcp.NewTool("notify"), func(ctx context.Context, _ mcp.CallToolRequest) (*mcp.CallToolResult, error) {
		return mcp.NewToolResultText("ok"), srv.SendNotificationToClient(ctx, "notifications/x", nil)
	})
	up := mcpgo.Server(srv)
	before := runtime.NumGoroutine()
	for range 10_000 {
		s := session(t, up)
		if _, err := callTool(t, s, "notify"); err != nil {
			t.Fatal(err)
		}
		s.Close(errors.New("over"))
		<-s.Done()
	}
	if n := count(); n != 0 {
		t.Errorf("%d sessions are registered", n)
	}
	deadline := time.Now().Add(time.Minute)
	for runtime.NumGoroutine() > before && time.Now().Before(deadline) {
		runtime.Gosched()
	}
	if n := runtime.NumGoroutine(); n > before {
		t.Errorf("%d goroutines, %d before", n, before)
	}
}

// A session without notifications has no goroutine: the bubble would not end with one.
func TestIdleSessionHasNoGoroutine(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		for range 50 {
			_ = session(t, mcpgo.Server(echo()))
		}
	})
}

func TestNoServer(t *testing.T) {
	if _, err := mcpgo.Server(nil).Dial(t.Context()); err == nil || !strings.Contains(err.Error(), "there is no server") {
		t.Errorf("got %v", err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := mcpgo.Server(echo()).Dial(ctx); !errors.Is(err, context.Canceled) {
		t.Errorf("with an ended context: got %v", err)
	}
}

// odd is a server whose tools misbehave.
func odd() *server.MCPServer {
	srv := server.NewMCPServer("odd", "1")
	add := func(name string, f func(ctx context.Context) (*mcp.CallToolResult, error)) {
		srv.AddTool(mcp.NewTool(name), func(ctx context.Context, _ mcp.CallToolRequest) (*mcp.CallToolResult, error) { return f(ctx) })
	}
	add("panic", func(context.Context) (*mcp.CallToolResult, error) { panic("boom") })
	add("goexit", func(context.Context) (*mcp.CallToolResult, error) { runtime.Goexit(); return nil, nil })
	add("nothing", func(context.Context) (*mcp.CallToolResult, error) { return nil, nil })
	add("no JSON form", func(context.Context) (*mcp.CallToolResult, error) {
		return &mcp.CallToolResult{StructuredContent: make(chan int)}, nil
	})
	add("not UTF-8", func(context.Context) (*mcp.CallToolResult, error) {
		return &mcp.CallToolResult{StructuredContent: json.RawMessage("{\"a\":\n\"\xff\"}")}, nil
	})
	return srv
}

// A handler that misbehaves is answered, whatever it does, and the session goes on.
func TestOddHandlers(t *testing.T) {
	var log bytes.Buffer
	up := mcpgo.Server(odd()).(interface {
		Observed(*slog.Logger, *metrics.Metrics, *budget.Account) jsonrpc.Dialer
	}).Observed(slog.New(slog.NewTextHandler(&log, nil)), nil, nil)
	s := session(t, up)
	defer s.Close(errors.New("over"))
	for tool, want := range map[string]string{
		"panic":        `{"code":-32603,"message":"internal panic: boom"}`,
		"goexit":       `{"code":-32603,"message":"handler ended its goroutine instead of returning a response"}`,
		"no JSON form": `{"code":-32603,"message":"response has no JSON form: json: error calling MarshalJSON for type *mcp.CallToolResult: json: unsupported type: chan int"}`,
		"not UTF-8":    `"structuredContent":{"a":"` + "\ufffd" + `"}`,
		"nothing":      `"error"`,
	} {
		got, err := callTool(t, s, tool)
		if err != nil || !bytes.Contains(got.Raw(), []byte(want)) {
			t.Errorf("%s: got %s, %v, want %s", tool, got.Raw(), err, want)
		}
	}
	if got := log.String(); !strings.Contains(got, "handler panicked") || !strings.Contains(got, "session_test.go") {
		t.Errorf("logged %s", got)
	}
}

// A handler of notifications that misbehaves keeps no other from its own.
func TestOddNotificationHandlers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		srv := server.NewMCPServer("x", "1")
		var got []int
		srv.AddNotificationHandler("notifications/n", func(_ context.Context, n mcp.JSONRPCNotification) {
			i := int(n.Params.AdditionalFields["i"].(float64))
			got = append(got, i)
			switch i % 3 {
			case 1:
				panic("boom")
			case 2:
				runtime.Goexit()
			}
		})
		s := session(t, mcpgo.Server(srv))
		defer s.Close(errors.New("over"))
		for i := range 10 {
			if err := s.Notify("notifications/n", fmt.Appendf(nil, `{"i":%d}`, i)); err != nil {
				t.Fatal(err)
			}
		}
		synctest.Wait()
		if fmt.Sprint(got) != "[0 1 2 3 4 5 6 7 8 9]" {
			t.Errorf("got %v, want all in order", got)
		}
	})
}

// A handler that never returns, or too late, holds up neither the end of its session nor
// others; what it returns is dropped.
func TestHandlerReturnsTooLate(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		count, hooks := counting()
		srv := server.NewMCPServer("x", "1", server.WithHooks(hooks))
		release := make(chan struct{})
		srv.AddTool(mcp.NewTool("stuck"), func(context.Context, mcp.CallToolRequest) (*mcp.CallToolResult, error) {
			<-release
			return mcp.NewToolResultText("late"), nil
		})
		srv.AddNotificationHandler("notifications/stuck", func(context.Context, mcp.JSONRPCNotification) { <-release })
		s := session(t, mcpgo.Server(srv))
		answer := make(chan error)
		go func() {
			_, err := callTool(t, s, "stuck")
			answer <- err
		}()
		if err := s.Notify("notifications/stuck", nil); err != nil {
			t.Fatal(err)
		}
		synctest.Wait()
		began := time.Now()
		s.Close(errors.New("enough"))
		if err := <-answer; err == nil || !strings.Contains(err.Error(), "enough") {
			t.Errorf("got %v", err)
		}
		if took := time.Since(began); took > 0 || count() != 0 {
			t.Errorf("the end took %s, %d sessions are left", took, count())
		}
		close(release)
	})
}

// Hooks that panic or do not return fail the start, or delay the end within bounds.
func TestOddHooks(t *testing.T) {
	for _, test := range []struct {
		name                 string
		register, unregister func(release <-chan struct{})
		want                 string
	}{
		{"panic", func(<-chan struct{}) { panic("boom") }, func(<-chan struct{}) { panic("boom") }, "register session: hook panicked: boom"},
		{"goexit", func(<-chan struct{}) { runtime.Goexit() }, func(<-chan struct{}) { runtime.Goexit() }, "register session: hook ended its goroutine"},
		{"stuck", func(r <-chan struct{}) { <-r }, func(r <-chan struct{}) { <-r }, "context deadline exceeded"},
		{"stuck at the end", func(<-chan struct{}) {}, func(r <-chan struct{}) { <-r }, ""},
	} {
		t.Run(test.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				release := make(chan struct{})
				defer close(release)
				hooks := &server.Hooks{}
				hooks.AddOnRegisterSession(func(context.Context, server.ClientSession) { test.register(release) })
				hooks.AddOnUnregisterSession(func(context.Context, server.ClientSession) { test.unregister(release) })
				ctx, cancel := context.WithTimeout(t.Context(), time.Second)
				defer cancel()
				began := time.Now()
				conn, err := mcpgo.Server(server.NewMCPServer("x", "1", server.WithHooks(hooks))).Dial(ctx)
				if test.want == "" {
					if err != nil {
						t.Fatal(err)
					}
					err = conn.Close()
				}
				if !strings.Contains(fmt.Sprint(err), cmp.Or(test.want, "<nil>")) {
					t.Errorf("got %v, want %s", err, test.want)
				}
				if took := time.Since(began); took > 3*time.Second {
					t.Errorf("it took %s", took)
				}
			})
		})
	}
}

// A session takes a bounded amount of work, and gives back what it takes of the budget.
func TestSessionIsBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		held := budget.New(64<<20, nil)
		srv := server.NewMCPServer("x", "1")
		srv.AddTool(mcp.NewTool("stuck"), func(ctx context.Context, _ mcp.CallToolRequest) (*mcp.CallToolResult, error) {
			<-ctx.Done()
			return nil, ctx.Err()
		})
		srv.AddNotificationHandler("notifications/stuck", func(ctx context.Context, _ mcp.JSONRPCNotification) { <-ctx.Done() })
		up := mcpgo.Server(srv).(interface {
			Observed(*slog.Logger, *metrics.Metrics, *budget.Account) jsonrpc.Dialer
		}).Observed(nil, nil, held)
		conn, err := up.Dial(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		conn.(jsonrpc.ResultPusher).PushResults(func(int64, json.RawMessage, json.RawMessage) {})
		conn.(jsonrpc.Pusher).Push(func([]byte, error) bool { return true })
		request := func(number int64, size int) error {
			m, err := jsonrpc.Parse([]byte(`{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"stuck","x":"` + strings.Repeat("x", size) + `"}}`))
			if err != nil {
				t.Fatal(err)
			}
			return conn.(jsonrpc.RequestSender).SendRequest(m, number, jsonrpc.Place{})
		}
		var last error
		sent := int64(0)
		for ; last == nil && sent < 100; sent++ {
			last = request(sent+1, 1<<20)
		}
		if !errors.Is(last, jsonrpc.ErrBusy) || sent < 7 || sent > 9 {
			t.Errorf("request %d of 1 MiB: %v, want ErrBusy at the 8th", sent, last)
		}
		if err := conn.Send(jsonrpc.NewNotification("notifications/stuck", json.RawMessage(`{"x":"`+strings.Repeat("x", 1<<20)+`"}`))); !errors.Is(err, jsonrpc.ErrBusy) {
			t.Errorf("notification: %v, want ErrBusy", err)
		}
		if err := conn.Close(); err != nil {
			t.Error(err)
		}
		synctest.Wait()
		if held.Check(metrics.HeldSend) || !held.Take(48<<20, metrics.HeldSend) {
			t.Error("the budget is not given back")
		}
		for _, err := range []error{request(200, 1), conn.Send(jsonrpc.NewNotification("x", nil)), conn.Send(jsonrpc.NewResult("1", json.RawMessage("1"))), conn.Close()} {
			if err != nil && !errors.Is(err, jsonrpc.ErrClosed) {
				t.Errorf("after Close: %v", err)
			}
		}
	})
}

// The answers that wait for a slow client count against its session and the budget: over
// 8 MiB the session takes no calls, but all else, until the client reads.
func TestWaitingAnswersAreBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const limit, total = 8 << 20, 32 << 20
		held := budget.New(total, nil)
		c := newSlow(t, held)
		defer c.end()
		waiting := c.fill(t)
		if waiting != limit/bigSize {
			t.Errorf("%d answers wait, want %d: they have %d bytes", waiting, limit/bigSize, limit)
		}
		if held.TakeAny(total-limit, metrics.HeldSend) {
			t.Error("the waiting answers are not counted")
		}
		for _, method := range []string{"notifications/n", "notifications/cancelled"} {
			if err := c.conn.Send(jsonrpc.NewNotification(method, json.RawMessage(`{"requestId":1}`))); err != nil {
				t.Errorf("%s: %v, want it taken beside the waiting answers", method, err)
			}
		}
		c.read()
		synctest.Wait()
		if got, want := c.log(), strings.Repeat("n a ", waiting+1); got != want {
			t.Errorf("the client got %s, want %s", got, want)
		}
		if err := c.call(); err != nil {
			t.Errorf("after the client has read: %v", err)
		}
		if !held.TakeAny(total, metrics.HeldSend) {
			t.Error("the budget is not given back")
		}
	})
}

// The end of a session gives back what the answers have that wait then.
func TestEndDropsWaitingAnswers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const total = 4 << 20
		held := budget.New(total, nil)
		c := newSlow(t, held)
		for range 5 {
			if err := c.call(); err != nil {
				t.Error(err)
			}
		}
		if held.TakeAny(total-4*bigSize, metrics.HeldSend) {
			t.Error("the waiting answers are not counted")
		}
		c.end()
		synctest.Wait()
		if !held.TakeAny(total, metrics.HeldSend) {
			t.Error("the budget is not given back")
		}
	})
}

// When many calls return at once to a client that does not read, answers over the budget
// are dropped, each for an error: all calls are answered, and small answers stay.
func TestBurstOfAnswersIsBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const total, calls = 2 << 20, 20
		held := budget.New(total, nil)
		c := newSlow(t, held)
		defer c.end()
		for range calls {
			c.begin(t, "together")
		}
		synctest.Wait()
		close(c.together)
		synctest.Wait()
		c.begin(t, "small")
		synctest.Wait()
		if !held.TakeAny(bigSize/2, metrics.HeldSend) {
			t.Error("the answers hold more than the budget and a small one")
		}
		held.Give(bigSize / 2)
		c.read()
		synctest.Wait()
		got := c.log()
		if n := strings.Count(got, "a "); n < total/bigSize || n > total/bigSize+2 || n+strings.Count(got, "busy ") != calls+1 {
			t.Errorf("the client got %s, want %d answers, the rest server_busy", got, total/bigSize)
		}
		if !strings.HasSuffix(got, "n a ") {
			t.Errorf("the client got %s, want the small answer at the end", got)
		}
		if !held.TakeAny(total, metrics.HeldSend) {
			t.Error("the budget is not given back")
		}
	})
}

// bigSize is the size of the text that the tool big returns.
const bigSize = 256 << 10

// slow is a session with the tool big, of a client that takes no answer until read. It has
// a notification channel.
type slow struct {
	conn jsonrpc.Conn
	read func()
	last int64 // number of the last call

	together chan struct{} // until it is closed, handlers of the tool together wait

	mu  sync.Mutex
	got strings.Builder // n for each notification, a for each answer
}

func newSlow(t *testing.T, held *budget.Account) *slow {
	t.Helper()
	srv := server.NewMCPServer("x", "1")
	together := make(chan struct{})
	for tool, size := range map[string]int{"big": bigSize, "together": bigSize, "small": 1} {
		srv.AddTool(mcp.NewTool(tool), func(ctx context.Context, _ mcp.CallToolRequest) (*mcp.CallToolResult, error) {
			if tool == "together" {
				<-together
			}
			return mcp.NewToolResultText(strings.Repeat("x", size)), srv.SendNotificationToClient(ctx, "notifications/x", nil)
		})
	}
	conn, err := mcpgo.Server(srv).(interface {
		Observed(*slog.Logger, *metrics.Metrics, *budget.Account) jsonrpc.Dialer
	}).Observed(nil, nil, held).Dial(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	reads := make(chan struct{})
	c := &slow{conn: conn, together: together, read: sync.OnceFunc(func() { close(reads) })}
	conn.(jsonrpc.ResultPusher).PushResults(func(number int64, _, fault json.RawMessage) {
		if number > 1 {
			<-reads
		}
		if bytes.Contains(fault, []byte(`"server_busy"`)) {
			c.note("busy ")
			return
		}
		c.note("a ")
	})
	conn.(jsonrpc.Pusher).Push(func(msg []byte, _ error) bool {
		if msg != nil {
			c.note("n ")
		}
		return true
	})
	if err := c.send(`{"jsonrpc":"2.0","id":1,"method":"initialize","params":` + helloParams + `}`); err != nil {
		t.Fatal(err)
	}
	synctest.Wait()
	c.got.Reset()
	return c
}

// end ends the session, whose client then takes the answer that is on its way.
func (c *slow) end() {
	_ = c.conn.Close() // its error is nil
	c.read()
}

func (c *slow) note(what string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.got.WriteString(what)
}

func (c *slow) log() string {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.got.String()
}

func (c *slow) send(msg string) error {
	m, err := jsonrpc.Parse([]byte(msg))
	if err != nil {
		return err
	}
	c.last++
	return c.conn.(jsonrpc.RequestSender).SendRequest(m, c.last, jsonrpc.Place{})
}

// begin calls a tool.
func (c *slow) begin(t *testing.T, tool string) {
	t.Helper()
	if err := c.send(`{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"` + tool + `"}}`); err != nil {
		t.Error(err)
	}
}

// call calls big, and waits until the handler has returned.
func (c *slow) call() error {
	err := c.send(`{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"big"}}`)
	synctest.Wait()
	return err
}

// fill calls big until the session is busy. It returns how many answers wait, beside the one that is on its way.
func (c *slow) fill(t *testing.T) int {
	t.Helper()
	for n := range 200 {
		if err := c.call(); err != nil {
			if !errors.Is(err, jsonrpc.ErrBusy) {
				t.Errorf("got %v, want ErrBusy", err)
			}
			return n - 1
		}
	}
	t.Fatal("the session took 200 calls whose answers the client does not read")
	return 0
}

// A closed session takes nothing; a session takes no request by Send, and gives nothing
// by Recv.
func TestSendRefuses(t *testing.T) {
	conn, err := mcpgo.Server(echo()).Dial(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	for _, msg := range []string{`{`, `{"jsonrpc":"2.0","id":1,"method":"tools/list"}`} {
		if conn.Send([]byte(msg)) == nil {
			t.Errorf("Send took %s", msg)
		}
	}
	if _, err := conn.Recv(); err == nil {
		t.Error("Recv returned without an error")
	}
}

// Two gateways may serve one server.
func TestTwoUpstreamsOverOneServer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		srv := server.NewMCPServer("x", "1")
		clients := [2]*recorder{}
		for i := range clients {
			s := session(t, mcpgo.Server(srv))
			defer s.Close(errors.New("over"))
			clients[i] = &recorder{answers: make(map[jsonrpc.ID][]string)}
			s.Attach(clients[i], "c", "")
		}
		srv.SendNotificationToAllClients("notifications/all", nil)
		synctest.Wait()
		for i, c := range clients {
			if len(c.delivered) != 1 {
				t.Errorf("client %d got %q", i, c.delivered)
			}
		}
	})
}

// recorder is a client that keeps what it gets. It is safe for concurrent use.
type recorder struct {
	mu        sync.Mutex
	answers   map[jsonrpc.ID][]string
	delivered []string
}

func (r *recorder) note(id jsonrpc.ID, what string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.answers[id] = append(r.answers[id], what)
}

func (r *recorder) Answer(id jsonrpc.ID, response []byte, _ string)        { r.note(id, string(response)) }
func (r *recorder) Fail(id jsonrpc.ID, e *jsonrpc.Error, errorType string) { r.note(id, errorType) }
func (r *recorder) Lost(m *jsonrpc.Message, _ *jsonrpc.Error)              { r.note(m.ID, "lost") }
func (r *recorder) Serves(*jsonrpc.Message) bool                           { return true }
func (r *recorder) Deliver(_ string, _ jsonrpc.ID, msg []byte) {
	r.mu.Lock()
	defer r.mu.Unlock()
	m, err := jsonrpc.Parse(msg)
	if err != nil {
		r.delivered = append(r.delivered, "invalid: "+string(msg))
		return
	}
	token, _ := jsonrpc.Member(m.Params(), "progressToken")
	if owner := jsonrpc.ID(token); owner != "" && len(r.answers[owner]) > 0 {
		r.delivered = append(r.delivered, "late: "+string(msg))
		return
	}
	r.delivered = append(r.delivered, string(msg))
}

// Whatever clients send and cancel, and whenever the session ends, each request is answered
// once, with its own id and text, after all its progress.
func TestEachRequestIsAnsweredOnce(t *testing.T) {
	for seed := range uint64(60) {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) { playRandomly(t, rand.New(rand.NewPCG(seed, 1))) })
		})
	}
}

// worker is a server with a tool that does as its arguments say.
func worker() *server.MCPServer {
	srv := server.NewMCPServer("worker", "1")
	srv.AddTool(mcp.NewTool("work"), func(ctx context.Context, r mcp.CallToolRequest) (*mcp.CallToolResult, error) {
		for i := range r.GetInt("progress", 0) {
			_ = srv.SendNotificationToClient(ctx, "notifications/progress", map[string]any{"progressToken": r.Params.Meta.ProgressToken, "progress": i})
		}
		time.Sleep(time.Duration(r.GetInt("sleep", 0)) * time.Millisecond)
		switch r.GetString("then", "") {
		case "panic":
			panic("as told")
		case "wait":
			<-ctx.Done()
			return nil, ctx.Err()
		case "ask":
			_, err := srv.RequestRoots(ctx, mcp.ListRootsRequest{})
			return nil, err
		}
		return mcp.NewToolResultText(r.GetString("text", "")), nil
	})
	return srv
}

func playRandomly(t *testing.T, r *rand.Rand) {
	s := session(t, mcpgo.Server(worker()))
	client := &recorder{answers: make(map[jsonrpc.ID][]string)}
	caller := s.Attach(client, "c", "")
	total := 1 + r.IntN(40)
	for i := range total {
		id := fmt.Sprint(1000 + i)
		then := []string{"", "", "", "panic", "wait", "ask"}[r.IntN(6)]
		forward(t, caller, fmt.Sprintf(`{"jsonrpc":"2.0","id":%s,"method":"tools/call","params":{"name":"work","_meta":{"progressToken":%s},`+
			`"arguments":{"progress":%d,"sleep":%d,"then":%q,"text":"text of %s"}}}`, id, id, r.IntN(4), r.IntN(50), then, id))
		if r.IntN(3) == 0 {
			forward(t, caller, fmt.Sprintf(`{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":%d}}`, 1000+r.IntN(i+1)))
		}
		time.Sleep(time.Duration(r.IntN(5)) * time.Millisecond)
	}
	time.Sleep(time.Duration(r.IntN(80)) * time.Millisecond)
	s.Close(errors.New("over"))
	<-s.Done()
	time.Sleep(time.Second) // handlers that sleep return
	synctest.Wait()
	for i := range total {
		id := jsonrpc.ID(fmt.Sprint(1000 + i))
		got := client.answers[id]
		if len(got) != 1 {
			t.Errorf("request %s has the answers %q", id, got)
			continue
		}
		if strings.Contains(got[0], "result") && !strings.Contains(got[0], `"text of `+string(id)+`"`) {
			t.Errorf("request %s got %s", id, got[0])
		}
	}
	for _, msg := range client.delivered {
		if strings.HasPrefix(msg, "late") || strings.HasPrefix(msg, "invalid") {
			t.Error(msg)
		}
	}
}

func forward(t *testing.T, c *multiplex.Caller, msg string) {
	t.Helper()
	m, err := jsonrpc.Parse([]byte(msg))
	if err != nil {
		t.Fatal(err)
	}
	_ = c.Forward(m) // it fails when the session is over
}
