package compose

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/mcp-sse/mcp-sse/internal/asker"
	"github.com/mcp-sse/mcp-sse/internal/clip"
	"github.com/mcp-sse/mcp-sse/internal/mcp"
	"github.com/mcp-sse/mcp-sse/internal/merge"
	"github.com/mcp-sse/mcp-sse/internal/rawjson"
	"github.com/mcp-sse/mcp-sse/internal/selection"
	"github.com/mcp-sse/mcp-sse/jsonrpc"
)

// request is a request of the client.
type request struct {
	m      *jsonrpc.Message
	number int64 // its id, and that under which the member gets it

	beside   *asker.Request // what came beside its message; nil: nothing
	readOnly bool           // it came by read_tool, and may call what only reads
	judged   *judged        // its URI, if it has one that rules may leave out; nil: it has not
}

// newRequest returns a request of the client.
func newRequest(m *jsonrpc.Message, number int64) request {
	return request{m: m, number: number, beside: asker.RequestFrom(m.Context)}
}

// destination is where a request leads.
type destination struct {
	link *link
	own  string        // takes the place of the name in the request
	at   jsonrpc.Place // where that name stands; zero: the request goes as it is

	similar func() string // what the error of a request that leads nowhere adds; nil: nothing
}

// row is how a method is routed. Either the view answers, or the request goes to the member that a name leads to.
type row struct {
	answer func(s *session, r request)
	by     []place

	needs   string          // the capability without which a member does not get the request; empty: none
	instead json.RawMessage // the result that the client gets then
}

// isKnown reports whether the table has the row.
func (r row) isKnown() bool { return r.answer != nil || r.by != nil }

// place says where params have a name, how its member is found, and which error an unknown name gets.
type place struct {
	at      []string
	find    func(s *session, r request, name string) (to destination, fault *jsonrpc.Error, wait bool)
	unknown func(name string) *jsonrpc.Error
}

// routes is the table of docs/design/views.md: what becomes of each method of the client.
var routes map[string]row

func init() { // the rows and the functions that they name refer to each other
	uri := []string{"uri"}
	routes = map[string]row{
		mcp.MethodInitialize:   {answer: (*session).initialize},
		mcp.MethodPing:         {answer: func(s *session, r request) { s.answer(r.number, []byte(`{}`)) }},
		mcp.MethodSetLevel:     {answer: (*session).setLevel},
		mcp.MethodUnsubscribe:  {answer: (*session).unsubscribe},
		mcp.MethodCallTool:     {by: []place{{[]string{"name"}, named(merge.Tools), unknown("tool")}}},
		mcp.MethodGetPrompt:    {by: []place{{[]string{"name"}, named(merge.Prompts), unknown("prompt")}}},
		mcp.MethodReadResource: {by: []place{{uri, resource, unknownResource}}},
		mcp.MethodSubscribe:    {by: []place{{uri, subscribe, unknownResource}}},
		mcp.MethodComplete: {by: []place{
			{[]string{"ref", "name"}, named(merge.Prompts), unknown("prompt")},
			{[]string{"ref", "uri"}, template, unknown("template")},
		}, needs: "completions", instead: []byte(`{"completion":{"values":[]}}`)},
	}
	for _, method := range []string{
		mcp.MethodGetTask, mcp.MethodTaskResult, mcp.MethodCancelTask, mcp.MethodUpdateTask,
	} {
		routes[method] = row{by: []place{{[]string{"taskId"}, task, unknown("task")}}}
	}
	for kind := range merge.Kinds {
		routes[kind.Method()] = row{answer: func(s *session, r request) { s.listing(r, kind) }}
	}
}

// placeOf returns the place of the name in a request. It reports false if there is none, or more than one: a server
// could take another one than the rules.
func placeOf(m *jsonrpc.Message) (p place, ok bool) {
	for _, one := range routes[m.Method].by {
		if m.Param(one.at...).Value == nil {
			continue
		}
		if ok {
			return place{}, false
		}
		p, ok = one, true
	}
	return p, ok
}

// route returns where a request leads, or the fault. wait reports whether a list that is on its way may change that.
func (s *session) route(r request) (to destination, fault *jsonrpc.Error, wait bool) {
	row := routes[r.m.Method]
	if !row.isKnown() {
		if !s.passes(r) {
			return to, jsonrpc.Errorf(jsonrpc.CodeMethodNotFound, "method not found"), false
		}
		return s.atStart(destination{link: s.links[0]}, nil, false)
	}
	p, ok := placeOf(r.m)
	if !ok {
		var all []string
		for _, one := range row.by {
			all = append(all, "params."+strings.Join(one.at, "."))
		}
		return to, jsonrpc.Errorf(jsonrpc.CodeInvalidParams, "there must be %s", strings.Join(all, " or ")), false
	}
	at := r.m.Param(p.at...)
	name, ok := at.Text()
	switch {
	case at.Ambiguous:
		fault = jsonrpc.Errorf(jsonrpc.CodeInvalidRequest, "params.%s is ambiguous", strings.Join(p.at, "."))
	case !ok:
		fault = jsonrpc.Errorf(jsonrpc.CodeInvalidParams, "params.%s must be a string", strings.Join(p.at, "."))
	default:
		to, fault, wait = p.find(s, r, name)
		to.at = at
		switch {
		case fault == nil && !to.link.mayGet(r), fault != nil && s.withholds(r):
			to, fault = destination{}, p.unknown(name) // the other error may name what the client must not know
		case fault == nil && r.readOnly:
			fault = s.mayRead(to)
		}
	}
	return s.atStart(to, fault, wait)
}

// passes reports whether the only member of a view gets requests of a method without a row. A request to listen names
// resources, which no rule has judged.
func (s *session) passes(r request) bool {
	l := s.only()
	return l != nil && l.mayGet(r) && (r.m.Method != mcp.MethodListen || !l.m.rules.Restricts(selection.Resources))
}

// atStart has a request wait whose member has not answered initialize over its new connection.
func (s *session) atStart(to destination, fault *jsonrpc.Error, wait bool) (destination, *jsonrpc.Error, bool) {
	if fault == nil && to.link.state == asking {
		return destination{}, to.link.unavailable(), true
	}
	return to, fault, wait
}

// named returns the function that finds the member of a tool or prompt: by the list that the client was shown, by the
// newest one, and by a server's own name if only one has it. A name that the client was shown leads to no other member,
// also if its own has left or does not have it any more: the call, with its arguments, is not meant for that one.
func named(kind merge.Kind) func(s *session, _ request, name string) (destination, *jsonrpc.Error, bool) {
	word := strings.TrimSuffix(kind.Member(), "s")
	return func(s *session, _ request, name string) (destination, *jsonrpc.Error, bool) {
		s.want(kind)
		seen := s.seen(kind)
		for _, r := range seen {
			o, ok := r.Named(kind, name)
			if !ok {
				continue
			}
			l := s.linkOf(kind, o)
			if l == nil && r == s.told[kind] {
				return s.unknown(kind, word, name)
			}
			if l != nil && s.isOffered(kind, name) {
				if r != s.told[kind] && s.mayBelongTo(kind, name, l) {
					return s.unknown(kind, word, name)
				}
				return destination{link: l, own: o.Own}, nil, false
			}
		}
		if s.mayBelongTo(kind, name, nil) {
			return s.unknown(kind, word, name)
		}
		bare := make(map[string]destination) // by the final name
		for _, r := range seen {
			for _, final := range r.Bare(kind, name) {
				o, _ := r.Named(kind, final)
				if l := s.linkOf(kind, o); l != nil {
					bare[final] = destination{link: l, own: o.Own}
				}
			}
		}
		maps.DeleteFunc(bare, func(final string, _ destination) bool { return !s.isOffered(kind, final) })
		names := slices.Sorted(maps.Keys(bare))
		switch len(names) {
		case 0:
			return s.unknown(kind, word, name)
		case 1:
			return bare[names[0]], nil, false
		default:
			fault := unknown(word)(name)
			fault.Message += ": there are " + strings.Join(names, ", ")
			return destination{}, fault, false
		}
	}
}

// mayBelongTo reports whether a member without a list may have a name by its prefix, so that no other one gets the
// call. has is the member that has the name, and members after it are not asked: the first in the order gets a name.
func (s *session) mayBelongTo(kind merge.Kind, name string, has *link) bool {
	for _, l := range s.links {
		if l == has {
			return false
		}
		if l.m.prefix != "" && s.mayOwn(l, kind, name) {
			return true
		}
	}
	return false
}

// unknown returns what makes the error of a name that nobody has. word says what is called so. A client has written the
// name: the error has its beginning alone.
func unknown(word string) func(name string) *jsonrpc.Error {
	return func(name string) *jsonrpc.Error {
		return jsonrpc.Errorf(jsonrpc.CodeInvalidParams, "unknown %s %q", word, clip.Long(name))
	}
}

// seen returns the results that a name is looked for in: the list that the client was shown, and the newest one.
func (s *session) seen(kind merge.Kind) []*result {
	if told := s.told[kind]; told != nil {
		return []*result{told, s.newest()}
	}
	return []*result{s.newest()}
}

// isOffered reports whether the client has not narrowed away a tool by its final name. The gateway in front knows only
// the name that a call has, which may be a server's own, or that of a tool of the view.
func (s *session) isOffered(kind merge.Kind, final string) bool {
	a := asker.FromContext(s.ctx)
	return kind != merge.Tools || a == nil || a.Allows == nil || a.Allows(final)
}

// linkOf returns the link to which the origin of a tool or prompt leads; nil if its member has left, or its rules leave
// the name out now. What the newest list has, the rules have judged; without that list the hints are not known.
func (s *session) linkOf(kind merge.Kind, o merge.Origin) *link {
	l := s.linkTo(o.Member)
	if l == nil || s.newest().Has(kind, o) {
		return l
	}
	if kind == merge.Tools && l.m.rules.NeedsHints() || !l.m.rules.Name(kind.Rules(), o.Own).Allowed() {
		return nil
	}
	return l
}

// linkTo returns the link to a member; nil if it has left.
func (s *session) linkTo(member string) *link {
	for _, l := range s.links {
		if l.m.Name == member && l.state != leaving && l.state != gone {
			return l
		}
	}
	return nil
}

// unknown returns the error for a name that no list has. It names a member without a list that could own it by its
// prefix, and reports whether that list may still come.
func (s *session) unknown(kind merge.Kind, word, name string) (destination, *jsonrpc.Error, bool) {
	var without *link
	for _, l := range s.links {
		if !s.mayOwn(l, kind, name) {
			continue
		}
		isForIt := s.setup.alone || l.m.prefix != "" // else each unknown name would wait for a member that hangs
		if l.pending(kind) && (isForIt || !l.isSlow()) {
			return destination{}, l.unavailable(), true
		}
		without = l
	}
	if without != nil {
		return destination{}, without.unavailable(), false
	}
	to := destination{}
	if kind == merge.Tools && s.setup.opts.Search {
		now, offers := s.newest(), s.offering()
		to.similar = func() string { return now.near(name, offers) }
	}
	return to, unknown(word)(name), false
}

// mayOwn reports whether a final name can be that of a tool or prompt of a member whose list is not known.
func (s *session) mayOwn(l *link, kind merge.Kind, name string) bool {
	return l.lists[kind] == nil && l.state != leaving && l.state != gone &&
		(s.setup.alone || strings.HasPrefix(name, merge.FinalName(false, l.m.prefix, "")))
}

// addressed returns the message of a request as the member gets it: with the member's own name in the place of the
// name that the client has used, and without what came beside it.
func (to destination) addressed(r request) (*jsonrpc.Message, error) {
	name, _ := to.at.Text()
	isRenamed := to.at.Value != nil && name != to.own
	if !isRenamed && r.beside == nil {
		return r.m, nil
	}
	m := new(*r.m)
	if isRenamed {
		renamed, err := jsonrpc.Parse(m.WithValue(to.at, rawjson.Quote(to.own)))
		if err != nil { // it was valid before
			return nil, fmt.Errorf("address a request: %w", err)
		}
		renamed.Trace = m.Trace
		m = renamed
	}
	m.Context = asker.Before(r.m.Context)
	return m, nil
}
