package multiplex_test

import (
	"fmt"
	"io"
	"math/rand/v2"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/mcp-sse/mcp-sse/jsonrpc"
	"github.com/mcp-sse/mcp-sse/multiplex"
)

// slowConn answers each request with its own params, after a random while; some twice,
// some never. It may die.
type slowConn struct {
	*fakeConn
	dies bool
}

func (c slowConn) Send(msg []byte) error {
	m, err := jsonrpc.Parse(msg)
	if err != nil || m.Kind != jsonrpc.Request {
		return err
	}
	answers := 1
	switch fate := rand.IntN(1000); {
	case fate < 5:
		return jsonrpc.ErrBusy
	case fate < 15:
		answers = 0
	case fate < 50:
		answers = 2
	case fate < 51 && c.dies:
		_ = c.Close()
		return io.ErrClosedPipe
	}
	for range answers {
		time.AfterFunc(rand.N(20*time.Millisecond), func() {
			select {
			case c.in <- incoming{data: jsonrpc.NewResult(m.ID, m.Params())}:
			case <-c.done:
			}
		})
	}
	return nil
}

// stresser makes one call after the other under the same few ids and checks that
// each is answered once, with what only it can know.
type stresser struct {
	fakeClient
	t    *testing.T
	name string
	got  chan string // the answer's bytes; "" for an error
}

func (c *stresser) Answer(_ jsonrpc.ID, response []byte, _ string) { c.answered(string(response)) }
func (c *stresser) Fail(_ jsonrpc.ID, _ *jsonrpc.Error, _ string)  { c.answered("") }
func (c *stresser) Lost(*jsonrpc.Message, *jsonrpc.Error)          { c.answered("") }
func (c *stresser) answered(response string) {
	select {
	case c.got <- response:
	default:
		c.t.Errorf("%s: answered twice: %s", c.name, response)
	}
}

func (c *stresser) run(caller *caller) {
	for i := range 100 {
		id := fmt.Sprint(i % 3)
		token := fmt.Sprintf(`{"token":"%s-%d"}`, c.name, i)
		if caller.Forward(parse(c.t, `{"jsonrpc":"2.0","id":`+id+`,"method":"tools/call","params":`+token+`}`)) != nil {
			continue // the session is over: there is nothing to wait for
		}
		if rand.IntN(50) == 0 {
			_ = caller.Forward(parse(c.t, cancelOf(id)))
		}
		response := <-c.got // a request that is never answered is a deadlock, which synctest reports
		if want := string(jsonrpc.NewResult(jsonrpc.ID(id), []byte(token))); response != "" && response != want {
			c.t.Errorf("%s got %s, want %s", c.name, response, want)
		}
	}
}

// P1 and P2, with clients at the same time: whatever the server does, each request is
// answered exactly once, and only to who asked.
func TestStress(t *testing.T) {
	for name, opts := range map[string]multiplex.Options{"unlimited": {}, "eight at a time": {MaxInFlight: 8}, "dies": {MaxInFlight: 1}} {
		t.Run(name, func(t *testing.T) {
			opts.RequestTimeout, opts.Shared = 30*time.Millisecond, true
			synctest.Test(t, func(t *testing.T) {
				s := multiplex.New(slowConn{newFakeConn(), name == "dies"}, opts)
				var wg sync.WaitGroup
				for i := range 32 {
					c := &stresser{t: t, name: fmt.Sprintf("caller-%d", i), got: make(chan string, 1)}
					caller := attach(s, c, c.name, "")
					wg.Go(func() { c.run(caller) })
				}
				wg.Wait()
				time.Sleep(time.Second) // what comes late must not come to anybody
				s.Close(errTestOver)
				<-s.Done()
			})
		})
	}
}

// While one client holds up the reader, all clients wait. The session still ends
// when it is closed.
func TestCloseWhileAClientHoldsUpTheReader(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		conn := newFakeConn()
		s := multiplex.New(conn, multiplex.Options{})
		held := &holdingClient{release: make(chan struct{})}
		caller := attach(s, held, "held", "")
		caller.Forward(parse(t, callA))
		conn.in <- incoming{data: []byte(result("1"))}
		synctest.Wait()
		caller.Forward(parse(t, callB))
		s.Close(errTestOver)
		close(held.release)
		<-s.Done()
		if got := strings.Join(held.take(), "\n"); got != `fail "b": session_lost, final (session_lost)` {
			t.Errorf("got %s, want b to be answered", got)
		}
	})
}

type holdingClient struct {
	fakeClient
	release chan struct{}
}

func (c *holdingClient) Answer(jsonrpc.ID, []byte, string) { <-c.release }
