package connstate_test

import (
	"errors"
	"fmt"
	"net/netip"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/mcp-sse/mcp-sse/connstate"
	"github.com/mcp-sse/mcp-sse/internal/budget"
	"github.com/mcp-sse/mcp-sse/internal/ssetest"
	"github.com/mcp-sse/mcp-sse/jsonrpc"
	"github.com/mcp-sse/mcp-sse/metrics"
)

// budgeted is a world with a budget of 1 MiB; others use all of it but left bytes.
func budgeted(t testing.TB, left int) (*world, *budget.Account) {
	others := budget.New(1<<20, nil)
	options := connstate.Options{OutboxBytes: 512 << 10, OutboxWait: time.Second, Budget: others}
	w := newWorld(t, options, connstate.Client{Dialect: connstate.EventMessage})
	others.ForceReserve(1<<20 - left)
	return w, others
}

// A request holds its bytes until it is answered, a notification while it is at the gate.
func TestMessagesOverTheBudgetAreRefused(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w, others := budgeted(t, 13_000)
		params := `"method":"a","params":{"x":"` + strings.Repeat("x", 4000) + `"}}`
		ask := func(id int) (*connstate.Request, error) {
			r, err := w.c.BeginRequest(parse(t, fmt.Sprintf(`{"jsonrpc":"2.0","id":%d,%s`, id, params)))
			if err == nil {
				err = w.c.Enqueue(r, false)
			}
			return r, err
		}
		notify := func() error {
			return w.c.Enqueue(&connstate.Request{Message: parse(t, `{"jsonrpc":"2.0",`+params)}, false)
		}
		first, err := ask(1)
		must(t, err)
		_, err = ask(2)
		must(t, err)
		if _, err := ask(3); !errors.Is(err, connstate.ErrBusy) {
			t.Errorf("a request: got %v, want ErrBusy", err)
		}
		ssetest.WantError(t, "a notification", notify(), connstate.ErrBusy)
		w.checkGate(2, map[string]float64{metrics.GateBudget: 1})
		w.c.Withdraw(first)
		first.Fail(jsonrpc.Errorf(jsonrpc.CodeInternalError, "withdrawn"), metrics.ErrorCanceled)
		must(t, notify())
		others.Release(1<<20 - 13_000)
		w.c.Close(connstate.ClosedClient)
		if others.ForceReserve(1<<20 - 1); others.Full() {
			t.Error("the connection keeps bytes after the end")
		}
	})
}

func TestBodiesAreBoundedForEachConnection(t *testing.T) {
	w, others := budgeted(t, 1<<20)
	ssetest.WantError(t, "over three quarters of the budget", w.c.Sender().ReserveBody(1<<20, 0), connstate.ErrBusy)
	must(t, w.c.Sender().ReserveBody(768<<10, 0)) // alone
	others.ForceReserve(256 << 10)
	request, response := parse(t, `{"jsonrpc":"2.0","id":1,"method":"a"}`), parse(t, `{"jsonrpc":"2.0","id":1,"result":{}}`)
	ssetest.WantError(t, "a new request over the budget", w.c.CheckBudget(request), connstate.ErrBusy)
	must(t, w.c.CheckBudget(response))
	if _, err := w.registry.Open(connstate.Client{}); err == nil || !strings.Contains(err.Error(), "as many bytes") {
		t.Errorf("a new connection over the budget: %v", err)
	}
	others.Release(256 << 10)
	ssetest.WantError(t, "beside a body over the share", w.c.Sender().ReserveBody(1, 0), connstate.ErrBusy)
	w.c.Sender().ReleaseBody(768 << 10)
	must(t, w.c.CheckBudget(request))

	must(t, w.c.Sender().ReserveBody(64<<10, 0)) // of a share of 128 KiB
	must(t, w.c.Sender().ReserveBody(64<<10, 0))
	ssetest.WantError(t, "over the share", w.c.Sender().ReserveBody(1, 64<<10), connstate.ErrBusy)
	w.c.Sender().ReleaseBody(64 << 10)
	must(t, w.c.Sender().ReserveBody(256<<10, 64<<10)) // alone
	w.c.Sender().ReleaseBody(320 << 10)
	w.c.Close(connstate.ClosedClient)
	for range 64 {
		if !others.Reserve(16<<10, "") {
			t.Fatal("bytes of a body are lost")
		}
	}
}

// A sender that blocks waits until the client has read, within the wait.
func TestBudgetSlowsSendersThatBlock(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w, _ := budgeted(t, 0)
		w.attach(100)
		must(t, w.c.Send("", sized("a", 15<<10)))
		sent := make(chan error, 1)
		go func() { sent <- w.c.Send("", sized("b", 15<<10)) }() // fits into the outbox, not into the budget
		synctest.Wait()
		equal(t, "before the client has read", w.stream.tags(), "a")
		w.stream.writeAll()
		must(t, <-sent)
		equal(t, "events", w.stream.tags(), "ab")
	})
}

// A client of a shared session that reads is not closed for a burst; one that does not
// read is, after the wait, and what may wait for it until then is little.
func TestBudgetClosesAClientThatDoesNotRead(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w, others := budgeted(t, 0)
		w.attach(100)
		w.c.RespondNow("", sized("a", 300<<10))
		w.c.RespondNow("", sized("b", 30<<10))
		w.c.RespondNow("", sized("c", 30<<10))
		w.stream.writeAll()
		if got := w.stream.tags(); got != "abc" || w.c.State() == connstate.Closed {
			t.Errorf("a client that reads got %s, state %s", got, w.c.State())
		}
		w.c.RespondNow("", sized("d", 300<<10))
		w.c.RespondNow("", sized("e", 1<<20))
		equal(t, "closed", w.c.Reason(), connstate.ClosedSlow)
		w.stream.writeAll() // too late
		others.Release(1 << 20)
		if others.ForceReserve(1<<20 - 1); others.Full() {
			t.Error("the outbox keeps bytes after the end")
		}
	})
}

// Bodies without a connection have the share of who sends them.
func TestBodiesOfASenderAreBounded(t *testing.T) {
	account := budget.New(64<<20, nil)
	r := connstate.NewRegistry(connstate.Limits{}, connstate.Options{Budget: account})
	addr, other := netip.MustParseAddr("192.0.2.1"), netip.MustParseAddr("192.0.2.2")
	must(t, r.Sender("", addr).ReserveBody(8<<20, 0))
	ssetest.WantError(t, "over the share", r.Sender("", addr).ReserveBody(1<<20, 0), connstate.ErrBusy)
	must(t, r.Sender("", other).ReserveBody(1<<20, 0))
	must(t, r.Sender("p", addr).ReserveBody(1<<20, 0))
	r.Sender("", addr).ReleaseBody(8 << 20)
	must(t, r.Sender("", addr).ReserveBody(9<<20, 0)) // a larger one alone
	r.Sender("", addr).ReleaseBody(9 << 20)
	r.Sender("", other).ReleaseBody(1 << 20)
	r.Sender("p", addr).ReleaseBody(1 << 20)
	if account.Full() {
		t.Error("the bytes were not given back")
	}
}
