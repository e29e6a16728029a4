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

// A server names the request that it answers by the id. Some servers lose ids, write them as strings, or answer under
// ids of their own. This file decides which request such an answer belongs to:
//
//	Session.accepts     may the message be the server's own, by the form of its line?
//	table.find          which request does its id name?
//	manner.after        how does the server name its answers?
//	matchState.judge    what becomes of the response: a table with a row for each case
//	table.match         puts the question to that table, and does what it says
//
// words.go has the names of all values, for tests and logs.

// target is which request a response is for, as far as the response says so itself: by its id, or by the HTTP response
// in which it came, whose request is the related one. The examples are of a session whose requests 1 to 3 are over, and
// whose request 4 is out.
type target uint8

const (
	// namesOut: its id is that of a request that is out: {"jsonrpc":"2.0","id":4,"result":{}}.
	namesOut target = iota
	// relatedOut: its id names none, and the related request is out.
	relatedOut
	// relatedOver: its id names none, and the related request is over.
	relatedOver
	// namesOver: its id is that of a request that is over: {"jsonrpc":"2.0","id":3,"result":{}}.
	namesOver
	// namesNothing: it has no id, or null, or an id that no request has had: {"jsonrpc":"2.0","id":99,"result":{}}.
	namesNothing
	// namesOtherwise: its id is a text, "id":"4", and the server answers with numbers; or the reverse.
	namesOtherwise
)

// manner is how a server names its answers. Its first answer with an id decides.
type manner uint8

const (
	// unknownManner: no answer had an id yet.
	unknownManner manner = iota
	// noManner: its first answer had no id, so an id that comes now is no proof: the server may print it.
	noManner
	// byText: by a number in a text: "id":"4".
	byText
	// byNumber: by a number, "id":4, but only in its answer to initialize.
	byNumber
	// byNumberInCalls: by a number, "id":4, also in answers to other requests.
	byNumberInCalls
)

// isByNumber reports whether the server names its answers by numbers.
func (m manner) isByNumber() bool { return m == byNumber || m == byNumberInCalls }

// idForm is the form of the id that names a request.
type idForm uint8

const (
	textID       idForm = iota // a number in a text: "id":"4"
	numberID                   // a number, in the answer to initialize, or in a response that is not valid
	numberOfCall               // a number, in a valid answer to another request
)

// certainty is how certain it is which request an unnamed answer is for.
type certainty uint8

const (
	// certain: no request that is out was given up. Every answer so far had an id, or came in the HTTP response to its
	// request, or was a read error (-32700, -32600) while one request was out.
	certain certainty = iota
	// someGivenUp: a request that is out was given up, or there was a read error while several were out. An answer that
	// nobody waits for may still come.
	someGivenUp
	// oneAtATime: the server has given an unnamed answer. Since then it gets one request at a time.
	oneAtATime
	// oneSpare: n requests are out and n-1 answers will come: one of the n was answered, and its answer did not say
	// which. All of them have failed, and their entries are nobody's. Otherwise as oneAtATime.
	oneSpare
	// ambiguous: the server has given an unnamed answer, and a request that is out was given up. The answer to that
	// could be taken for the answer to another request, so the session ends: at once if it became ambiguous by an
	// answer without an id or by a request that was given up, and with the next of these if by a read error.
	ambiguous

	// impossible stands in afterDoubts where a doubt cannot come.
	impossible
)

// isSerial reports whether the server has given an unnamed answer, and gets one request at a time since.
func (c certainty) isSerial() bool { return c == oneAtATime || c == oneSpare || c == ambiguous }

// hasGivenUp reports whether the server may still answer a request that was given up.
func (c certainty) hasGivenUp() bool { return c == someGivenUp || c == ambiguous }

// doubt is an event that changes the certainty.
type doubt uint8

const (
	answerUnnamed  doubt  = iota // the server has given an unnamed answer
	answerOfOne                  // the same, to one of several requests of several clients: all of these have failed
	requestGivenUp               // a request that is out was given up
	spareGone                    // the spare entry was removed: the server has given all answers that will come
	doubts         = iota        // how many there are
)

// afterDoubts is the certainty after each doubt. answerOfOne comes with the verdict failAll, which only a session has
// that is certain. spareGone comes from removeSpare, which only acts in oneSpare.
var afterDoubts = [...][doubts]certainty{
	certain: {
		answerUnnamed: oneAtATime, answerOfOne: oneSpare, requestGivenUp: someGivenUp, spareGone: impossible,
	},
	someGivenUp: {
		answerUnnamed: ambiguous, answerOfOne: impossible, requestGivenUp: someGivenUp, spareGone: impossible,
	},
	oneAtATime: {
		answerUnnamed: oneAtATime, answerOfOne: impossible, requestGivenUp: ambiguous, spareGone: impossible,
	},
	oneSpare: {
		answerUnnamed: oneSpare, answerOfOne: impossible, requestGivenUp: ambiguous, spareGone: oneAtATime,
	},
	ambiguous: {
		answerUnnamed: ambiguous, answerOfOne: impossible, requestGivenUp: ambiguous, spareGone: impossible,
	},
}

// noteDoubt sets the certainty to that after a doubt. After an impossible one nothing is certain.
func (m *matchState) noteDoubt(d doubt) {
	m.certainty = afterDoubts[m.certainty][d]
	if m.certainty == impossible {
		m.certainty = ambiguous
	}
}

// content is what a response has beside its id.
type content uint8

const (
	aResult       content = iota // "result":{"content":[]}
	anEmptyResult                // "result":{} or "result":null
	anError                      // "error":{"code":-32601,"message":"…"}
	anUnreadError                // code -32700 or -32600: the server could not read a message, so it knows no id
)

// response is what judge looks at in a response.
type response struct {
	target  target
	content content
	// isDueEmpty says that MCP has an empty result for the oldest request that is out. judge looks at it only if the
	// response names nothing.
	isDueEmpty bool
}

// matchState is what judge looks at in a session: what it knows of its server when a response comes.
type matchState struct {
	isShared  bool // the session has several clients
	manner    manner
	certainty certainty
	// notices counts the notifications that the server may still answer: those that it got after the last request that
	// it has answered.
	notices int
	// out counts the requests that the server has and has not answered.
	out int
}

// isLate reports whether a response is late, or comes twice, by its id alone: that is the id of a request that is over.
// It says so only once the server has named an answer. Until then the id may be one of the server's own.
func (m matchState) isLate(t target) bool { return t == namesOver && m.manner != unknownManner }

// verdict is what becomes of a response.
type verdict uint8

const (
	toNamed     verdict = iota // it answers the request that it names, or else the related one
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

// judge decides, in the first case that fits, what becomes of a response. docs/reference/errors.md has a row for each
// case, in the same order; TestVerdictsAreTheTableOfThePage compares them. The founding rules under "Matching" and
// "Nothing crosses" in e2e/acceptance/README.md hold for every change: no case may break one of them.
func (m matchState) judge(r response) verdict {
	isError := r.content == anError || r.content == anUnreadError
	isEmpty := r.content == anEmptyResult
	switch {
	case r.target == namesOut || r.target == relatedOut:
		return toNamed
	case r.target == namesOtherwise:
		return dropForeign
	case m.isLate(r.target), r.target == relatedOver:
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

// accepts reports whether a message may be the server's own, by the form of the line that has it. Servers print what
// others wrote, such as the words of another client:
//
//	form        | an example                | own session                         | shared session
//	------------|---------------------------|-------------------------------------|---------------
//	Plain       | {"jsonrpc":"2.0",…}       | everything                          | everything
//	InList      | [{"jsonrpc":"2.0",…}]     | with 2025-03-26, which has batches, everything; else nothing
//	AfterPrompt | > {"jsonrpc":"2.0",…}     | a response to a request that is out | nothing
//	Broken      | {'jsonrpc':'2.0',…}       | a response to a request that is out | nothing
//	AfterWords  | got: {"jsonrpc":"2.0",…}  | nothing                             | nothing
//
// Every form may have the response to initialize: no text of another client has reached the server before it.
//
// m and err are the results of jsonrpc.Parse.
func (s *Session) accepts(a arrival, m *jsonrpc.Message, err error) bool {
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
	e, target := t.find(id)
	if target != namesOut {
		return false
	}
	mayBeOwn := a.form == wire.AfterPrompt || a.form == wire.Broken
	return e.method == mcp.MethodInitialize || !s.opts.Shared && mayBeOwn
}

// batchVersion is the one version of MCP that has batches.
const batchVersion = "2025-03-26"

// matchResult is what a session does with a response.
type matchResult struct {
	verdict verdict
	e       *entry   // the request that it answers, which is no longer in the table; nil: none
	failed  []*entry // the requests to fail, because it may answer any of them
	by      string   // one of the metrics.Matched constants
	// becameSerial says that it is the first unnamed answer: from now on the server gets one request at a time.
	becameSerial bool
}

// match decides what becomes of a response, and changes the table accordingly. related is the id of the related
// request, empty if unknown.
func (t *table) match(m *jsonrpc.Message, related jsonrpc.ID) matchResult {
	e, target := t.find(m.ID)
	r := response{target: target, content: contentOf(m)}
	if n, _ := requestNumber(m.ID); n == firstID && e == nil && answersInitialize(m) {
		r.target = namesOver
	}
	by := metrics.MatchedFIFO
	var relatedEntry *entry // matters only if the response names no request that is out
	if r.target != namesOut {
		relatedEntry = t.related(related)
	}
	switch {
	case r.target == namesOut:
		by = metrics.MatchedID
		form := idFormOf(m.ID, e.method != mcp.MethodInitialize)
		if form == textID {
			by = metrics.MatchedString
		}
		t.manner = t.manner.after(form, t.certainty.isSerial())
	case relatedEntry != nil && relatedEntry.sent() && !t.isLate(r.target):
		e, r.target = relatedEntry, relatedOut
	case t.isOver(related):
		r.target = relatedOver
	default:
		e = t.oldestOut()
		r.isDueEmpty = e != nil && e.wantsEmpty()
	}
	f := matchResult{verdict: t.judge(r), by: metrics.MatchedOrphan}
	wasSerial := t.certainty.isSerial()
	switch f.verdict {
	case toNamed, toOnly:
		f.e, f.by = e, by
	case toOldest:
		f.e, f.by = e, by
		t.noteDoubt(answerUnnamed)
	case failAll:
		f.failed = t.leaveAllToNobody()
		t.noteDoubt(answerOfOne)
	case endSession:
		t.noteDoubt(answerUnnamed)
	case dropNotice:
		t.notices--
	case dropUnclear:
		t.noteDoubt(requestGivenUp) // one of them was answered, and will wait for its timeout
	}
	f.becameSerial = !wasSerial && t.certainty.isSerial()
	if f.e == nil {
		return f
	}
	t.remove(f.e)
	if f.e.method == mcp.MethodInitialize {
		version, _ := rawjson.MemberText(m.Result(), "protocolVersion")
		t.batches = version == batchVersion
	}
	if r.content != anEmptyResult || f.verdict == toNamed { // an unnamed empty result may answer a notification
		t.answeredUpTo(f.e)
	}
	return f
}

// after returns the manner of a server once it has named an answer by an id of this form. hasUnnamed says that it has
// given an unnamed answer before: then it may have printed either of the two.
func (m manner) after(form idForm, hasUnnamed bool) manner {
	switch {
	case m == unknownManner && hasUnnamed:
		return noManner
	case m == unknownManner && form == textID:
		return byText
	case m == unknownManner && form == numberID:
		return byNumber
	case m == unknownManner, m == byNumber && form == numberOfCall && !hasUnnamed:
		return byNumberInCalls
	}
	return m
}

// firstID is the id of the first request of a session, which is initialize.
const firstID = 1

// find returns the request in the table that has an id, nil if there is none, and says what the id names.
//
// Once a server has answered with number ids, a text id is not its answer, and the reverse. It may be printed: the
// parameters of a URL and the fields of a form are texts.
//
// Once the first request is over, its id names nothing, because some servers answer every request under the id 1.
// match makes an exception for a response to initialize.
func (t *table) find(id jsonrpc.ID) (*entry, target) {
	n, isText := requestNumber(id)
	e := t.byID[n]
	switch {
	case isText && t.manner.isByNumber(), !isText && n > 0 && t.manner == byText:
		return nil, namesOtherwise
	case e != nil && e.sent():
		return e, namesOut
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

// requestNumber returns the number of the request that an id of a response names: 5 for each of 5, 5.0 and "5", and 0
// for an id that names none, such as null or "a". isText says that the id is a text, whatever is in it.
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

// idFormOf returns the form of an id that names a request. isCall says that the response is valid, and the request is
// not initialize.
func idFormOf(id jsonrpc.ID, isCall bool) idForm {
	_, isText := requestNumber(id)
	switch {
	case isText:
		return textID
	case isCall:
		return numberOfCall
	}
	return numberID
}

// answersInitialize reports whether a response is the result of initialize.
func answersInitialize(m *jsonrpc.Message) bool {
	_, ok := rawjson.Member(m.Result(), "protocolVersion")
	return ok
}

// contentOf returns the content of a response.
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

// answeredUpTo notes that the server has answered a request. From then on it answers no notification that it got
// before the request.
func (t *table) answeredUpTo(e *entry) {
	if e.order > t.noticedAt {
		t.notices = 0
	}
}

// oldestOut returns the oldest request that is out, nil if there is none.
func (t *table) oldestOut() (oldest *entry) {
	for _, e := range t.byID {
		if e.sent() && (oldest == nil || e.id < oldest.id) {
			oldest = e
		}
	}
	return oldest
}

// onlyOut returns the one request that is out; nil if there are several.
func (t *table) onlyOut() *entry {
	if t.out != 1 {
		return nil
	}
	return t.oldestOut()
}

// leaveToNobody removes a request that is out from its caller, who can then answer or repeat it. In its place stays an
// entry that is nobody's, until the server has answered. So that answer is not taken for the answer to another request.
func (t *table) leaveToNobody(e *entry) {
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
	t.undoSubscription(e)
}

// leaveAllToNobody does so with every request that is out, one of which the server has just answered. It returns them.
func (t *table) leaveAllToNobody() (left []*entry) {
	for _, e := range oldestFirst(t.byID) {
		if e.sent() {
			t.leaveToNobody(e)
			left = append(left, e)
		}
	}
	return left
}

// removeSpare removes the spare entry: the last one of leaveAllToNobody, once the server has answered as many of those
// requests as it will.
func (t *table) removeSpare() {
	if e := t.onlyOut(); t.certainty == oneSpare && e != nil {
		t.noteDoubt(spareGone)
		t.remove(e)
	}
}
