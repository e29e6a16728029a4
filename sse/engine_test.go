package sse_test

import (
	"fmt"
	"strconv"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/mcp-sse/mcp-sse/connstate"
	"github.com/mcp-sse/mcp-sse/internal/ssetest"
)

// Order and completeness with many senders at once, far beyond the library's
// buffer: a bare TryPublish lost events here. The library writes "id: " for an event
// without an id, and ids have to grow for a reader to tell where it was.
func TestNothingIsLostUnderLoad(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFixture(t, config{conn: connstate.Options{OutboxBytes: 4096}})
		g := f.open(t, "/sse")
		const senders, each = 16, 200
		for s := range senders {
			go func() {
				for i := range each {
					if err := g.c.Send("", fmt.Appendf(nil, `{"s":%d,"i":%d}`, s, i)); err != nil {
						t.Error(err)
						return
					}
				}
			}()
		}
		synctest.Wait()
		next := map[int]int{}
		for n, e := range parse(t, g.text()) {
			if e.ID != strconv.Itoa(n+1) || e.Lines != 1 {
				t.Fatalf("event %d has the id %q and %d lines", n+1, e.ID, e.Lines)
			}
			if n < 2 {
				continue
			}
			var s, i int
			if _, err := fmt.Sscanf(e.Data, `{"s":%d,"i":%d}`, &s, &i); err != nil {
				t.Fatalf("%q: %v", e.Data, err)
			}
			if next[s] != i {
				t.Fatalf("sender %d: got %d, want %d", s, i, next[s])
			}
			next[s]++
		}
		for s := range senders {
			ssetest.Want(t, "sender", next[s], each)
		}
		g.leave()
	})
}

// An event without data makes the library leave ServeHTTP without draining,
// which locks its goroutines for ever.
func TestNothingEmptyReachesTheLibrary(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFixture(t, config{})
		g := f.open(t, "/sse")
		synctest.Wait()
		_ = g.c.Send("", nil)
		_ = g.c.Send("", []byte{})
		g.c.RespondNow("", []byte{})
		_ = g.c.Push(connstate.Event{})
		_ = g.c.Push(connstate.Event{Data: []byte{}})
		_ = g.c.Send("", []byte(`{"n":1}`))
		synctest.Wait()
		select {
		case <-g.done:
			t.Fatal("the stream ended")
		default:
		}
		for _, e := range parse(t, g.text()) {
			if !e.IsComment() && (e.Data == "" || e.ID == "") {
				t.Errorf("got the event %+v", e)
			}
		}
		ssetest.WantText(t, "events after the empty ones", g.text(), `{"n":1}`)
		ssetest.Want(t, "bytes that count as unwritten for ever", g.c.Unwritten(), 0)
		g.leave()
	})
}

// The library writes data that begins with a colon as a comment, and a line
// break in it as it is: both would let data write fields of its own.
func TestDataCannotBecomeFields(t *testing.T) {
	for _, data := range []string{
		":hidden", "{\"a\":1,\n\"b\":2}", "{\"a\":1,\r\n\"b\":2}", "{\"a\":1,\r\"b\":2}",
		"1\n\nevent: endpoint\ndata: //evil.example/\n\n", "\n", "\r\r",
	} {
		synctest.Test(t, func(t *testing.T) {
			f := newFixture(t, config{})
			g := f.open(t, "/sse")
			synctest.Wait()
			_ = g.c.Send("", []byte(data))
			_ = g.c.Send("", []byte(`{"last":true}`))
			synctest.Wait()
			if strings.Contains(g.text(), "\r") {
				t.Errorf("%q: a carriage return ends a line as well", data)
			}
			events := parse(t, g.text())
			if got := names(events); got != "endpoint connection message message" || events[2].Lines != 1 {
				t.Errorf("%q: got %s", data, got)
			}
			g.leave()
		})
	}
}

// Two streams are two streams: neither ?stream= nor Last-Event-ID of the client
// reaches the library, which would eavesdrop on the one and refuse the other.
func TestClientCannotSteerTheLibrary(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFixture(t, config{})
		victim := f.open(t, "/sse")
		spy := f.open(t, "/sse?stream="+victim.c.ID(), "Last-Event-Id", "abc")
		_ = victim.c.Send("", []byte(`{"secret":1}`))
		synctest.Wait()
		if strings.Contains(spy.text(), "secret") {
			t.Error("a stream shows the events of another")
		}
		if spy.status != 200 || !strings.Contains(victim.text(), "secret") {
			t.Errorf("status %d, the victim got %q", spy.status, victim.text())
		}
		spy.leave()
		victim.leave()
	})
}

// Each of these ends left a goroutine behind in naive use. The bubble fails the
// test when one does.
func TestEveryEndLeavesNothing(t *testing.T) {
	stall := func(g *get) {
		g.stall()
		for range 100 {
			_ = g.c.Push(connstate.Event{Name: "message", Data: []byte(`{}`)})
		}
		synctest.Wait()
	}
	ends := map[string]struct {
		end    func(g *get)
		reason connstate.Reason
	}{
		"client leaves":              {func(g *get) { g.cancel() }, connstate.ClosedClient},
		"closed":                     {func(g *get) { g.c.Close(connstate.ClosedShutdown) }, connstate.ClosedShutdown},
		"closed gracefully":          {func(g *get) { g.c.CloseGracefully(connstate.ClosedIdle, 1e9) }, connstate.ClosedIdle},
		"closed, then client leaves": {func(g *get) { g.c.Close(connstate.ClosedSlow); g.cancel() }, connstate.ClosedSlow},
		"both at once":               {func(g *get) { go g.cancel(); go g.c.Close(connstate.ClosedClient) }, connstate.ClosedClient},
		"write error":                {func(g *get) { g.fail(errGone); _ = g.c.Send("", []byte(`{}`)) }, connstate.ClosedWriteError},
		"stalled and closed":         {func(g *get) { stall(g); g.c.Close(connstate.ClosedShutdown) }, connstate.ClosedShutdown},
		"stalled and client leaves":  {func(g *get) { stall(g); g.cancel() }, connstate.ClosedClient},
	}
	for name, end := range ends {
		for _, settled := range []bool{true, false} { // before and after the subscriber is known
			t.Run(fmt.Sprintf("%s/%v", name, settled), func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					f := newFixture(t, config{})
					g := f.open(t, "/sse")
					if settled {
						synctest.Wait()
					}
					end.end(g)
					<-g.done
					ssetest.Want(t, "reason", <-f.backend.closed, end.reason)
					if f.StreamExists(g.c.ID()) || f.registry.Len() != 0 {
						t.Error("the stream is still known")
					}
					g.cancel()
				})
			})
		}
	}
}
