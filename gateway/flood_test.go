package gateway_test

import (
	"context"
	"errors"
	"io"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/mcp-sse/mcp-sse/connstate"
	"github.com/mcp-sse/mcp-sse/gateway"
	"github.com/mcp-sse/mcp-sse/jsonrpc"
)

// slowReader opens a connection whose client needs some time for each event.
func slowReader(t *testing.T, g *gateway.Gateway, each time.Duration) *peer {
	t.Helper()
	c, err := g.Registry().Open(plain)
	if err != nil {
		t.Fatal(err)
	}
	p := &peer{t: t, c: c}
	c.Bind(g.Accept(c))
	events := make(chan connstate.Event, 1)
	c.Attach(func(e connstate.Event) bool {
		select {
		case events <- e:
			return true
		default:
			return false
		}
	})
	go func() { // ends with the connection
		defer g.Registry().Remove(c)
		for {
			select {
			case e := <-events:
				time.Sleep(each)
				p.mu.Lock()
				p.got = append(p.got, e)
				p.mu.Unlock()
				c.Written(e.Size())
			case <-c.Done():
				return
			}
		}
	}()
	return p
}

// chatter makes a session send notifications all the time.
func chatter(s *serverSession, size int, every time.Duration) {
	for !s.over() {
		s.say(`{"jsonrpc":"2.0","method":"notifications/message","params":{"pad":"` + strings.Repeat("x", size) + `"}}`)
		time.Sleep(every)
	}
}

// A slow client slows down a server that sends too much, and the connection becomes
// ready all the same.
func TestFloodAtTheStartDoesNotKeepTheGateShut(t *testing.T) {
	u := &server{}
	u.handle = func(s *serverSession, m *jsonrpc.Message) bool {
		if m.Method == "notifications/initialized" {
			go chatter(s, 10_000, 100*time.Microsecond)
			time.Sleep(10 * time.Millisecond)
		}
		return false
	}
	inFakeTime(t, u, gateway.Settings{OutboxBytes: 256 << 10}, func(t *testing.T, g *gateway.Gateway) {
		p := slowReader(t, g, time.Millisecond)
		p.post(request("1", "tools/list"))
		time.Sleep(4 * time.Second)
		p.wantState(connstate.Ready)
		p.c.Close("client")
		time.Sleep(10 * time.Second)
	})
}

// A server that never stops sending does not delay a shutdown with no request in
// flight.
func TestShutdownDoesNotWaitForAChattyServer(t *testing.T) {
	u := &server{}
	inFakeTime(t, u, gateway.Options{}, func(t *testing.T, g *gateway.Gateway) {
		slowReader(t, g, 2*time.Millisecond)
		synctest.Wait()
		go chatter(u.session(t, 1), 10, time.Millisecond)
		time.Sleep(time.Second)
		began := time.Now()
		if err := <-shutdown(g, 15*time.Second); err != nil {
			t.Errorf("Shutdown = %v", err)
		}
		if took := time.Since(began); took > 10*time.Second {
			t.Errorf("Shutdown took %s of its 15 s", took)
		}
		time.Sleep(10 * time.Second)
	})
}

// exiting is a server whose process has ended while answers are still in its pipe.
type exiting struct {
	mu      sync.Mutex // guards what follows
	answers chan []byte
	last    string // the method after which it exits
	exited  bool
	closed  chan struct{}
}

func (e *exiting) Send(msg []byte) error {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.exited {
		return errors.New("the server has exited")
	}
	m, err := jsonrpc.Parse(msg)
	if err != nil {
		return err
	}
	if m.Kind == jsonrpc.Request {
		e.answers <- jsonrpc.NewResult(m.ID, []byte(serverResult))
	}
	if m.Method == e.last {
		e.exited = true
		close(e.answers)
	}
	return nil
}

func (e *exiting) Recv() ([]byte, error) {
	select {
	case <-e.closed:
		return nil, jsonrpc.ErrClosed
	default:
	}
	select {
	case answer, ok := <-e.answers:
		if !ok {
			return nil, io.EOF
		}
		return answer, nil
	case <-e.closed:
		return nil, jsonrpc.ErrClosed
	}
}

func (e *exiting) Close() error {
	e.mu.Lock()
	defer e.mu.Unlock()
	select {
	case <-e.closed:
	default:
		close(e.closed)
	}
	return nil
}

// dialOnce is an upstream that reaches its server once.
type dialOnce struct {
	first jsonrpc.Conn
	done  bool
}

func (d *dialOnce) Dial(context.Context) (jsonrpc.Conn, error) {
	if d.done {
		return nil, errNoServer
	}
	d.done = true
	return d.first, nil
}

// Answers that a server sent before its end reach the client, even if a later message
// is the first to show the end.
func TestAnswersOnTheirWayOutliveTheServer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		conn := &exiting{answers: make(chan []byte, 16), closed: make(chan struct{}), last: "last"}
		g, err := gateway.NewWith(&dialOnce{first: conn}, gateway.Settings{OutboxBytes: 1})
		if err != nil {
			t.Fatal(err)
		}
		p := slowReader(t, g, 300*time.Millisecond)
		synctest.Wait()
		p.post(request("1", "a"), request("2", "b"), request("3", "c"), request("4", "last"))
		synctest.Wait()
		p.post(request("9", "too late"))
		time.Sleep(4 * time.Second)
		for _, id := range []string{"1", "2", "3", "4"} {
			found := false
			p.mu.Lock()
			for _, e := range p.got {
				m, err := jsonrpc.Parse(e.Data)
				found = found || err == nil && m.ID == jsonrpc.ID(id) && m.Result() != nil
			}
			p.mu.Unlock()
			if !found {
				t.Errorf("the answer to %s is lost", id)
			}
		}
		p.c.Close("client")
		if err := <-shutdown(g, time.Minute); err != nil {
			t.Errorf("Shutdown = %v", err)
		}
	})
}
