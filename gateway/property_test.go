package gateway_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/mcp-sse/mcp-sse/connstate"
	"github.com/mcp-sse/mcp-sse/gateway"
	"github.com/mcp-sse/mcp-sse/jsonrpc"
)

// chaos is a server and its clients that do what a seed says.
type chaos struct {
	t    *testing.T
	g    *gateway.Gateway
	u    *server
	mu   sync.Mutex // guards rng: the server draws from timers' goroutines
	rng  *rand.Rand
	next int
	// clients are those whose streams are open, and what each has asked.
	clients []*chaosClient
}

type chaosClient struct {
	*peer
	asked map[string]string // by id: a token that only this client sent
}

func (c *chaos) draw(n int) int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.rng.IntN(n)
}

// dial is slow, or fails, or works.
func (c *chaos) dial(ctx context.Context, _ int) error {
	if err := slow(time.Duration(c.draw(1500))*time.Millisecond)(ctx, 0); err != nil {
		return err
	}
	if c.draw(4) == 0 {
		return errNoServer
	}
	return nil
}

// handle answers with the params, soon, late, twice, never, or dies.
func (c *chaos) handle(s *serverSession, m *jsonrpc.Message) bool {
	if m.Kind != jsonrpc.Request {
		return true
	}
	response := string(jsonrpc.NewResult(m.ID, m.Params()))
	if m.Method == "initialize" {
		response = string(jsonrpc.NewResult(m.ID, []byte(serverResult)))
	}
	times := 1
	switch c.draw(20) {
	case 0:
		times = 0
	case 1:
		times = 2
	case 2:
		s.die()
	case 3:
		response = `{"id":` + string(m.ID) + `}`
	}
	for range times {
		time.AfterFunc(time.Duration(c.draw(4000))*time.Millisecond, func() { s.say(response) })
	}
	return true
}

// step does one thing.
func (c *chaos) step() {
	if len(c.clients) == 0 || len(c.clients) < 4 && c.draw(20) == 0 {
		c.clients = append(c.clients, &chaosClient{connect(c.t, c.g, plain), map[string]string{}})
		return
	}
	i := c.draw(len(c.clients))
	client := c.clients[i]
	switch c.draw(20) {
	case 0: // the client goes: what it had asked is nobody's any more
		client.c.Close("client")
		c.clients = append(c.clients[:i], c.clients[i+1:]...)
	case 1, 2:
		client.killSession(c)
	case 3, 4:
		for id := range client.asked {
			client.post(`{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":` + id + `}}`)
			break
		}
	case 5:
		client.ask(c, "initialize")
	case 6:
		client.ask(c, "ping")
	case 7, 8:
		time.Sleep(time.Duration(c.draw(3000)) * time.Millisecond)
	default:
		client.ask(c, []string{"tools/call", "tools/list", "vendor/x"}[c.draw(3)])
	}
}

func (p *chaosClient) ask(c *chaos, method string) {
	c.next++
	id := fmt.Sprint(len(p.asked)) // small numbers: all clients use the same
	token := fmt.Sprintf(`{"protocolVersion":"2025-11-25","capabilities":%s,"token":%d}`, []string{"{}", `{"roots":{}}`}[c.draw(2)], c.next)
	p.asked[id] = token
	p.post(`{"jsonrpc":"2.0","id":` + id + `,"method":"` + method + `","params":` + token + `}`)
}

// killSession ends some session.
func (p *chaosClient) killSession(c *chaos) {
	c.u.mu.Lock()
	sessions := c.u.sessions
	c.u.mu.Unlock()
	if len(sessions) > 0 {
		sessions[c.draw(len(sessions))].die()
	}
}

// check expects each request of a client to have been answered exactly once, by
// an error or by what only that client can have asked.
func (p *chaosClient) check(seed uint64) {
	p.mu.Lock()
	defer p.mu.Unlock()
	answers := map[string]int{}
	for _, e := range p.got {
		m, err := jsonrpc.Parse(e.Data)
		if err != nil || m.Kind != jsonrpc.Response {
			p.t.Errorf("seed %d: a client got %s", seed, e.Data)
			continue
		}
		answers[string(m.ID)]++
		result := string(m.Result())
		if strings.Contains(result, "token") && result != p.asked[string(m.ID)] {
			p.t.Errorf("seed %d: crossed: request %s was %s, the answer is %s", seed, m.ID, p.asked[string(m.ID)], result)
		}
	}
	for id := range p.asked {
		if answers[id] != 1 {
			p.t.Errorf("seed %d: request %s was answered %d times", seed, id, answers[id])
		}
	}
	if len(answers) != len(p.asked) {
		p.t.Errorf("seed %d: %d ids were answered, %d asked", seed, len(answers), len(p.asked))
	}
}

// P1 and P2 under a scheduler that knows no mercy: calls, cancellations, deaths
// of sessions, slow and failing starts, late, double and missing answers,
// clients that come and go. Each request is answered exactly once, in time.
func TestEveryRequestIsAnsweredOnce(t *testing.T) {
	seeds, steps := uint64(60), 300
	if raceEnabled {
		seeds = 20
	}
	for seed := range seeds {
		c := &chaos{t: t, rng: rand.New(rand.NewPCG(seed, 1))}
		c.u = &server{dial: c.dial, handle: c.handle}
		opts := gateway.Options{RequestTimeout: 5 * time.Second, MaxHandshakeAttempts: 3, MaxInFlight: int(seed % 3)}
		inFakeTime(t, c.u, opts, func(t *testing.T, g *gateway.Gateway) {
			c.t, c.g = t, g
			for range steps {
				c.step()
				if c.draw(3) > 0 {
					synctest.Wait()
				}
			}
			// The longest that a request may take: a start, and its timeout.
			time.Sleep(61*time.Second + opts.RequestTimeout)
			synctest.Wait()
			for _, client := range c.clients {
				client.check(seed)
				if n := client.c.InFlight(); n != 0 {
					t.Errorf("seed %d: %d requests are unanswered in state %s", seed, n, client.c.State())
				}
				if s := client.c.State(); s == connstate.Closed {
					t.Errorf("seed %d: the stream was closed for %s", seed, client.c.Reason())
				}
			}
		})
		if t.Failed() {
			return
		}
	}
}
