package compose

import (
	"context"
	"encoding/json"
	"errors"
	"maps"
	"slices"
	"strconv"
	"sync"
	"time"

	"github.com/mcp-sse/mcp-sse/internal/asker"
	"github.com/mcp-sse/mcp-sse/internal/merge"
	"github.com/mcp-sse/mcp-sse/internal/rawjson"
	"github.com/mcp-sse/mcp-sse/internal/stateless"
	"github.com/mcp-sse/mcp-sse/jsonrpc"
)

// session is a view as one client has it.
//
// Requests of the client, and what members send it, pass in the goroutine that brings them. All else that follows from
// a message is collected while mu is held, and done after it, in order: see unlock. So no member and no client is
// called under the lock, and a list never overtakes a newer one.
type session struct {
	view   *View
	ctx    context.Context // the values of View.Dial; it has no end
	opened time.Time
	// unfollow are the functions that end the calls of recheck and of listen.
	unfollow []func()

	mu         sync.Mutex // guards what follows, and the links
	due        []func()   // what is to be done after mu
	doing      bool       // a goroutine does it
	receive    func(msg []byte, request jsonrpc.ID, err error)
	err        error // why the session is over; nil before
	setup      *setup
	params     json.RawMessage // of the client's initialize; nil before
	links      []*link         // of the members, in their order
	leaving    map[*link]bool  // links of members that have left, which have requests to answer
	clientName string          // as the client calls itself; empty before initialize
	lastID     int64
	own        map[jsonrpc.ID]ownRequest // the view's own requests, by their ids
	open       map[int64]openRequest     // the client's requests that members have, by their numbers
	asked      map[jsonrpc.ID]asked      // the questions of members, by the ids that the client has
	waiting    map[int64]*waiter
	wants      [merge.Kinds]bool    // lists that the client has asked for, or that a route has needed
	current    *result              // of the lists that are known; nil: they have changed
	listens    [merge.Kinds]bool    // lists of whose changes the client is told although it has not listed them
	told       [merge.Kinds]*result // the lists that the client has got
	noticed    [merge.Kinds]*result // the same, or those that it has been told have changed
	noticing   *time.Timer          // the client will be told of changes; nil: no

	lastCalled string                  // the member of the tool that was called last
	named      namedURIs               // in results
	level      json.RawMessage         // of log messages, as the client has set it; nil: it has not
	subscribed map[string]subscription // of the client, by the URI
	asksFor    map[int64]wish          // requests to subscribe that members have, by their numbers

	greetings     []request   // initialize, which waits for memory; a client may send more than one
	greetingTimer *time.Timer // of the first of them
}

var _ jsonrpc.Relay = (*session)(nil)

// isToldDetails reports whether the client may see why a member fails, which may have its command. Without an Asker the
// program itself is the client.
func (s *session) isToldDetails() bool {
	a := asker.FromContext(s.ctx)
	return a == nil || a.Details != nil && a.Details()
}

// later has f called after mu is given up, after all that is due. mu is held.
func (s *session) later(f func()) { s.due = append(s.due, f) }

// unlock gives up mu, and does what is due. If another goroutine is doing that, it does this too.
func (s *session) unlock() {
	if s.doing {
		s.mu.Unlock()
		return
	}
	s.doing = true
	for len(s.due) > 0 {
		next := s.due[0]
		s.due[0] = nil
		s.due = s.due[1:]
		s.mu.Unlock()
		next()
		s.mu.Lock()
	}
	s.due, s.doing = nil, false
	s.mu.Unlock()
}

// nextID returns an id for a question at the client that no other one has.
func (s *session) nextID() jsonrpc.ID {
	s.lastID++
	return jsonrpc.ID(`"view-` + strconv.FormatInt(s.lastID, 10) + `"`)
}

// aboveClients is above all numbers of the client's requests, which count from 1. It has 15 digits, which each peer
// keeps.
const aboveClients = 900_000_000_000_000

// nextNumber returns the number of a request of the view's own, which no other request of the session has.
func (s *session) nextNumber() int64 {
	s.lastID++
	return aboveClients + s.lastID
}

// tell sends a message to the client.
func (s *session) tell(msg []byte) { s.tellFor(msg, "") }

// tellFor is tell for a message that came with a request.
func (s *session) tellFor(msg []byte, request jsonrpc.ID) {
	receive := s.receive
	s.later(func() { receive(msg, request, nil) })
}

// answer answers a request of the client with a result, refuse with an error.
func (s *session) answer(number int64, result json.RawMessage) {
	id := jsonrpc.NumberID(number)
	s.tellFor(jsonrpc.NewResult(id, result), id)
}

func (s *session) refuse(number int64, e *jsonrpc.Error) {
	id := jsonrpc.NumberID(number)
	s.tellFor(jsonrpc.NewError(id, e), id)
}

// openRequest is a request of the client that a member has.
type openRequest struct {
	conn        *conn
	method      string
	beside      *asker.Request // what came beside its message; nil: nothing
	isCancelled bool           // by the client: the member need not answer it
}

// hasOpen reports whether a connection has a request of the client for which is holds.
func (s *session) hasOpen(c *conn, is func(openRequest) bool) bool {
	for _, r := range s.open {
		if r.conn == c && is(r) {
			return true
		}
	}
	return false
}

// any holds for each request.
func (openRequest) any() bool { return true }

// mayAsk reports whether a server may ask something in the request.
func (r openRequest) mayAsk() bool { return !r.isCancelled && stateless.AsksInput(r.method) }

// initialize opens the links, and answers. What members answer while they are called is in the answer of the view.
func (s *session) initialize(r request) {
	if s.params == nil {
		s.params = r.m.Params()
		s.clientName, _ = rawjson.MemberText(s.params, "clientInfo", "name")
		for _, l := range s.links {
			l.openIfAllowed()
		}
		for kind := range merge.Kinds {
			if s.listens[kind] {
				s.awaitFirst(kind)
			}
		}
	}
	s.later(func() { s.awaitMemory(r) })
}

// awaitMemory answers initialize, when the members have answered of which something is remembered.
func (s *session) awaitMemory(r request) {
	s.mu.Lock()
	defer s.unlock()
	if s.err != nil {
		return
	}
	s.greetings = append(s.greetings, r)
	s.settle()
	if len(s.greetings) != 1 { // they are answered, or the timer of the first is that of all
		return
	}
	s.greetingTimer = time.AfterFunc(memoryWait, func() {
		s.mu.Lock()
		defer s.unlock()
		if s.err == nil {
			s.answerInitialize()
		}
	})
}

// answerInitialize answers each initialize of the client with what is known of the members now.
func (s *session) answerInitialize() {
	greetings := s.greetings
	s.greetings = nil
	if s.greetingTimer != nil {
		s.greetingTimer.Stop()
	}
	for _, r := range greetings {
		var all []said
		for _, l := range s.links {
			if l.state != gone && l.mayGet(r) {
				all = append(all, said{l.m.Name, l.said})
			}
		}
		requested, _ := rawjson.MemberText(r.m.Params(), "protocolVersion")
		s.answer(r.number, declare(s.serverInfo(), s.setup.opts.Search, s.setup.several(), requested, all))
	}
}

// replace gives the session other members, and the client what follows from that.
func (s *session) replace(setup *setup) {
	s.mu.Lock()
	defer s.unlock()
	if s.err == nil && s.setup != setup {
		s.arrange(setup)
	}
}

// arrange gives the session the members of a setup that its client may use now. Links to members that stay stay. What
// the client may not use ends at once; a member that has left answers what it has.
func (s *session) arrange(setup *setup) {
	before := s.links
	s.setup, s.links, s.current = setup, nil, nil
	ends := make(map[*link]linkEvent) // of links that do not stay
	for _, l := range before {
		ends[l] = remove
	}
	for _, m := range setup.members {
		l := &link{s: s, m: m}
		at := slices.IndexFunc(before, func(l *link) bool { return l.state != gone && l.m.isSame(m) })
		switch {
		case at >= 0 && m.may(s.ctx):
			l = before[at]
			l.m = m
			delete(ends, l)
		case at >= 0:
			ends[before[at]] = forbid
		}
		s.links = append(s.links, l)
	}
	for _, l := range before {
		if event, ok := ends[l]; ok {
			l.event(event, merge.Tools)
		}
	}
	s.endSubscriptions()
	if s.params != nil {
		for _, l := range s.links {
			if l.state == unopened {
				l.openIfAllowed()
			}
		}
	}
	s.changed()
}

// recheck opens the links to members that the client may use now and could not before, and ends those to others.
func (s *session) recheck() {
	s.mu.Lock()
	defer s.unlock()
	differs := func(l *link) bool { return l.m.may(s.ctx) == (l.state == gone) }
	if s.err == nil && s.params != nil && slices.ContainsFunc(s.links, differs) {
		s.arrange(s.setup)
	}
}

// openIfAllowed opens a link, if the client may use its member.
func (l *link) openIfAllowed() {
	if l.m.may(l.s.ctx) {
		l.event(open, merge.Tools)
	} else {
		l.event(forbid, merge.Tools)
	}
}

// only returns the link to the only member of a view of one; nil if there are several, or its client may not use it.
func (s *session) only() *link {
	if s.setup.several() || s.links[0].state == gone {
		return nil
	}
	return s.links[0]
}

// Push sets the client.
func (s *session) Push(receive func(msg []byte, err error)) {
	s.PushFor(func(msg []byte, _ jsonrpc.ID, err error) { receive(msg, err) })
}

// PushFor sets the client. receive also gets the request that a message answers or came with; empty if that is unknown,
// null if it came with none.
func (s *session) PushFor(receive func(msg []byte, request jsonrpc.ID, err error)) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.receive = receive
}

// Recv fails: a session pushes.
func (s *session) Recv() ([]byte, error) {
	return nil, errors.New("the session of a view pushes its messages")
}

// Close ends the session, and its connections to the members.
func (s *session) Close() error {
	s.mu.Lock()
	if s.err != nil {
		s.mu.Unlock()
		return nil
	}
	s.err = jsonrpc.ErrClosed
	for _, w := range s.waiting {
		w.timer.Stop()
	}
	for _, timer := range []*time.Timer{s.noticing, s.greetingTimer} {
		if timer != nil {
			timer.Stop()
		}
	}
	var conns []*conn
	for _, l := range slices.AppendSeq(slices.Clone(s.links), maps.Keys(s.leaving)) {
		l.endDial()
		if l.conn != nil {
			conns = append(conns, l.conn)
			close(l.conn.over)
			l.conn = nil
			l.stopPaces()
			l.stopLevelTimer()
		}
	}
	clear(s.waiting)
	clear(s.open)
	clear(s.asksFor)
	clear(s.own)
	clear(s.asked)
	receive := s.receive
	s.unlock()
	s.view.forget(s)
	for _, stop := range s.unfollow {
		stop()
	}
	for _, c := range conns {
		_ = c.Close() // how it ended does not matter any more
	}
	if receive != nil {
		receive(nil, "", jsonrpc.ErrClosed)
	}
	return nil
}
