package multiplex_test

import (
	"errors"
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

const (
	stressCallers = 64
	stressCalls   = 200
)

// slowConn answers each request with its own params, after a random while; some
// it answers twice, some never, some with garbage.
type slowConn struct {
	in     chan []byte
	done   chan struct{}
	closed sync.Once
	die    bool
}

func (c *slowConn) Send(msg []byte) error {
	select {
	case <-c.done:
		return jsonrpc.ErrClosed
	default:
	}
	m, err := jsonrpc.Parse(msg)
	if err != nil || m.Kind != jsonrpc.Request {
		return err
	}
	switch fate := rand.IntN(1000); {
	case fate < 5:
		return jsonrpc.ErrBusy
	case fate < 15: // never
	case fate < 20:
		c.say(`{"jsonrpc":"2.0","id":` + string(m.ID) + `}`)
	case fate < 60:
		c.say(string(jsonrpc.NewResult(m.ID, m.Params())))
		c.say(string(jsonrpc.NewResult(m.ID, m.Params())))
	default:
		c.say(string(jsonrpc.NewResult(m.ID, m.Params())))
	}
	if c.die && rand.IntN(2000) == 0 {
		_ = c.Close()
	}
	return nil
}

func (c *slowConn) say(msg string) {
	time.AfterFunc(rand.N(20*time.Millisecond), func() {
		select {
		case c.in <- []byte(msg):
		case <-c.done:
		}
	})
}

func (c *slowConn) Recv() ([]byte, error) {
	select {
	case m := <-c.in:
		return m, nil
	case <-c.done:
		return nil, io.EOF
	}
}

func (c *slowConn) Close() error {
	c.closed.Do(func() { close(c.done) })
	return nil
}

// stresser makes one call after the other under the same few ids and checks that
// each is answered once, with what only it can know.
type stresser struct {
	t    *testing.T
	name string
	got  chan string // the answer's bytes; "" for an error
}

func (c *stresser) Answer(_ jsonrpc.ID, response []byte, _ string) { c.answered(string(response)) }
func (c *stresser) Fail(_ jsonrpc.ID, _ *jsonrpc.Error, _ string)  { c.answered("") }
func (c *stresser) Deliver(_ string, _ jsonrpc.ID, message []byte) {
	c.t.Errorf("%s: delivered %s", c.name, message)
}
func (c *stresser) Lost(m *jsonrpc.Message, e *jsonrpc.Error) { c.Fail(m.ID, e, "") }
func (c *stresser) Serves(*jsonrpc.Message) bool              { return false }
func (c *stresser) answered(response string) {
	select {
	case c.got <- response:
	default:
		c.t.Errorf("%s: answered twice: %s", c.name, response)
	}
}

func (c *stresser) run(caller *caller) (answered int) {
	for i := range stressCalls {
		id := fmt.Sprint(i % 3)
		token := fmt.Sprintf(`{"token":"%s-%d"}`, c.name, i)
		if caller.Forward(parse(c.t, `{"jsonrpc":"2.0","id":`+id+`,"method":"tools/call","params":`+token+`}`)) != nil {
			continue // the session is over: there is nothing to wait for
		}
		if rand.IntN(50) == 0 {
			_ = caller.Forward(parse(c.t, `{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":`+id+`}}`))
		}
		response := <-c.got // a request that is never answered is a deadlock, which synctest reports
		if response == "" {
			continue
		}
		answered++
		if want := string(jsonrpc.NewResult(jsonrpc.ID(id), []byte(token))); response != want {
			c.t.Errorf("%s got %s, want %s", c.name, response, want)
		}
	}
	return answered
}

func stress(t *testing.T, opts multiplex.Options, die bool) {
	opts.RequestTimeout, opts.Shared = 30*time.Millisecond, true
	synctest.Test(t, func(t *testing.T) {
		conn := &slowConn{in: make(chan []byte), done: make(chan struct{}), die: die}
		s := multiplex.New(conn, opts)
		var (
			wg sync.WaitGroup
			mu sync.Mutex
			ok int
		)
		for i := range stressCallers {
			c := &stresser{t: t, name: fmt.Sprintf("caller-%d", i), got: make(chan string, 1)}
			caller := attach(s, c, c.name, "")
			wg.Go(func() {
				n := c.run(caller)
				mu.Lock()
				defer mu.Unlock()
				ok += n
			})
		}
		wg.Wait()
		time.Sleep(time.Second) // what comes late must not come to anybody
		s.Close(errors.New("over"))
		<-s.Done()
		if total := stressCallers * stressCalls; !die && opts.MaxInFlight == 0 && ok < total*9/10 {
			t.Errorf("%d of %d calls were answered by the server", ok, total)
		}
	})
}

// P1 and P2: whatever the server does, each request is answered exactly once,
// and only to who asked.
func TestStress(t *testing.T) {
	t.Run("unlimited", func(t *testing.T) { stress(t, multiplex.Options{}, false) })
	t.Run("eight at a time", func(t *testing.T) { stress(t, multiplex.Options{MaxInFlight: 8}, false) })
	t.Run("session dies", func(t *testing.T) { stress(t, multiplex.Options{}, true) })
	t.Run("serialized", func(t *testing.T) { stress(t, multiplex.Options{MaxInFlight: 1}, true) })
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
