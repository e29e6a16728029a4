package compose_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"strconv"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/mcp-sse/mcp-sse/compose"
	"github.com/mcp-sse/mcp-sse/internal/rawjson"
	"github.com/mcp-sse/mcp-sse/internal/ssetest"
	"github.com/mcp-sse/mcp-sse/jsonrpc"
)

// wild is a member that answers after a while, in goroutines of its own, and may end at any time. Each list that it
// gives has a higher number in its tools' descriptions than the ones before.
type wild struct {
	name string

	mu      sync.Mutex
	version int
	refuses bool
	conns   map[*wildConn]bool
}

// wildConn is a connection with a wild.
type wildConn struct {
	of      *wild
	receive func(msg []byte, request jsonrpc.ID, err error)
	out     chan []byte
	done    chan struct{}
	once    sync.Once
}

func (w *wild) Dial(context.Context) (jsonrpc.Conn, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.refuses {
		return nil, errors.New("not now")
	}
	c := &wildConn{of: w, out: make(chan []byte, 1024), done: make(chan struct{})}
	w.conns[c] = true
	return c, nil
}

func (c *wildConn) Push(func(msg []byte, err error)) { panic("PushFor is there") }

func (c *wildConn) PushFor(receive func(msg []byte, request jsonrpc.ID, err error)) {
	c.receive = receive
	go func() { // delivers in order; ends with the connection
		for {
			select {
			case msg := <-c.out:
				receive(msg, "", nil)
			case <-c.done:
				receive(nil, "", io.EOF)
				return
			}
		}
	}()
}

func (c *wildConn) Recv() ([]byte, error) { panic("it pushes") }

func (c *wildConn) SendRequest(m *jsonrpc.Message, number int64) error {
	return c.Send(m.Renumbered(jsonrpc.NumberID(number)))
}

func (c *wildConn) Send(msg []byte) error {
	select {
	case <-c.done:
		return jsonrpc.ErrClosed
	default:
	}
	m, err := jsonrpc.Parse(msg)
	if err != nil || m.Kind != jsonrpc.Request {
		return err
	}
	go func() { // answers after a while
		time.Sleep(rand.N(20 * time.Millisecond))
		c.say(string(jsonrpc.NewResult(m.ID, json.RawMessage(c.of.answer(m)))))
	}()
	return nil
}

// answer returns the result of a request.
func (w *wild) answer(m *jsonrpc.Message) string {
	w.mu.Lock()
	defer w.mu.Unlock()
	switch m.Method {
	case "initialize":
		return `{"capabilities":{"tools":{},"prompts":{}}}`
	case "tools/list":
		w.version++
		return fmt.Sprintf(`{"tools":[{"name":"t","description":"%d"},{"name":"%s","description":"%d"}]}`, w.version, w.name, w.version)
	case "prompts/list":
		return `{"prompts":[{"name":"p"}]}`
	default:
		name, _ := m.Param("name").Text()
		return fmt.Sprintf(`{"by":"%s/%s","of":%s}`, w.name, name, m.ID)
	}
}

func (c *wildConn) say(msg string) {
	select {
	case c.out <- []byte(msg):
	case <-c.done:
	}
}

func (c *wildConn) Close() error {
	c.once.Do(func() { close(c.done) })
	return nil
}

// do does something to the member.
func (w *wild) do(what int) {
	w.mu.Lock()
	defer w.mu.Unlock()
	switch {
	case what == 0 || w.refuses:
		w.refuses = !w.refuses
	case what <= 2:
		for c := range w.conns {
			delete(w.conns, c)
			go c.Close()
			return
		}
	default:
		for c := range w.conns {
			go c.say(`{"jsonrpc":"2.0","method":"notifications/tools/list_changed"}`)
		}
	}
}

// Three members answer late, end, refuse, change their lists, leave and come, while clients list and call. Each request is answered
// once, a call by the member that its name leads to, and nobody gets an older list after a newer one. When all is over
// nothing is left.
func TestChaos(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		wilds := []*wild{}
		var pairs []any
		for _, name := range []string{"a", "b", "c"} {
			w := &wild{name: name, conns: map[*wildConn]bool{}}
			wilds, pairs = append(wilds, w), append(pairs, name, w)
		}
		v := newView(t, members(pairs...))
		var all sync.WaitGroup
		over := make(chan struct{})
		for n := range 4 {
			all.Go(func() { chaoticClient(t, v, n, over) })
		}
		for range 300 {
			time.Sleep(rand.N(2 * time.Second))
			wilds[rand.IntN(3)].do(rand.IntN(10))
			if rand.IntN(10) == 0 { // c leaves, or comes back
				ssetest.Must(t, v.Replace(members(pairs[:4+2*rand.IntN(2)]...), compose.Options{Name: "team"}))
			}
		}
		ssetest.Must(t, v.Replace(members(pairs...), compose.Options{Name: "team"}))
		for _, w := range wilds {
			w.mu.Lock()
			w.refuses = false
			w.mu.Unlock()
		}
		close(over)
		all.Wait()
		synctest.Wait()
		sessions, troubles := compose.Sessions(v)
		ssetest.Want(t, "what is left", fmt.Sprint(sessions, troubles), "0 0")
	})
}

// chaoticClient is a client of TestChaos. Nothing happens to the members after over.
func chaoticClient(t *testing.T, v *compose.View, n int, over <-chan struct{}) {
	dialled, err := v.Dial(t.Context())
	ssetest.Must(t, err)
	conn := dialled.(jsonrpc.Relay)
	var mu sync.Mutex
	asked := map[int64]string{} // the names that were called, or methods, of requests that are not answered
	versions := map[string]int{}
	answered, failed := 0, 0
	conn.PushFor(func(msg []byte, _ jsonrpc.ID, err error) {
		if err != nil {
			return
		}
		m, err := jsonrpc.Parse(msg)
		if err != nil || m.Kind != jsonrpc.Response {
			return
		}
		mu.Lock()
		defer mu.Unlock()
		number, _ := strconv.ParseInt(string(m.ID), 10, 64)
		what, ok := asked[number]
		delete(asked, number)
		tools, isList := rawjson.Member(m.Result(), "tools")
		switch {
		case !ok:
			t.Errorf("client %d: %s answers nothing", n, msg)
		case m.Error() != nil:
			failed++
		case isList:
			rawjson.Each(tools, func(tool json.RawMessage) {
				name, _ := rawjson.MemberText(tool, "name")
				text, _ := rawjson.MemberText(tool, "description")
				version, _ := strconv.Atoi(text)
				if version < versions[name] {
					t.Errorf("client %d: %s has version %d after %d", n, name, version, versions[name])
				}
				versions[name] = version
			})
		case strings.Contains(what, "__"):
			answered++
			if want := fmt.Sprintf(`{"by":"%s","of":%d}`, strings.Replace(what, "__", "/", 1), number); string(m.Result()) != want {
				t.Errorf("client %d: got %s, want %s", n, m.Result(), want)
			}
		}
	})
	send := func(number int64, method, name string) {
		params := `{}`
		if name != "" {
			params = fmt.Sprintf(`{"name":%q}`, name)
		}
		m, err := jsonrpc.Parse(jsonrpc.NewRequest("0", method, json.RawMessage(params)))
		ssetest.Must(t, err)
		mu.Lock()
		asked[number] = max(method, name)
		if name != "" {
			asked[number] = name
		}
		mu.Unlock()
		ssetest.Must(t, conn.SendRequest(m, number))
	}
	send(1, "initialize", "")
	for number := int64(2); number < 500; number++ {
		time.Sleep(rand.N(time.Second))
		switch member := string("abc"[rand.IntN(3)]); rand.IntN(8) {
		case 0:
			send(number, "tools/list", "")
		case 1:
			send(number, "prompts/get", member+"__p")
		case 2:
			send(number, "tools/call", member+"__"+member)
		default:
			send(number, "tools/call", member+"__t")
		}
	}
	<-over // until then a list that has changed may be on its way at any time
	time.Sleep(time.Minute)
	mu.Lock()
	ssetest.Want(t, "requests without an answer", fmt.Sprint(asked), "map[]")
	if answered < 50 {
		t.Errorf("client %d: %d calls were answered, %d failed", n, answered, failed)
	}
	mu.Unlock()
	for table, size := range compose.Tables(conn) {
		ssetest.Want(t, table, size, 0)
	}
	ssetest.Must(t, conn.Close())
}

// BenchmarkList is what the first list of a client costs, over 50 members with 40 tools each. The members answer at
// once, as from memory.
func BenchmarkList(b *testing.B) {
	description := strings.Repeat("word ", 100)
	var list []compose.Member
	for i := range 50 {
		f := newFake()
		var entries []string
		for n := range 40 {
			entries = append(entries, fmt.Sprintf(`{"name":"tool_%d","description":%q,"inputSchema":{"type":"object"}}`, n, description))
		}
		f.lists["tools/list"] = `{"tools":[` + strings.Join(entries, ",") + `]}`
		list = append(list, compose.Member{Name: fmt.Sprint("m", i), Upstream: f})
	}
	for name, shared := range map[string]bool{"first": false, "second": true} {
		b.Run(name, func(b *testing.B) {
			v, err := compose.New(list, compose.Options{Name: "team"})
			ssetest.Must(b, err)
			once := func() {
				conn, err := v.Dial(b.Context())
				ssetest.Must(b, err)
				got := make(chan int, 2) // the lengths of the answers, and of no other message
				conn.(jsonrpc.Relay).PushFor(func(msg []byte, request jsonrpc.ID, err error) {
					if request != "" {
						got <- len(msg)
					}
				})
				for number, method := range []string{"initialize", "tools/list"} {
					m, err := jsonrpc.Parse(jsonrpc.NewRequest("0", method, json.RawMessage(`{}`)))
					ssetest.Must(b, err)
					ssetest.Must(b, conn.(jsonrpc.Relay).SendRequest(m, int64(number+1)))
				}
				if most := max(<-got, <-got); most < 1<<20/2 {
					b.Fatalf("got %d bytes", most)
				}
				ssetest.Must(b, conn.Close())
			}
			once()
			for b.Loop() {
				if !shared {
					v, err = compose.New(list, compose.Options{Name: "team"})
					ssetest.Must(b, err)
				}
				once()
			}
		})
	}
}
