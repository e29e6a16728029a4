package multiplex_test

import (
	"fmt"
	"io"
	"math/rand/v2"
	"strings"
	"sync"

	"github.com/mcp-sse/mcp-sse/internal/rawjson"
	"github.com/mcp-sse/mcp-sse/jsonrpc"
)

// asked is a request of a client in a random run, with what client and server have
// seen of it.
type asked struct {
	client   *actor
	secret   string // only this client has sent it
	id       string
	token    string // empty: none
	template string // of the message, with places for id and token
	answered int
	replies  []string // what the server has said, with a place for the id
}

func (a *asked) message(id, token string) string {
	return strings.NewReplacer("{ID}", id, "{TOKEN}", token).Replace(a.template)
}

// actor is a client of a random run. It checks all that reaches it.
type actor struct {
	run       *run
	name      string
	principal string
	left      bool
	open      map[string]*asked // by id
	offers    []string          // ids under which the server has asked it
}

func (c *actor) Answer(id jsonrpc.ID, response []byte, _ string) {
	c.run.mu.Lock()
	defer c.run.mu.Unlock()
	a := c.finish(string(id))
	if a == nil {
		return
	}
	if text := string(response); strings.Contains(text, `"result":{}`) {
		return // of a request whose answer says nothing
	}
	for _, reply := range a.replies { // P2 and P3: what the server has said to this, byte for byte
		if strings.Replace(reply, "{ID}", a.id, 1) == string(response) {
			return
		}
	}
	c.run.errorf("%s: %s answered with %s, the server has said %q", c.name, a.secret, response, a.replies)
}

// finish notes that a request is answered: P1.
func (c *actor) finish(id string) *asked {
	a := c.open[id]
	switch {
	case c.left:
		c.run.errorf("%s: answered after it has left", c.name)
	case a == nil:
		c.run.errorf("%s: answered %s, which is not open", c.name, id)
	default:
		a.answered++
		delete(c.open, id)
	}
	return a
}

func (c *actor) Fail(id jsonrpc.ID, _ *jsonrpc.Error, _ string) {
	c.run.mu.Lock()
	defer c.run.mu.Unlock()
	c.finish(string(id))
}

func (c *actor) Lost(m *jsonrpc.Message, _ *jsonrpc.Error) {
	c.run.mu.Lock()
	defer c.run.mu.Unlock()
	if a := c.finish(string(m.ID)); a != nil && a.message(a.id, a.token) != string(m.Raw()) {
		c.run.errorf("%s: handed back as %s", a.message(a.id, a.token), m.Raw())
	}
}

func (c *actor) SeesDetails() bool { return true }

func (c *actor) Serves(*jsonrpc.Message) bool { return true }

// Deliver checks that what holds a secret is the client's own, or its principal's,
// that progress comes while its request is open, and under the client's token.
func (c *actor) Deliver(method string, _ jsonrpc.ID, message []byte) {
	c.run.mu.Lock()
	defer c.run.mu.Unlock()
	text := string(message)
	if c.left {
		c.run.errorf("%s: %s after it has left", c.name, text)
	}
	if id := gatewayID.FindString(text); method == "roots/list" {
		c.offers = append(c.offers, id)
	}
	secret := secretIn(text)
	owner := c.run.secrets[secret]
	switch {
	case secret == "":
	case owner == nil:
		c.run.errorf("%s: got %s, a secret of nobody", c.name, text)
	case owner.client != c && (owner.client.principal != c.principal || method != "notifications/message" && method != "notifications/tasks/status"):
		c.run.errorf("%s: got %s, a secret of %s", c.name, text, owner.client.name)
	case method == "notifications/progress" && owner.task == "" && c.open[owner.id] != owner.asked:
		c.run.errorf("%s: got %s, which has been answered", c.name, text)
	case method == "notifications/progress" && !strings.Contains(text, `"progressToken":`+owner.token+`,`):
		c.run.errorf("%s: got %s, the token is %s", c.name, text, owner.token)
	}
}

func secretIn(text string) string {
	_, rest, ok := strings.Cut(text, "secret-")
	if !ok {
		return ""
	}
	end := strings.IndexAny(rest, `"\`)
	return "secret-" + rest[:end]
}

// told is what the server knows of a request.
type told struct {
	*asked        // nil: of the multiplexer's own
	wire   string // id
	task   string // that was made of it; empty: none
}

// server is the other end of a random run's session. It remembers all requests
// that it has got, and those that it has not answered.
type chaosServer struct {
	run    *run
	in     chan incoming
	done   chan struct{}
	closed sync.Once

	// Guarded by run.mu:
	all, open []*told
	busy      bool
	offers    map[string]*asked // requests to clients, by the server's id
}

func (s *chaosServer) Send(msg []byte) error {
	s.run.mu.Lock()
	defer s.run.mu.Unlock()
	select {
	case <-s.done:
		return jsonrpc.ErrClosed
	default:
	}
	m, err := jsonrpc.Parse(msg)
	switch {
	case s.busy:
		if err == nil && m.Kind == jsonrpc.Response {
			delete(s.offers, string(m.ID)) // it will not hear of it
		}
		return jsonrpc.ErrBusy
	case err != nil:
		s.run.errorf("the server got %s: %v", msg, err)
	case m.Kind == jsonrpc.Request:
		s.request(m)
	case m.Kind == jsonrpc.Response:
		s.response(m)
	case m.Method == "notifications/cancelled":
		s.cancelled(m)
	}
	return nil
}

func (s *chaosServer) request(m *jsonrpc.Message) {
	k := &told{wire: string(m.ID)}
	if owner := s.run.secrets[secretIn(string(m.Raw()))]; owner != nil {
		k.asked = owner.asked
		if want := k.message(k.wire, k.wire); want != string(m.Raw()) { // P3
			s.run.errorf("the server got %s, want %s", m.Raw(), want)
		}
		s.run.secrets[k.secret] = k
	}
	s.all = append(s.all, k)
	s.open = append(s.open, k)
}

func (s *chaosServer) response(m *jsonrpc.Message) {
	a := s.offers[string(m.ID)]
	if a == nil && m.Error() == nil {
		s.run.errorf("the server got %s, for nothing that it has asked", m.Raw())
		return
	}
	delete(s.offers, string(m.ID))
	if a == nil {
		return
	}
	if from, _ := rawjson.Member(m.Result(), "from"); m.Error() == nil && string(from) != `"`+a.client.name+`"` {
		s.run.errorf("the server asked %s and got %s", a.client.name, m.Raw())
	}
}

// deserted checks that the session has answered all requests of the server to a
// client that has left.
func (s *chaosServer) deserted(c *actor) {
	select {
	case <-s.done:
		return
	default:
	}
	for id, a := range s.offers {
		if a.client == c && !s.busy {
			s.run.errorf("request %s of the server to %s was not refused when that left", id, c.name)
		}
		if a.client == c {
			delete(s.offers, id) // it could not be told
		}
	}
}

// cancelled checks that what a client takes back is its own.
func (s *chaosServer) cancelled(m *jsonrpc.Message) {
	id, _ := rawjson.Member(m.Params(), "requestId")
	for _, k := range s.all {
		if by := secretIn(string(m.Raw())); k.wire == string(id) && k.asked != nil && by != "" && by != k.secret {
			s.run.errorf("%s was taken back by %s", k.secret, by)
		}
	}
}

func (s *chaosServer) Recv() ([]byte, error) { panic("Recv of an Attributed") }

func (s *chaosServer) RecvFor() ([]byte, jsonrpc.ID, error) {
	select {
	case m := <-s.in:
		return m.data, m.related, m.err
	case <-s.done:
		return nil, "", io.EOF
	}
}

func (s *chaosServer) Close() error {
	s.closed.Do(func() { close(s.done) })
	return nil
}

// pick returns one of the requests that the server has got, mostly one that it has
// not answered. The caller holds run.mu.
func (s *chaosServer) pick(r *rand.Rand) *told {
	switch {
	case len(s.all) == 0:
		return nil
	case len(s.open) > 0 && r.IntN(8) > 0:
		return s.open[r.IntN(len(s.open))]
	}
	return s.all[r.IntN(len(s.all))]
}

func (s *chaosServer) reply(k *told, id, body string) string {
	template := fmt.Sprintf(`{"jsonrpc":"2.0", "id":{ID},%s}`, body)
	if k.asked != nil {
		k.replies = append(k.replies, template)
	}
	return strings.Replace(template, "{ID}", id, 1)
}
