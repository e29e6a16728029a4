// Package standin is a session in the place of one with a remote server at which nobody is logged in, so that no client
// loses that server. It answers initialize, and has one tool, login. When somebody has logged in it ends, and the
// gateway opens a session with the server, whose lists are others.
package standin

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"sync"
	"sync/atomic"
	"time"

	"github.com/mcp-sse/mcp-sse/internal/buffer"
	"github.com/mcp-sse/mcp-sse/internal/mcp"
	"github.com/mcp-sse/mcp-sse/jsonrpc"
)

// ErrLoggedIn ends the session once somebody has logged in.
var ErrLoggedIn = errors.New("somebody has logged in at the server")

// Asker knows whether somebody is logged in, and asks for it.
type Asker interface {
	// LoggedIn reports whether there is a login.
	LoggedIn() bool
	// Opened is told of a session, whose client wants the server. It does not wait.
	Opened()
	// Ask returns what a person is told to do, the address to visit in it, if there is one, and whether somebody has
	// logged in meanwhile. It ends with ctx.
	Ask(ctx context.Context) (text, link string, done bool)
}

const (
	// lookEvery is how often a session looks whether somebody has logged in.
	lookEvery = time.Second
	// askTimeout bounds a question for a login.
	askTimeout = 25 * time.Second
	// maxCalls bounds the calls of login at a time.
	maxCalls = 8

	toolName = "login"
)

// Conn is the session.
type Conn struct {
	asker  Asker
	out    *buffer.Queue // what the client gets
	ctx    context.Context
	cancel context.CancelFunc
	work   sync.WaitGroup
	places chan struct{} // has one for each call under way
	visits atomic.Bool   // the client has its person visit addresses

	mu    sync.Mutex // guards asked
	asked []string   // the ids of the visits that the client was asked for
}

var _ jsonrpc.Attributed = (*Conn)(nil)

// New returns a session. The caller must Close it.
func New(asker Asker) *Conn {
	c := &Conn{asker: asker, out: buffer.NewQueue(buffer.SendLimit), places: make(chan struct{}, maxCalls)}
	c.ctx, c.cancel = context.WithCancel(context.Background()) // no caller's: it ends with Close
	c.work.Go(c.watch)                                         // ends with ctx
	asker.Opened()
	return c
}

// watch ends the session when somebody has logged in.
func (c *Conn) watch() {
	ticker := time.NewTicker(lookEvery)
	defer ticker.Stop()
	for !c.asker.LoggedIn() {
		select {
		case <-ticker.C:
		case <-c.ctx.Done():
			return
		}
	}
	c.end()
}

// end tells the client that its person has done what it was asked for, and ends the session.
func (c *Conn) end() {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, id := range c.asked {
		params, _ := json.Marshal(map[string]string{"elicitationId": id})               // never fails
		_ = c.out.Offer(jsonrpc.NewNotification(mcp.MethodElicitationComplete, params)) // fails if the session is over
	}
	c.asked = nil
	c.out.End(ErrLoggedIn)
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
		c.visits.Store(mcp.VisitsURLs(m.Param("capabilities").Value))
		return c.answer(m, initialized(m))
	case m.Method == mcp.MethodListTools:
		return c.answer(m, json.RawMessage(tools))
	case m.Method == mcp.MethodCallTool:
		return c.call(m)
	case empty[m.Method] != "":
		return c.answer(m, json.RawMessage(empty[m.Method]))
	}
	return c.out.Offer(jsonrpc.NewError(m.ID, jsonrpc.Errorf(jsonrpc.CodeMethodNotFound,
		"nobody is logged in at the server: call the tool %s", toolName)))
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

// call answers a call of a tool. A client may have the names of the server from before. How it is answered:
//
//	the call       | the client        | answer
//	---------------|-------------------|------------------------------------------------
//	of login       | any               | the link as text
//	of another one | visits addresses  | the error by which it has its person visit the link
//	of another one | any other         | the link as text, as an error of the tool
func (c *Conn) call(m *jsonrpc.Message) error {
	select {
	case c.places <- struct{}{}:
	default:
		return jsonrpc.ErrBusy
	}
	name, _ := m.Param("name").Text()
	c.work.Go(func() { // ends with askTimeout, or ctx
		defer func() { <-c.places }()
		ctx, cancel := context.WithTimeout(c.ctx, askTimeout)
		defer cancel()
		text, link, done := c.asker.Ask(ctx)
		if link != "" && !done && name != toolName && c.visits.Load() {
			_ = c.out.Push(jsonrpc.NewError(m.ID, c.visit(text, link)), m.ID)
			return
		}
		result, _ := json.Marshal(map[string]any{ // never fails
			"content": []map[string]string{{"type": "text", "text": text}}, "isError": name != toolName && !done,
		})
		_ = c.answer(m, result)
		if done {
			c.end()
		}
	})
	return nil
}

// maxAsked bounds the visits whose end a client is told.
const maxAsked = 64

// visit returns the error by which the client has its person visit the link, and notes it.
func (c *Conn) visit(text, link string) *jsonrpc.Error {
	id := rand.Text()
	c.mu.Lock()
	defer c.mu.Unlock()
	if len(c.asked) < maxAsked {
		c.asked = append(c.asked, id)
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
