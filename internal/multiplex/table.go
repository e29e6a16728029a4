package multiplex

import (
	"cmp"
	"encoding/json"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/mcp-sse/mcp-sse/connstate"
	"github.com/mcp-sse/mcp-sse/internal/fair"
	"github.com/mcp-sse/mcp-sse/internal/mcp"
	"github.com/mcp-sse/mcp-sse/internal/multiplex/sharing"
	"github.com/mcp-sse/mcp-sse/internal/rawjson"
	"github.com/mcp-sse/mcp-sse/jsonrpc"
	"github.com/mcp-sse/mcp-sse/metrics"
)

const (
	// maxKept bounds a request kept for repeating, in bytes, and maxKeptBytes all of a
	// session's.
	maxKept      = 64 << 10
	maxKeptBytes = 8 << 20
)

// entry is what a session knows of a request that the server has not answered.
// Session.mu guards it while it is in the table. The function that removes it from the
// table owns it and must answer it.
type entry struct {
	// id is the one on the wire. order is the number of the request among those that were sent; 0
	// while it waits.
	id, order int64
	method    string
	// started is when it was added to the table, sentAt when it was sent, and due when its time is up.
	started, sentAt, due time.Time
	// timer calls Session.expire at due. It is nil for a Call of the session, which a context bounds.
	timer *time.Timer

	// caller is set for a request on behalf of a client, request for one of the client's
	// own, and reply for a Call of the gateway.
	caller  *Caller
	request *connstate.Request
	reply   chan outcome
	// message is kept while the request waits, and as long as it may be repeated.
	message *jsonrpc.Message
	// token is the client's progress token; nil for none.
	token json.RawMessage

	// key names what the request sets on a shared session, such as the subscription to one resource;
	// empty for most. Of requests with one key, one is at the server at a time.
	key string
	// uri is the resource to subscribe to or unsubscribe from, and task the task that it is about;
	// both are empty for most.
	uri, task string
	// level is the log level that the client sets, serverLevel the one that the server
	// gets.
	level, serverLevel sharing.Level

	// stage is how far it has come.
	stage stage
	// counted says that it counts towards MaxInFlight.
	counted bool
	// safe says that repeating it changes nothing at the server.
	safe bool
	// more says that it asks for a later page of a list.
	more bool
}

// stage is how far a request has come.
type stage uint8

const (
	// unsent: it waits, or the server has not taken it.
	unsent stage = iota
	// atServer: the server has it.
	atServer
	// progressing: as atServer, and the server has reported progress of it.
	progressing
	// canceled: as atServer, and its client has cancelled it. It is answered with that, at last after
	// cancelGrace.
	canceled
	// withdrawn: as unsent, and its client has cancelled it.
	withdrawn
)

// step is what brings a request to another stage.
type step uint8

const (
	goesOut    step   = iota // it goes to the server
	progresses               // the server reports progress of it
	cancels                  // its client cancels it
	bounces                  // the server has not taken it
	steps      = iota        // how many there are
)

// afterSteps says at which stage a request is after a step. A step that leaves the stage as it is does not happen
// there, but for another report of progress.
var afterSteps = [...][steps]stage{
	unsent:      {goesOut: atServer, progresses: unsent, cancels: withdrawn, bounces: unsent},
	atServer:    {goesOut: atServer, progresses: progressing, cancels: canceled, bounces: unsent},
	progressing: {goesOut: progressing, progresses: progressing, cancels: canceled, bounces: unsent},
	canceled:    {goesOut: canceled, progresses: canceled, cancels: canceled, bounces: withdrawn},
	withdrawn:   {goesOut: withdrawn, progresses: withdrawn, cancels: withdrawn, bounces: withdrawn},
}

// move brings the request to the stage after a step.
func (e *entry) move(s step) { e.stage = afterSteps[e.stage][s] }

// sent reports whether the server has got the request, and has taken it.
func (e *entry) sent() bool { return e.stage != unsent && e.stage != withdrawn }

// isCanceled reports whether its client has cancelled the request.
func (e *entry) isCanceled() bool { return e.stage == canceled || e.stage == withdrawn }

// mayBlock reports whether the server may take long to answer without being slow: it
// answers tasks/result when the task is over.
func (e *entry) mayBlock() bool { return e.method == mcp.MethodTaskResult }

// answerID is the id of the answer.
func (e *entry) answerID() jsonrpc.ID {
	if e.request != nil {
		return e.request.ID
	}
	return jsonrpc.NumberID(e.id)
}

// answer passes the server's response to who asked, if anybody waits for it.
func (e *entry) answer(response []byte, errorType string) {
	switch {
	case e.reply != nil:
		m, err := jsonrpc.Parse(response)
		e.reply <- outcome{m, err}
	case e.request != nil:
		e.request.Answer(response, errorType)
	}
}

// fail answers with an error of the gateway.
func (e *entry) fail(fault *jsonrpc.Error, errorType string) {
	switch {
	case e.reply != nil:
		e.reply <- outcome{err: fault}
	case e.request != nil:
		e.request.Fail(fault, errorType)
	}
}

// failBusy fails a request for which the server has no room.
func (e *entry) failBusy(err error) {
	e.fail(jsonrpc.ReasonError(err.Error(), "server_busy", true), metrics.ErrorBusy)
}

// lose answers after the end of the session, or has the client do so or repeat the request.
func (e *entry) lose(reason error) {
	switch {
	case e.reply != nil:
		e.reply <- outcome{err: reason}
	case e.request != nil:
		repeatable, loss := !e.sent() || e.safe, MustFail
		if repeatable && !e.isCanceled() && e.message != nil {
			loss = MayRepeat
			e.request.Message = e.message
		}
		e.caller.client.Lost(e.request, loss, jsonrpc.ReasonError(reason.Error(), "session_lost", repeatable))
	}
}

// table holds the unanswered requests of a session: those that the server has, and
// those that wait. It sends nothing and calls no client. Guarded by Session.mu.
type table struct {
	opts   *Options
	expire func(*entry) // called in a goroutine of its own when the time of an entry is up
	lastID int64
	byID   map[int64]*entry // by id on the wire
	queue  queue
	shared shared

	// tells says that the Conn may tell of a request that the server has not taken it: see
	// jsonrpc.NotTakenError. So all requests of clients are kept.
	tells bool
	// batches: the version that the server has answered to initialize has batches.
	batches bool
	matchState
	sends     int64 // counts the requests that were sent
	noticedAt int64 // sends when the last notification was sent

	counted int // requests out that count towards MaxInFlight
	blocked int // requests out that may block
	kept    int // bytes of those kept for repeating

	idle chan struct{} // is closed when the table becomes empty; nil: nobody waits for that

	lastMessage time.Time // when the server last sent a message
	pingedAt    time.Time // since when a silent server has a ping to answer; zero: it has none
}

// addRequest puts a request into the table and gives it an id and, unless timeout is 0, a
// deadline.
func (t *table) addRequest(e *entry, timeout time.Duration) {
	t.lastID++
	e.id, e.started = t.lastID, time.Now()
	t.byID[e.id] = e
	if timeout > 0 {
		t.setTimeout(e, timeout)
	}
}

func (t *table) setTimeout(e *entry, timeout time.Duration) {
	e.due = time.Now().Add(timeout)
	e.timer = time.AfterFunc(timeout, func() { t.expire(e) })
}

// setDue moves the deadline of a request.
func (e *entry) setDue(due time.Time) {
	e.due = due
	e.timer.Reset(time.Until(due))
}

// extend gives a request another RequestTimeout, up to MaxRequestTimeout in all, and
// reports whether it has time left.
func (t *table) extend(e *entry) bool {
	now, most := time.Now(), e.started.Add(t.opts.MaxRequestTimeout)
	due := now.Add(t.opts.RequestTimeout)
	if due.After(most) {
		due = most
	}
	if !now.Before(most) {
		return false
	}
	e.setDue(due)
	return true
}

// markSent notes that a request goes to the server, and returns its message.
func (t *table) markSent(e *entry) *jsonrpc.Message {
	m := e.message
	t.sends++
	e.move(goesOut)
	e.sentAt, e.order = time.Now(), t.sends
	t.countSent(e)
	size := len(m.Raw())
	mayReturn := e.safe || t.tells && e.request != nil
	if !mayReturn || size > maxKept || t.kept+size > maxKeptBytes {
		e.message = nil
		return m
	}
	t.kept += size
	return m
}

// countSent counts a request that the server has.
func (t *table) countSent(e *entry) {
	t.out++
	if e.counted {
		t.counted++
	}
	if e.mayBlock() {
		t.blocked++
	}
	if e.key != "" {
		t.queue.busy[e.key] = e
	}
}

// remove takes a request out of the table and reports whether it was there. If so,
// the caller must answer it.
func (t *table) remove(e *entry) bool {
	if t.byID[e.id] != e {
		return false
	}
	delete(t.byID, e.id)
	if t.idle != nil && len(t.byID) == 0 {
		close(t.idle)
		t.idle = nil
	}
	if e.timer != nil {
		e.timer.Stop()
	}
	if !e.sent() {
		t.queue.remove(e)
		return true
	}
	t.out--
	if e.counted {
		t.counted--
	}
	if e.mayBlock() {
		t.blocked--
	}
	if e.message != nil {
		t.kept -= len(e.message.Raw())
	}
	if e.key != "" {
		delete(t.queue.busy, e.key)
		if e.method == mcp.MethodSetLevel {
			t.shared.levels.Lost() // until the answer says otherwise
		}
	}
	t.removeSpare()
	return true
}

// giveUp removes a request for whose answer nobody waits any more, and reports whether it was in the table.
// If it is out, the server may still answer it: the caller must end the session if that makes it ambiguous.
func (t *table) giveUp(e *entry) bool {
	if !t.remove(e) {
		return false
	}
	if e.sent() {
		t.noteDoubt(requestGivenUp)
		t.undoSubscription(e)
	}
	return true
}

// undoSubscription ends the subscription that the server may have accepted with a request that is given up.
func (t *table) undoSubscription(e *entry) {
	if e.key != "" && e.method == mcp.MethodSubscribe {
		t.addUnsubscribe(e.uri)
	}
}

// removeAll empties the table and returns its requests, oldest first.
func (t *table) removeAll() []*entry {
	open := oldestFirst(t.byID)
	for _, e := range open {
		t.remove(e)
	}
	t.shared = shared{}
	return open
}

// mayBeCut reports whether an id may be the beginning of another one under which the server may still answer. Then an
// id that is cut may be either. The table has the ids of the requests that are out, and not those of the requests that
// were given up. So after one was given up, every id counts that a request of the session has had.
func (t *table) mayBeCut(id int64) bool {
	if t.certainty.hasGivenUp() && id <= t.lastID/10 {
		return true
	}
	digits := strconv.FormatInt(id, 10)
	for other := range t.byID {
		if other != id && strings.HasPrefix(strconv.FormatInt(other, 10), digits) {
			return true
		}
	}
	return false
}

func oldestFirst(entries map[int64]*entry) []*entry {
	return slices.SortedFunc(maps.Values(entries), func(a, b *entry) int { return cmp.Compare(a.id, b.id) })
}

// maxQueueBytes bounds the waiting requests of a session, in bytes; a larger request
// waits alone.
const maxQueueBytes = 8 << 20

// queue holds the waiting requests: those that the server has no room for, because
// of MaxInFlight, and those behind another request with the same key. Requests of a shared
// session have the same key if they set the same thing, such as the log level or the
// subscription to one resource. They go one after the other, because whether the server
// must see one depends on its answer to the one before. Guarded by Session.mu.
type queue struct {
	waiting fair.Queue[*entry] // by principal, then by client
	bytes   int                // of the waiting requests
	busy    map[string]*entry
}

// appendRequest appends a request. weight is its share of the queue, 0 for one that yields to none.
func (q *queue) appendRequest(e *entry, weight int64) {
	party, member := e.party()
	q.waiting.Add(party, member, e, weight)
	q.bytes += len(e.message.Raw())
}

// remove takes a request out of the queue, if it is there.
func (q *queue) remove(e *entry) {
	party, member := e.party()
	if q.waiting.Remove(party, member, e) {
		q.bytes -= len(e.message.Raw())
	}
}

// setKey notes what a request of a shared session sets.
func (q *queue) setKey(e *entry) {
	switch e.method {
	case mcp.MethodSetLevel:
		e.key = e.method
	case mcp.MethodSubscribe, mcp.MethodUnsubscribe:
		e.key = "uri " + e.uri
	}
	if q.busy == nil {
		q.busy = make(map[string]*entry)
	}
}

// decision is what to do with a request.
type decision uint8

const (
	forward   decision = iota // send it to the server
	wait                      // it is in the queue
	confirm                   // answer it: what it sets is set already
	queueFull                 // refuse it
	forbid                    // refuse it: the client may not make it
)

// enter decides what to do with a request that was just added to the table. It removes
// those that are neither forwarded nor queued. yielded are requests that have made room
// for it in the queue: they are refused.
func (t *table) enter(e *entry) (d decision, yielded []*entry) {
	if t.opts.Shared {
		switch e.method {
		case mcp.MethodGetTask, mcp.MethodTaskResult, mcp.MethodCancelTask, mcp.MethodUpdateTask:
			if !t.shared.tasks.Find(e.task).OwnedBy(e.caller, e.caller.principal) {
				t.remove(e)
				return forbid, nil
			}
		}
		t.queue.setKey(e)
	}
	// Nobody waits that could go before it.
	if t.mayGo(e) && (t.queue.waiting.Len() == 0 || !t.queue.waiting.Any(t.mayGo)) {
		return t.decide(e), nil
	}
	size := len(e.message.Raw())
	weight := int64(size)*int64(t.opts.MaxWaiting) + maxQueueBytes // both limits count alike
	party, member := e.party()
	for t.queue.waiting.Len() >= t.opts.MaxWaiting || t.queue.bytes > 0 && t.queue.bytes+size > maxQueueBytes {
		other, ok := t.queue.waiting.Yield(party, member, weight)
		if !ok {
			t.remove(e)
			return queueFull, yielded
		}
		t.queue.bytes -= len(other.message.Raw())
		t.remove(other)
		yielded = append(yielded, other)
	}
	t.queue.appendRequest(e, weight)
	return wait, yielded
}

// party returns who is given turns for a request: the principal, and within that the client.
func (e *entry) party() (principal, client string) {
	if e.caller == nil {
		return "", ""
	}
	return e.caller.principal, e.caller.name
}

// mayGo reports whether the server has room for a request, and has none with the same
// key. A server that does not name its answers gets one request at a time.
func (t *table) mayGo(e *entry) bool {
	most := t.opts.MaxInFlight
	hasRoom := most <= 0 || t.counted < most
	if t.certainty.isSerial() {
		hasRoom = t.out == 0
	}
	return hasRoom && (e.key == "" || t.queue.busy[e.key] == nil)
}

// decide decides what to do with a request whose turn it is. It removes one that the
// server does not get.
func (t *table) decide(e *entry) decision {
	d := forward
	if e.key != "" {
		d = t.shared.decide(e)
	}
	if d != forward {
		t.remove(e)
	}
	return d
}

// nextTurn removes the request whose turn it is from the queue, and decides what to do with it.
// It returns nil if none may go.
func (t *table) nextTurn() (*entry, decision) {
	e, ok := t.queue.waiting.Next(t.mayGo)
	if !ok {
		return nil, wait
	}
	t.queue.bytes -= len(e.message.Raw())
	return e, t.decide(e)
}

func (t *table) addUnsubscribe(uri string) {
	t.addOwn(mcp.MethodUnsubscribe, `{"uri":`+string(rawjson.Quote(uri))+`}`, uri)
}

// addOwn queues a request of the gateway that tells the server what the remaining
// clients want. Nobody waits for its answer.
func (t *table) addOwn(method, params, uri string) {
	m, err := jsonrpc.Parse(jsonrpc.NewRequest("0", method, []byte(params)))
	if err != nil { // it is valid
		return
	}
	e := &entry{method: method, message: m, counted: true, uri: uri}
	t.addRequest(e, t.opts.RequestTimeout)
	t.queue.setKey(e)
	t.queue.appendRequest(e, 0)
}
