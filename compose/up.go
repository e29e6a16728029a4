package compose

import (
	"encoding/json"
	"strconv"
	"strings"

	"github.com/mcp-sse/mcp-sse/internal/mcp"
	"github.com/mcp-sse/mcp-sse/internal/merge"
	"github.com/mcp-sse/mcp-sse/internal/rawjson"
	"github.com/mcp-sse/mcp-sse/jsonrpc"
)

// The bounds of the questions that a session has open: of all members, as it is bounded for one server, and of one
// member of several, which must leave room for the others.
const (
	maxAsked      = 256
	maxAskedOfOne = 64
)

// ownRequest is a request of the view itself.
type ownRequest struct {
	conn *conn
	done func(response *jsonrpc.Message, why string) // called with session.mu held
}

// asked is a question of a member, which the client has under an id of the view.
type asked struct {
	conn  *conn
	id    jsonrpc.ID      // the member's
	token json.RawMessage // the member's progress token; nil: none
	// isOnItsWay says that the client has not got it yet. after is the cancellation that then follows it; nil: none.
	isOnItsWay bool
	after      []byte
}

// receive takes a message of a member, or the end of the connection. request is the one that the message came with, if
// that is known. What the client gets of it is passed in the goroutine of the member, so that messages of one member
// keep their order, and wait for no other one.
func (c *conn) receive(msg []byte, request jsonrpc.ID, err error) {
	s := c.link.s
	var m *jsonrpc.Message
	if err == nil {
		if m, err = jsonrpc.Parse(msg); err != nil { // the gateway of a member passes none
			return
		}
		if m.Kind == jsonrpc.Response && s.passAnswer(c, m) {
			return
		}
	}
	var told []byte         // nil: nothing
	var question jsonrpc.ID // its id at the client, if it is one
	updated := c.judgeUpdate(m)
	s.mu.Lock()
	switch {
	case s.err != nil || c.link.conn != c: // it comes too late
	case err != nil:
		c.link.lost(c, err)
	case m.Kind == jsonrpc.Response:
		s.takeOwn(c, m)
	case m.Kind == jsonrpc.Request:
		told, question = s.ask(c, m)
		request = s.askedIn(c, m, request)
	default:
		told = c.notification(m, updated)
	}
	receive := s.receive
	if told != nil {
		if s.setup.several() {
			told = c.link.m.withTasks(told, m.Method)
		}
		s.mu.Unlock()
		receive(told, request, nil)
		s.mu.Lock()
		s.arrived(question)
	}
	s.unlock()
}

// passAnswer passes the answer to a request of the client, in the goroutine of the member. It reports false if it is
// the answer to something else.
func (s *session) passAnswer(c *conn, m *jsonrpc.Message) bool {
	number, err := strconv.ParseInt(string(m.ID), 10, 64)
	if err != nil || number > aboveClients {
		return false
	}
	var uris []string
	if s.isOfSeveral() {
		uris = urisIn(m.Result()) // without mu: a result may be large
	}
	s.mu.Lock()
	isOpen := s.open[number].conn == c && s.err == nil
	from, several := c.link.m, s.setup.several()
	if isOpen {
		s.endOpen(number, m.Result() != nil)
		if several {
			s.named.note(from.Name, uris)
		}
		c.link.checkQuiet()
	}
	receive := s.receive
	s.unlock()
	switch {
	case !isOpen:
	case several:
		receive(from.withTasks(m.Raw(), ""), m.ID, nil)
	default:
		receive(m.Raw(), m.ID, nil)
	}
	return true
}

// isOfSeveral reports whether the view has several members, without mu.
func (s *session) isOfSeveral() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.setup.several()
}

// checkQuiet ends a link that is leaving, when it has answered everything.
func (l *link) checkQuiet() {
	if l.state == leaving && !l.s.hasOpen(l.conn, openRequest.any) {
		l.event(quiet, merge.Tools)
	}
}

// takeOwn takes the answer to a request of the view itself.
func (s *session) takeOwn(c *conn, m *jsonrpc.Message) {
	own, ok := s.own[m.ID]
	if !ok || own.conn != c {
		return
	}
	delete(s.own, m.ID)
	own.done(m, whyOf(m))
}

// whyOf returns why a request of the view's own has failed, for the log and for those who see the view, by the
// response; empty: it has not. The link of a login is for the client alone that the member knows: it is left out.
func whyOf(m *jsonrpc.Message) string {
	why, _ := rawjson.MemberText(m.Error(), "message")
	if link, _ := rawjson.MemberText(m.Error(), "data", "link"); link != "" {
		return "the server needs a login, and the link to it is for the client of a call"
	}
	return why
}

// judgeUpdate returns what the rules of the member say of the URI of a resource that has changed; nil for any other
// message.
func (c *conn) judgeUpdate(m *jsonrpc.Message) *judged {
	if m == nil || m.Method != mcp.MethodResourceUpdated {
		return nil
	}
	c.link.s.mu.Lock()
	of := c.link.m
	c.link.s.mu.Unlock()
	uri, _ := m.Param("uri").Text()
	return judgeURI(uri, of)
}

// notification returns what the client gets of a notification of a member, or does what it asks for and returns nil.
// updated is judgeUpdate.
func (c *conn) notification(m *jsonrpc.Message, updated *judged) []byte {
	s, l := c.link.s, c.link
	switch m.Method {
	case mcp.MethodToolsChanged:
		l.event(changed, merge.Tools)
	case mcp.MethodPromptsChanged:
		l.reread(merge.Prompts)
	case mcp.MethodResourcesChanged:
		l.reread(merge.Resources)
		l.reread(merge.Templates)
	case mcp.MethodCancelled:
		return s.withdraw(c, m)
	case mcp.MethodProgress:
		if s.mayProgress(c, m) {
			return m.Raw()
		}
	case mcp.MethodResourceUpdated:
		uri, _ := m.Param("uri").Text()
		if updated.allows(l.m.rules, uri) && (!s.setup.several() || s.wantsUpdate(l.m.Name, uri)) {
			return m.Raw()
		}
	case mcp.MethodLogMessage:
		return l.signed(m)
	default:
		return m.Raw()
	}
	return nil
}

// mayProgress reports whether a member may send this progress: another one must not have the request of its token.
// Progress for a request that nobody has passes: a task makes progress after its request is answered.
func (s *session) mayProgress(c *conn, m *jsonrpc.Message) bool {
	token, _, _ := strings.Cut(strings.Trim(string(m.Token.Value), `"`), ".") // servers write 7 also as "7" and 7.0
	number, err := strconv.ParseInt(token, 10, 64)
	if err != nil {
		return true // the session in front knows no such token
	}
	at, open := s.open[number]
	return !open || at.conn == c
}

// reread reads a list again that somebody has wanted.
func (l *link) reread(kind merge.Kind) {
	if l.s.wants[kind] {
		l.event(changed, kind)
	}
}

// signed returns a log message with the name of the member in front of its logger, in a view of several.
func (l *link) signed(m *jsonrpc.Message) []byte {
	if !l.s.setup.several() {
		return m.Raw()
	}
	if at := m.Param("logger"); at.Value != nil {
		name := l.m.Name
		if logger, ok := at.Text(); ok && logger != "" {
			name += "/" + logger
		}
		return m.WithValue(at, rawjson.Quote(name))
	}
	return rawjson.ReplaceMember(m.Raw(), rawjson.SetMember(m.Params(), rawjson.Quote(l.m.Name), "logger"), "params")
}

// ask returns a question of a member as the client gets it, with its id, which is one of the view; nil if the view
// answers it.
func (s *session) ask(c *conn, m *jsonrpc.Message) (told []byte, id jsonrpc.ID) {
	if m.Method == mcp.MethodPing {
		s.later(func() { _ = c.Send(jsonrpc.NewResult(m.ID, []byte(`{}`))) })
		return nil, ""
	}
	if !s.mayAsk(c) {
		busy := jsonrpc.ReasonError("too many requests to the client are unanswered", "server_busy", true)
		s.later(func() { _ = c.Send(jsonrpc.NewError(m.ID, busy)) })
		return nil, ""
	}
	id = s.nextID()
	s.asked[id] = asked{conn: c, id: m.ID, token: m.Token.Value, isOnItsWay: true}
	question := m
	if at := m.Param("message"); m.Method == mcp.MethodElicit && s.setup.several() {
		text, ok := at.Text()
		named, err := jsonrpc.Parse(m.WithValue(at, rawjson.Quote(c.link.m.Name+": "+text)))
		if ok && err == nil {
			question = named
		}
	}
	return question.Renumbered(id), id
}

// askedIn returns the request that a question of a member belongs to, if its connection does not say so. A member of
// several that asks a person or a model, and has no request of the client in which it may do so, means none that
// another member has. Roots are those of the client, whichever request it answers.
func (s *session) askedIn(c *conn, m *jsonrpc.Message, request jsonrpc.ID) jsonrpc.ID {
	asks := m.Method == mcp.MethodElicit || m.Method == mcp.MethodSample
	if asks && request == "" && s.setup.several() && !s.hasOpen(c, openRequest.mayAsk) {
		return mcp.NoRequest
	}
	return request
}

// arrived notes that the client has a question. If it has been withdrawn meanwhile, the cancellation follows now: the
// client would drop one that comes before the question.
func (s *session) arrived(id jsonrpc.ID) {
	from, ok := s.asked[id]
	switch {
	case !ok: // the client has answered, or it was no question
	case from.after != nil:
		delete(s.asked, id)
		s.tell(from.after)
	default:
		from.isOnItsWay = false
		s.asked[id] = from
	}
}

// withdrawn has a cancellation follow a question that is on its way to the client. It reports false if the client has
// the question: then it counts no longer, and the cancellation can be sent.
func (s *session) withdrawn(id jsonrpc.ID, cancellation []byte) bool {
	from := s.asked[id]
	if !from.isOnItsWay {
		delete(s.asked, id)
		return false
	}
	if from.after == nil {
		from.after = cancellation
		s.asked[id] = from
	}
	return true
}

// mayAsk reports whether a member may have one more question open.
func (s *session) mayAsk(c *conn) bool {
	own := 0
	for _, one := range s.asked {
		if one.conn == c {
			own++
		}
	}
	return len(s.asked) < maxAsked && (own < maxAskedOfOne || !s.setup.several())
}

// takeReply passes the client's answer to the member that has asked.
func (s *session) takeReply(m *jsonrpc.Message) {
	from, ok := s.asked[m.ID]
	if !ok {
		return
	}
	delete(s.asked, m.ID)
	reply := m.WithID(from.id)
	if s.setup.several() {
		reply = from.conn.link.m.withOwnTask(reply)
	}
	s.later(func() { _ = from.conn.Send(reply) }) // if it fails, nobody asks any more
}

// passProgress passes the client's progress with a question to the member that has asked.
func (s *session) passProgress(m *jsonrpc.Message) {
	from, ok := s.asked[jsonrpc.ID(m.Token.Value)]
	if !ok || from.token == nil {
		return
	}
	s.later(func() { _ = from.conn.Send(m.WithValue(m.Token, from.token)) })
}

// withdraw returns the cancellation of a question as the client gets it; nil if the client has no such question, or
// gets the cancellation later.
func (s *session) withdraw(c *conn, m *jsonrpc.Message) []byte {
	for id, from := range s.asked {
		if from.conn == c && from.id == jsonrpc.ID(m.RequestID.Value) && from.after == nil {
			cancellation := m.WithValue(m.RequestID, json.RawMessage(id))
			if s.withdrawn(id, cancellation) {
				return nil
			}
			return cancellation
		}
	}
	return nil
}

// dropAsked withdraws the questions of a connection that is over.
func (s *session) dropAsked(c *conn) {
	for id, from := range s.asked {
		if from.conn == c {
			cancellation := jsonrpc.NewNotification(mcp.MethodCancelled, json.RawMessage(`{"requestId":`+string(id)+`}`))
			if !s.withdrawn(id, cancellation) {
				s.tell(cancellation)
			}
		}
	}
}
