package multiplex

import (
	"bytes"
	"strings"
	"time"

	"github.com/mcp-sse/mcp-sse/internal/mcp"
	"github.com/mcp-sse/mcp-sse/internal/rawjson"
	"github.com/mcp-sse/mcp-sse/internal/wire"
	"github.com/mcp-sse/mcp-sse/jsonrpc"
	"github.com/mcp-sse/mcp-sse/metrics"
)

// A server names the request that it answers by the id. Some servers lose ids, write them
// as strings, or answer under ids of their own. This file has the table that says which
// request such an answer belongs to: [matching.verdict] is the table, the rest prepares
// what it looks at and does what it says.

// naming is which request a response names.
type naming uint8

const (
	namesRequest   naming = iota // one that the server has and has not answered
	comesWith                    // none, but it came in the HTTP response to one that the server has not answered
	comesWithOver                // none, but it came in the HTTP response to one that is over
	namesOver                    // one that is over
	namesNothing                 // none: there is no id, it is null, or the server got no request that has it
	namesOtherwise               // none: the id is a text where the server answers with numbers, or the reverse
)

// manner is how a server names its answers: the first one that it has named says so.
type manner uint8

const (
	unknownManner   manner = iota // it has named none
	noManner                      // it has given one without a name before: what it names may be printed
	byText                        // by a number in a text
	byNumber                      // by a number, so far that to initialize alone, as some servers do
	byNumberInCalls               // by a number, also those to other requests
)

// nameForm is how a response names the request that it answers.
type nameForm uint8

const (
	textName   nameForm = iota // by a number in a text
	numberName                 // by a number: initialize, or any request if the response is not valid
	callNumber                 // by a number: another request than initialize
)

// certainty is how certain it is which request an answer without a name is for.
type certainty uint8

const (
	// certain: each answer so far was named, came in the HTTP response to its request, or said that the server could
	// not read the only request that it had; and no request that the server has was given up.
	certain certainty = iota
	// someGivenUp: a request that the server has was given up, or it has answered one of several and nobody
	// knows which. Its answer may come late.
	someGivenUp
	// oneAtATime: the server has given an answer without naming it, and gets one request at a time since.
	oneAtATime
	// oneSpare: as oneAtATime, and one answer fewer is to come than there are requests out. The server has answered
	// one of several without naming it. The gateway cannot tell which, so it has abandoned them all.
	oneSpare
	// ambiguous: as someGivenUp and as oneAtATime. A late answer could be taken for that to another request.
	// The session ends at once, or, if an error without an id has made it so, with the next request that is
	// given up or the next answer without a name.
	ambiguous
)

// isSerial reports whether the server has given an answer without naming it, and gets one request at a time
// since.
func (c certainty) isSerial() bool { return c >= oneAtATime }

// hasGivenUp reports whether the server may still answer a request that was given up.
func (c certainty) hasGivenUp() bool { return c == someGivenUp || c == ambiguous }

// doubt is what changes how certain it is which request an answer is for.
type doubt uint8

const (
	answerUnnamed  doubt  = iota // the server has given an answer without naming it
	answerOfOne                  // the same, to one of several requests, all of which are abandoned for that
	requestGivenUp               // a request that the server has was given up
	spareGone                    // the server has answered as many of the abandoned requests as there were
	doubts         = iota        // how many there are
)

// afterDoubts says how certain it is after a doubt. In someGivenUp there is no answerOfOne: the session ends at
// that answer. Nor is there one once the server gets one request at a time. spareGone ends oneSpare alone.
var afterDoubts = [...][doubts]certainty{
	certain: {answerUnnamed: oneAtATime, answerOfOne: oneSpare, requestGivenUp: someGivenUp, spareGone: certain},
	someGivenUp: {
		answerUnnamed: ambiguous, answerOfOne: ambiguous, requestGivenUp: someGivenUp, spareGone: someGivenUp,
	},
	oneAtATime: {answerUnnamed: oneAtATime, answerOfOne: oneAtATime, requestGivenUp: ambiguous, spareGone: oneAtATime},
	oneSpare:   {answerUnnamed: oneSpare, answerOfOne: oneSpare, requestGivenUp: ambiguous, spareGone: oneAtATime},
	ambiguous:  {answerUnnamed: ambiguous, answerOfOne: ambiguous, requestGivenUp: ambiguous, spareGone: ambiguous},
}

// noteDoubt notes what has happened.
func (m *matching) noteDoubt(d doubt) { m.certainty = afterDoubts[m.certainty][d] }

// content is what a response says.
type content uint8

const (
	aResult content = iota
	anEmptyResult
	anError
	anUnreadError // JSON-RPC has it without an id: the server could not read a message
)

// response is what the table looks at in a response.
type response struct {
	names   naming
	content content
	// isDueEmpty says that MCP has an empty result for the oldest request that the server has. The table looks at it
	// only if the response names nothing.
	isDueEmpty bool
}

// matching is what a session knows of its server when a response comes, as far as the
// table looks at it.
type matching struct {
	isShared  bool // the session has several clients
	manner    manner
	certainty certainty
	// notices counts the notifications that the server may still answer: those that it got
	// after the last request that it has answered.
	notices int
	// out counts the requests that the server has and has not answered.
	out int
}

// verdict is what becomes of a response.
type verdict uint8

const (
	toNamed     verdict = iota // it answers the request that it names, or with which it came
	toOldest                   // it answers the oldest request; the server does not name its answers
	toOnly                     // it answers the only request
	failAll                    // it answers one of several clients' requests, nobody knows whose: all fail
	endSession                 // it answers a request that is out or one that is over: nobody knows which
	dropLate                   // its request is over
	dropNotice                 // it answers a notification
	dropNothing                // it answers nothing
	dropUnclear                // the server could not read one of several messages, and does not say which
	dropForeign                // others may have written it: the server names its answers in another way
)

// verdict decides, in the first case that fits, what becomes of a response. docs/reference/errors.md has a row for each
// case, in the same order; TestVerdictsAreTheTableOfThePage compares them. The founding rules under "Matching" and
// "Nothing crosses" in e2e/acceptance/README.md hold for every change: no case may break one of them.
func (m matching) verdict(r response) verdict {
	isError := r.content == anError || r.content == anUnreadError
	isEmpty := r.content == anEmptyResult
	switch {
	case r.names == namesRequest || r.names == comesWith:
		return toNamed
	case r.names == namesOtherwise:
		return dropForeign
	case r.names == namesOver && m.manner != unknownManner, r.names == comesWithOver:
		return dropLate
	case m.notices > 0 && (isError || isEmpty && !r.isDueEmpty):
		return dropNotice
	case m.out == 0:
		return dropNothing
	case m.certainty == oneSpare:
		return toOldest
	case m.isShared && m.manner == byNumberInCalls:
		return dropForeign
	case r.content == anUnreadError && m.out == 1 && !(m.isShared && m.certainty.hasGivenUp()):
		return toOnly
	case r.content == anUnreadError:
		return dropUnclear
	case m.certainty.hasGivenUp():
		return endSession
	case m.isShared && m.out > 1 && m.certainty == certain:
		return failAll
	}
	return toOldest
}

// takes reports whether a message may be the server's own, by the form in which it came. Servers print what
// others wrote, such as the words of another client:
//
//	form        | own session                               | shared session
//	------------|-------------------------------------------|-------------------------
//	Plain       | everything                                | everything
//	InList      | everything with 2025-03-26, which has batches; else nothing
//	AfterPrompt | a response to a request that is out       | nothing
//	Broken      | a response to a request that is out       | nothing
//	AfterWords  | nothing                                   | nothing
//	all         | the response to initialize: no text of another client has reached the server before
//
// m and err are what Parse returned.
func (s *Session) takes(a arrival, m *jsonrpc.Message, err error) bool {
	if a.form == wire.Plain {
		return true
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	t := &s.table
	var id jsonrpc.ID
	switch {
	case a.form == wire.InList && t.batches:
		return true
	case err != nil:
		id, _, _ = wire.AnsweredID(a.data)
	case m.Kind == jsonrpc.Response:
		id = m.ID
	}
	e, names := t.find(id)
	if names != namesRequest {
		return false
	}
	mayBeOwn := a.form == wire.AfterPrompt || a.form == wire.Broken
	return e.method == mcp.MethodInitialize || !s.opts.Shared && mayBeOwn
}

// batchVersion is the one version of MCP that has batches.
const batchVersion = "2025-03-26"

// matched is what a session does with a response.
type matched struct {
	verdict verdict
	e       *entry   // the request that it answers, which is no longer in the table; nil: none
	failed  []*entry // the requests to fail, because it may answer any of them
	by      string   // one of the metrics.Matched constants
	learned bool     // it is the first that the server has not named
}

// match decides what becomes of a response, and changes the table accordingly. related is
// the id of the request that it came with, empty if unknown.
func (t *table) match(m *jsonrpc.Message, related jsonrpc.ID) matched {
	e, names := t.find(m.ID)
	r := response{names: names, content: contentOf(m)}
	if n, _ := requestNumber(m.ID); n == firstID && e == nil && answersInitialize(m) {
		r.names = namesOver
	}
	by := metrics.MatchedFIFO
	isLate := r.names == namesOver && t.manner != unknownManner
	var with *entry // the request with which it came, if it names none itself
	if r.names != namesRequest {
		with = t.related(related)
	}
	switch {
	case r.names == namesRequest:
		by = metrics.MatchedID
		name := nameFormOf(m.ID, e.method != mcp.MethodInitialize)
		if name == textName {
			by = metrics.MatchedString
		}
		t.manner = t.manner.after(name, t.certainty.isSerial())
	case with != nil && with.sent() && !isLate:
		e, r.names = with, comesWith
	case t.isOver(related):
		r.names = comesWithOver
	default:
		e = t.oldestOut()
		r.isDueEmpty = e != nil && e.wantsEmpty()
	}
	f := matched{verdict: t.verdict(r), by: metrics.MatchedOrphan}
	wasSerial := t.certainty.isSerial()
	switch f.verdict {
	case toNamed, toOnly:
		f.e, f.by = e, by
	case toOldest:
		f.e, f.by = e, by
		t.noteDoubt(answerUnnamed)
	case failAll:
		f.failed = t.releaseAll()
		t.noteDoubt(answerOfOne)
	case endSession:
		t.noteDoubt(answerUnnamed)
	case dropNotice:
		t.notices--
	case dropUnclear:
		t.noteDoubt(requestGivenUp) // one of them was answered, and will wait for its timeout
	}
	f.learned = !wasSerial && t.certainty.isSerial()
	if f.e == nil {
		return f
	}
	t.remove(f.e)
	if f.e.method == mcp.MethodInitialize {
		version, _ := rawjson.MemberText(m.Result(), "protocolVersion")
		t.batches = version == batchVersion
	}
	if r.content != anEmptyResult || f.verdict == toNamed { // an empty one may be that of a notification just as well
		t.answeredUpTo(f.e)
	}
	return f
}

// after returns the manner of a server once it has named an answer. unnamed says that it has given one without a name
// before: it may have printed that answer, or the one that comes now.
func (m manner) after(name nameForm, unnamed bool) manner {
	switch {
	case m == unknownManner && unnamed:
		return noManner
	case m == unknownManner && name == textName:
		return byText
	case m == unknownManner && name == numberName:
		return byNumber
	case m == unknownManner, m == byNumber && name == callNumber && !unnamed:
		return byNumberInCalls
	}
	return m
}

// firstID is the id of the first request of a session, which is initialize.
const firstID = 1

// find returns the request in the table that has an id, nil if there is none, and says what the id names.
//
// A server that names its answers by numbers names nothing by a text, and one that names them by texts names nothing by
// a number. Such a response may be printed: the parameters of a URL and the fields of a form are texts. Once the first
// request is over, its id names nothing, unless the response is one to initialize: some servers answer every request
// under the id 1.
func (t *table) find(id jsonrpc.ID) (e *entry, names naming) {
	n, isText := requestNumber(id)
	e = t.byID[n]
	switch {
	case isText && t.manner >= byNumber, !isText && n > 0 && t.manner == byText:
		return nil, namesOtherwise
	case e != nil && e.sent():
		return e, namesRequest
	case e == nil && n > firstID && n <= t.lastID:
		return nil, namesOver
	}
	return e, namesNothing
}

// isOver reports whether an id on the wire is that of a request that is over.
func (t *table) isOver(id jsonrpc.ID) bool {
	n, _ := requestNumber(id)
	return n > 0 && n <= t.lastID && t.byID[n] == nil
}

// requestNumber returns the number that the id of a response stands for, 0 if it stands
// for none: it may be the number itself, the same with a fraction of zeros, or its decimal
// in a string.
func requestNumber(id jsonrpc.ID) (n int64, isText bool) {
	if n, ok := rawjson.Integer([]byte(id)); ok {
		return n, false
	}
	if text, ok := rawjson.Text([]byte(id)); ok {
		n, _ := rawjson.Integer([]byte(text))
		return n, true
	}
	if whole, fraction, ok := strings.Cut(string(id), "."); ok && strings.Trim(fraction, "0") == "" {
		n, _ = rawjson.Integer([]byte(whole))
	}
	return n, false
}

// nameFormOf returns how a response names its request by its id. isCall says that the response is valid, and the
// request is not initialize.
func nameFormOf(id jsonrpc.ID, isCall bool) nameForm {
	_, isText := requestNumber(id)
	switch {
	case isText:
		return textName
	case isCall:
		return callNumber
	}
	return numberName
}

// answersInitialize reports whether a response is the result of initialize.
func answersInitialize(m *jsonrpc.Message) bool {
	_, ok := rawjson.Member(m.Result(), "protocolVersion")
	return ok
}

// contentOf returns the kind of what a response has, by which an answer without an id is told apart: {} is an empty
// result, code -32700 or -32600 an error about a message that the server could not read.
func contentOf(m *jsonrpc.Message) content {
	if fault := m.Error(); fault != nil {
		code, _ := rawjson.Member(fault, "code")
		if string(code) == "-32700" || string(code) == "-32600" {
			return anUnreadError
		}
		return anError
	}
	result := bytes.TrimSpace(m.Result())
	inside, isObject := bytes.CutPrefix(result, []byte("{"))
	if string(result) == "null" || isObject && string(bytes.TrimSpace(inside)) == "}" {
		return anEmptyResult
	}
	return aResult
}

// wantsEmpty reports whether MCP has an empty result for the request.
func (e *entry) wantsEmpty() bool {
	switch e.method {
	case mcp.MethodPing, mcp.MethodSetLevel, mcp.MethodSubscribe, mcp.MethodUnsubscribe:
		return true
	}
	return false
}

// noteNotice notes that the server gets a notification, which some servers answer.
func (t *table) noteNotice() {
	t.notices++
	t.noticedAt = t.sends
}

// answeredUpTo notes that the server has answered a request: it answers no notification
// any more that it got before.
func (t *table) answeredUpTo(e *entry) {
	if e.order > t.noticedAt {
		t.notices = 0
	}
}

// oldestOut returns the oldest request that the server has and has not answered, nil if
// there is none.
func (t *table) oldestOut() (oldest *entry) {
	for _, e := range t.byID {
		if e.sent() && (oldest == nil || e.id < oldest.id) {
			oldest = e
		}
	}
	return oldest
}

// onlyOut returns the one request that the server has; nil if there are others.
func (t *table) onlyOut() *entry {
	if t.out != 1 {
		return nil
	}
	return t.oldestOut()
}

// release takes a request that the server has from its caller, who can then answer or repeat it. An entry of nobody
// stays in its place until the server has answered: so the answer is not taken for that to another request.
func (t *table) release(e *entry) {
	if !t.remove(e) {
		return
	}
	nobodys := &entry{id: e.id, order: e.order, method: e.method, counted: e.counted, key: e.key, uri: e.uri,
		stage: atServer, started: e.started, sentAt: e.sentAt}
	t.byID[e.id] = nobodys
	t.countSent(nobodys)
	timeout := t.opts.RequestTimeout
	if !e.due.IsZero() {
		timeout = time.Until(e.due)
	}
	t.setTimeout(nobodys, timeout)
	t.takeBack(e)
}

// releaseAll releases every request that the server has, one of which it has just answered.
func (t *table) releaseAll() (released []*entry) {
	for _, e := range oldestFirst(t.byID) {
		if e.sent() {
			t.release(e)
			released = append(released, e)
		}
	}
	return released
}

// removeSpare removes the last of the requests that releaseAll has released: the server has
// answered as many as there were.
func (t *table) removeSpare() {
	if e := t.onlyOut(); t.certainty == oneSpare && e != nil {
		t.noteDoubt(spareGone)
		t.remove(e)
	}
}
