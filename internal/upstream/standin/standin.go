// Package standin is a session in the place of one with a remote server at which nobody is logged in, so that no
// client loses that server. It answers initialize and the lists with what the server said to a login that has ended.
// If nothing is known of that, it has one tool, login. When somebody has logged in it ends, and the gateway opens a
// session with the server, whose lists may be others. So it is while requests cannot use a login that is there, but
// then it has no tool login, and answers initialize with an error if nothing is known.
package standin

import (
	"context"
	"crypto/rand"
	"crypto/sha256"
	"encoding/json"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/mcp-sse/mcp-sse/internal/buffer"
	"github.com/mcp-sse/mcp-sse/internal/mcp"
	"github.com/mcp-sse/mcp-sse/internal/remember"
	"github.com/mcp-sse/mcp-sse/internal/stateless"
	"github.com/mcp-sse/mcp-sse/internal/upstream/exchange"
	"github.com/mcp-sse/mcp-sse/jsonrpc"
	"github.com/mcp-sse/mcp-sse/metrics"
)

// ErrLoggedIn ends the session once somebody has logged in.
var ErrLoggedIn error = loggedIn{}

type loggedIn struct{}

func (loggedIn) Error() string { return "somebody is logged in at the server now" }

// Planned says that the end is no failure of the server: see handshake.IsPlanned.
func (loggedIn) Planned() bool { return true }

// Asker knows whether somebody is logged in, and asks for it.
type Asker interface {
	// LoggedIn reports whether there is a login.
	LoggedIn() bool
	// Hindered reports whether requests cannot use the login that is there, and what clients are told then.
	Hindered() (text string, is bool)
	// AwaitLogin waits until there is a login that requests can use, or ctx ends, and reports whether there is.
	AwaitLogin(ctx context.Context) bool
	// Opened is told of a session, whose client wants the server, and which lasts as long as ctx. It does not wait.
	Opened(ctx context.Context)
	// Ask returns what a person is told to do, the address to visit in it, if there is one, and whether somebody has
	// logged in meanwhile. It ends with ctx.
	Ask(ctx context.Context) (text, link string, done bool)
}

// IsNeeded reports whether a session is needed in the place of one with the server: requests can use no login.
func IsNeeded(asker Asker) bool {
	_, isHindered := asker.Hindered()
	return isHindered || !asker.LoggedIn()
}

// codeHindered is that of the answer to initialize while requests cannot use the login, and nothing is known.
const codeHindered = -32010

const (
	// askTimeout bounds a question for a login.
	askTimeout = 25 * time.Second
	// maxCalls bounds the calls of login at a time.
	maxCalls = 8

	toolName = "login"
)

// Conn is the session.
type Conn struct {
	asker    Asker
	out      *buffer.Queue // what the client gets
	ctx      context.Context
	cancel   context.CancelFunc
	work     sync.WaitGroup
	places   chan struct{} // has one for each request under way that asks for the login
	canVisit atomic.Bool   // the client has its person visit addresses
	recall   func(params json.RawMessage) *remember.Answers
	said     atomic.Pointer[remember.Answers] // what the server said before; nil: nothing is known

	mu      sync.Mutex      // guards what follows
	asked   []string        // the ids of the visits that the client was asked for
	visited map[string]bool // the requests that were answered with a visit, by keyOf
	waiting []*waiting      // the requests that ask for the login, the oldest first
	isOver  bool
}

// waiting is a request that asks for the login.
type waiting struct {
	m     *jsonrpc.Message
	isOwn bool // it calls the tool login of the session itself
}

var _ jsonrpc.Attributed = (*Conn)(nil)

// New returns a session. recall returns what the server said before to a client that initializes with these params; nil
// if that is unknown. The caller must Close the session.
func New(asker Asker, recall func(params json.RawMessage) *remember.Answers) *Conn {
	c := &Conn{asker: asker, recall: recall, out: buffer.NewQueue(buffer.SendLimit),
		places: make(chan struct{}, maxCalls), visited: make(map[string]bool)}
	c.ctx, c.cancel = context.WithCancel(context.Background()) // no caller's: it ends with Close
	c.work.Go(c.watch)                                         // ends with ctx
	asker.Opened(c.ctx)
	return c
}

// watch ends the session when somebody has logged in.
func (c *Conn) watch() {
	if c.asker.AwaitLogin(c.ctx) {
		c.end()
	}
}

// end tells the client that its person has done what it was asked for, and ends the session. The oldest request that
// waits for the login goes on in the session with the server. jsonrpc.NotTakenError has room for no other one: the
// clients of those are told to send them again.
func (c *Conn) end() {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.isOver {
		return
	}
	c.isOver = true
	for _, id := range c.asked {
		params, _ := json.Marshal(map[string]string{"elicitationId": id})               // never fails
		_ = c.out.Offer(jsonrpc.NewNotification(mcp.MethodElicitationComplete, params)) // fails if the session is over
	}
	again := jsonrpc.ReasonError("Somebody has logged in: call again.", "session_lost", true)
	listed := jsonrpc.Errorf(0, "Somebody has logged in. The tools of the server are listed now: call one of them.")
	why, goesOn := ErrLoggedIn, false
	for _, w := range c.waiting {
		switch {
		case w.isOwn: // its tool is gone
			_ = c.out.Offer(w.answer(listed, true)) // fails if the session is over
		case !goesOn:
			why, goesOn = &jsonrpc.NotTakenError{ID: w.m.ID, Err: ErrLoggedIn}, true
		default:
			_ = c.out.Offer(w.answer(again, false))
		}
	}
	c.out.End(why)
}

// empty are the lists that have nothing.
var empty = map[string]string{
	mcp.MethodListPrompts: `{"prompts":[]}`, mcp.MethodListResources: `{"resources":[]}`,
	mcp.MethodListTemplates: `{"resourceTemplates":[]}`, mcp.MethodPing: `{}`,
	mcp.MethodSetLevel: `{}`, mcp.MethodComplete: `{"completion":{"values":[]}}`,
}

const tools = `{"tools":[{"name":"` + toolName + `","title":"Log in","description":"This server wants a person to log ` +
	`in before it shows its tools. Call this tool to get the link for that, and show the link to the user. After the ` +
	`login the tools of the server appear.","inputSchema":{"type":"object","properties":{}},` +
	`"annotations":{"readOnlyHint":true,"openWorldHint":true}}]}`

// Send answers a message.
func (c *Conn) Send(msg []byte) error {
	m, err := jsonrpc.Parse(msg)
	switch {
	case err != nil || m.Kind != jsonrpc.Request:
		return nil // nobody can be answered
	case m.Method == mcp.MethodInitialize:
		c.canVisit.Store(mcp.VisitsURLs(m.Param("capabilities").Value))
		result := c.initialize(m)
		if text, is := c.asker.Hindered(); is && c.said.Load() == nil { // a tool login would be of no use
			e := jsonrpc.ReasonError(text, metrics.ReasonDenied, true)
			e.Code = codeHindered // of an internal error clients hear after several tries
			return c.out.Push(jsonrpc.NewError(m.ID, e), m.ID)
		}
		return c.answer(m, result)
	case m.Method == mcp.MethodCallTool:
		return c.ask(m)
	}
	if result := c.known(m); len(result) > 0 {
		return c.answer(m, result)
	}
	if c.said.Load() != nil { // the server has it
		return c.ask(m)
	}
	return c.out.Offer(jsonrpc.NewError(m.ID, jsonrpc.Errorf(jsonrpc.CodeMethodNotFound,
		"nobody is logged in at the server: call the tool %s", toolName)))
}

// known returns the result of a request that needs no login; empty: there is none.
func (c *Conn) known(m *jsonrpc.Message) json.RawMessage {
	said := c.said.Load()
	if said != nil {
		if page, ok := said.Answer(m); ok {
			return page
		}
	}
	switch {
	case m.Method != mcp.MethodListTools:
		return json.RawMessage(empty[m.Method])
	case said != nil: // the page is unknown
		return json.RawMessage(`{"tools":[]}`)
	}
	return json.RawMessage(tools)
}

// initialize returns the result of initialize: that of the server, if its tools are known too.
func (c *Conn) initialize(m *jsonrpc.Message) json.RawMessage {
	said := c.recall(m.Params())
	if said != nil {
		if items, _ := said.Items(mcp.MethodListTools, "tools"); len(items) == 0 { // nothing would lead to the login
			said = nil
		}
	}
	c.said.Store(said)
	if said != nil {
		return json.RawMessage(said.Initialize)
	}
	return initialized(m)
}

func (c *Conn) answer(m *jsonrpc.Message, result json.RawMessage) error {
	return c.out.Push(jsonrpc.NewResult(m.ID, result), m.ID)
}

// initialized returns the result of initialize: lists that change, so that the client asks for those of the server.
func initialized(m *jsonrpc.Message) json.RawMessage {
	version, _ := m.Param("protocolVersion").Text()
	if !mcp.HasInitialize(version) {
		version = mcp.VersionNewest
	}
	result, _ := json.Marshal(map[string]any{ // never fails
		"protocolVersion": version,
		"capabilities": map[string]any{"tools": map[string]bool{"listChanged": true},
			"prompts": map[string]bool{"listChanged": true}, "resources": map[string]bool{"listChanged": true}},
		"serverInfo": map[string]string{"name": "sse-server", "title": "Nobody is logged in", "version": "1"},
		"instructions": "Nobody is logged in at this server. Call the tool " + toolName +
			", and show its link to the user.",
	})
	return result
}

// ask asks for the login that a request needs. A client may have the names of the server's tools from before. How it is
// answered:
//
//	the request                   | the client        | answer
//	------------------------------|-------------------|------------------------------------------------
//	a call of the own tool login  | any               | the link as text
//	any other                     | visits addresses  | the error by which it has its person visit the link
//	a call of another tool        | any other         | the link as text, as an error of the tool
//	any other                     | any other         | the link in an error
func (c *Conn) ask(m *jsonrpc.Message) error {
	select {
	case c.places <- struct{}{}:
	default:
		return jsonrpc.ErrBusy
	}
	name, _ := m.Param("name").Text()
	w := &waiting{m, m.Method == mcp.MethodCallTool && name == toolName && c.said.Load() == nil}
	mayVisit, isOver := c.await(w)
	if isOver {
		<-c.places
		return ErrLoggedIn
	}
	c.work.Go(func() { // ends with askTimeout, or ctx
		defer func() { <-c.places }()
		ctx, cancel := context.WithTimeout(c.ctx, askTimeout)
		defer cancel()
		text, link, done := c.asker.Ask(ctx)
		if done || link != "" && mayVisit && c.awaitVisit(ctx) {
			c.end()
			return
		}
		if !c.settle(w) {
			return
		}
		if link != "" && !w.isOwn && c.canVisit.Load() {
			_ = c.out.Push(jsonrpc.NewError(m.ID, c.visit(w, text, link)), m.ID)
			return
		}
		_, isHindered := c.asker.Hindered()
		data := exchange.ErrorData{Reason: exchange.ReasonUnauthorized, Retryable: isHindered, NeedsLogin: !isHindered,
			Link: link}
		_ = c.out.Push(w.answer(exchange.NewError(data, "%s", text), w.isOwn), m.ID)
	})
	return nil
}

// answer returns the answer to a request that is e, and the text of e as the result of a tool, which is no error if the
// client has asked for it.
func (w *waiting) answer(e *jsonrpc.Error, isGood bool) []byte {
	if w.m.Method != mcp.MethodCallTool {
		return jsonrpc.NewError(w.m.ID, e)
	}
	result, _ := json.Marshal(map[string]any{ // never fails
		"content": []map[string]string{{"type": "text", "text": e.Message}}, "isError": !isGood,
	})
	return jsonrpc.NewResult(w.m.ID, result)
}

// await adds a request to those that wait. mayVisit says that its person has agreed to the visit, or that the same one
// was answered with a visit, and the client does not say what its person has answered: a client sends it again once the
// person has agreed, which may be long before the login is made.
func (c *Conn) await(w *waiting) (mayVisit, isOver bool) {
	_, visit := stateless.UnmarkVisit(w.m.Params())
	c.mu.Lock()
	defer c.mu.Unlock()
	if !c.isOver {
		c.waiting = append(c.waiting, w)
	}
	mayVisit = visit == stateless.VisitAgreed || visit == stateless.VisitUnknown && c.visited[keyOf(w.m)]
	return mayVisit, c.isOver
}

// settle removes a request from those that wait, and reports whether it is still to be answered.
func (c *Conn) settle(w *waiting) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.waiting = slices.DeleteFunc(c.waiting, func(other *waiting) bool { return other == w })
	return !c.isOver
}

// awaitVisit waits a while until somebody has logged in, and reports whether somebody has.
func (c *Conn) awaitVisit(ctx context.Context) bool {
	ctx, cancel := context.WithTimeout(ctx, stateless.VisitTimeout)
	defer cancel()
	return c.asker.AwaitLogin(ctx)
}

// keyOf returns what is the same in a request that a client sends again.
func keyOf(m *jsonrpc.Message) string {
	key := m.Method
	for _, name := range []string{"name", "uri", "arguments"} {
		key += "\n" + string(m.Param(name).Value)
	}
	sum := sha256.Sum256([]byte(key))
	return string(sum[:])
}

// maxAsked bounds the visits whose end a client is told.
const maxAsked = 64

// visit returns the error by which the client has its person visit the link for a request, and notes it.
func (c *Conn) visit(w *waiting, text, link string) *jsonrpc.Error {
	id := rand.Text()
	c.mu.Lock()
	defer c.mu.Unlock()
	if len(c.asked) < maxAsked {
		c.asked = append(c.asked, id)
		c.visited[keyOf(w.m)] = true
	}
	e := jsonrpc.Errorf(mcp.CodeElicitationRequired, "%s", text)
	e.Data = mcp.URLElicitation(id, "Log in at the server.", link)
	return e
}

// Recv is RecvFor without the request.
func (c *Conn) Recv() ([]byte, error) { return c.out.Recv() }

// RecvFor returns the next answer. Its error is ErrLoggedIn once somebody has logged in.
func (c *Conn) RecvFor() ([]byte, jsonrpc.ID, error) { return c.out.RecvFor() }

// Close ends the session. It waits for nobody who logs in.
func (c *Conn) Close() error {
	c.cancel()
	c.out.Abort(jsonrpc.ErrClosed)
	c.work.Wait()
	return nil
}
