package sse_test

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"runtime"
	"strings"
	"sync"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/mcp-sse/mcp-sse/connstate"
	"github.com/mcp-sse/mcp-sse/front"
	"github.com/mcp-sse/mcp-sse/jsonrpc"
	"github.com/mcp-sse/mcp-sse/metrics"
	"github.com/mcp-sse/mcp-sse/sse"
)

// stalledClient opens a stream with a small window, reads the endpoint event and
// then nothing: its window closes.
func stalledClient(t testing.TB, f *fixture, addr string) (*net.TCPConn, *connstate.Connection) {
	t.Helper()
	d := net.Dialer{Control: func(_, _ string, raw syscall.RawConn) error {
		return raw.Control(func(fd uintptr) { _ = syscall.SetsockoptInt(int(fd), syscall.SOL_SOCKET, syscall.SO_RCVBUF, 4096) })
	}}
	conn, err := d.DialContext(t.Context(), "tcp", addr)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { conn.Close() })
	fmt.Fprint(conn, "GET /sse HTTP/1.1\r\nHost: localhost\r\n\r\n")
	if _, err := conn.Read(make([]byte, 1024)); err != nil {
		t.Fatal(err)
	}
	return conn.(*net.TCPConn), <-f.backend.accepted
}

// A reset is noticed, by the write at the latest; naive use goes on for ever.
func TestResetIsNoticed(t *testing.T) {
	f := newFixture(t, config{})
	srv := start(t, f)
	conn, c := stalledClient(t, f, srv.Listener.Addr().String())
	_ = conn.SetLinger(0)
	conn.Close()
	var err error
	for deadline := time.Now().Add(time.Minute); err == nil && time.Now().Before(deadline); {
		err = c.Send("", []byte(`{}`))
	}
	if err == nil {
		t.Fatal("events are accepted for a client that is gone")
	}
	if got := <-f.backend.closed; got != metrics.ClosedClient && got != metrics.ClosedWriteError {
		t.Errorf("got reason %s", got)
	}
}

// With a fast write deadline out of the way, it is the outbox that ends a client
// that reads too slowly, after three times OutboxWait.
func TestSlowClientIsClosedByItsOutbox(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFixture(t, config{
			sse:  sse.Options{Options: front.Options{WriteTimeout: time.Hour}},
			conn: connstate.Options{OutboxBytes: 64 << 10, OutboxWait: 5 * time.Second},
		})
		g := f.open(t, "/sse")
		synctest.Wait()
		g.stall()
		opened := time.Now()
		data := []byte(`"` + strings.Repeat("x", 1000) + `"`)
		sent := 0
		for g.c.Send("", data) == nil {
			sent++
		}
		<-g.done
		if got := time.Since(opened); got != 15*time.Second {
			t.Errorf("closed after %v", got)
		}
		if got := <-f.backend.closed; got != metrics.ClosedSlow || sent > 64 {
			t.Errorf("got reason %s after %d events", got, sent)
		}
	})
}

// A slow reader is no stalled one: as long as each write gets through in time,
// the stream lives.
func TestSlowReaderLives(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFixture(t, config{sse: sse.Options{Options: front.Options{WriteTimeout: 10 * time.Second}}})
		g := f.open(t, "/sse")
		for i := range 200 {
			synctest.Wait()
			g.stall()
			_ = g.c.Send("", fmt.Appendf(nil, `{"n":%d}`, i))
			time.Sleep(8500 * time.Millisecond)
			g.resume()
		}
		synctest.Wait()
		if got := len(parse(t, g.text())); g.c.State() == connstate.Closed || got < 202 {
			t.Errorf("got %d events, state %v, reason %s", got, g.c.State(), g.c.Reason())
		}
		g.leave()
	})
}

// Many short lives over sockets, ended in each way, stalled ones among them:
// nothing is left behind. goleak and the deferred check would tell.
func TestChurnLeavesNothing(t *testing.T) {
	n := 1000
	if testing.Short() {
		n = 100
	}
	before := runtime.NumGoroutine()
	f := newFixture(t, config{sse: sse.Options{Options: front.Options{WriteTimeout: 5 * time.Second}}})
	f.backend.receive = func(*connstate.Connection, *jsonrpc.Message) {}
	srv := httptest.NewServer(f)
	addr := srv.Listener.Addr().String()
	var wg sync.WaitGroup
	room := make(chan struct{}, 32)
	for i := range n {
		room <- struct{}{}
		wg.Go(func() {
			defer func() { <-room }()
			churn(t, f, addr, i)
		})
	}
	wg.Wait()
	for range n {
		<-f.backend.closed
	}
	srv.Close()
	for deadline := time.Now().Add(time.Minute); runtime.NumGoroutine() > before+2 && time.Now().Before(deadline); {
		runtime.Gosched()
	}
	if after := runtime.NumGoroutine(); after > before+2 {
		t.Errorf("%d goroutines before, %d after %d connections", before, after, n)
	}
	if f.registry.Len() != 0 {
		t.Errorf("%d connections are left in the registry", f.registry.Len())
	}
	if open := f.count(t, "mcp_sse_connections"); open != 0 {
		t.Errorf("%v connections count as open", open)
	}
}

// churn is one short life; how selects its end.
func churn(t *testing.T, f *fixture, addr string, how int) {
	dialed, err := net.Dial("tcp", addr)
	if err != nil {
		t.Error(err)
		return
	}
	conn := dialed.(*net.TCPConn)
	defer conn.Close()
	fmt.Fprint(conn, "GET /sse HTTP/1.1\r\nHost: localhost\r\n\r\n")
	if how%6 == 0 { // gone before anything has been read
		return
	}
	if how%6 == 1 {
		_ = conn.SetLinger(0)
		return
	}
	res, err := http.ReadResponse(bufio.NewReader(conn), nil)
	if err != nil {
		t.Error(err)
		return
	}
	c, ok := f.registry.Find(res.Header.Get("X-Connection-ID"))
	switch {
	case !ok:
		t.Error("the connection is not known")
	case how%6 == 2:
		c.Close(metrics.ClosedShutdown)
		_, _ = io.Copy(io.Discard, res.Body)
	case how%6 == 3:
		go c.CloseGracefully(metrics.ClosedShutdown, 50*time.Millisecond)
		_, _ = io.Copy(io.Discard, res.Body)
	case how%6 == 4:
		go c.Close(metrics.ClosedShutdown)
	default: // never reads
		for range 20 {
			_ = c.Push(connstate.Event{Name: "message", Data: []byte(`"` + strings.Repeat("x", 40<<10) + `"`)})
		}
		_ = conn.CloseWrite()
	}
}

var _ http.Handler = (*sse.Handler)(nil)
