package compose_test

import (
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/mcp-sse/mcp-sse/compose"
	"github.com/mcp-sse/mcp-sse/internal/asker"
	"github.com/mcp-sse/mcp-sse/internal/ssetest"
)

// initialize waits for members that memory answers, 250 ms at most, and for no other one.
func TestInitializeWaitsForMemory(t *testing.T) {
	for name, c := range map[string]struct {
		first, then asker.Condition // the condition changes after 50 ms
		answers     bool            // it answers after 100 ms
		took        time.Duration
		declares    string
	}{
		"known, and it answers":          {asker.Known, asker.Known, true, 100 * time.Millisecond, `{"tools":{"listChanged":true}}`},
		"asking, known, and it answers":  {asker.Asking, asker.Known, true, 100 * time.Millisecond, `{"tools":{"listChanged":true}}`},
		"known, and it does not answer":  {asker.Known, asker.Known, false, 250 * time.Millisecond, `"prompts":`},
		"memory does not know":           {asker.Asking, asker.Asking, false, 250 * time.Millisecond, `"prompts":`},
		"memory is asked, and it starts": {asker.Asking, asker.Starting, true, 50 * time.Millisecond, `"prompts":`},
		"it starts":                      {asker.Starting, asker.Up, true, 0, `"prompts":`},
		"it has failed":                  {asker.Failed, asker.Failed, false, 0, `"prompts":`},
	} {
		t.Run(name, func(t *testing.T) {
			inBubble(t, func(t *testing.T) {
				a := newFake("t")
				a.silent["initialize"] = true
				a.be(c.first)
				v := newView(t, members("a", a, "b", newFake("t")))
				begin := time.Now()
				time.AfterFunc(50*time.Millisecond, func() { a.be(c.then) })
				if c.answers {
					time.AfterFunc(100*time.Millisecond, func() { a.newest().answerHeld(a.says) })
				}
				client := open(t, v)
				var got []string
				for synctest.Wait(); len(got) == 0; synctest.Wait() {
					if got = client.take(); len(got) == 0 {
						time.Sleep(time.Millisecond)
					}
				}
				ssetest.Want(t, "took", time.Since(begin), c.took)
				ssetest.WantText(t, "declares", strings.Join(got, ""), `"capabilities":`, c.declares)
				time.Sleep(time.Second)
				client.want("nothing more")
			})
		})
	}
}

// No list waits for a member whose start has failed. When the member is well again, it is asked again, and only if it
// has not the request already.
func TestMemberWhoseStartHasFailed(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		a := newFake("t")
		a.silent["initialize"] = true
		a.be(asker.Starting)
		c := open(t, newView(t, members("a", a, "b", newFake("t"))))
		c.take()
		c.request(2, "tools/list", "{}")
		synctest.Wait()
		c.want("it waits")
		a.be(asker.Failed)
		synctest.Wait()
		c.want("list", tools(2, "b__t"))
		c.request(3, "tools/call", `{"name":"a__t"}`)
		ssetest.WantText(t, "call", strings.Join(c.take(), ""), "a, a server of this view, cannot be reached: its start has failed")
		synctest.Wait()
		a.be(asker.Up)
		synctest.Wait()
		ssetest.Want(t, "requests that it has", len(a.conn().held), 1)
		a.conn().answerHeld(a.says)
		time.Sleep(time.Second)
		c.want("told", `{"method":"notifications/tools/list_changed"}`)
		c.request(4, "tools/list", "{}")
		c.want("list", tools(4, "a__t", "b__t"))
		ssetest.Want(t, "dials", a.dialled(), 1)
	})
}

// The reason why a member fails is known as soon as the member says it, although it has failed before.
func TestReasonThatComesLater(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		a := newFake("t")
		a.silent["initialize"] = true
		a.be(asker.Starting)
		v := newView(t, members("a", a, "b", newFake("t")))
		open(t, v)
		synctest.Wait()
		a.be(asker.Failed)
		synctest.Wait()
		ssetest.Want(t, "at first", v.Members()[0].Failure, "its start has failed")
		a.conn().refuseHeld(`{"code":-32603,"message":"no such file"}`)
		ssetest.Want(t, "then", v.Members()[0].Failure, "no such file")
		ssetest.Want(t, "state", v.Members()[0].State, compose.StateFailing)
	})
}

// A member that has refused initialize is asked again as soon as its condition is better, on the same connection.
func TestMemberThatRecovers(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		a := newFake("t")
		a.fault["initialize"] = `{"code":-32603,"message":"it broke"}`
		a.be(asker.Failed)
		c := open(t, newView(t, members("a", a, "b", newFake("t"))))
		c.take()
		c.request(2, "tools/list", "{}")
		c.want("list", tools(2, "b__t"))
		synctest.Wait()
		a.set(func(f *fake) { delete(f.fault, "initialize") })
		a.be(asker.Known)
		time.Sleep(time.Second)
		c.want("told", `{"method":"notifications/tools/list_changed"}`)
		ssetest.Want(t, "dials", a.dialled(), 1)
	})
}

// Each initialize of a client is answered, also two that wait for memory at once.
func TestTwoInitializes(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		f := newFake("x")
		f.be(asker.Asking)
		f.silent["initialize"] = true
		c := dial(t, newView(t, members("a", f)))
		const params = `{"protocolVersion":"2025-06-18","capabilities":{},"clientInfo":{"name":"c","version":"1"}}`
		c.request(1, "initialize", params)
		c.request(2, "initialize", params)
		c.want("nothing yet")
		time.Sleep(time.Second)
		got := c.take()
		ssetest.Want(t, "answers", len(got), 2)
		ssetest.WantText(t, "both", strings.Join(got, "\n"), `{"id":1,"result":`, `{"id":2,"result":`)
	})
}
