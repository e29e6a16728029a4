package compose_test

import (
	"context"
	"encoding/json"
	"io"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/mcp-sse/mcp-sse/compose"
	"github.com/mcp-sse/mcp-sse/internal/asker"
	"github.com/mcp-sse/mcp-sse/internal/ssetest"
	"github.com/mcp-sse/mcp-sse/jsonrpc"
)

// Lists are merged while a session is free for other messages: that of a request which only asks for a further page,
// that of one which may not have all members, and those that are needed while something else of the session is slow.
func TestAMergeHoldsUpNothing(t *testing.T) {
	const change = `{"jsonrpc":"2.0","method":"notifications/tools/list_changed"}`
	type world struct {
		late, b *fake
		c       *client
		change  func() // gives b another list, while a message to the client is slow
	}
	for name, does := range map[string]func(t *testing.T, w *world){
		"a page": func(t *testing.T, w *world) { w.c.request(2, "tools/list", `{"cursor":"x.1"}`) },
		"a list without a member": func(t *testing.T, w *world) {
			m, err := jsonrpc.Parse(jsonrpc.NewRequest("0", "tools/list", json.RawMessage("{}")))
			ssetest.Must(t, err)
			m.Context, _ = asker.WithRequest(t.Context(), "weak")
			ssetest.Must(t, w.c.conn.SendRequest(m, 2))
			time.Sleep(6 * time.Second)
		},
		"a change of which the client is told": func(t *testing.T, w *world) {
			w.c.request(2, "tools/list", `{}`)
			time.Sleep(6 * time.Second)
			w.b.set(func(f *fake) { f.lists["tools/list"] = listOf("tools", "name", "second") })
			w.b.conn().say(change)
			w.change()
			time.Sleep(time.Second)
		},
		"a call that has waited in vain": func(t *testing.T, w *world) {
			w.c.request(2, "tools/call", `{"name":"late__t"}`)
			w.change()
			time.Sleep(6 * time.Second)
		},
		"a call whose member is lost": func(t *testing.T, w *world) {
			w.c.request(2, "tools/call", `{"name":"late__t"}`)
			w.change()
			w.late.conn().end(io.EOF)
		},
	} {
		t.Run(name, func(t *testing.T) {
			inBubble(t, func(t *testing.T) {
				w := &world{late: newFake("t"), b: newFake("first")}
				w.late.silent["initialize"] = true
				of := members("late", w.late, "b", w.b)
				of[1].Allow = func(ctx context.Context) bool { return asker.FromContext(ctx).Credentials() == "strong" }
				v := newView(t, of)
				ctx := asker.NewContext(t.Context(), &asker.Asker{Credentials: func() string { return "strong" }})
				w.c = dialWith(ctx, t, v)
				merges, locked := 0, 0
				compose.WatchMerges(v, func(isLocked bool) {
					merges++
					if isLocked {
						locked++
					}
				})
				slow := make(chan struct{})
				w.c.hook = func(line string) {
					if strings.Contains(line, `"id":50,`) {
						<-slow
					}
				}
				w.change = func() {
					w.b.set(func(f *fake) { f.silent["tools/list"] = true })
					w.b.conn().say(change)
					go w.c.request(50, "ping", "{}") // ends with slow
					w.b.conn().answerHeld(listOf("tools", "name", "third"))
				}
				w.c.initialize()
				w.c.take()
				does(t, w)
				synctest.Wait()
				close(slow)
				synctest.Wait()
				ssetest.Want(t, "merges under the lock", locked, 0)
				if merges == 0 {
					t.Error("nothing was merged")
				}
			})
		})
	}
}
