package gateway_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/mcp-sse/mcp-sse/connstate"
	"github.com/mcp-sse/mcp-sse/gateway"
	"github.com/mcp-sse/mcp-sse/internal/pipetest"
	"github.com/mcp-sse/mcp-sse/internal/rawjson"
	"github.com/mcp-sse/mcp-sse/jsonrpc"
)

// chaos is a server and clients that act at random, from a seed.
type chaos struct {
	t    *testing.T
	g    *gateway.Gateway
	u    *server
	mu   sync.Mutex // guards rng: the server draws from timers' goroutines
	rng  *rand.Rand
	next int
	opts gateway.Options
	srv  *pipetest.Server // for clients over Streamable HTTP; nil: there are none
	// loses: the server may lose the id of an answer. Where it has several requests of one
	// client, that goes to the oldest, which need not be the right one.
	loses bool
	// well: the server does all that it is asked, at once.
	well atomic.Bool
	// clients are those whose streams are open, and what each has asked.
	clients []*chaosClient
}

type chaosClient struct {
	chaosLink
	t     *testing.T
	asked map[string]string // by id: a secret that only this client sent
	// cancelled are the requests of which the client may hear no more.
	cancelled map[string]bool
}

// chaosLink is a client's way to the gateway.
type chaosLink interface {
	// post sends messages, and does not wait for answers.
	post(msgs ...string)
	// received returns what came, in order.
	received() []connstate.Event
	// due returns how many answers to a request must have come.
	due(id string) int
	// connection returns the connection, nil once that is removed.
	connection() *connstate.Connection
	// leave ends the client.
	leave()
}

func (p *peer) received() []connstate.Event {
	p.mu.Lock()
	defer p.mu.Unlock()
	return slices.Clone(p.got)
}

func (p *peer) due(string) int { return 1 }

func (p *peer) connection() *connstate.Connection { return p.c.Connection }

func (p *peer) leave() { p.c.Close("client") }

// A secret is JSON that a careless program would re-encode: its bytes must stay.
func secret(n int) string {
	return fmt.Sprintf(`{"of":"\u0063lient","n":%d.500,"big":12345678901234567890}`, n)
}

func (c *chaos) draw(n int) int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.rng.IntN(n)
}

// dial is slow, or fails, or works.
func (c *chaos) dial(ctx context.Context, _ int) error {
	if c.well.Load() {
		return nil
	}
	if err := slow(time.Duration(c.draw(1500))*time.Millisecond)(ctx, 0); err != nil {
		return err
	}
	if c.draw(4) == 0 {
		return errNoServer
	}
	return nil
}

// handle answers with the secret: soon, late, twice, never, without the id, or dies. It
// may send progress before and after the answer.
func (c *chaos) handle(s *serverSession, m *jsonrpc.Message) bool {
	if m.Kind != jsonrpc.Request {
		return true
	}
	if c.well.Load() {
		return false
	}
	told, _ := rawjson.Member(m.Params(), "secret")
	if token, ok := rawjson.Member(m.Params(), "_meta", "progressToken"); ok {
		for range c.draw(4) {
			c.later(s, `{"jsonrpc":"2.0","method":"notifications/progress","params":{"progressToken":`+string(token)+`,"progress":1,"secret":`+string(told)+`}}`)
		}
	}
	response := string(jsonrpc.NewResult(m.ID, told))
	switch m.Method {
	case "initialize":
		response = string(jsonrpc.NewResult(m.ID, []byte(serverResult)))
	case "ping":
		response = string(jsonrpc.NewResult(m.ID, []byte("{}")))
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
	case 4, 5:
		if c.loses {
			response = strings.Replace(response, `"id":`+string(m.ID), `"id":`+[]string{"null", "1000000"}[c.draw(2)], 1)
		}
	}
	for range times {
		c.later(s, response)
	}
	return true
}

// later makes a session send a message within four seconds.
func (c *chaos) later(s *serverSession, msg string) {
	time.AfterFunc(time.Duration(c.draw(4000))*time.Millisecond, func() { s.say(msg) })
}

// step takes one random action.
func (c *chaos) step() {
	if len(c.clients) == 0 || len(c.clients) < 4 && c.draw(20) == 0 {
		c.clients = append(c.clients, &chaosClient{c.connect(), c.t, map[string]string{}, map[string]bool{}})
		return
	}
	i := c.draw(len(c.clients))
	client := c.clients[i]
	switch c.draw(20) {
	case 0: // the client goes: what it had asked is nobody's any more
		client.leave()
		c.clients = append(c.clients[:i], c.clients[i+1:]...)
	case 1, 2:
		client.killSession(c)
	case 3, 4:
		for id := range client.asked {
			_, ends := client.chaosLink.(*streamablePeer) // there the POST has to end
			client.cancelled[id] = client.cancelled[id] || !ends
			client.post(`{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":` + id + `}}`)
			break
		}
	case 5:
		if client.repeat(c) {
			return
		}
		client.ask(c, "initialize")
	case 6:
		client.ask(c, "ping")
	case 7:
		c.reconfigure()
	case 8:
		time.Sleep(time.Duration(c.draw(3000)) * time.Millisecond)
	default:
		client.ask(c, []string{"tools/call", "tools/list", "vendor/x"}[c.draw(3)])
	}
}

// generation is a server that is another one for the gateway.
type generation struct {
	*server
	n int
}

// reconfigure gives the gateway another server, or the same one, and another number of warm
// servers, if there are any.
func (c *chaos) reconfigure() {
	if c.opts.Warm > 0 {
		c.opts.Warm = 1 + c.draw(3)
	}
	equal(c.t, "error", c.g.Reconfigure(generation{c.u, c.draw(2)}, c.opts), nil)
}

// connect opens a client: half of them over Streamable HTTP, if that is served.
func (c *chaos) connect() chaosLink {
	if c.srv != nil && c.draw(2) == 0 {
		return connectStreamable(c.t, c.g, c.srv, c.draw)
	}
	return connect(c.t, c.g, plain)
}

// repeat sends a request again, under the same id. Only Streamable HTTP can tell the two
// answers apart, if there are two.
func (p *chaosClient) repeat(c *chaos) bool {
	if _, ok := p.chaosLink.(*streamablePeer); !ok || len(p.asked) == 0 || c.draw(2) == 0 {
		return false
	}
	id := fmt.Sprint(c.draw(len(p.asked)))
	p.post(fmt.Sprintf(`{"jsonrpc":"2.0","id":%s,"method":"vendor/x","params":{"secret":%s}}`, id, p.asked[id]))
	return true
}

func (p *chaosClient) ask(c *chaos, method string) {
	c.next++
	id := fmt.Sprint(len(p.asked)) // small numbers: all clients use the same
	p.asked[id] = secret(c.next)
	meta := []string{"{}", `{"progressToken":` + id + `}`, `{"progressToken":"` + id + `"}`}[c.draw(3)]
	p.post(fmt.Sprintf(`{"jsonrpc":"2.0","id":%s,"method":"%s","params":{"protocolVersion":"2025-11-25","capabilities":%s,"secret":%s,"_meta":%s}}`,
		id, method, []string{"{}", `{"roots":{}}`}[c.draw(2)], p.asked[id], meta))
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

// check expects exactly one answer to each request of a client, after its progress:
// an error, or the data of that client.
func (p *chaosClient) check(seed uint64) {
	answers := map[string]int{}
	for _, e := range p.received() {
		m, err := jsonrpc.Parse(e.Data)
		switch {
		case err == nil && m.Method == "notifications/progress":
			p.checkProgress(seed, m, answers)
			continue
		case err != nil || m.Kind != jsonrpc.Response:
			p.t.Errorf("seed %d: a client got %s", seed, e.Data)
			continue
		}
		answers[string(m.ID)]++
		result := string(m.Result())
		if strings.Contains(result, "big") && result != p.asked[string(m.ID)] {
			p.t.Errorf("seed %d: crossed: request %s was %s, the answer is %s", seed, m.ID, p.asked[string(m.ID)], result)
		}
	}
	for id := range p.asked {
		if due := p.due(id); answers[id] != due && !(p.cancelled[id] && answers[id] == 0) {
			p.t.Errorf("seed %d: request %s was answered %d times, want %d", seed, id, answers[id], due)
		}
		delete(answers, id)
	}
	if len(answers) > 0 {
		p.t.Errorf("seed %d: %v were answered, and not asked", seed, answers)
	}
}

// checkWell expects a connection to work again once the server does. A start whose
// initialize the server ignored goes on until StartTimeout, and the next one comes
// after a pause of up to 30 s.
func (p *chaosClient) checkWell(c *chaos, seed uint64) {
	c.well.Store(true)
	for _, id := range []string{`"again"`, `"well"`} { // what has given up may need to be asked twice
		time.Sleep(60*time.Second + 31*time.Second)
		p.post(request(id, "tools/call"))
	}
	synctest.Wait()
	got := p.received()
	if !slices.ContainsFunc(got, func(e connstate.Event) bool { return strings.HasPrefix(describe(p.t, e), `"well" {`) }) {
		p.t.Errorf("seed %d: with a server that is well there is no result; the last message is %s", seed, got[len(got)-1].Data)
	}
}

func (p *chaosClient) checkProgress(seed uint64, m *jsonrpc.Message, answers map[string]int) {
	token, _ := rawjson.Member(m.Params(), "progressToken")
	told, _ := rawjson.Member(m.Params(), "secret")
	id := strings.Trim(string(token), `"`)
	if p.asked[id] != string(told) {
		p.t.Errorf("seed %d: crossed: request %s was %s, its progress is %s", seed, id, p.asked[id], told)
	}
	if answers[id] > 0 && p.due(id) < 2 {
		p.t.Errorf("seed %d: request %s made progress after its answer", seed, id)
	}
}

// P1, P2, P3 and P6 under a random schedule: calls, progress, cancellations, deaths
// of sessions, other servers and options, slow and failing starts, answers that are late, double, missing or
// unknown, clients that come and go, a shutdown in the middle. Each request gets one
// answer, in time, with the bytes that the server sent.
func TestEveryRequestIsAnsweredOnce(t *testing.T) {
	for name, opts := range map[string]gateway.Options{
		"per connection": {},
		"warm":           {Warm: 2},
		"shared":         {Sessions: gateway.SessionsShared},
	} {
		for _, transport := range []gateway.Transport{gateway.TransportSSE, gateway.TransportStreamable} {
			t.Run(name+" "+transport.String(), func(t *testing.T) {
				t.Parallel()
				runChaos(t, opts, transport)
			})
		}
	}
}

func runChaos(t *testing.T, opts gateway.Options, over gateway.Transport) {
	seeds, steps := uint64(12), 200
	if over == gateway.TransportStreamable {
		seeds /= 2 // HTTP takes its time
	}
	for seed := range seeds {
		c := &chaos{t: t, rng: rand.New(rand.NewPCG(seed, 1)), loses: seed%3 == 1 || opts.Sessions == gateway.SessionsShared}
		c.u = &server{dial: c.dial, handle: c.handle}
		with := gateway.Settings{Options: opts, MaxRequestTimeout: 8 * time.Second, MaxHandshakeAttempts: 3}
		with.RequestTimeout, with.MaxInFlight = 5*time.Second, int(seed%3)
		c.opts = with.Options
		inFakeTime(t, c.u, with, func(t *testing.T, g *gateway.Gateway) {
			c.t, c.g = t, g
			c.srv = nil
			if over == gateway.TransportStreamable {
				c.srv = pipetest.Serve(g, nil, nil)
				defer c.stop()
			}
			for range steps {
				c.step()
				if c.draw(3) > 0 {
					synctest.Wait()
				}
			}
			c.finish(seed, with)
		})
		if t.Failed() {
			return
		}
	}
}

// stop ends the clients that use HTTP, and the server.
func (c *chaos) stop() {
	for _, client := range c.clients {
		if p, ok := client.chaosLink.(*streamablePeer); ok {
			p.leave()
		}
	}
	c.srv.Stop()
}

// finish waits for everything in flight, and checks the answers of every client.
func (c *chaos) finish(seed uint64, opts gateway.Settings) {
	if seed%4 == 3 {
		<-shutdown(c.g, time.Second) // says what it cut
		time.Sleep(time.Minute)      // who is cut comes back, and learns that the session is over
	} else { // the longest that a request may take: a start, its timeout, and both again
		time.Sleep(2 * (61*time.Second + opts.MaxRequestTimeout))
	}
	synctest.Wait()
	for _, client := range c.clients {
		client.check(seed)
		if seed%4 != 3 {
			defer client.checkWell(c, seed)
		}
		conn := client.connection()
		if conn == nil {
			if seed%4 != 3 {
				c.t.Errorf("seed %d: the session is gone", seed)
			}
			continue
		}
		if n := conn.InFlight(); n != 0 {
			c.t.Errorf("seed %d: %d requests are unanswered in state %s", seed, n, conn.State())
		}
		if s := conn.State(); s == connstate.Closed && seed%4 != 3 {
			c.t.Errorf("seed %d: the stream was closed for %s", seed, conn.Reason())
		}
	}
}
