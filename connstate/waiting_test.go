package connstate_test

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/mcp-sse/mcp-sse/connstate"
	"github.com/mcp-sse/mcp-sse/metrics"
)

func TestRespondNowNeverBlocks(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := boxed(t)
		w.attach(100)
		must(t, w.c.Send("", sized("a", 1000)))
		began := time.Now()
		w.c.RespondNow("", sized("b", 100))
		w.c.RespondNow("", sized("c", 100))
		if waited := time.Since(began); waited != 0 {
			t.Errorf("blocked for %v", waited)
		}
		w.stream.writeAll()
		synctest.Wait()
		if got := w.stream.tags(); got != "abc" {
			t.Errorf("got %s, want abc", got)
		}
		must(t, w.c.Send("", sized("d", 1000)))
		w.c.RespondNow("", sized("e", 100))
		time.Sleep(time.Second)
		synctest.Wait()
		if got := w.c.Reason(); got != metrics.ClosedSlow {
			t.Errorf("without room: closed as %q, want %q", got, metrics.ClosedSlow)
		}
		w.c.RespondNow("", sized("f", 100)) // nobody is there; nothing is left behind
	})
}

func TestWaitersAreBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := boxed(t)
		must(t, w.c.Send("", sized("a", 1000)))
		for range connstate.MaxWaiting {
			w.c.RespondNow("", sized("b", 500))
		}
		if got := w.c.State(); got == connstate.Closed {
			t.Fatal("closed below the bound")
		}
		w.c.RespondNow("", sized("c", 500))
		if got := w.c.Reason(); got != metrics.ClosedSlow {
			t.Errorf("closed as %q, want %q", got, metrics.ClosedSlow)
		}
	})
}

func TestBytesOfWaitersAreBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := boxed(t)
		must(t, w.c.Send("", sized("a", 1000)))
		w.c.RespondNow("", sized("b", connstate.MaxWaitingBytes+1)) // alone
		if got := w.c.State(); got == connstate.Closed {
			t.Fatal("closed below the bound")
		}
		w.c.SendNow("", sized("c", 100))
		if got := w.c.Reason(); got != metrics.ClosedSlow {
			t.Errorf("closed as %q, want %q", got, metrics.ClosedSlow)
		}
	})
}

func TestSendNowKeepsOrder(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := boxed(t)
		w.attach(100)
		for range 3 { // the line is empty again each time
			must(t, w.c.Send("", sized("a", 1000)))
			w.c.SendNow("", sized("b", 600))
			w.c.RespondNow("", sized("c", 600))
			w.c.SendNow("", sized("d", 100))
			w.stream.writeAll()
			synctest.Wait()
		}
		if got := w.stream.tags(); got != "abcdabcdabcd" {
			t.Errorf("got %s, want abcd three times", got)
		}
	})
}
