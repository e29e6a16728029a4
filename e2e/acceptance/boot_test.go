package acceptance

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	gw "github.com/mcp-sse/mcp-sse/gateway"
	"github.com/mcp-sse/mcp-sse/internal/pipetest"
	"github.com/mcp-sse/mcp-sse/internal/remember"
	"github.com/mcp-sse/mcp-sse/internal/ssetest"
	"github.com/mcp-sse/mcp-sse/jsonrpc"
	"github.com/mcp-sse/mcp-sse/upstream"
)

const introduces = `{"protocolVersion":"2025-11-25","capabilities":{"roots":{}},"clientInfo":{"name":"x","version":"1"}}`

// A client of stdio that ends its input before its server is up, as SDKs do when they give up, has taught the gateway: the next
// one has its tools before its server is up. The server may be up before sse-server ends, or later.
func TestAClientThatLeavesInOrderHasTaughtTheGateway(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		waits string
		up    func(start, leave func())
	}{
		"the server is up before sse-server ends": {"1h", func(start, leave func()) { start(); leave() }},
		"and later": {"10ms", func(start, leave func()) { leave(); start() }},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			file, start, stop := boots(t)
			state := ssetest.StateDir(t)
			t.Cleanup(func() {
				start()
				awaitLearners(t, state)
			})
			run := func(waits string) *agent {
				a := startAgent(t, "tells all", "--warm", "0", "--shutdown-timeout", waits, "--env", fileVariable+"="+file)
				a.post("1", "initialize", introduces)
				return a
			}
			a := run(c.waits)
			await(t, "a process stands by", func() bool {
				_, err := os.Stat(filepath.Join(state, "sse-server", "learn.log"))
				return err == nil
			})
			ssetest.Must(t, a.in.Close())
			c.up(start, a.awaitEnd)
			await(t, "what the server said is kept", func() bool { return ssetest.Remembered(t) })
			stop()
			a = run("10ms")
			ssetest.WantText(t, "the answer to initialize", a.answer("1"), `"scripted"`)
			a.post("2", "tools/list", "{}")
			ssetest.WantText(t, "the tools", a.answer("2"), "host-")
			a.leave()
		})
	}
}

// A session of Streamable HTTP that goes on after a restart has its tools before its server is up, and its call waits for that.
func TestASessionThatGoesOnAfterARestartHasItsToolsBeforeItsServerIsUp(t *testing.T) {
	t.Parallel()
	file, start, stop := boots(t)
	start()
	dir := t.TempDir()
	g := tellsIn(t, dir, file)
	const session = "Mcp-Session-Id"
	id := ""
	post := func(message string) string {
		t.Helper()
		resp, err := newHTTP(t).Do(ssetest.Request(t.Context(), http.MethodPost, g.url+"/mcp", message, session, id))
		ssetest.Must(t, err)
		defer resp.Body.Close()
		text, err := io.ReadAll(resp.Body)
		ssetest.Must(t, err)
		id = cmp.Or(resp.Header.Get(session), id)
		return string(text)
	}
	const list = `{"jsonrpc":"2.0","id":2,"method":"tools/list"}`
	post(fmt.Sprintf(`{"jsonrpc":"2.0","id":1,"method":"initialize","params":%s}`, strings.Replace(introduces, `"x"`, `"claude-code"`, 1)))
	ssetest.WantText(t, "the tools before the restart", post(list), "host-")
	await(t, "what the server said is kept", func() bool { return ssetest.Remembered(t) })
	g.stop()

	stop()
	g = tellsIn(t, dir, file)
	ssetest.WantText(t, "the tools after the restart", post(list), "host-")
	start()
	ssetest.WantText(t, "the call", post(`{"jsonrpc":"2.0","id":3,"method":"tools/call","params":{"name":"echo","arguments":{"text":"it is up"}}}`), "it is up")
}

// slow is a server that boots for ten seconds. It counts those that boot or run, and all that have started.
type slow struct {
	mu          sync.Mutex
	now, starts int
}

// Identity is that of a server of which something is remembered.
func (*slow) Identity() remember.Identity { return remember.Identity{Server: "slow"} }

func (s *slow) Dial(ctx context.Context) (jsonrpc.Conn, error) {
	s.count(1, 1)
	ended := sync.OnceFunc(func() { s.count(-1, 0) })
	select {
	case <-time.After(10 * time.Second):
	case <-ctx.Done():
		ended()
		return nil, ctx.Err()
	}
	conn, err := upstream.Handle(lister).Dial(ctx)
	return slowConn{conn, ended}, err
}

// count counts servers, and returns how many there are.
func (s *slow) count(now, starts int) (running, started int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.now, s.starts = s.now+now, s.starts+starts
	return s.now, s.starts
}

type slowConn struct {
	jsonrpc.Conn
	ended func()
}

func (c slowConn) Close() error {
	c.ended()
	return c.Conn.Close()
}

// lister is a server with one list, which has nothing in it.
func lister(_ context.Context, message json.RawMessage) any {
	m, err := jsonrpc.Parse(message)
	if err != nil || m.Kind != jsonrpc.Request {
		return nil
	}
	return json.RawMessage(fmt.Sprintf(`{"jsonrpc":"2.0","id":%s,"result":{"protocolVersion":"2025-11-25","capabilities":{"tools":{"listChanged":true}},"serverInfo":{"name":"lister","version":"1"},"tools":[]}}`, m.ID))
}

// A crowd of clients of many kinds that wait for a server and leave before it is up has no more than one started in the
// background.
func TestACrowdThatLeavesStartsNoMoreThanOneServerInTheBackground(t *testing.T) {
	t.Parallel()
	server := new(slow)
	inFakeTimeWith(t, gw.Options{Remember: &gw.Remember{}}, server, func(l *library) {
		srv := pipetest.Serve(l.handler, nil, nil)
		defer srv.Stop()
		const rounds, clients = 3, 12
		for round := range rounds {
			var crowd []*ssetest.Client
			for n := range clients {
				c, err := ssetest.Dial(srv.Client, "http://localhost/sse?event=message", nil)
				ssetest.Must(l.t, err)
				go func() { // ends with the stream
					for _, err := c.Next(); err == nil; _, err = c.Next() {
					}
				}()
				ssetest.Must(l.t, c.Send(fmt.Sprintf(`{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{"experimental":{"kind-%d":{}}},"clientInfo":{"name":"x","version":"1"}}}`, clients*round+n)))
				crowd = append(crowd, c)
			}
			time.Sleep(2 * time.Second)
			for _, c := range crowd {
				c.Close()
			}
			time.Sleep(time.Second)
			running, _ := server.count(0, 0)
			ssetest.Want(l.t, fmt.Sprintf("servers after round %d", round), running, 1)
		}
		time.Sleep(time.Minute)
		running, started := server.count(0, 0)
		ssetest.Want(l.t, "servers a minute later", running, 0)
		ssetest.Want(l.t, "servers that were started for nobody", started-rounds*clients, 1)
	})
}
