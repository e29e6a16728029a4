package compose_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"math/rand/v2"
	"os"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/mcp-sse/mcp-sse/compose"
	"github.com/mcp-sse/mcp-sse/internal/asker"
	"github.com/mcp-sse/mcp-sse/internal/rawjson"
	"github.com/mcp-sse/mcp-sse/internal/ssetest"
	"github.com/mcp-sse/mcp-sse/jsonrpc"
)

// viewWalk is a random walk through what may happen to a view, with an oracle. The same seed takes the same steps; how
// they meet what is on its way is up to the scheduler.
type viewWalk struct {
	t    *testing.T
	v    *compose.View
	seed uint64
	rng  *rand.Rand

	names   []string // of the members that the view has now
	servers map[string]*walkServer
	clients []*walkClient

	mu    sync.Mutex // guards what follows
	step  int
	all   []*walkServer     // that there were
	taken map[string]string // by the words of requests: the server that has taken it
	steps []string          // that were taken
}

func (w *viewWalk) fault(format string, args ...any) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.t.Errorf("seed %d: %s; the last steps:\n%s", w.seed, fmt.Sprintf(format, args...), strings.Join(w.steps[max(0, len(w.steps)-40):], "\n"))
}

// did notes a step, for who looks for a fault.
func (w *viewWalk) did(format string, args ...any) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.steps = append(w.steps, fmt.Sprintf("%s %d ", time.Now().Format("04:05.000"), w.step)+fmt.Sprintf(format, args...))
}

// take notes that a server has got a request, give that it has not after all.
func (w *viewWalk) take(words, server string) {
	w.mu.Lock()
	before, again := w.taken[words]
	w.taken[words] = server
	w.mu.Unlock()
	if again {
		w.fault("%s has got %q, which %s has", server, words, before)
	}
}

func (w *viewWalk) give(words string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	delete(w.taken, words)
}

func (w *viewWalk) takenBy(words string) string {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.taken[words]
}

func (w *viewWalk) now() int {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.step
}

// isAsked reports whether a question is open at the server that has asked it, over a connection that is.
func (w *viewWalk) isAsked(text string) bool {
	w.mu.Lock()
	all := slices.Clone(w.all)
	w.mu.Unlock()
	for _, s := range all {
		for _, c := range s.open() {
			if c.hasAsked(text) {
				return true
			}
		}
	}
	return false
}

// walkServer is a member. The tools of its list have the number of its version in their descriptions.
type walkServer struct {
	w      *viewWalk
	member string // its name in the view
	id     string // its own, because a member may get another server

	mu       sync.Mutex // guards what follows; taken before that of a walkConn
	version  int
	refuses  bool // it cannot be dialled
	fails    bool // it refuses initialize
	hangs    bool // it answers nothing
	left     int  // the step at which it was taken out of the view, 0: it is there
	hidden   int  // the step at which the tool t was left out; 0: it is not
	conns    []*walkConn
	changedC chan struct{} // closed at the next change of its condition
}

// clientKey is the key of the name of the client in the context of Dial.
type clientKey struct{}

func (s *walkServer) Dial(ctx context.Context) (jsonrpc.Conn, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.refuses {
		return nil, errors.New("not now")
	}
	client, _ := ctx.Value(clientKey{}).(string)
	c := &walkConn{
		of: s, client: client, rng: rand.New(rand.NewPCG(s.w.seed, uint64(len(s.conns)))),
		out: make(chan walkMessage, 4096), done: make(chan struct{}), questions: map[string]string{},
	}
	s.conns = append(s.conns, c)
	return c, nil
}

// set changes how the server is.
func (s *walkServer) set(change func()) {
	s.mu.Lock()
	change()
	close(s.changedC)
	s.changedC = make(chan struct{})
	hangs, conns := s.hangs, slices.Clone(s.conns)
	s.mu.Unlock()
	if !hangs {
		for _, c := range conns {
			c.answerHeld()
		}
	}
}

// open returns the connections that are open.
func (s *walkServer) open() (open []*walkConn) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, c := range s.conns {
		if !c.isOver() {
			open = append(open, c)
		}
	}
	return open
}

// change changes the lists, and tells all clients.
func (s *walkServer) change() {
	s.mu.Lock()
	s.version++
	s.mu.Unlock()
	for _, c := range s.open() {
		c.say("", `{"jsonrpc":"2.0","method":"notifications/tools/list_changed"}`)
	}
}

// walkMessage is a message on its way to the view.
type walkMessage struct {
	text    string
	request jsonrpc.ID
	after   time.Duration
}

// walkConn is a connection with a walkServer. It delivers in order, in a goroutine of its own, after a while.
type walkConn struct {
	of     *walkServer
	client string
	out    chan walkMessage
	done   chan struct{}

	mu        sync.Mutex // guards what follows
	rng       *rand.Rand
	over      error
	draining  bool
	held      []heldRequest
	asked     int
	questions map[string]string // the texts of those that are open, by their ids
}

// heldRequest is a request that is not answered, with the answer, which the server knew when it got it.
type heldRequest struct {
	id     jsonrpc.ID
	words  string // of a request of the client
	answer string
	begun  bool // the client has heard of it
}

func (c *walkConn) Condition() (asker.Condition, <-chan struct{}) {
	s := c.of
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case c.isOver():
		return asker.Gone, s.changedC
	case s.fails:
		return asker.Failed, s.changedC
	case s.hangs:
		return asker.Starting, s.changedC
	default:
		return asker.Up, s.changedC
	}
}

func (c *walkConn) isOver() bool {
	select {
	case <-c.done:
		return true
	default:
		return false
	}
}

func (c *walkConn) Push(func(msg []byte, err error)) { panic("PushFor is there") }

func (c *walkConn) PushFor(receive func(msg []byte, request jsonrpc.ID, err error)) {
	go func() { // ends with the connection
		for {
			select {
			case m := <-c.out:
				time.Sleep(m.after)
				receive([]byte(m.text), m.request, nil)
			case <-c.done:
				c.mu.Lock()
				over := c.over
				c.mu.Unlock()
				receive(nil, "", over)
				return
			}
		}
	}()
}

func (c *walkConn) Recv() ([]byte, error) { panic("it pushes") }

func (c *walkConn) Close() error {
	c.end(jsonrpc.ErrClosed)
	return nil
}

// end ends the connection, for a reason.
func (c *walkConn) end(why error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.over == nil {
		c.over = why
		close(c.done)
	}
}

// die ends the connection. It may say that it has not taken a request which it has got.
func (c *walkConn) die() {
	c.mu.Lock()
	var why error = io.EOF
	if len(c.held) > 0 && c.rng.IntN(2) == 0 {
		last := c.held[len(c.held)-1]
		if last.words != "" && !last.begun {
			c.held = c.held[:len(c.held)-1]
			c.of.w.give(last.words)
			why = &jsonrpc.NotTakenError{ID: last.id, Err: io.EOF}
		}
	}
	c.mu.Unlock()
	c.end(why)
}

// drain takes no more requests, and ends when all are answered.
func (c *walkConn) drain() {
	c.mu.Lock()
	c.draining = true
	isQuiet := len(c.held) == 0
	c.mu.Unlock()
	if isQuiet {
		go func() {
			time.Sleep(time.Second) // what it has said arrives
			c.end(io.EOF)
		}()
	}
}

func (c *walkConn) say(request jsonrpc.ID, text string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.queue(request, text)
}

// queue is say, with c.mu held.
func (c *walkConn) queue(request jsonrpc.ID, text string) {
	after := time.Duration(c.rng.IntN(20)) * time.Millisecond * time.Duration(c.rng.IntN(2))
	select {
	case c.out <- walkMessage{text, request, after}:
	case <-c.done:
	}
}

func (c *walkConn) SendRequest(m *jsonrpc.Message, number int64) error {
	return c.Send(m.Renumbered(jsonrpc.NumberID(number)))
}

func (c *walkConn) Send(msg []byte) error {
	m, err := jsonrpc.Parse(msg)
	if err != nil {
		return err
	}
	if c.isOver() {
		return jsonrpc.ErrClosed
	}
	switch {
	case m.Kind == jsonrpc.Response:
		c.takeReply(m)
	case m.Kind == jsonrpc.Notification:
		if m.Method == "notifications/cancelled" {
			go c.answer(jsonrpc.ID(m.RequestID.Value)) // which bounds each request, as a gateway does
		}
	default:
		return c.takeRequest(m)
	}
	return nil
}

// takeRequest takes a request, and answers it after a while.
func (c *walkConn) takeRequest(m *jsonrpc.Message) error {
	s := c.of
	words, _ := rawjson.MemberText(m.Params(), "words")
	c.mu.Lock()
	switch {
	case c.draining || c.over != nil:
		c.mu.Unlock()
		return jsonrpc.ErrClosed
	case words != "" && c.rng.IntN(30) == 0:
		c.mu.Unlock()
		return jsonrpc.ErrBusy
	}
	c.mu.Unlock()
	s.mu.Lock()
	answer, hangs, left, hidden := s.answer(c, m), s.hangs, s.left, s.hidden
	s.mu.Unlock()
	if words != "" {
		s.w.take(words, s.id)
		var client, number, step int
		_, _ = fmt.Sscanf(words, "client%d %d at %d", &client, &number, &step) // it has this form
		name, _ := m.Param("name").Text()
		switch {
		case c.client != fmt.Sprint("client", client) || m.ID != jsonrpc.NumberID(int64(number)):
			s.w.fault("%s has got %s for %s", s.id, msgOf(m), c.client)
		case left != 0 && step > left:
			s.w.fault("%s has left at %d, and got %s", s.id, left, msgOf(m))
		case hidden != 0 && step > hidden && name == "t" && m.Method == "tools/call":
			s.w.fault("t of %s is left out since %d, and it got %s", s.id, hidden, msgOf(m))
		}
	}
	c.mu.Lock()
	c.held = append(c.held, heldRequest{id: m.ID, words: words, answer: answer})
	wait := []time.Duration{0, time.Millisecond, 100 * time.Millisecond, 3 * time.Second}[c.rng.IntN(4)]
	asks, tells := words != "" && c.rng.IntN(2) == 0, words != "" && c.rng.IntN(2) == 0
	c.mu.Unlock()
	if hangs {
		return nil
	}
	go func() {
		c.mu.Lock()
		at := c.at(m.ID)
		isHeld := at >= 0 // else it was answered at a cancellation, or is given up
		if isHeld {
			c.held[at].begun = asks || tells
		}
		if tells && isHeld {
			c.queue(m.ID, fmt.Sprintf(`{"jsonrpc":"2.0","method":"notifications/progress","params":{"progressToken":%s,"progress":1,"message":%q}}`, m.ID, words))
		}
		if asks && isHeld {
			c.ask(m.ID)
		}
		c.mu.Unlock()
		time.Sleep(wait)
		c.answer(m.ID)
	}()
	return nil
}

func msgOf(m *jsonrpc.Message) string { return fmt.Sprintf("%s %s", m.ID, m.Params()) }

// answer returns the answer to a request. s.mu is held.
func (s *walkServer) answer(c *walkConn, m *jsonrpc.Message) string {
	words, _ := rawjson.Member(m.Params(), "words")
	name, _ := m.Param("name").Text()
	cursor, _ := m.Param("cursor").Text()
	tool := func(name string) string {
		return fmt.Sprintf(`{"name":%q,"description":"%s %d"}`, name, s.id, s.version)
	}
	switch {
	case m.Method == "initialize" && s.fails:
		return `"error":{"code":-32603,"message":"it fails"}`
	case m.Method == "initialize":
		return `"result":{"capabilities":{"tools":{},"prompts":{},"resources":{}}}`
	case m.Method == "tools/list" && cursor == "":
		return `"result":{"tools":[` + tool("t") + `,` + tool(s.member+"_tool") + `],"nextCursor":"2"}`
	case m.Method == "tools/list":
		return `"result":{"tools":[` + tool("last") + `]}`
	case m.Method == "prompts/list":
		return `"result":` + listOf("prompts", "name", "p")
	case m.Method == "resources/list":
		return `"result":` + listOf("resources", "uri", "x:"+s.member)
	case m.Method == "resources/templates/list":
		return `"result":` + listOf("resourceTemplates", "uriTemplate", s.member+":{id}")
	default:
		return fmt.Sprintf(`"result":{"by":"%s/%s","words":%s}`, s.id, name, words)
	}
}

// answer sends the answer to a request that is not answered, unless the server hangs.
func (c *walkConn) answer(id jsonrpc.ID) {
	c.of.mu.Lock()
	hangs := c.of.hangs
	c.of.mu.Unlock()
	if hangs {
		return
	}
	c.mu.Lock()
	at := c.at(id)
	if at < 0 {
		c.mu.Unlock()
		return
	}
	text := `{"jsonrpc":"2.0","id":` + string(id) + `,` + c.held[at].answer + `}`
	c.held = slices.Delete(c.held, at, at+1)
	drained := c.draining && len(c.held) == 0
	c.queue(id, text)
	c.mu.Unlock()
	if drained {
		c.drain()
	}
}

// at returns where a request is that is not answered; -1: nowhere. c.mu is held.
func (c *walkConn) at(id jsonrpc.ID) int {
	return slices.IndexFunc(c.held, func(h heldRequest) bool { return h.id == id })
}

// answerHeld answers all requests that are not answered.
func (c *walkConn) answerHeld() {
	c.mu.Lock()
	held := slices.Clone(c.held)
	c.mu.Unlock()
	for _, h := range held {
		c.answer(h.id)
	}
}

// ask asks the client something, with an id that other connections use too. c.mu is held.
func (c *walkConn) ask(request jsonrpc.ID) {
	c.asked++
	id := "1"
	for n := 2; c.questions[id] != ""; n++ {
		id = strconv.Itoa(n)
	}
	text := fmt.Sprintf("%s asks %s for %s: %d", c.of.id, c.client, request, c.asked)
	c.questions[id] = text
	c.queue(request, fmt.Sprintf(`{"jsonrpc":"2.0","id":%s,"method":"elicitation/create","params":{"message":%q,"_meta":{"progressToken":%s}}}`, id, text, id))
}

func (c *walkConn) hasAsked(text string) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, one := range c.questions {
		if strings.HasSuffix(text, one) {
			return true
		}
	}
	return false
}

// withdraw cancels some question.
func (c *walkConn) withdraw() {
	c.mu.Lock()
	var id string
	for one, text := range c.questions {
		if text != "withdrawn" {
			id = one
		}
	}
	if id != "" {
		c.questions[id] = "withdrawn" // and never used again: a reply may be on its way
		c.queue("", `{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":`+id+`}}`)
	}
	c.mu.Unlock()
}

// forge answers a request of the client that is at another server.
func (c *walkConn) forge(number int64) {
	c.say("", fmt.Sprintf(`{"jsonrpc":"2.0","id":%d,"result":{"by":"a forger","tools":[]}}`, number))
}

// takeReply takes the client's answer to a question.
func (c *walkConn) takeReply(m *jsonrpc.Message) {
	c.mu.Lock()
	text, isOpen := c.questions[string(m.ID)]
	if text != "withdrawn" {
		delete(c.questions, string(m.ID))
	}
	c.mu.Unlock()
	got, _ := rawjson.MemberText(m.Result(), "to")
	if isOpen && text != "withdrawn" && !strings.HasSuffix(got, text) {
		c.of.w.fault("%s of %s asked %q, and was answered %q", c.of.id, c.client, text, got)
	}
}

// walkClient is a client, with the gateway in front of the view.
type walkClient struct {
	w    *viewWalk
	name string
	conn jsonrpc.Relay

	mu        sync.Mutex // guards what follows
	last      int64
	asked     map[int64]walkRequest
	questions map[string]string // the texts of those that are open, by their ids
	replied   map[string]bool
	has       string         // its list of tools; empty: it has none that counts
	newest    map[string]int // by server and tool: the newest version that it was told
	good, bad int
}

// walkRequest is a request of a client.
type walkRequest struct {
	method, name, words string
	answered, cancelled bool
}

func (w *viewWalk) connect() {
	c := &walkClient{w: w, name: fmt.Sprint("client", w.now()), asked: map[int64]walkRequest{},
		questions: map[string]string{}, replied: map[string]bool{}, newest: map[string]int{}}
	conn, err := w.v.Dial(context.WithValue(w.t.Context(), clientKey{}, c.name))
	ssetest.Must(w.t, err)
	c.conn = conn.(jsonrpc.Relay)
	c.conn.PushFor(c.receive)
	w.clients = append(w.clients, c)
	c.ask("initialize", "")
}

// ask sends a request, with words that only it has.
func (c *walkClient) ask(method, name string) {
	c.mu.Lock()
	c.last++
	number := c.last
	words := fmt.Sprintf("%s %d at %d", c.name, number, c.w.now())
	c.asked[number] = walkRequest{method: method, name: name, words: words}
	c.mu.Unlock()
	params := `{}`
	switch {
	case method == "resources/read":
		params = fmt.Sprintf(`{"uri":%q,"words":%q}`, name, words)
	case name != "":
		params = fmt.Sprintf(`{"name":%q,"words":%q,"_meta":{"progressToken":1}}`, name, words)
	}
	m, err := jsonrpc.Parse(jsonrpc.NewRequest("0", method, json.RawMessage(params)))
	ssetest.Must(c.w.t, err)
	switch err := c.conn.SendRequest(m, number); {
	case err == nil:
	case !errors.Is(err, jsonrpc.ErrBusy):
		c.w.fault("%s asked %q: %v", c.name, words, err)
	default:
		c.answered(number, func(r walkRequest) {
			if by := c.w.takenBy(r.words); by != "" {
				c.w.fault("%s was told that %q is busy, and %s has it", c.name, r.words, by)
			}
		})
	}
}

// answered notes an answer, and has a function look at it.
func (c *walkClient) answered(number int64, look func(r walkRequest)) {
	c.mu.Lock()
	r, ok := c.asked[number]
	again := r.answered
	r.answered = true
	c.asked[number] = r
	c.mu.Unlock()
	if !ok || again {
		c.w.fault("%s got an answer too many to %d, %q", c.name, number, r.words)
		return
	}
	look(r)
}

// receive is the oracle.
func (c *walkClient) receive(msg []byte, request jsonrpc.ID, err error) {
	if err != nil {
		return
	}
	c.w.did("    %s got %.120s", c.name, msg)
	m, err := jsonrpc.Parse(msg)
	if err != nil {
		c.w.fault("%s got %s", c.name, msg)
		return
	}
	switch {
	case m.Kind == jsonrpc.Response:
		number, _ := strconv.ParseInt(string(m.ID), 10, 64)
		c.answered(number, func(r walkRequest) { c.lookAtAnswer(m, r) })
	case m.Kind == jsonrpc.Request:
		c.lookAtQuestion(m, request)
	case m.Method == "notifications/tools/list_changed":
		c.mu.Lock()
		defer c.mu.Unlock()
		c.has = ""
	case m.Method == "notifications/progress":
		number, _ := strconv.ParseInt(string(m.Token.Value), 10, 64)
		words, _ := m.Param("message").Text()
		c.mu.Lock()
		r := c.asked[number]
		c.mu.Unlock()
		if r.words != words || r.answered {
			c.w.fault("%s got %s, and %d is %+v", c.name, msg, number, r)
		}
	case m.Method == "notifications/cancelled":
		id := string(m.RequestID.Value)
		c.mu.Lock()
		text, isOpen := c.questions[id]
		delete(c.questions, id)
		replied := c.replied[id]
		c.mu.Unlock()
		switch {
		case !isOpen && !replied:
			c.w.fault("%s has no question %s, which was cancelled", c.name, id)
		case isOpen && c.w.isAsked(text):
			c.w.fault("%s was told that %q is cancelled", c.name, text)
		}
	}
}

func (c *walkClient) lookAtQuestion(m *jsonrpc.Message, request jsonrpc.ID) {
	text, _ := m.Param("message").Text()
	number, _ := strconv.ParseInt(string(request), 10, 64)
	c.mu.Lock()
	r := c.asked[number]
	_, again := c.questions[string(m.ID)]
	c.questions[string(m.ID)] = text
	c.mu.Unlock()
	by := c.w.takenBy(r.words)
	named := strings.HasPrefix(text, by+" asks") || strings.HasPrefix(text, by[:max(0, strings.IndexByte(by, '.'))]+": "+by)
	if again || by == "" || !named || !strings.Contains(text, fmt.Sprintf("asks %s for %d:", c.name, number)) || m.ID != jsonrpc.ID(m.Token.Value) {
		c.w.fault("%s, whose %q is at %s, got the question %s", c.name, r.words, by, m.Raw())
	}
}

func (c *walkClient) lookAtAnswer(m *jsonrpc.Message, r walkRequest) {
	if m.Error() != nil {
		c.mu.Lock()
		c.bad++
		c.mu.Unlock()
		retryable, _ := rawjson.Member(m.Error(), "data", "retryable")
		if by := c.w.takenBy(r.words); string(retryable) == "true" && by != "" {
			c.w.fault("%s got %s for %q, which %s has taken", c.name, m.Raw(), r.words, by)
		}
		return
	}
	switch r.method {
	case "tools/call", "prompts/get", "resources/read":
		words, _ := rawjson.MemberText(m.Result(), "words")
		by, _ := rawjson.MemberText(m.Result(), "by")
		server, own, _ := strings.Cut(by, "/")
		member, _, _ := strings.Cut(server, ".")
		right := r.name == member+"__"+own || r.name == own || r.name == "x:"+member || strings.HasPrefix(r.name, member+":")
		if words != r.words || !right || c.w.takenBy(r.words) != server {
			c.w.fault("%s got %s for its call of %s with %q", c.name, m.Raw(), r.name, r.words)
		}
		c.mu.Lock()
		c.good++
		c.mu.Unlock()
	case "tools/list":
		c.lookAtTools(m.Result())
	}
}

func (c *walkClient) lookAtTools(result json.RawMessage) {
	tools, _ := rawjson.Member(result, "tools")
	c.mu.Lock()
	defer c.mu.Unlock()
	c.has = string(tools)
	rawjson.Each(tools, func(tool json.RawMessage) {
		name, _ := rawjson.MemberText(tool, "name")
		text, _ := rawjson.MemberText(tool, "description")
		var server string
		var version int
		_, _ = fmt.Sscan(text, &server, &version) // it has this form
		own := name[strings.LastIndex(name, "__")+1:]
		if key := server + " " + strings.TrimPrefix(own, "_"); version < c.newest[key] {
			c.w.fault("%s was told version %d of %s, and then %s", c.name, c.newest[key], name, text)
		} else {
			c.newest[key] = version
		}
	})
}

// cancel cancels some request that is not answered.
func (c *walkClient) cancel() {
	c.mu.Lock()
	number := c.last
	for ; number > 1 && (c.asked[number].answered || c.asked[number].cancelled); number-- {
	}
	r := c.asked[number]
	r.cancelled = true
	c.asked[number] = r
	c.mu.Unlock()
	if number > 1 {
		c.send(fmt.Sprintf(`{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":%d}}`, number))
	}
}

// reply answers some question, at times twice, or tells of progress with it.
func (c *walkClient) reply(how int) bool {
	c.mu.Lock()
	var id, text string
	for id, text = range c.questions {
		break
	}
	c.mu.Unlock()
	if id == "" {
		return false
	}
	if how == 0 {
		c.send(`{"jsonrpc":"2.0","method":"notifications/progress","params":{"progress":1,"progressToken":` + id + `}}`)
		return true
	}
	c.mu.Lock()
	delete(c.questions, id)
	c.replied[id] = true
	c.mu.Unlock()
	for range 1 + how%2 {
		c.send(fmt.Sprintf(`{"jsonrpc":"2.0","id":%s,"result":{"to":%q}}`, id, text))
	}
	return true
}

func (c *walkClient) send(msg string) {
	if err := c.conn.Send([]byte(msg)); err != nil {
		c.w.fault("%s sent %s: %v", c.name, msg, err)
	}
}

// take takes one random step.
func (w *viewWalk) takeStep() {
	w.mu.Lock()
	w.step++
	w.mu.Unlock()
	if len(w.clients) == 0 || len(w.clients) < 4 && w.rng.IntN(12) == 0 {
		w.connect()
		return
	}
	i := w.rng.IntN(len(w.clients))
	c, s := w.clients[i], w.servers[string("abc"[w.rng.IntN(3)])]
	what := w.rng.IntN(40)
	w.did("step %d of %s, %s", what, c.name, s.id)
	some := func(do func(c *walkConn)) {
		if open := s.open(); len(open) > 0 {
			do(open[w.rng.IntN(len(open))])
		}
	}
	switch what {
	case 0:
		if w.rng.IntN(3) == 0 {
			ssetest.Must(w.t, c.conn.Close())
			w.clients = slices.Delete(w.clients, i, i+1)
		}
	case 1, 2, 3, 4, 5, 6:
		c.ask("tools/call", []string{s.member + "__t", s.member + "__last", s.member + "_tool", "t", "none"}[w.rng.IntN(5)])
	case 7:
		c.ask("prompts/get", s.member+"__p")
	case 8:
		c.ask("resources/read", []string{"x:" + s.member, s.member + ":7"}[w.rng.IntN(2)])
	case 9, 10, 11:
		c.ask("tools/list", "")
	case 12:
		c.ask([]string{"prompts/list", "resources/list", "ping"}[w.rng.IntN(3)], "")
	case 13, 14:
		c.cancel()
	case 15, 16, 17:
		c.reply(w.rng.IntN(6))
	case 18, 19:
		some((*walkConn).die)
	case 20:
		some((*walkConn).drain)
	case 21:
		for _, of := range s.open() {
			of.withdraw()
		}
	case 22, 23:
		s.change()
	case 24:
		some(func(of *walkConn) {
			c.mu.Lock()
			asked := maps.Clone(c.asked)
			c.mu.Unlock()
			for number, r := range asked {
				if by := w.takenBy(r.words); of.client == c.name && by != "" && by != s.id {
					of.forge(number)
				}
			}
		})
	case 25:
		s.set(func() { s.refuses = w.rng.IntN(4) == 0 })
	case 26:
		s.set(func() { s.fails = w.rng.IntN(4) == 0 })
	case 27:
		s.set(func() { s.hangs = w.rng.IntN(4) == 0 })
	case 28:
		w.replace(w.rng.IntN(4))
	case 29:
		if w.rng.IntN(4) == 0 { // another server under the same name
			w.retire(s)
			w.servers[s.member] = w.newServer(s.member)
			w.replace(w.rng.IntN(4))
		}
	default:
		time.Sleep([]time.Duration{0, 0, time.Millisecond, 50 * time.Millisecond, 300 * time.Millisecond, time.Second, 6 * time.Second, time.Minute, 7 * time.Minute}[w.rng.IntN(9)])
	}
	if w.rng.IntN(3) == 0 {
		synctest.Wait()
	}
}

func (w *viewWalk) newServer(member string) *walkServer {
	w.mu.Lock()
	defer w.mu.Unlock()
	s := &walkServer{w: w, member: member, id: fmt.Sprintf("%s.%d", member, len(w.all)), changedC: make(chan struct{})}
	w.all = append(w.all, s)
	return s
}

// retire notes that a server leaves the view for good. It answers what it has.
func (w *viewWalk) retire(s *walkServer) {
	s.set(func() { s.left, s.hangs = w.now(), false })
}

// replace gives the view all members, or without one. A tool of the last one is left out at times.
func (w *viewWalk) replace(without int) {
	w.names = []string{"a", "b", "c"}
	if without < 3 {
		w.names = slices.Delete(w.names, without, without+1)
	}
	var list []compose.Member
	for _, name := range w.names {
		list = append(list, compose.Member{Name: name, Upstream: w.servers[name]})
	}
	hides := without < 3 && w.rng.IntN(2) == 0
	last := w.names[len(w.names)-1]
	if hides {
		list[len(list)-1].Exclude = []string{"t"}
	}
	for name, s := range w.servers { // what waits goes on inside Replace
		s.set(func() {
			s.hidden = 0
			if slices.Contains(w.names, name) {
				s.left = 0
			}
		})
	}
	ssetest.Must(w.t, w.v.Replace(list, compose.Options{Name: "team"}))
	for name, s := range w.servers {
		s.set(func() {
			if !slices.Contains(w.names, name) {
				s.left = w.now()
			}
			if hides && name == last {
				s.hidden = w.now()
			}
		})
	}
}

// sleep sleeps until all that happens in that time is over.
func sleep(d time.Duration) {
	time.Sleep(d)
	synctest.Wait()
}

// rest has everything come to rest, with members that are well, and looks what is there then.
func (w *viewWalk) rest() {
	w.replace(3)
	for _, s := range w.servers {
		s.set(func() { s.refuses, s.fails, s.hangs = false, false, false })
	}
	sleep(20 * time.Minute)
	truth := `[`
	for _, name := range w.names {
		s := w.servers[name]
		for _, tool := range []string{"t", name + "_tool", "last"} {
			truth += fmt.Sprintf(`{"name":"%s__%s","description":"%s %d"},`, name, tool, s.id, s.version)
		}
	}
	truth = strings.TrimSuffix(truth, ",") + `]`
	for _, c := range w.clients {
		for _, text := range c.questions {
			if !w.isAsked(text) {
				w.fault("%s still has the question %q", c.name, text)
			}
		}
		for c.reply(2) {
		}
		if c.has != "" && c.has != truth {
			w.fault("%s has %s, was told of no change, and there is %s", c.name, c.has, truth)
		}
		c.ask("tools/list", "")
		sleep(time.Minute)
		if c.has != truth {
			w.fault("%s got %s, and there is %s", c.name, c.has, truth)
		}
		for _, name := range w.names {
			for before := c.good; c.good == before && !w.t.Failed(); sleep(time.Minute) { // a server may be busy
				c.ask("tools/call", name+"__t")
				for sleep(time.Minute); c.reply(2); {
				}
				sleep(time.Minute)
			}
		}
		for number, r := range c.asked {
			if !r.answered {
				w.fault("%s has no answer to %d, %s %q", c.name, number, r.method, r.words)
			}
		}
		for table, size := range compose.Tables(c.conn) {
			if size != 0 {
				w.fault("%s: %d are left in %s", c.name, size, table)
			}
		}
	}
	for _, name := range w.names {
		open := w.servers[name].open()
		if len(open) != len(w.clients) {
			w.fault("%d connections with %s are open, and there are %d clients", len(open), name, len(w.clients))
		}
		for _, c := range open {
			for _, text := range c.questions {
				if text != "withdrawn" {
					w.fault("%s has no reply to %q", c.of.id, text)
				}
			}
		}
	}
}

// Whatever happens to a view of three, in whatever order: each request of a client has one answer, with its own words
// and by the member that its name leads to; a question comes with its request, and its reply reaches who has asked; no
// list is older than one before, and none differs without a word to who has it; what may be repeated was not taken; and
// nothing is left.
func TestWalkThroughViews(t *testing.T) {
	const steps = 500
	good, bad := 0, 0
	for seed := range uint64(walkSeeds()) {
		w := &viewWalk{seed: seed, rng: rand.New(rand.NewPCG(seed, 3)), servers: map[string]*walkServer{}, taken: map[string]string{}}
		synctest.Test(t, func(t *testing.T) {
			w.t = t
			for _, name := range []string{"a", "b", "c"} {
				w.servers[name] = w.newServer(name)
			}
			w.v = newView(t, members("a", w.servers["a"], "b", w.servers["b"], "c", w.servers["c"]))
			for range steps {
				w.takeStep()
			}
			w.rest()
			for _, c := range w.clients {
				good, bad = good+c.good, bad+c.bad
				ssetest.Must(t, c.conn.Close())
			}
			synctest.Wait()
			for _, s := range w.all {
				if n := len(s.open()); n > 0 {
					w.fault("%d connections with %s are left", n, s.id)
				}
			}
			if sessions, troubles := compose.Sessions(w.v); sessions != 0 || troubles != 0 {
				w.fault("%d sessions and %d members in trouble are left", sessions, troubles)
			}
		})
		if t.Failed() {
			return
		}
	}
	if good < bad/4 {
		t.Errorf("%d requests were answered, and %d failed: the walk meets nothing", good, bad)
	}
}

// walkSeeds is how many walks there are: 20, which is 10,000 steps, or WALKS.
func walkSeeds() int {
	if n, err := strconv.Atoi(os.Getenv("WALKS")); err == nil {
		return n
	}
	return 20
}
