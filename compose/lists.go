package compose

import (
	"bytes"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/mcp-sse/mcp-sse/internal/asker"
	"github.com/mcp-sse/mcp-sse/internal/clients"
	"github.com/mcp-sse/mcp-sse/internal/mcp"
	"github.com/mcp-sse/mcp-sse/internal/merge"
	"github.com/mcp-sse/mcp-sse/jsonrpc"
)

const (
	// maxWait bounds how long a list or a call waits for members.
	maxWait = 5 * time.Second
	// maxWaiting bounds the lists and calls of a session that wait.
	maxWaiting = 256
	// changesTogether is how long changes of lists are collected before the client is told of them.
	changesTogether = 250 * time.Millisecond
)

// waiter is a request that waits for lists of members, or for the answer of its member to the level of log messages.
type waiter struct {
	request
	purpose purpose
	kind    merge.Kind // of the list, unless it waits for its route
	timer   *time.Timer
}

// purpose is what a waiter waits for.
type purpose uint8

const (
	toRoute  purpose = iota // its route, or the answer to the level
	toList                  // a list, to answer with that
	toFind                  // the tools, to find some
	toListen                // a list, of whose changes the client is told from then on; there is no request
)

// newest returns the result of all lists that are known now.
func (s *session) newest() *result {
	if s.current == nil {
		s.current = s.build(s.input(func(*link) bool { return true }))
	}
	return s.current
}

// newestFor is newest without the lists of members that may not get a request.
func (s *session) newestFor(r request) *result {
	if !s.withholds(r) {
		return s.newest()
	}
	return s.build(s.input(func(l *link) bool { return l.mayGet(r) }))
}

// input returns what a result depends on: the rules, and the lists of those links that has reports.
func (s *session) input(has func(l *link) bool) merge.Input {
	in := s.setup.input()
	for i, l := range s.links {
		if has(l) {
			in.Members[i].Lists = l.lists
		}
	}
	return in
}

// build returns the result of lists. It makes none that warm has made.
func (s *session) build(in merge.Input) *result {
	r, isNew := s.view.build(in, s.setup)
	if isNew {
		log := s.log()
		s.later(func() { s.view.logResult(log, r.Result) })
	}
	return r
}

// warm makes the newest result, and that of a request, while mu is not held, if they are not known, so that newest and
// newestFor find them: the globs of rules are compared with up to 10,000 names of each member. It returns the setup.
func (s *session) warm(of request) *setup {
	s.mu.Lock()
	setup, log := s.setup, s.log()
	var missing []merge.Input
	if s.err == nil && s.current == nil {
		missing = append(missing, s.input(func(*link) bool { return true }))
	}
	if s.err == nil && s.withholds(of) {
		missing = append(missing, s.input(func(l *link) bool { return l.mayGet(of) }))
	}
	s.mu.Unlock()
	for _, in := range missing {
		r, isNew := s.view.build(in, setup)
		if isNew {
			s.view.logResult(log, r.Result)
		}
		if r.search != nil {
			r.pages[merge.Tools]() // sameList reads it
		}
	}
	return setup
}

// whenWarm has f called, with mu held, when the newest result is made, and that of a request.
func (s *session) whenWarm(of request, f func()) {
	s.later(func() {
		s.warm(of)
		s.mu.Lock()
		defer s.unlock()
		if s.err == nil {
			s.newest()
			f()
		}
	})
}

// after is time.AfterFunc. It calls f with mu held, when the newest result is made.
func (s *session) after(d time.Duration, f func()) *time.Timer {
	return time.AfterFunc(d, func() {
		s.warm(request{})
		s.mu.Lock()
		defer s.unlock()
		f()
	})
}

// changed is called when a list of a member is another one. The result of all lists is made if something needs it.
func (s *session) changed() {
	s.current = nil
	follows := func() {
		s.settle()
		s.noticeChanges()
	}
	if s.needsNewest() {
		s.whenWarm(request{}, follows)
	} else {
		follows()
	}
}

// needsNewest reports whether a change of a list needs the newest result at once: to tell what differs, or for a
// request that waits for its route. A list that waits needs it when it need not wait any more.
func (s *session) needsNewest() bool {
	for kind := range merge.Kinds {
		if s.noticed[kind] != nil {
			return true
		}
	}
	return s.routesWait()
}

// routesWait reports whether a request waits for its route.
func (s *session) routesWait() bool {
	for _, w := range s.waiting {
		if w.purpose == toRoute {
			return true
		}
	}
	return false
}

// want has the members read a list that nobody has wanted so far.
func (s *session) want(kind merge.Kind) {
	s.wants[kind] = true
	for _, l := range s.links {
		if l.lists[kind] == nil {
			l.event(wanted, kind)
		}
	}
}

// listing answers a request for a list, or has it wait.
func (s *session) listing(r request, kind merge.Kind) {
	s.want(kind)
	if at := r.m.Param("cursor"); at.Value != nil && string(at.Value) != "null" {
		s.whenWarm(r, func() { s.answerPage(r, kind, at) })
		return
	}
	w := &waiter{request: r, purpose: toList, kind: kind}
	if !s.mustWait(w) {
		s.whenWarm(r, func() { s.answerList(r, kind) })
		return
	}
	s.wait(w)
}

// mustWait reports whether a request has to wait for a member. A member that has been waited for in vain costs no
// other client anything: see View.noteLate.
func (s *session) mustWait(w *waiter) bool {
	if w.purpose == toRoute {
		to, fault, wait := s.route(w.request)
		return wait || fault == nil && to.link.awaitsLevel(w.request)
	}
	for _, l := range s.links {
		if l.pending(w.kind) && !l.isSlow() {
			return true
		}
	}
	return false
}

// wait keeps a request until its members have answered, or its time is up.
func (s *session) wait(w *waiter) {
	if len(s.waiting) >= maxWaiting {
		tooMany := fmt.Sprintf("over %d requests wait for the servers of this view", maxWaiting)
		s.refuse(w.number, jsonrpc.ReasonError(tooMany, "gate_full", true))
		return
	}
	s.waiting[w.number] = w
	patience := maxWait
	if w.purpose == toList {
		patience = s.patience()
	}
	w.timer = s.after(patience, func() {
		if s.waiting[w.number] == w {
			s.giveUp(w, patience)
		}
	})
}

// patience returns how long a list may wait now: three quarters of the patience that its client is known to have, from
// the opening of the connection on.
func (s *session) patience() time.Duration {
	client, known := clients.Named(s.clientName)
	if !known || client.Patience == 0 {
		return maxWait
	}
	return max(0, min(maxWait, client.Patience*3/4-time.Since(s.opened)))
}

// giveUp ends the wait of a request whose time is up, and notes the members for whose lists it has waited.
func (s *session) giveUp(w *waiter, waited time.Duration) {
	kinds := []merge.Kind{w.kind}
	if w.purpose == toRoute {
		kinds = s.kindsFor(w.request)
	}
	for _, l := range s.links {
		if slices.ContainsFunc(kinds, l.pending) {
			l.isLate(kinds, maxWait-waited)
		}
	}
	s.goOn(w)
}

// isLate notes that a request has waited for lists of the member in vain. For other sessions it is late only if the
// lists do not come within rest: a client of little patience must not take from others what they would wait for.
func (l *link) isLate(kinds []merge.Kind, rest time.Duration) {
	s := l.s
	switch {
	case rest <= 0:
		s.view.noteLate(l.m.Name)
	case !l.late:
		time.AfterFunc(rest, func() {
			s.mu.Lock()
			defer s.unlock()
			if s.err == nil && slices.ContainsFunc(kinds, l.pending) {
				s.view.noteLate(l.m.Name)
			}
		})
	}
	l.late = true
}

// isSlow reports whether no list, and no request by a URI, of this session waits for the member.
func (l *link) isSlow() bool { return l.late || l.s.view.isKnownToBeSlow(l.m.Name) }

// kindsFor returns the lists that a request by a URI waits for: else each such request would wait for a member that
// hangs. A request by a name waits for the member whose prefix it has, which costs no other request anything.
func (s *session) kindsFor(r request) []merge.Kind {
	p, ok := placeOf(r.m)
	if !ok || p.at[len(p.at)-1] != "uri" {
		return nil
	}
	return []merge.Kind{merge.Tools, merge.Resources, merge.Templates}
}

// goOn answers a request that has waited, or sends it to its member.
func (s *session) goOn(w *waiter) {
	delete(s.waiting, w.number)
	w.timer.Stop()
	switch w.purpose {
	case toRoute:
		s.forward(w.request)
	case toList:
		s.whenWarm(w.request, func() { s.answerList(w.request, w.kind) })
	case toFind:
		s.whenWarm(w.request, func() { s.answerFind(w.request) })
	case toListen:
		s.whenWarm(w.request, func() { s.follow(w.kind) })
	}
}

// settle lets those requests go on that need not wait any more, in the order of their numbers: at once, or when the
// newest result is made, if one waits for its route.
func (s *session) settle() {
	if s.err != nil {
		return
	}
	if len(s.greetings) > 0 && !slices.ContainsFunc(s.links, (*link).answersAtOnce) {
		s.answerInitialize()
	}
	if s.current == nil && s.routesWait() {
		s.whenWarm(request{}, s.settle)
		return
	}
	for _, number := range slices.Sorted(maps.Keys(s.waiting)) {
		if w := s.waiting[number]; w != nil && !s.mustWait(w) {
			s.goOn(w)
		}
	}
}

// answerList answers with the first page of the newest list. If no member is withheld from the request, the client then
// has been told that list.
func (s *session) answerList(r request, kind merge.Kind) {
	now := s.newestFor(r)
	if now == s.newest() {
		s.told[kind], s.noticed[kind] = now, now
	}
	receive := s.receive
	s.later(func() { // a page may have a MiB, or be about thousands of tools
		page := now.pages[kind]().pages[0]
		if a := asker.FromContext(s.ctx); kind == merge.Tools && now.search != nil && a != nil && a.Allows != nil {
			page = listOfSearch(now, a.Allows)
		}
		id := jsonrpc.NumberID(r.number)
		receive(jsonrpc.NewResult(id, page), id, nil)
	})
}

// answerPage answers with a further page of the list that the client reads, if the client may still have all of that,
// or of the list that the request would get now. A cursor is of a list with all its entries, so a reload that changes
// none of them ends no cursor.
func (s *session) answerPage(r request, kind merge.Kind, at jsonrpc.Place) {
	lists := []*result{s.newestFor(r)}
	if told := s.told[kind]; told != nil && s.mayHave(r, told, kind) {
		lists = append(lists, told)
	}
	receive := s.receive
	s.later(func() { // the pages of the newest list may not be cut yet
		cursor, isText := at.Text()
		id := jsonrpc.NumberID(r.number)
		for _, list := range lists {
			pages := list.pages[kind]()
			if page := pages.page(cursor); page != nil && isText && !at.Ambiguous {
				receive(jsonrpc.NewResult(id, page), id, nil)
				return
			}
		}
		unknown := jsonrpc.Errorf(jsonrpc.CodeInvalidParams, "unknown cursor: the list has changed, begin again")
		receive(jsonrpc.NewError(id, unknown), id, nil)
	})
}

// mayHave reports whether the answer to a request may have all of a list: its rules are those of now, and no member of
// which it has entries has left or is withheld.
func (s *session) mayHave(r request, list *result, kind merge.Kind) bool {
	if list.setup != s.setup {
		return false
	}
	member := ""
	for _, e := range list.Lists[kind] { // those of a member are next to each other
		if e.Member == member {
			continue
		}
		member = e.Member
		if l := s.linkTo(member); l == nil || !l.mayGet(r) {
			return false
		}
	}
	return true
}

// changedList is a notification that a list is another one, with the kinds of lists that it is about.
type changedList struct {
	method string
	kinds  []merge.Kind
}

var changedLists = []changedList{
	{mcp.MethodToolsChanged, []merge.Kind{merge.Tools}},
	{mcp.MethodPromptsChanged, []merge.Kind{merge.Prompts}},
	{mcp.MethodResourcesChanged, []merge.Kind{merge.Resources, merge.Templates}},
}

// listen has the client told of changes of the lists that a notification is about, whether it has listed them or not.
func (s *session) listen(method string) {
	s.mu.Lock()
	defer s.unlock()
	for _, c := range changedLists {
		if c.method != method {
			continue
		}
		for _, kind := range c.kinds {
			s.listens[kind] = true
			if s.params != nil && s.err == nil {
				s.awaitFirst(kind)
			}
		}
	}
}

// awaitFirst has the client told of changes of a list from then on when that would be answered: what members list
// before is no change.
func (s *session) awaitFirst(kind merge.Kind) {
	s.want(kind)
	w := &waiter{request: request{number: s.nextNumber()}, purpose: toListen, kind: kind}
	if len(s.waiting) < maxWaiting && s.mustWait(w) {
		s.wait(w)
		return
	}
	s.whenWarm(w.request, func() { s.follow(kind) })
}

// follow has the client told of changes of a list from now on.
func (s *session) follow(kind merge.Kind) {
	if s.noticed[kind] == nil {
		s.noticed[kind] = s.newest()
	}
}

// noticeChanges tells the client of lists that are others than those that it knows, a little later and all at once.
func (s *session) noticeChanges() {
	differs := func(c changedList) bool { return s.differs(c.kinds) }
	if s.noticing != nil || s.err != nil || !slices.ContainsFunc(changedLists, differs) {
		return
	}
	s.noticing = s.after(changesTogether, func() {
		s.noticing = nil
		if s.err != nil {
			return
		}
		for _, c := range changedLists {
			if !s.differs(c.kinds) {
				continue
			}
			for _, kind := range c.kinds {
				if s.noticed[kind] != nil {
					s.noticed[kind] = s.newest()
				}
			}
			s.tell(jsonrpc.NewNotification(c.method, nil))
		}
	})
}

// differs reports whether a list is another one than the client knows. A client that has neither listed a kind nor
// listens to it knows none.
func (s *session) differs(kinds []merge.Kind) bool {
	for _, kind := range kinds {
		if s.noticed[kind] != nil && !sameList(s.noticed[kind], s.newest(), kind) {
			return true
		}
	}
	return false
}

// sameList reports whether two results have the same list.
func sameList(a, b *result, kind merge.Kind) bool {
	if kind == merge.Tools && (a.search != nil || b.search != nil) {
		return bytes.Equal(a.pages[kind]().pages[0], b.pages[kind]().pages[0])
	}
	return a == b || slices.EqualFunc(a.Lists[kind], b.Lists[kind], func(x, y merge.Entry) bool {
		return x.Origin == y.Origin && bytes.Equal(x.Raw, y.Raw)
	})
}
