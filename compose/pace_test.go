package compose_test

import (
	"context"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/mcp-sse/mcp-sse/jsonrpc"
)

// A server that says around each answer that its list has changed has its tools in the view, and is asked less and less
// often. When it is calm, a change is read at once again.
func TestListThatChangesAllTheTime(t *testing.T) {
	for name, before := range map[string]bool{"before each answer": true, "after each answer": false} {
		inBubble(t, func(t *testing.T) {
			a := &restless{fake: newFake("x"), before: before}
			c := open(t, newView(t, members("a", a, "b", newFake("y"))))
			c.take()
			c.request(2, "tools/list", `{}`)
			time.Sleep(time.Second)
			c.want(name, tools(2, "a__x", "b__y"))
			time.Sleep(time.Hour)
			if n := a.reads.Load(); n < 60 || n > 100 {
				t.Errorf("%s: its tools were read %d times in an hour", name, n)
			}
			a.isCalm.Store(true)
			time.Sleep(10 * time.Minute)
			a.set(func(f *fake) { f.lists["tools/list"] = listOf("tools", "name", "z") })
			a.conn().say(listChanged)
			time.Sleep(300 * time.Millisecond)
			synctest.Wait()
			c.want(name, `{"method":"notifications/tools/list_changed"}`)
			c.request(3, "tools/list", `{}`)
			c.want(name, tools(3, "a__z", "b__y"))
			a.isCalm.Store(false)
			a.conn().say(listChanged)
			time.Sleep(time.Second)
			c.take()
		})
	}
}

const listChanged = `{"jsonrpc":"2.0","method":"notifications/tools/list_changed"}`

// restless is a member that says around each list of tools that the list has changed.
type restless struct {
	*fake
	before bool // it says so before the answer, and not after it
	isCalm atomic.Bool
	reads  atomic.Int64
}

func (r *restless) Dial(ctx context.Context) (jsonrpc.Conn, error) {
	c, err := r.fake.Dial(ctx)
	if err != nil {
		return nil, err
	}
	return &restlessConn{c.(*fakeConn), r}, nil
}

type restlessConn struct {
	*fakeConn
	of *restless
}

func (c *restlessConn) SendRequest(m *jsonrpc.Message, number int64) error {
	return c.Send(m.Renumbered(jsonrpc.NumberID(number)))
}

func (c *restlessConn) Send(msg []byte) error {
	m, err := jsonrpc.Parse(msg)
	if err != nil {
		return err
	}
	if m.Method != "tools/list" {
		return c.fakeConn.Send(msg)
	}
	c.of.reads.Add(1)
	go func() {
		time.Sleep(time.Millisecond)
		if c.of.before && !c.of.isCalm.Load() {
			c.say(listChanged)
		}
		_ = c.fakeConn.Send(msg)
		if !c.of.before && !c.of.isCalm.Load() {
			c.say(listChanged)
		}
	}()
	return nil
}
