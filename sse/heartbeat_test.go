package sse_test

import (
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/mcp-sse/mcp-sse/connstate"
	"github.com/mcp-sse/mcp-sse/internal/httpcheck"
	"github.com/mcp-sse/mcp-sse/internal/ssetest"
	"github.com/mcp-sse/mcp-sse/jsonrpc"
	"github.com/mcp-sse/mcp-sse/sse"
)

// beats counts the heartbeats in a stream.
func beats(t testing.TB, text string) (n int) {
	for _, e := range parse(t, text) {
		if e.Comment == "heartbeat" || e.Name == "heartbeat" {
			n++
		}
	}
	return n
}

func TestNeverSilentLongerThanTheInterval(t *testing.T) {
	for _, interval := range []time.Duration{time.Second, 15 * time.Second, time.Hour} {
		synctest.Test(t, func(t *testing.T) {
			f := newFixture(t, config{sse: sse.Options{Options: httpcheck.Options{HeartbeatInterval: interval}}})
			g := f.open(t, "/sse")
			time.Sleep(50 * interval)
			synctest.Wait()
			g.leave()
			for i := 1; i < len(g.times); i++ {
				if gap := g.times[i].Sub(g.times[i-1]); gap > interval {
					t.Errorf("the stream was silent for %v, the interval is %v", gap, interval)
				}
			}
			if n := beats(t, g.text()); n < 49 || n > 57 {
				t.Errorf("got %d heartbeats in 50 intervals", n)
			}
			if got := f.count(t, "mcp_sse_heartbeats_total"); int(got) != beats(t, g.text()) || g.c.Snapshot().Heartbeats != int64(got) {
				t.Errorf("got %v heartbeats counted, %d in the snapshot, %d in the stream", got, g.c.Snapshot().Heartbeats, beats(t, g.text()))
			}
		})
	}
}

func TestNoHeartbeatOnABusyStream(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFixture(t, config{sse: sse.Options{Options: httpcheck.Options{HeartbeatInterval: 10 * time.Second}}})
		g := f.open(t, "/sse")
		for i := range 100 {
			time.Sleep(8 * time.Second)
			_ = g.c.Send("", fmt.Appendf(nil, `{"n":%d}`, i))
		}
		synctest.Wait()
		ssetest.Want(t, "heartbeats on a stream that was never silent", beats(t, g.text()), 0)
		time.Sleep(11 * time.Second)
		ssetest.Want(t, "heartbeats after the silence", beats(t, g.text()), 1)
		g.leave()
	})
}

func TestHeartbeatOfADialect(t *testing.T) {
	for _, test := range []struct{ target, want string }{
		{"/sse", ": heartbeat\n\n"},
		{"/sse?event=message", ": heartbeat\n\n"},
		{"/sse?event=mcp-response", "id: 3\ndata: {\"jsonrpc\":\"2.0\",\"method\":\"notifications/heartbeat\"}\nevent: heartbeat\n\n"},
	} {
		synctest.Test(t, func(t *testing.T) {
			f := newFixture(t, config{})
			g := f.open(t, test.target)
			time.Sleep(15 * time.Second)
			synctest.Wait()
			g.leave()
			if !strings.HasSuffix(g.text(), test.want) {
				t.Errorf("%s: got %q, want %q at its end", test.target, g.text(), test.want)
			}
		})
	}
}

// A client that does not read gets no heartbeats on top: the write deadline is
// what ends it.
func TestNoHeartbeatsBehindAStalledWrite(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFixture(t, config{sse: sse.Options{Options: httpcheck.Options{HeartbeatInterval: time.Second, WriteTimeout: 30 * time.Second}}})
		g := f.open(t, "/sse")
		synctest.Wait()
		g.stall()
		_ = g.c.Send("", []byte(`{"n":1}`))
		size := g.c.Unwritten()
		time.Sleep(20 * time.Second)
		ssetest.Want(t, "bytes that wait", g.c.Unwritten(), size)
		g.resume()
		time.Sleep(2 * time.Second)
		synctest.Wait()
		if n := beats(t, g.text()); n < 1 || n > 2 {
			t.Errorf("got %d heartbeats after 2 s of silence", n)
		}
		g.leave()
	})
}

// Heartbeats and what we send are no activity of the client; a request in flight is.
func TestIdleConnectionIsClosed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFixture(t, config{sse: sse.Options{Options: httpcheck.Options{ConnectionTimeout: time.Minute, HeartbeatInterval: time.Second}}})
		g := f.open(t, "/sse")
		for range 3 { // a POST each 50 s
			time.Sleep(50 * time.Second)
			if w := f.message(g, `{"jsonrpc":"2.0","method":"n"}`); w.Code != 202 {
				t.Fatalf("got %d %s", w.Code, w.Body)
			}
		}
		r, err := g.c.BeginRequest(&jsonrpc.Message{ID: "1", Method: "tools/call"})
		ssetest.Must(t, err)
		time.Sleep(10 * time.Minute)
		if g.c.State() == connstate.Closed {
			t.Fatal("closed with a request in flight")
		}
		r.Answer([]byte(`{"jsonrpc":"2.0","id":1,"result":{}}`), "")
		answered := time.Now()
		<-g.done
		ssetest.Want(t, "closed after the last answer", time.Since(answered), time.Minute)
		ssetest.Want(t, "reason", <-f.backend.closed, connstate.ClosedIdle)
	})
}
