package gateway_test

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/mcp-sse/mcp-sse/gateway"
	"github.com/mcp-sse/mcp-sse/internal/pipetest"
	"github.com/mcp-sse/mcp-sse/internal/ssetest"
	"github.com/mcp-sse/mcp-sse/jsonrpc"
	"github.com/mcp-sse/mcp-sse/upstream"
)

// filling is a server of three kinds, in turn: one never initializes, one reads
// nothing after that, and one answers each request with 512 KiB. The first session
// answers its request when release is closed.
type filling struct {
	sessions atomic.Int64
	release  chan struct{}
}

func (f *filling) serve(ctx context.Context, in io.ReadCloser, out io.WriteCloser) error {
	n := f.sessions.Add(1) - 1
	lines := bufio.NewReader(in)
	for {
		line, err := lines.ReadBytes('\n')
		if err != nil {
			return nil
		}
		m, err := jsonrpc.Parse(line)
		if err != nil || m.Kind != jsonrpc.Request {
			continue
		}
		result := `{"protocolVersion":"2025-11-25","capabilities":{},"serverInfo":{"name":"f","version":"1"}}`
		switch {
		case n > 0 && n%3 == 1:
			<-ctx.Done()
		case m.Method == "initialize":
		case n == 0:
			<-f.release
		case n%3 == 2:
			<-ctx.Done()
		default:
			result = `{"pad":"` + strings.Repeat("x", 512<<10) + `"}`
		}
		_, _ = out.Write(append(jsonrpc.NewResult(m.ID, []byte(result)), '\n'))
	}
}

// halfPost sends a part of a POST, and returns the connection.
func halfPost(t *testing.T, at string, length, sent int) net.Conn {
	t.Helper()
	u, err := url.Parse(at)
	must(t, err)
	conn, err := net.Dial("tcp", u.Host)
	must(t, err)
	_, _ = fmt.Fprintf(conn, "POST %s HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n%s",
		u.Path, length, strings.Repeat(" ", sent)) // the gateway may close it
	return conn
}

// Clients fill bodies, gates, queues and outboxes until all is refused. The memory
// stays within the budget and what docs/operations.md adds to it, a request that began
// before is answered, and all is given back.
func TestMemoryIsBounded(t *testing.T) {
	const (
		limit   = 16 << 20
		clients = 24
		each    = 768 << 10 // what the test and the gateway need for one more client: a third of the servers hold a line of 1 MiB
	)
	f := &filling{release: make(chan struct{})}
	opts := gateway.Options{ConnectRate: -1, RequestTimeout: time.Hour} // a busy machine fills slowly
	base, client, g := serve(t, upstream.Serve(f.serve), gateway.Settings{Options: opts, MaxHeldBytes: limit})
	innocent, err := ssetest.Dial(client, base+"/sse", nil)
	must(t, err)
	defer innocent.Close()
	must(t, innocent.Send(request("1", "tools/list")))
	before := ssetest.LiveHeap()
	var refused atomic.Int64
	post := func(s *ssetest.Client, body string) {
		resp, err := client.Post(s.Post, "application/json", strings.NewReader(body))
		if err != nil {
			return
		}
		_, _ = io.Copy(io.Discard, resp.Body)
		_ = resp.Body.Close()
		if resp.StatusCode == http.StatusServiceUnavailable {
			refused.Add(1)
		}
	}
	large := strings.Repeat("x", 1<<20)
	var wg sync.WaitGroup
	for range clients {
		s, err := ssetest.Dial(client, base+"/sse", nil)
		if err != nil { // over the budget already
			refused.Add(1)
			continue
		}
		defer s.Close()
		defer halfPost(t, s.Post, 4<<20, 1<<20).Close()
		wg.Go(func() {
			for i := range 3 {
				post(s, fmt.Sprintf(`{"jsonrpc":"2.0","id":%d,"method":"tools/call","params":{"x":"%s"}}`, i, large))
				post(s, fmt.Sprintf(`{"jsonrpc":"2.0","id":%d,"method":"tools/list"}`, 100+i))
			}
		})
	}
	wg.Wait()
	grown := ssetest.LiveHeap() - before
	if grown > limit+limit/4+clients*each {
		t.Errorf("the heap has grown by %d MiB, with a budget of %d MiB", grown>>20, limit>>20)
	}
	held := int64(metric(t, g, "mcp_sse_held_bytes"))
	if held > limit+clients*(1<<20) {
		t.Errorf("%d MiB are held, with a budget of %d MiB", held>>20, limit>>20)
	}
	if refused.Load() == 0 || metric(t, g, "mcp_sse_over_budget_total") == 0 {
		t.Error("nothing was refused: the budget has not been filled")
	}
	t.Logf("the heap grew by %d MiB, %d MiB are held, %d refused", grown>>20, held>>20, refused.Load())
	close(f.release)
	b, err := innocent.Until(`"id":1,`)
	if err != nil || !strings.Contains(b.Data, `"result"`) {
		t.Errorf("the innocent client got %q, %v", b.Data, err)
	}
}

// Clients of Streamable HTTP leave each POST before its answer, whose id is as long as ids
// may be. Events that are kept for them count in the budget, and have an eighth of it; beside that a
// session takes the bytes that docs/operations.md says. Nothing is kept for ever.
func TestMemoryOfEventsIsBounded(t *testing.T) {
	const (
		limit    = 16 << 20
		sessions = 8
		posts    = 500
		each     = 100 << 10
		slack    = 1 << 20
	)
	u := &server{handle: on("work", late(time.Second))}
	inFakeTime(t, u, gateway.Settings{MaxHeldBytes: limit}, func(t *testing.T, g *gateway.Gateway) {
		var ids [sessions]string
		for i := range ids {
			ids[i] = leavePost(g, "", initialize("0", "2025-11-25", "{}"))
		}
		before := ssetest.LiveHeap()
		for i := range sessions * posts {
			id := fmt.Sprintf(`"%d%s"`, i, strings.Repeat("x", 1000))
			leavePost(g, ids[i%sessions], request(id, "work"))
			if i%100 == 0 {
				time.Sleep(2 * time.Second)
			}
		}
		time.Sleep(2 * time.Second)
		grown, held := ssetest.LiveHeap()-before, int64(metric(t, g, "mcp_sse_held_bytes"))
		t.Logf("the heap grew by %d KiB, %d KiB are held", grown>>10, held>>10)
		if held < limit/16 || held > limit/8 {
			t.Errorf("%d KiB are held, want at most %d", held>>10, limit/8>>10)
		}
		if most := held + sessions*each + slack; grown > most {
			t.Errorf("the heap grew by %d KiB, want at most %d", grown>>10, most>>10)
		}
		time.Sleep(6 * time.Minute)
		grown = ssetest.LiveHeap() - before
		if held := metric(t, g, "mcp_sse_held_bytes"); held != 0 || grown > sessions*each+slack {
			t.Errorf("after six minutes %v bytes are held, and the heap has grown by %d KiB", held, grown>>10)
		}
	})
}

// leavePost sends a POST whose client leaves once the response has begun. It returns the
// session that it opens.
func leavePost(g *gateway.Gateway, session, body string) string {
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	r := ssetest.Request(ctx, http.MethodPost, "/mcp", body)
	if session != "" {
		r.Header.Set("Mcp-Session-Id", session)
	}
	w := httptest.NewRecorder()
	g.ServeHTTP(leaving{w, cancel}, r)
	return w.Header().Get("Mcp-Session-Id")
}

// Connections leave nothing behind, however they end, one after the other or many at once (P6).
// The bubble fails the test if a goroutine is left.
func TestOpenAndCloseLeavesNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g, err := gateway.New(upstream.Handle(echo), gateway.Options{ConnectRate: -1})
		must(t, err)
		srv := pipetest.Serve(g, nil, nil)
		defer srv.Stop()
		run := func(cycles int) int64 {
			var wg sync.WaitGroup
			for w := range 20 {
				wg.Go(func() {
					for i := range cycles {
						equal(t, "error", cycle(srv.Client, "http://localhost/sse", w+i), nil)
					}
				})
			}
			wg.Wait()
			time.Sleep(time.Hour)
			if n := len(g.Snapshot()); n > 0 {
				t.Errorf("%d connections are open", n)
			}
			return ssetest.LiveHeap()
		}
		before := run(5)
		if grown := run(20) - before; grown > 1<<20 {
			t.Errorf("the heap has grown by %d KiB", grown>>10)
		}
		equal(t, "error", g.Shutdown(t.Context()), nil)
	})
}

// cycle opens a stream, uses it in one of a few ways, and ends it.
func cycle(c *http.Client, at string, n int) error {
	s, err := ssetest.Dial(c, at, nil)
	if err != nil {
		return err
	}
	defer s.Close()
	switch n % 4 {
	case 0: // gone at once
	case 1: // gone with a request under way
		return s.Send(request("1", "tools/list"))
	case 2: // gone when it was announced
		_, err = s.Until("auto-initialize")
	case 3: // gone after it was served
		_, err = s.Call(request("1", "tools/list"), "1")
	}
	return err
}

// echo answers initialize, and every other request with its own params.
func echo(_ context.Context, msg json.RawMessage) any {
	m, err := jsonrpc.Parse(msg)
	switch {
	case err != nil || m.Kind != jsonrpc.Request:
		return nil
	case m.Method == "initialize":
		return json.RawMessage(jsonrpc.NewResult(m.ID, json.RawMessage(serverResult)))
	case m.Params() == nil:
		return json.RawMessage(jsonrpc.NewResult(m.ID, json.RawMessage("{}")))
	}
	return json.RawMessage(jsonrpc.NewResult(m.ID, m.Params()))
}
