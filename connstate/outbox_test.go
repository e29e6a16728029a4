package connstate_test

import (
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/mcp-sse/mcp-sse/connstate"
	"github.com/mcp-sse/mcp-sse/internal/ssetest"
)

// sized returns data with which an event weighs n bytes, beginning with tag.
func sized(tag string, n int) []byte {
	overhead := connstate.Event{}.Size()
	return []byte(tag + strings.Repeat(".", n-overhead-len(tag)))
}

// tags returns the first letter of each event's data.
func (s *stream) tags() string {
	var all strings.Builder
	for _, e := range s.got() {
		_, data, _ := strings.Cut(e, ":")
		all.WriteString(data[:1])
	}
	return all.String()
}

// boxed is a world with an outbox of 1000 bytes and no attached stream, whose
// client listens to message.
func boxed(t testing.TB) *world {
	return newWorld(t, connstate.Options{OutboxBytes: 1000, OutboxWait: time.Second},
		connstate.Client{Dialect: connstate.EventMessage})
}

func TestCloseFailsWaitersAtOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := boxed(t)
		w.attach(1)
		must(t, w.c.Send("", sized("a", 1000)))
		done := make(chan error, 10)
		for range cap(done) {
			go func() { done <- w.c.Send("", sized("b", 500)) }()
		}
		synctest.Wait()
		began := time.Now()
		w.c.Close(connstate.ClosedClient)
		for range cap(done) {
			ssetest.WantError(t, "Send", <-done, connstate.ErrClosed)
		}
		equal(t, "waited", time.Since(began), time.Duration(0))
		w.stream.write(1) // what the stream had is still written; nothing follows
		equal(t, "events", w.stream.tags(), "a")
		equal(t, "closed", w.c.Reason(), connstate.ClosedClient)
	})
}

// A sender that must not wait goes on beyond the limit, in order, up to a bound.
func TestSendNowNeverWaits(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := boxed(t)
		w.attach(100)
		must(t, w.c.Send("", sized("a", 1000)))
		w.c.SendNow("", sized("b", 600))
		w.c.RespondNow("", sized("c", 600))
		w.stream.writeAll()
		equal(t, "events", w.stream.tags(), "abc")
		must(t, w.c.Send("", sized("d", 1000)))
		w.c.SendNow("", sized("e", connstate.MaxUnwritten-1000))
		if got := w.c.State(); got == connstate.Closed {
			t.Fatal("closed below the bound")
		}
		w.c.RespondNow("", sized("f", 100))
		equal(t, "closed", w.c.Reason(), connstate.ClosedSlow)
		w.c.RespondNow("", sized("g", 100)) // nobody is there; nothing is left behind
	})
}

// An event counts until it is written. One of the transport's own finds no room then,
// which does not close a client that is merely busy.
func TestOutboxCountsUntilWritten(t *testing.T) {
	w := boxed(t)
	w.attach(100)
	must(t, w.c.Send("", sized("a", 600)))
	must(t, w.c.Push(connstate.Event{Name: "b", Data: sized("b", 400)}))
	if n := w.c.Unwritten(); n != 1000 {
		t.Fatalf("got %d bytes unwritten, want 1000", n)
	}
	if err := w.c.Push(connstate.Event{Name: "c"}); !errors.Is(err, connstate.ErrSlow) || w.c.State() == connstate.Closed {
		t.Errorf("into a full outbox: got %v, want ErrSlow and an open connection", err)
	}
	w.stream.write(1)
	must(t, w.c.Push(connstate.Event{Name: "c"}))
}

func TestSlowClientIsClosedAfterTheWait(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := boxed(t)
		w.attach(100)
		must(t, w.c.Send("", sized("a", 1000)))
		r := w.ask("1", "a")
		r.Backpressure = true
		began := time.Now()
		go r.Answer(sized("b", 100), "")
		if err := w.c.Send("", sized("b", 100)); !errors.Is(err, connstate.ErrSlow) && !errors.Is(err, connstate.ErrClosed) {
			t.Errorf("got %v", err)
		}
		if waited := time.Since(began); waited != 3*time.Second || w.c.Reason() != connstate.ClosedSlow {
			t.Errorf("closed as %q after %v, want %q after 3s", w.c.Reason(), waited, connstate.ClosedSlow)
		}
		ssetest.WantError(t, "afterwards", w.c.Send("", []byte("x")), connstate.ErrClosed)
	})
}

func TestCloseGracefullyIsBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := boxed(t)
		must(t, w.c.Send("", sized("a", 600)))
		began := time.Now()
		w.c.CloseGracefully(connstate.ClosedShutdown, 300*time.Millisecond)
		w.c.CloseGracefully(connstate.ClosedIdle, time.Hour) // idempotent
		if waited := time.Since(began); waited != 300*time.Millisecond || w.c.Reason() != connstate.ClosedShutdown {
			t.Errorf("closed as %q after %v, want after 300ms", w.c.Reason(), waited)
		}
	})
}
