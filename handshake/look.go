package handshake

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/mcp-sse/mcp-sse/internal/mcp"
	"github.com/mcp-sse/mcp-sse/internal/remember"
	"github.com/mcp-sse/mcp-sse/jsonrpc"
	"github.com/mcp-sse/mcp-sse/multiplex"
)

// look is what a session says of itself: the result of its initialize, and its lists. It begins
//
//   - before the first message of a client that has rested passes: then the server has named its answers
//     in an earlier session;
//   - else once the server has answered a client under the id of the request: an answer that names
//     nothing could not be told from one to the look. So what such servers say is not remembered.
type look struct {
	memory  *remember.Server
	begin   sync.Once
	began   atomic.Bool
	done    chan struct{}     // closed at the end of the look
	answers *remember.Answers // set before done is closed; nil: the lists could not be read

	mu        sync.Mutex // guards what follows
	ended     bool
	observers map[*attachment]func() // called before done is closed: who waits for that finds what they did
}

// observe has f called for an attachment at the end of the look, perhaps at once.
func (l *look) observe(a *attachment, f func()) {
	l.mu.Lock()
	ended := l.ended
	if !ended {
		if l.observers == nil {
			l.observers = make(map[*attachment]func())
		}
		l.observers[a] = f
	}
	l.mu.Unlock()
	if ended {
		f()
	}
}

// ignore has nothing called for an attachment.
func (l *look) ignore(a *attachment) {
	l.mu.Lock()
	defer l.mu.Unlock()
	delete(l.observers, a)
}

func (l *look) end() {
	l.mu.Lock()
	all := l.observers
	l.ended, l.observers = true, nil
	l.mu.Unlock()
	for _, f := range all {
		f()
	}
	close(l.done)
}

// startLook reads the lists of an initialized session in the background, once, and remembers them for
// clients that declare the same.
func (s *Session) startLook() { s.look.begin.Do(s.runLook) }

func (s *Session) runLook() {
	s.look.began.Store(true)
	s.supplier.Go(func() { // ends with the session, and after a request timeout
		defer s.look.end()
		answers, err := s.read(s.Result(), s.client)
		if err != nil {
			if !s.isOver() {
				s.supplier.limited.Warn("the server's lists could not be read, and are not remembered", "err", err)
			}
			return
		}
		if !s.NamesAnswers() {
			return
		}
		s.look.answers = answers
		s.learn(answers)
	})
}

// learn remembers what the server says to any client. What it says after it has heard from one may be
// for that client alone, such as resources that a call has made, or lists that follow from its roots: no
// other client is told of it. If something else has been remembered for long, or nothing because the server
// asks each client something at once, a session without a client shows what the server says to all.
func (s *Session) learn(answers *remember.Answers) {
	if !s.teaches {
		return
	}
	if !s.heard.Load() {
		s.remember(s.client, answers)
		return
	}
	if !s.supplier.learnsAlone() {
		return
	}
	known := s.look.memory.Answers(s.client)
	differs := known == nil && !s.called.Load() || known != nil && !known.Same(answers) && time.Since(known.Learned) > time.Hour
	if differs && s.supplier.background.mayBegin() && s.supplier.learned.first(s.client.String(), time.Now()) {
		s.supplier.learnInBackground(s.Params(), s.who)
	}
}

// remember keeps what the server says to such a client, and tells those who have something else, or wait.
func (s *Session) remember(client remember.Client, answers *remember.Answers) {
	if s.look.memory.Learn(client, answers) {
		s.supplier.tellLives(func(l *sessionLife) { l.memoryHasNews(s.supplier) })
		s.supplier.learnInAnyFolderSoon()
	}
}

// hears notes that the server gets a message of a client. After one with anything of its own in it, the server may
// say something else to it than to others, or say the client's text to all.
func (s *Session) hears(m *jsonrpc.Message) {
	s.used.Store(true)
	if s.look == nil || s.look.isOver() || s.called.Load() || s.isEmpty(m) {
		return
	}
	s.heard.Store(true)
	if m.Kind != jsonrpc.Response && !multiplex.ReadOnly(m.Method) && m.Method != mcp.MethodSetLevel {
		s.called.Store(true)
	}
}

// hearsState is hears for the state of a client that a session gets after another one.
func (s *Session) hearsState() {
	s.used.Store(true)
	s.heard.Store(true)
}

// isEmpty reports whether a message of a client has nothing in it that the client has chosen: it is one of the
// handshake, or asks for a list with no more than a cursor that the server has given. (A progress token is another
// one at the server.)
func (s *Session) isEmpty(m *jsonrpc.Message) bool {
	var message, params, meta map[string]json.RawMessage
	isList := slices.ContainsFunc(remember.Kinds(), func(kind string) bool { return slices.Contains(remember.Methods(kind), m.Method) })
	switch {
	case m.Kind == jsonrpc.Response || !isList && m.Method != mcp.MethodPing && m.Method != mcp.MethodInitialized:
		return false
	case json.Unmarshal(m.Raw(), &message) != nil || !hasOnly(message, "jsonrpc", "id", "method", "params"):
		return false
	case m.Params() == nil:
		return true
	case json.Unmarshal(m.Params(), &params) != nil || !hasOnly(params, "cursor", "_meta"):
		return false
	case params["_meta"] != nil && (json.Unmarshal(params["_meta"], &meta) != nil || !hasOnly(meta, "progressToken")):
		return false
	case m.Param("cursor").Ambiguous || m.Param("_meta").Ambiguous || m.Param("_meta", "progressToken").Ambiguous:
		return false
	}
	return params["cursor"] == nil || isList && s.given.has(params["cursor"])
}

func hasOnly(all map[string]json.RawMessage, names ...string) bool {
	for name := range all {
		if !slices.Contains(names, name) {
			return false
		}
	}
	return true
}

// cursors are those that the server has given to clients before the look at its session was over.
type cursors struct {
	mu  sync.Mutex // guards all
	all map[string]bool
}

// maxCursors bounds how many are kept: lists that are longer are not remembered.
const maxCursors = 400

// notePage notes the cursor of a page that the server gives to a client.
func (s *Session) notePage(result json.RawMessage) {
	cursor, ok := jsonrpc.Member(result, "nextCursor")
	if !ok || s.look.isOver() {
		return
	}
	s.given.mu.Lock()
	defer s.given.mu.Unlock()
	if s.given.all == nil {
		s.given.all = make(map[string]bool)
	}
	if len(s.given.all) < maxCursors {
		s.given.all[string(jsonrpc.Compact(cursor))] = true
	}
}

func (c *cursors) has(cursor json.RawMessage) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.all[string(jsonrpc.Compact(cursor))]
}

// lookEnds bounds how long a session whose client has left goes on for a look that has begun: many
// clients list the tools and leave.
const lookEnds = 5 * time.Second

// CloseAfterLook is Close once a look is over that has begun, or that can begin now: the client has only
// initialized, so nobody else gets an answer of the session.
func (s *Session) CloseAfterLook(why error) {
	if s.look != nil && !s.look.began.Load() && !s.used.Load() && s.Result() != nil && !s.isOver() {
		s.startLook()
	}
	if s.look == nil || !s.look.began.Load() || s.look.isOver() {
		s.Close(why)
		return
	}
	s.supplier.Go(func() { // ends with the look, the supplier, or lookEnds
		select {
		case <-s.look.done:
		case <-s.supplier.closed.Done():
		case <-time.After(lookEnds):
		}
		s.Session.Close(why)
	})
}

func (l *look) isOver() bool { return isClosed(l.done) }

// read reads all lists that the server has by its result of initialize, for a client.
func (s *Session) read(result *Result, client remember.Client) (*remember.Answers, error) {
	ctx, cancel := context.WithTimeout(context.Background(), s.supplier.opts().Session.RequestTimeout)
	defer cancel()
	known := s.look.memory.Answers(client)
	answers := &remember.Answers{
		Initialize: string(result.Raw), Stateless: s.Stateless(),
		Pages: make(map[string]map[string]string), Learned: time.Now(),
	}
	for _, kind := range remember.Kinds() {
		if !result.Advertises(kind) {
			continue
		}
		for _, method := range remember.Methods(kind) {
			var inOrder []json.RawMessage
			pages, err := remember.Read(func(params json.RawMessage) (json.RawMessage, error) {
				page, err := s.ask(ctx, method, params)
				inOrder = append(inOrder, page)
				return page, err
			})
			switch {
			case errors.Is(err, errUnknown):
				answers.Missing = append(answers.Missing, method)
				continue
			case errors.Is(err, errNoList) && known != nil && known.Pages[method] != nil: // it has had one
				return nil, err
			case errors.Is(err, errNoList), err == nil && pages == nil: // it has none, or one that is too long
				continue
			case err != nil:
				return nil, err
			}
			answers.Pages[method] = pages
			if kind == "tools" && !s.supplier.opts().Forwards {
				s.noteTools(s.supplier.tools.Learn(inOrder))
			}
		}
	}
	return answers, nil
}

// unread returns what a session says whose lists could not be read.
func (s *Session) unread() *remember.Answers {
	return &remember.Answers{Initialize: string(s.Result().Raw), Stateless: s.Stateless(), Learned: time.Now()}
}

// errNoList reports that a server answers a request for a list with an error, and errUnknown that it does
// not know the method: many declare resources, and have no templates.
var (
	errNoList  = errors.New("the server gives no such list")
	errUnknown = errors.New("the server does not know this list")
)

// ask asks the server for a page of a list.
func (s *Session) ask(ctx context.Context, method string, params json.RawMessage) (json.RawMessage, error) {
	response, err := s.Call(ctx, method, params)
	switch {
	case err != nil:
		return nil, fmt.Errorf("%s: %w", method, err)
	case response.Error() != nil:
		if code, _ := jsonrpc.Member(response.Error(), "code"); string(code) == "-32601" {
			return nil, errUnknown
		}
		return nil, errNoList
	}
	return response.Result(), nil
}
