package compose_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/mcp-sse/mcp-sse/compose"
	"github.com/mcp-sse/mcp-sse/internal/asker"
	"github.com/mcp-sse/mcp-sse/internal/clients"
	"github.com/mcp-sse/mcp-sse/internal/ssetest"
	"github.com/mcp-sse/mcp-sse/jsonrpc"
)

// Of twenty members one boots for 8 s and one is dead. Each client that is known has its list within its patience, and
// is told when the slow one is there. The dead one costs nobody anything.
func TestListsWithinThePatienceOfClients(t *testing.T) {
	for _, known := range append([]clients.Client{{Name: "unknown"}}, clients.All...) {
		inBubble(t, func(t *testing.T) {
			var pairs []any
			var names []string
			for i := range 18 {
				pairs = append(pairs, fmt.Sprint("m", i), newFake("t"))
				names = append(names, fmt.Sprintf("m%d__t", i))
			}
			slow, dead := newFake("t"), newFake("t")
			slow.silent["initialize"], dead.refuse = true, errors.New("it is dead")
			v := newView(t, members(append(pairs, "slow", slow, "dead", dead)...))
			begin := time.Now()
			c := dial(t, v)
			time.Sleep(10 * time.Millisecond) // of the way of initialize
			name := known.Name
			if len(known.Calls) > 0 {
				name = known.Calls[0]
			}
			c.request(1, "initialize", fmt.Sprintf(`{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":%q,"version":"1"}}`, name))
			c.take()
			c.request(2, "tools/list", "{}")
			for time.Since(begin) < 10*time.Second {
				if got := c.take(); len(got) > 0 {
					ssetest.Want(t, known.Name, strings.Join(got, "\n"), tools(2, names...))
					break
				}
				time.Sleep(time.Millisecond)
				synctest.Wait()
			}
			most := 5 * time.Second
			if known.Patience > 0 {
				most = min(most, known.Patience*3/4)
			}
			if took := time.Since(begin); took > most+20*time.Millisecond {
				t.Errorf("%s waited %v, and should have waited %v", known.Name, took, most)
			}
			// Nobody waits for a member that has had 5 s.
			time.Sleep(5*time.Second + 20*time.Millisecond - time.Since(begin))
			d := open(t, v)
			d.take()
			d.request(2, "tools/list", "{}")
			d.want("the next client", tools(2, names...))
			time.Sleep(8*time.Second - time.Since(begin))
			slow.set(func(f *fake) { f.silent["initialize"] = false })
			for _, conn := range slow.conns {
				conn.answerHeld(slow.says)
			}
			time.Sleep(250 * time.Millisecond)
			synctest.Wait()
			for _, client := range []*client{c, d} {
				client.want("told", `{"method":"notifications/tools/list_changed"}`)
				client.request(3, "tools/list", "{}")
				client.want("list", tools(3, append(names, "slow__t")...))
			}
			time.Sleep(time.Minute)
			c.want("nothing more")
		})
	}
}

// A client that waits for less than others makes a member late for itself, and for others only when the member has had
// the time that they would give it. One that has left makes it late for nobody.
func TestMemberIsLateForAllAfterItsOwnTime(t *testing.T) {
	const impatient = `{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"claude-code","version":"1"}}`
	known, _ := clients.Named("claude-code")
	patience := known.Patience * 3 / 4
	start := func(t *testing.T) (slow *fake, v *compose.View, first *client) {
		slow = newFake("t")
		slow.silent["initialize"] = true
		v = newView(t, members("slow", slow, "b", newFake("t")))
		first = dial(t, v)
		first.request(1, "initialize", impatient)
		first.take()
		first.request(2, "tools/list", "{}")
		time.Sleep(patience)
		synctest.Wait()
		first.want("its patience is over", tools(2, "b__t"))
		return slow, v, first
	}
	list := func(c *client, number int64) {
		c.take()
		c.request(number, "tools/list", "{}")
		synctest.Wait()
	}
	inBubble(t, func(t *testing.T) {
		slow, v, first := start(t)
		second := open(t, v)
		list(second, 2)
		second.want("it waits")
		list(first, 3)
		first.want("it has waited once", tools(3, "b__t"))
		time.Sleep(5*time.Second - patience)
		synctest.Wait()
		third := open(t, v)
		list(third, 2)
		third.want("the member has had 5 s", tools(2, "b__t"))
		second.want("it still waits")
		slow.nth(0).answerHeld(slow.says)
		synctest.Wait()
		list(first, 4)
		first.want("when it is there", tools(4, "slow__t", "b__t"))
	})
	inBubble(t, func(t *testing.T) {
		slow, v, first := start(t)
		ssetest.Must(t, first.conn.Close())
		time.Sleep(10 * time.Second)
		second := open(t, v)
		list(second, 2)
		second.want("it waits")
		slow.nth(1).answerHeld(slow.says)
		synctest.Wait()
		second.want("list", tools(2, "slow__t", "b__t"))
	})
}

// A server that comes back is listed by all sessions within the next retry (toolhive #5786), and so is one that comes
// back with other tools.
func TestMemberThatComesBack(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		a, b := newFake("t"), newFake("t")
		a.refuse = errors.New("not yet")
		v := newView(t, members("a", a, "b", b))
		c, d := open(t, v), open(t, v)
		for _, client := range []*client{c, d} {
			client.take()
			client.request(2, "tools/list", "{}")
			client.want("list", tools(2, "b__t"))
		}
		ssetest.Want(t, "dials at once", a.dialled(), 2)
		time.Sleep(5*time.Second + time.Millisecond)
		ssetest.Want(t, "dials after 5 s", a.dialled(), 4)
		time.Sleep(10 * time.Second)
		ssetest.Want(t, "dials after 15 s", a.dialled(), 6)
		a.set(func(f *fake) { f.refuse = nil })
		time.Sleep(20*time.Second + time.Second)
		for _, client := range []*client{c, d} {
			client.want("told", `{"method":"notifications/tools/list_changed"}`)
			client.request(3, "tools/list", "{}")
			client.want("list", tools(3, "a__t", "b__t"))
		}
		time.Sleep(time.Minute)

		// Its process ends. Its tools stay, and it is dialled again at once, for each session.
		a.set(func(f *fake) { f.lists["tools/list"] = listOf("tools", "name", "t", "u") })
		first, second := a.nth(0), a.nth(1)
		first.end(io.EOF)
		second.end(io.EOF)
		ssetest.Want(t, "dials", a.dialled(), 10)
		time.Sleep(time.Second)
		for _, client := range []*client{c, d} {
			client.want("told", `{"method":"notifications/tools/list_changed"}`)
			client.request(4, "tools/call", `{"name":"a__u"}`)
		}
		ssetest.Want(t, "calls", len(a.nth(2).take())+len(a.nth(3).take()), 4)

		// One that ends as soon as it is there is not dialled all the time.
		before := a.dialled()
		for range 3 {
			a.conn().end(io.EOF)
		}
		ssetest.Want(t, "dials", a.dialled(), before)
		time.Sleep(4 * time.Second)
		ssetest.Want(t, "dials within 4 s", a.dialled(), before)
		time.Sleep(2 * time.Second)
		ssetest.Want(t, "dials after 5 s", a.dialled(), before+1)
	})
}

// A member that comes back may have other prompts and resources, too. Lists that nobody has wanted are not read.
func TestOtherListsOfAMemberThatComesBack(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		a := full("a")
		c := open(t, newView(t, members("a", a, "b", newFake("t"))))
		c.request(2, "prompts/list", `{}`)
		c.take()
		time.Sleep(time.Minute)
		a.set(func(f *fake) { f.lists["prompts/list"] = listOf("prompts", "name", "new") })
		a.conn().end(io.EOF)
		time.Sleep(time.Second)
		c.want("told", `{"method":"notifications/prompts/list_changed"}`)
		c.request(3, "prompts/list", `{}`)
		c.want("list", `{"id":3,"result":`+listOf("prompts", "name", "a__new")+`}`)
		ssetest.Want(t, "reads of resources", a.asked("resources/list"), 0)
	})
}

// When one session finds a member well, all sessions try again.
func TestOneSessionFindsAMemberWell(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		a := newFake("t")
		a.refuse = errors.New("not yet")
		v := newView(t, members("a", a, "b", newFake("t")))
		c := open(t, v)
		c.request(2, "tools/list", "{}")
		c.take()
		a.set(func(f *fake) { f.refuse = nil })
		d := open(t, v)
		d.take()
		d.request(2, "tools/list", "{}")
		d.want("list", tools(2, "a__t", "b__t"))
		time.Sleep(250 * time.Millisecond)
		synctest.Wait()
		c.want("told", `{"method":"notifications/tools/list_changed"}`)
	})
}

// The time between two tries of a member that stays dead doubles up to 5 min. Nothing is tried for nobody.
func TestTriesOfADeadMember(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		a := newFake("t")
		a.refuse = errors.New("it is dead")
		v := newView(t, members("a", a, "b", newFake("t")))
		c := open(t, v)
		for _, after := range []time.Duration{5, 10, 20, 40, 80, 160, 300, 300, 300} {
			before := a.dialled()
			time.Sleep(after*time.Second - time.Nanosecond)
			ssetest.Want(t, fmt.Sprint("dials before ", after), a.dialled(), before)
			time.Sleep(time.Nanosecond)
			synctest.Wait()
			ssetest.Want(t, fmt.Sprint("dials after ", after), a.dialled(), before+1)
		}
		ssetest.Must(t, c.conn.Close())
		before := a.dialled()
		time.Sleep(time.Hour)
		ssetest.Want(t, "dials for nobody", a.dialled(), before)
	})
}

// A call goes to a member only after it has answered initialize on a new connection.
func TestCallsWaitForANewConnection(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		a := newFake("t")
		c := open(t, newView(t, members("a", a)))
		c.request(2, "tools/list", "{}")
		c.take()
		time.Sleep(time.Minute)
		a.set(func(f *fake) { f.silent["initialize"] = true })
		a.conn().end(io.EOF)
		c.request(3, "tools/call", `{"name":"t"}`)
		c.request(4, "vendor/x", `{}`)
		a.wantGot(t, "nothing yet")
		a.set(func(f *fake) { f.silent["initialize"] = false })
		a.conn().answerHeld(a.says)
		a.wantGot(t, "calls", `{"method":"notifications/initialized"}`, `{"id":3,"method":"tools/call","params":{"name":"t"}}`,
			`{"id":4,"method":"vendor/x","params":{}}`)
	})
}

// Changes of lists are told once, 250 ms after the first, if the client has listed, and only if the list differs then.
func TestChangesAreToldTogether(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		a, b := newFake("t"), newFake("t")
		c := open(t, newView(t, members("a", a, "b", b)))
		c.take()
		change := func(f *fake, tools ...string) {
			f.set(func(f *fake) { f.lists["tools/list"] = listOf("tools", "name", tools...) })
			f.conn().say(`{"jsonrpc":"2.0","method":"notifications/tools/list_changed"}`)
		}
		wait := func(d time.Duration) {
			time.Sleep(d)
			synctest.Wait()
		}
		change(a, "u")
		wait(time.Second)
		c.want("it has not listed")
		c.request(2, "tools/list", "{}")
		c.want("list", tools(2, "a__u", "b__t"))
		for i := range 10 {
			change(a, fmt.Sprint("u", i))
			change(b, fmt.Sprint("u", i))
			time.Sleep(20 * time.Millisecond)
		}
		c.want("not yet")
		wait(50 * time.Millisecond)
		c.want("told", `{"method":"notifications/tools/list_changed"}`)
		change(a, "v")
		change(a, "u9")
		wait(time.Second)
		c.want("nothing has changed in the end")
		change(a, "v")
		c.request(3, "tools/list", "{}")
		wait(time.Second)
		c.want("it has the new list", tools(3, "a__v", "b__u9"))
		change(a, "w")
		wait(time.Second)
		change(a, "v")
		wait(time.Second)
		c.want("told of each", `{"method":"notifications/tools/list_changed"}`, `{"method":"notifications/tools/list_changed"}`)
		change(a, "v")
		wait(time.Second)
		c.want("the same list again")
	})
}

// A list that changes while it is read is read again.
func TestListThatChangesWhileItIsRead(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		a := newFake("new")
		a.silent["tools/list"] = true
		c := open(t, newView(t, members("a", a, "b", newFake("t"))))
		c.take()
		c.request(2, "tools/list", "{}")
		a.conn().say(`{"jsonrpc":"2.0","method":"notifications/tools/list_changed"}`)
		a.set(func(f *fake) { f.silent["tools/list"] = false })
		a.conn().answerHeld(listOf("tools", "name", "old"))
		c.want("list", tools(2, "a__new", "b__t"))
	})
}

// A name leads to the tool that the client was shown, although the first member has it since then.
func TestNameKeepsItsTool(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		empty := ""
		late, b := newFake("t"), newFake("t")
		late.silent["initialize"] = true
		list := members("late", late, "b", b)
		list[0].Prefix, list[1].Prefix = &empty, &empty
		c := open(t, newView(t, list))
		c.request(2, "tools/list", "{}")
		time.Sleep(6 * time.Second)
		c.take()
		b.conn().take()
		late.conn().answerHeld(late.says)
		late.conn().take()
		c.request(3, "tools/call", `{"name":"t"}`)
		b.wantGot(t, "call", `{"id":3,"method":"tools/call","params":{"name":"t"}}`)
		c.request(4, "tools/list", "{}")
		c.request(5, "tools/call", `{"name":"t"}`)
		late.wantGot(t, "call after a new list", `{"id":5,"method":"tools/call","params":{"name":"t"}}`)
	})
}

// Pages are those of one list, although that has changed meanwhile. A cursor of an older one is unknown.
func TestPages(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		long := strings.Repeat("x", 400<<10)
		var entries []string
		for i := range 4 {
			entries = append(entries, fmt.Sprintf(`{"name":"t%d","description":%q}`, i, long))
		}
		a, b := newFake(), newFake("t")
		a.lists["tools/list"] = `{"tools":[` + strings.Join(entries, ",") + `]}`
		c := open(t, newView(t, members("a", a, "b", b)))
		c.take()
		page := func(number int64, cursor string) (names, next string) {
			t.Helper()
			c.request(number, "tools/list", `{"cursor":`+cursor+`}`)
			got := strings.Join(c.take(), "\n")
			for _, part := range strings.Split(got, `{"name":"`)[1:] {
				name, _, _ := strings.Cut(part, `"`)
				names += name + " "
			}
			if _, after, ok := strings.Cut(got, `"nextCursor":`); ok {
				next = strings.TrimSuffix(after, "}}")
			}
			if strings.Contains(got, "unknown cursor") {
				names = "unknown"
			}
			return names, next
		}
		names, next := page(2, `null`)
		ssetest.Want(t, "first", names, "a__t0 a__t1 ")
		b.set(func(f *fake) { f.lists["tools/list"] = listOf("tools", "name", "u") })
		b.conn().say(`{"jsonrpc":"2.0","method":"notifications/tools/list_changed"}`)
		names, none := page(3, next)
		ssetest.Want(t, "second", names+none, "a__t2 a__t3 b__t ")
		names, _ = page(5, next)
		ssetest.Want(t, "again", names, "a__t2 a__t3 b__t ")
		_, newest := page(6, `null`)
		for _, cursor := range []string{next, `"x"`, `7`, `"1.0"`, `"1.-1"`, strings.Replace(newest, ".1", ".9", 1)} {
			names, _ = page(7, cursor)
			ssetest.Want(t, cursor, names, "unknown")
		}
		time.Sleep(time.Second)
		c.want("it has the new list")
	})
}

// A list that is known, has changed, and cannot be read is read again by itself, less and less often.
func TestKnownListThatCannotBeReadAgain(t *testing.T) {
	for kind, name := range map[string]string{"tools": "a__new", "prompts": "a__new"} {
		inBubble(t, func(t *testing.T) {
			a, method := full("a"), kind+"/list"
			c := open(t, newView(t, members("a", a, "b", newFake("t"))))
			c.request(2, method, `{}`)
			c.take()
			a.set(func(f *fake) {
				f.fault[method] = `{"code":-32000,"message":"too many requests"}`
				f.lists[method] = listOf(kind, "name", "new")
			})
			asked := a.asked(method)
			a.conn().say(`{"jsonrpc":"2.0","method":"notifications/` + kind + `/list_changed"}`)
			time.Sleep(time.Hour)
			synctest.Wait()
			if n := a.asked(method) - asked; n < 60 || n > 80 {
				t.Errorf("%s were read %d times in an hour", kind, n)
			}
			c.want("the list of before stays")
			a.set(func(f *fake) { clear(f.fault) })
			time.Sleep(time.Minute + time.Second)
			synctest.Wait()
			c.want("told", `{"method":"notifications/`+kind+`/list_changed"}`)
			c.request(3, method, `{}`)
			ssetest.WantText(t, "list", strings.Join(c.take(), ""), name)
			asked = a.asked(method)
			time.Sleep(time.Hour)
			ssetest.Want(t, "reads of a list that is well", a.asked(method), asked)

			// Nothing is read of a member that is gone.
			a.set(func(f *fake) { f.fault[method] = `{"code":-32000,"message":"too many requests"}` })
			a.conn().say(`{"jsonrpc":"2.0","method":"notifications/` + kind + `/list_changed"}`)
			ssetest.Must(t, c.conn.Close())
			asked = a.asked(method)
			time.Sleep(time.Hour)
			ssetest.Want(t, "reads of a session that is over", a.asked(method), asked)
		})
	}
}

// A list that fails is read again: that of tools with the retry of its member, another one when somebody wants it, but
// not for each request.
func TestListThatFailsOnce(t *testing.T) {
	const fault = `{"code":-32000,"message":"too many requests"}`
	inBubble(t, func(t *testing.T) {
		a, b := full("a"), full("b")
		a.fault["prompts/list"], a.fault["resources/list"] = fault, fault
		c := open(t, newView(t, members("a", a, "b", b)))
		c.take()
		c.request(2, "prompts/list", `{}`)
		c.want("without it", `{"id":2,"result":`+listOf("prompts", "name", "b__p", "b__b_prompt", "b__hidden")+`}`)
		c.request(3, "resources/read", `{"uri":"x:a"}`)
		ssetest.WantText(t, "read", strings.Join(c.take(), ""), `{"id":3,"error":{"code":-32002`)
		a.set(func(f *fake) { clear(f.fault) })
		c.request(4, "prompts/get", `{"name":"a__p"}`)
		ssetest.WantText(t, "at once", strings.Join(c.take(), ""), `{"id":4,"error":`, `"retryable":true`)
		time.Sleep(10 * time.Second)
		a.conn().take()
		c.request(5, "prompts/get", `{"name":"a__p"}`)
		c.request(6, "resources/read", `{"uri":"x:a"}`)
		a.wantGot(t, "when it is well", `{"id":5,"method":"prompts/get","params":{"name":"p"}}`,
			`{"id":6,"method":"resources/read","params":{"uri":"x:a"}}`)
		time.Sleep(time.Second)
		c.want("told", `{"method":"notifications/prompts/list_changed"}`)
	})
	inBubble(t, func(t *testing.T) {
		a := newFake("x")
		a.fault["tools/list"] = fault
		c := open(t, newView(t, members("a", a, "b", newFake("y"))))
		c.take()
		c.request(2, "tools/list", `{}`)
		c.want("without it", tools(2, "b__y"))
		a.set(func(f *fake) { clear(f.fault) })
		time.Sleep(10 * time.Second)
		c.want("told", `{"method":"notifications/tools/list_changed"}`)
		c.request(3, "tools/list", `{}`)
		c.want("when it is well", tools(3, "a__x", "b__y"))
	})
}

// blocking is a member whose Dial waits for the end of its context.
type blocking struct{ dials, ends atomic.Int64 }

func (b *blocking) Dial(ctx context.Context) (jsonrpc.Conn, error) {
	b.dials.Add(1)
	<-ctx.Done()
	b.ends.Add(1)
	return nil, ctx.Err()
}

// A member whose Dial blocks costs its own tools alone, as one that is late does. Its Dial ends with the session, and
// with the access to the member.
func TestADialThatBlocks(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		var stuck blocking
		f := newFake("t")
		v := newView(t, members("stuck", &stuck, "f", f))
		c := open(t, v)
		time.Sleep(250 * time.Millisecond)
		ssetest.Want(t, "answers to initialize", len(c.take()), 1)
		f.conn().take()
		c.request(2, "tools/list", "{}")
		c.request(3, "tools/call", `{"name":"f__t"}`)
		f.wantGot(t, "the call", `{"id":3,"method":"tools/call","params":{"name":"t"}}`)
		time.Sleep(5 * time.Second)
		c.want("the list", tools(2, "f__t"))
		other := open(t, v)
		time.Sleep(250 * time.Millisecond)
		other.take()
		other.request(2, "tools/list", "{}")
		other.want("the list of another client", tools(2, "f__t"))
		other.request(3, "tools/call", `{"name":"stuck__t"}`)
		time.Sleep(5 * time.Second)
		ssetest.WantText(t, "a call", strings.Join(other.take(), "\n"), `"id":3`, "stuck, a server of this view, has not started yet")
		ssetest.Must(t, other.conn.Close())
		synctest.Wait()
		ssetest.Want(t, "dials that have ended with the session", stuck.ends.Load(), 1)
		replace(t, v, forbidden(members("stuck", &stuck, "f", f), "stuck"))
		synctest.Wait()
		ssetest.Want(t, "dials that have ended", stuck.ends.Load(), stuck.dials.Load())
	})
}

// A client that listens to changes of a list, without having listed, is told of each, but not of what members list
// first: not before initialize, not later, and not while a member boots. It hears of no other list.
func TestListenersAreToldOfChanges(t *testing.T) {
	const tools, prompts = "notifications/tools/list_changed", "notifications/prompts/list_changed"
	for _, isEarly := range []bool{true, false} {
		inBubble(t, func(t *testing.T) {
			var listen func(method string)
			following := 0
			ctx := asker.NewContext(t.Context(), &asker.Asker{OnListen: func(f func(method string)) (stop func()) {
				listen, following = f, following+1
				return func() { following-- }
			}})
			f, slow := full("f"), newFake("late")
			slow.silent["initialize"] = true
			c := dialWith(ctx, t, newView(t, members("f", f, "slow", slow)))
			if isEarly {
				listen(tools)
			}
			c.initialize()
			if !isEarly {
				listen(tools)
			}
			time.Sleep(time.Second)
			slow.conn().answerHeld(slow.says)
			time.Sleep(time.Second)
			ssetest.Want(t, "messages at the start", len(c.take()), 1) // the answer to initialize
			for _, kind := range []string{"tools", "prompts"} {
				f.set(func(f *fake) { f.lists[kind+"/list"] = listOf(kind, "name", "other") })
				f.conn().say(`{"jsonrpc":"2.0","method":"notifications/` + kind + `/list_changed"}`)
			}
			time.Sleep(time.Second)
			c.want("changes of both", `{"method":"`+tools+`"}`)
			listen(prompts)
			time.Sleep(time.Second)
			f.set(func(f *fake) { f.lists["prompts/list"] = listOf("prompts", "name", "third") })
			f.conn().say(`{"jsonrpc":"2.0","method":"` + prompts + `"}`)
			time.Sleep(time.Second)
			c.want("changes of prompts", `{"method":"`+prompts+`"}`)
			ssetest.Must(t, c.conn.Close())
			ssetest.Want(t, "sessions that follow", following, 0)
		})
	}
}
