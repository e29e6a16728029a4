package compose

import (
	"encoding/json"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/mcp-sse/mcp-sse/internal/mcp"
	"github.com/mcp-sse/mcp-sse/internal/rawjson"
	"github.com/mcp-sse/mcp-sse/internal/selection"
	"github.com/mcp-sse/mcp-sse/jsonrpc"
)

// The bounds of the subscriptions of a client, as on a shared session.
const (
	maxSubscriptions     = 1024
	maxSubscriptionBytes = 256 << 10
)

// levelWait bounds how long requests wait for a member to answer logging/setLevel.
const levelWait = time.Second

// subscription is a subscription of the client.
type subscription struct {
	member   string
	accepted bool // the member has said so; before that the subscription lasts as long as a request for it
}

// wish is a request to subscribe that a member has.
type wish struct{ uri, member string }

// setLevel keeps the level of log messages. Members that the client has used get it now; the others get it before their
// first request, because a level is no reason to start a server.
func (s *session) setLevel(r request) {
	level := r.m.Param("level")
	if _, ok := level.Text(); !ok || level.Ambiguous {
		s.refuse(r.number, jsonrpc.Errorf(jsonrpc.CodeInvalidParams, "params.level must be one string"))
		return
	}
	s.level = level.Value
	for _, l := range s.links {
		if l.used {
			l.sendLevel()
		}
	}
	s.answer(r.number, []byte(`{}`))
}

// sendLevel sends the level to a member that knows it. Requests to the member wait until it has answered, or levelWait
// is over: over HTTP a request may overtake the level, and what the member logs then would be lost.
func (l *link) sendLevel() {
	if l.s.level == nil || !mcp.Declares(l.said, "capabilities", "logging") {
		return
	}
	l.stopLevelTimer()
	var timer *time.Timer
	over := func() {
		if l.levelTimer == timer { // else a newer level is on its way, or the connection is over
			l.stopLevelTimer()
			l.s.settle()
		}
	}
	timer = time.AfterFunc(levelWait, func() {
		l.s.mu.Lock()
		defer l.s.unlock()
		over()
	})
	l.levelTimer = timer
	params := json.RawMessage(`{"level":` + string(l.s.level) + `}`)
	l.ask(mcp.MethodSetLevel, params, func(*jsonrpc.Message, string) { over() }) // the client has its answer
}

// stopLevelTimer has no request wait for the answer to the level.
func (l *link) stopLevelTimer() {
	if l.levelTimer != nil {
		l.levelTimer.Stop()
		l.levelTimer = nil
	}
}

// awaitsLevel reports whether a request has to wait until the member has answered the level. The end of a subscription
// does not wait: it knows its member, and is not routed again.
func (l *link) awaitsLevel(r request) bool {
	return l.levelTimer != nil && r.m.Method != mcp.MethodUnsubscribe
}

// use notes that a member gets a request of the client.
func (l *link) use() {
	if !l.used {
		l.used = true
		l.sendLevel()
	}
}

// subscribe is resource for a subscription, which the member must know.
func subscribe(s *session, r request, uri string) (destination, *jsonrpc.Error, bool) {
	to, fault, wait := resource(s, r, uri)
	if fault == nil && to.link.lacks("resources", "subscribe") && to.link.state != asking { // else it is routed again
		fault = jsonrpc.Errorf(jsonrpc.CodeMethodNotFound, "%s does not know subscriptions", to.link.m.Name)
		return destination{}, fault, false
	}
	return to, fault, wait
}

// noteWish notes a request to subscribe that a member is about to get. The subscription counts at once, because the
// client may end it before the answer.
func (s *session) noteWish(r request, to destination) *jsonrpc.Error {
	uri := to.own
	bytes := len(uri)
	for other := range s.subscribed {
		bytes += len(other)
	}
	_, again := s.subscribed[uri]
	if !again && (len(s.subscribed) >= maxSubscriptions || bytes > maxSubscriptionBytes) {
		return jsonrpc.ReasonError("the client has too many subscriptions", "too_many_subscriptions", false)
	}
	if !again {
		s.subscribed[uri] = subscription{member: to.link.m.Name}
	}
	s.asksFor[r.number] = wish{uri, to.link.m.Name}
	return nil
}

// endOpen notes that a member has a request no more. If it was one to subscribe, a subscription that was accepted
// before stays also if this one was not.
func (s *session) endOpen(number int64, accepted bool) {
	delete(s.open, number)
	w, ok := s.asksFor[number]
	if !ok {
		return
	}
	delete(s.asksFor, number)
	if accepted {
		s.subscribed[w.uri] = subscription{w.member, true}
		return
	}
	for _, other := range s.asksFor {
		if other.uri == w.uri {
			return
		}
	}
	if !s.subscribed[w.uri].accepted {
		delete(s.subscribed, w.uri)
	}
}

// dropSubscription forgets a subscription, and the requests for it: their answers do not bring it back.
func (s *session) dropSubscription(uri string) {
	delete(s.subscribed, uri)
	maps.DeleteFunc(s.asksFor, func(_ int64, w wish) bool { return w.uri == uri })
}

// unsubscribe ends a subscription at the member that has it. If there is none, there is nothing to end.
func (s *session) unsubscribe(r request) {
	at := r.m.Param("uri")
	uri, _ := at.Text()
	of, ok := s.subscribed[uri]
	l := s.linkTo(of.member)
	if !ok || at.Ambiguous || l != nil && !l.mayGet(r) {
		s.answer(r.number, []byte(`{}`))
		return
	}
	s.dropSubscription(uri)
	if l != nil && l.conn != nil {
		s.forwardTo(r, destination{link: l, own: uri})
		return
	}
	s.answer(r.number, []byte(`{}`))
}

// resubscribe subscribes again, on a new connection with a member.
func (l *link) resubscribe() {
	for _, uri := range slices.Sorted(maps.Keys(l.s.subscribed)) {
		if l.s.subscribed[uri].member == l.m.Name && l.allowsURI(uri) {
			l.askAbout(mcp.MethodSubscribe, uri)
		}
	}
}

// endSubscriptions ends the subscriptions that rules do not allow any more.
func (s *session) endSubscriptions() {
	for _, uri := range slices.Sorted(maps.Keys(s.subscribed)) {
		if l := s.linkTo(s.subscribed[uri].member); l != nil && !l.allowsURI(uri) {
			s.dropSubscription(uri)
			l.askAbout(mcp.MethodUnsubscribe, uri)
		}
	}
}

// askAbout sends a request about a subscription, to which the client has its answer.
func (l *link) askAbout(method, uri string) {
	params := json.RawMessage(`{"uri":` + string(rawjson.Quote(uri)) + `}`)
	l.ask(method, params, func(*jsonrpc.Message, string) {})
}

// allowsURI reports whether the rules of the member leave a URI in the view.
func (l *link) allowsURI(uri string) bool { return l.m.rules.Name(selection.Resources, uri).Allowed() }

// wantsUpdate reports whether the client subscribes to a resource at a member, or to one above it (MCP 2025-11-25,
// schema, ResourceUpdatedNotification).
func (s *session) wantsUpdate(member, uri string) bool {
	for subscribed, at := range s.subscribed {
		if at.member != member || !strings.HasPrefix(uri, subscribed) {
			continue
		}
		rest := uri[len(subscribed):]
		if rest == "" || strings.HasSuffix(subscribed, "/") || strings.ContainsRune("/?#", rune(rest[0])) {
			return true
		}
	}
	return false
}
