package compose

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"hash"
	"slices"
	"strconv"
	"time"

	"github.com/mcp-sse/mcp-sse/internal/asker"
	"github.com/mcp-sse/mcp-sse/internal/clip"
	"github.com/mcp-sse/mcp-sse/internal/mcp"
	"github.com/mcp-sse/mcp-sse/internal/merge"
	"github.com/mcp-sse/mcp-sse/internal/pages"
	"github.com/mcp-sse/mcp-sse/internal/rawjson"
	"github.com/mcp-sse/mcp-sse/jsonrpc"
)

// The bounds of one list of a member, as memory has them. What comes after them is not in the view.
const (
	maxPages     = 100
	maxListBytes = 2 << 20
)

// link is a member of a session. Everything is guarded by session.mu, which its methods need held.
type link struct {
	s     *session
	m     *member
	state linkState
	dial  context.CancelFunc // ends the Dial that is under way; nil once initialize is sent, or if there is none
	conn  *conn              // nil: there is none
	asks  bool               // conn has the client's initialize and has not answered it
	said  json.RawMessage    // the result of initialize; nil: none yet
	lists [merge.Kinds]*merge.List
	reads [merge.Kinds]*listRead // nil: the list is not being read
	paces [merge.Kinds]pace      // of the reads of lists that change
	tried [merge.Kinds]time.Time // when a list could not be read; zero: it could, or has not been read
	why   string                 // it fails; empty: it does not
	old   bool                   // its lists are of a connection that is over
	late  bool                   // a list has waited for it in vain, and no other one of this session does
	used  bool                   // it has got a request of the client, or the level before one: its server runs

	levelTimer *time.Timer // ends the wait for the answer to logging/setLevel; nil: nothing waits for that
}

// listRead is a list that is being read.
type listRead struct {
	pages   *pages.Reader
	entries []json.RawMessage
	taken   int // pages
	bytes   int
	hash    hash.Hash // of the pages
	again   bool      // it has changed meanwhile
	second  bool      // it does not begin again for that reason: it has, or a later read will
}

func newListRead() *listRead { return &listRead{pages: pages.NewReader(maxPages), hash: sha256.New()} }

// conn is a connection with a member.
type conn struct {
	jsonrpc.Conn
	local     jsonrpc.Local // the same; nil: it takes no requests that are parsed
	link      *link
	dialed    time.Time
	over      chan struct{} // closed when the link has another connection, or none
	watched   bool          // its condition is, by a goroutine
	condition asker.Condition
}

// event makes the move of an event, and does what follows. kind is that of the list, for wanted and changed.
func (l *link) event(e linkEvent, kind merge.Kind) {
	move, ok := l.state.after(e)
	if !ok {
		return
	}
	l.state = move.next
	switch move.do {
	case begin:
		l.begin()
	case readList:
		l.readList(e, kind)
	case publish:
		l.publish()
	case fail:
		l.s.view.noteFailing(l)
		l.s.settle()
	case finish:
		l.s.leaving[l] = true
		l.s.view.known.leave(l)
		if !l.s.hasOpen(l.conn, openRequest.any) {
			l.event(quiet, kind)
		}
	case end:
		delete(l.s.leaving, l)
		l.s.view.known.leave(l)
		l.endDial()
		if l.conn != nil {
			l.disconnect("")
		}
	}
}

// begin sends initialize, over a new connection if there is none. A connection that has it already will answer it. The
// Dial of an upstream that is no gateway may wait: it must hold up nothing but the link.
func (l *link) begin() {
	switch {
	case l.asks:
		return
	case l.conn != nil:
		l.initialize()
		return
	}
	ctx, cancel := context.WithCancel(l.s.ctx)
	l.dial = cancel
	upstream := l.m.Upstream
	go func() { // ends with Dial, whose context ends with the link
		opened, err := upstream.Dial(ctx)
		l.dialled(ctx, opened, err)
		cancel() // the connection goes on
	}()
}

// endDial ends the Dial that is under way.
func (l *link) endDial() {
	if l.dial != nil {
		l.dial()
		l.dial = nil
	}
}

// dialled takes what Dial has returned. ctx has ended if the link needs it no more.
func (l *link) dialled(ctx context.Context, opened jsonrpc.Conn, err error) {
	s := l.s
	s.mu.Lock()
	defer s.unlock()
	switch {
	case ctx.Err() != nil && err == nil:
		s.later(func() { _ = opened.Close() }) // how it ended does not matter any more
	case ctx.Err() != nil:
	case err != nil:
		l.dial = nil
		l.failed(refused, err.Error())
	default:
		c := &conn{Conn: opened, link: l, dialed: time.Now(), over: make(chan struct{}), condition: asker.Starting}
		c.local, _ = opened.(jsonrpc.Local)
		l.conn = c
		s.later(c.listen)
		l.initialize()
		s.later(c.sentInitialize)
	}
}

// sentInitialize lets the answer of the view go on, if it has waited for the Dial alone.
func (c *conn) sentInitialize() {
	s := c.link.s
	s.mu.Lock()
	defer s.unlock()
	if c.link.conn == c {
		c.link.dial = nil
		s.settle()
	}
}

// listen has the messages of the member arrive at receive.
func (c *conn) listen() {
	switch from := c.Conn.(type) {
	case jsonrpc.Relay:
		from.PushFor(c.receive)
	case jsonrpc.Local:
		from.Push(func(msg []byte, err error) { c.receive(msg, "", err) })
	default:
		go func() { // ends with the Conn, at the latest on Close
			for {
				msg, err := from.Recv()
				c.receive(msg, "", err)
				if err != nil {
					return
				}
			}
		}()
	}
}

// initialize sends the client's initialize to the member.
func (l *link) initialize() {
	l.asks = true
	defer l.s.later(l.conn.watch) // after it is sent: memory answers it inside the call
	l.ask(mcp.MethodInitialize, l.s.params, func(response *jsonrpc.Message, why string) {
		l.asks = false
		if response == nil || response.Result() == nil {
			l.failed(refused, why)
			return
		}
		l.said = response.Result()
		l.why = ""
		l.send(jsonrpc.NewNotification(mcp.MethodInitialized, nil))
		l.event(answered, merge.Tools)
	})
}

// failed notes why the member fails, and makes the move. A member that fails already may say why later.
func (l *link) failed(e linkEvent, why string) {
	l.why = why
	if l.state == failing {
		l.s.view.noteWhy(l)
	}
	l.event(e, merge.Tools)
}

// readList reads a list, or begins again with one that is being read.
func (l *link) readList(e linkEvent, kind merge.Kind) {
	switch {
	case !mcp.Declares(l.said, "capabilities", capabilityOf(kind)):
		l.keepEmpty(kind)
	case l.reads[kind] != nil:
		l.reads[kind].again = l.reads[kind].again || e == changed
	case e == changed:
		l.readChanged(kind)
	case e == wanted && time.Since(l.tried[kind]) < firstPause: // else each request that wants it would have it read
	default:
		l.startRead(kind)
	}
}

// startRead begins to read a list.
func (l *link) startRead(kind merge.Kind) {
	l.reads[kind] = newListRead()
	l.readPage(kind)
}

// capabilityOf returns the capability that says that a server has lists of a kind.
func capabilityOf(kind merge.Kind) string {
	if kind == merge.Templates {
		kind = merge.Resources
	}
	return kind.Member()
}

// readPage asks for the next page of a list.
func (l *link) readPage(kind merge.Kind) {
	r := l.reads[kind]
	l.ask(kind.Method(), r.pages.Params(), func(response *jsonrpc.Message, why string) {
		switch {
		case l.reads[kind] != r:
		case response == nil:
			l.unread(kind, why)
		case response.Result() != nil:
			l.takePage(kind, response.Result())
		case r.taken == 0 && saysNone(response): // it declares the list, and does not know its method
			l.reads[kind] = nil
			l.keepEmpty(kind)
		default:
			l.unread(kind, why)
		}
	})
}

// lacks reports whether the member has answered initialize, and has not declared a capability.
func (l *link) lacks(capability ...string) bool {
	return l.said != nil && !mcp.Declares(l.said, append([]string{"capabilities"}, capability...)...)
}

// saysNone reports whether an error response to the request for a list says that there is none. Any other error may
// pass.
func saysNone(response *jsonrpc.Message) bool {
	code, _ := rawjson.Member(response.Error(), "code")
	none := []string{strconv.Itoa(jsonrpc.CodeMethodNotFound), strconv.Itoa(jsonrpc.CodeInvalidParams)}
	return slices.Contains(none, string(code))
}

// takePage adds a page to a list that is being read. A list whose pages are known is complete.
func (l *link) takePage(kind merge.Kind, result json.RawMessage) {
	r := l.reads[kind]
	r.taken++
	r.hash.Write(result)
	r.hash.Write([]byte{'\n'}) // no message has it
	key := newListKey(kind, r.hash)
	list, isLast := l.s.view.list(key), true
	if list == nil {
		isLast = r.add(kind, result)
	}
	switch {
	case !isLast:
		l.readPage(kind)
	case r.again && !r.second:
		l.startRead(kind)
		l.reads[kind].second = true
	case list == nil:
		l.finishRead(kind, l.s.view.keepList(key, r.entries))
	default:
		l.finishRead(kind, list)
	}
}

// finishRead keeps a list that is complete. One that has changed meanwhile is read again later: a server may say with
// each answer that the list has changed.
func (l *link) finishRead(kind merge.Kind, list *merge.List) {
	again := l.reads[kind].again
	l.reads[kind] = nil
	l.paces[kind].last = time.Now()
	l.keep(kind, list)
	if again && l.reads[kind] == nil && l.conn != nil {
		l.readChanged(kind)
	}
}

// add adds the entries of a page, and reports whether it is the last one that is read.
func (r *listRead) add(kind merge.Kind, result json.RawMessage) bool {
	page, endless := r.pages.Add(result)
	elements, _ := rawjson.Member(result, kind.Member())
	elements = bytes.Clone(elements) // else all else of the page would be kept with them
	rawjson.Each(elements, func(entry json.RawMessage) { r.entries = append(r.entries, entry) })
	r.bytes += len(elements)
	return page.Last || endless != nil || r.bytes >= maxListBytes
}

// keepEmpty takes the list of a member that has none.
func (l *link) keepEmpty(kind merge.Kind) {
	l.keep(kind, l.s.view.keepList(newListKey(kind, sha256.New()), nil))
}

// keep takes a list that has been read.
func (l *link) keep(kind merge.Kind, list *merge.List) {
	l.lists[kind], l.tried[kind] = list, time.Time{}
	if kind == merge.Tools {
		l.s.view.noteTools(l.m.Name, list.Len())
	}
	if l.state == reading && kind == merge.Tools {
		l.event(read, kind)
		return
	}
	l.s.changed()
}

// unread is called when a list cannot be read. Without its tools the member fails, so that it is tried again. A list
// that was known has changed: it stays, and is read again after a pause, because the member says no more of it. Another
// one is read again when somebody wants it, and nothing waits for it meanwhile.
func (l *link) unread(kind merge.Kind, why string) {
	l.reads[kind] = nil
	l.tried[kind] = time.Now()
	if l.state == reading && kind == merge.Tools {
		l.failed(unreadable, why)
		return
	}
	if l.lists[kind] != nil && l.conn != nil && l.paces[kind].timer == nil {
		l.readLater(kind)
	}
	l.s.settle()
}

// publish makes the tools of the member a part of what the client gets, and reads the other lists that are wanted, also
// those that an earlier connection had.
func (l *link) publish() {
	l.late = false
	l.s.view.noteListed(l)
	l.resubscribe()
	for kind := range merge.Kinds {
		switch {
		case !l.s.wants[kind]:
		case l.lists[kind] == nil:
			l.event(wanted, kind)
		case l.old && kind != merge.Tools:
			l.event(changed, kind)
		}
	}
	l.old = false
	l.s.changed()
}

// pending reports whether the list of a kind is on its way.
func (l *link) pending(kind merge.Kind) bool {
	switch {
	case l.state == asking || l.state == reading:
		return l.lists[kind] == nil
	default:
		return l.state == listed && l.lists[kind] == nil && l.reads[kind] != nil
	}
}

// ask sends a request of the view's own. done is called with the response, or with nil and the reason if there will be
// none. An error response comes with its message as the reason.
func (l *link) ask(method string, params json.RawMessage, done func(response *jsonrpc.Message, why string)) {
	s, c := l.s, l.conn
	if c == nil {
		done(nil, "there is no connection")
		return
	}
	number := s.nextNumber()
	id := jsonrpc.NumberID(number)
	s.own[id] = ownRequest{c, done}
	s.later(func() {
		m, err := jsonrpc.Parse(jsonrpc.NewRequest(id, method, params))
		if err == nil {
			err = c.sendRequest(m, number)
		}
		if err == nil {
			return
		}
		s.mu.Lock()
		defer s.unlock()
		if _, open := s.own[id]; open {
			delete(s.own, id)
			done(nil, err.Error())
		}
	})
}

// send sends a message to the member, if there is a connection. A message that cannot be sent is lost with it.
func (l *link) send(msg []byte) {
	if c := l.conn; c != nil {
		l.s.later(func() { _ = c.Send(msg) })
	}
}

// lost is called when the connection of the member is over.
func (l *link) lost(c *conn, err error) {
	untaken := jsonrpc.ID("")
	if not, ok := errors.AsType[*jsonrpc.NotTakenError](err); ok {
		untaken = not.ID
	}
	l.disconnect(untaken)
	l.failed(closed, err.Error())
	if time.Since(c.dialed) >= firstPause { // else each connection may end at once, without an end
		l.s.later(func() { retryAll([]*link{l}) })
	}
}

// disconnect closes the connection. Requests on their way there fail: untaken, the one that the member has not taken,
// can be repeated.
func (l *link) disconnect(untaken jsonrpc.ID) {
	s, c := l.s, l.conn
	l.dial = nil
	close(c.over)
	s.later(func() { _ = c.Close() }) // how it ended does not matter any more
	l.conn, l.used, l.asks, l.old = nil, false, false, true
	l.reads = [merge.Kinds]*listRead{}
	l.tried = [merge.Kinds]time.Time{}
	l.stopPaces()
	l.stopLevelTimer()
	s.dropAsked(c)
	for number, r := range s.open {
		if r.conn == c {
			isUntaken := untaken == jsonrpc.NumberID(number)
			if isUntaken {
				r.beside.LeadsTo("", "")
			}
			s.endOpen(number, false)
			s.refuse(number, sessionLost(l.m, isUntaken))
		}
	}
	for id, request := range s.own {
		if request.conn == c {
			delete(s.own, id)
		}
	}
}

// sessionLost returns the error for a request that a member had when its connection ended. retryable says that the
// member has not got it.
func sessionLost(m *member, retryable bool) *jsonrpc.Error {
	return jsonrpc.ReasonError(fmt.Sprintf("the session with %s was lost", m.Name), "session_lost", retryable)
}

// unavailable returns the error for a request that the member would have got.
func (l *link) unavailable() *jsonrpc.Error {
	text := fmt.Sprintf("%s, a server of this view, cannot be reached", l.m.Name)
	switch {
	case l.state == asking || l.state == reading:
		text = fmt.Sprintf("%s, a server of this view, has not started yet", l.m.Name)
	case l.why != "" && l.s.isToldDetails():
		text += ": " + clip.Long(l.why)
	}
	return jsonrpc.ReasonError(text, "member_unavailable", true)
}

// may reports whether the client of a session may use the member.
func (m *member) may(ctx context.Context) bool { return m.Allow == nil || m.Allow(ctx) }

// mayGet reports whether the member may get a request: the client may use it with the credentials that the request came
// with. Other credentials of the client may have opened the link.
func (l *link) mayGet(r request) bool {
	a := asker.FromContext(l.s.ctx)
	if l.m.Allow == nil || a == nil || r.beside.Credentials() == "" {
		return true
	}
	sender := *a
	sender.Credentials = r.beside.Credentials
	return l.m.Allow(asker.NewContext(l.s.ctx, &sender))
}

// withholds reports whether a member of the session may not get a request.
func (s *session) withholds(r request) bool {
	return slices.ContainsFunc(s.links, func(l *link) bool { return l.state != gone && !l.mayGet(r) })
}
