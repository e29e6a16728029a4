package gosdk

import (
	sdk "github.com/modelcontextprotocol/go-sdk/jsonrpc"

	"github.com/mcp-sse/mcp-sse/internal/budget"
	"github.com/mcp-sse/mcp-sse/jsonrpc"
	"github.com/mcp-sse/mcp-sse/metrics"
)

const (
	// maxBytes bounds the messages of one session that the server has not handled.
	maxBytes = 8 << 20
	// maxWorking bounds the unanswered requests of one session: each has a goroutine.
	maxWorking = 16384
	// probeAfter is the number of bytes of notifications after which a probe follows.
	probeAfter = 1 << 20
	// maxResponses and maxCancels bound what a full session takes all the same, because
	// it may end other work: another message is refused once those that wait hold more.
	maxResponses, maxCancels = 8 << 20, 1 << 20
	// keepItems and keepWorking are the largest capacities that an idle inbox keeps.
	keepItems, keepWorking = 8, 64
)

// item is a message for the server.
type item struct {
	msg    sdk.Message
	number int64 // of a request, else 0
	size   int   // in bytes
	// lingers says that go-sdk keeps the message in a queue without a bound after it has
	// read it: a notification.
	lingers bool
	cancels bool  // it is notifications/cancelled
	request int64 // the number that it cancels; 0: unknown
}

// work is a request that is not answered.
type work struct {
	size      int
	answering bool // go-sdk has its response, and the gateway has not taken it yet
}

// askMethod is the method of the requests that ask whether go-sdk still works on a number.
// go-sdk knows no such method, so none reaches the user's middleware.
const askMethod = "mcp-sse/handled"

// inbox holds the messages for one server that it has not read, and counts those that
// it has not handled. The zero inbox is empty. It is not safe for concurrent use.
//
// A request counts until its response has been taken, a response until it is read.
// go-sdk does not say when it has handled a notification; but it handles all in order
// until their handlers begin. So after some of them a probe follows, a ping: its answer
// says that all before it are handled.
//
// go-sdk does not answer a request whose result has no JSON form. So after the
// cancellation of a request another follows with the same id. go-sdk ignores it while it
// works on the first, and else refuses it: the first then counts no longer. A full inbox
// asks again.
type inbox struct {
	items   []item
	head    int
	working map[int64]work // the unanswered requests
	doubted map[int64]bool // the numbers in working that were cancelled and are not being answered
	peak    int            // the most requests in working since it was made
	bytes   int            // of all that counts
	taken   int            // bytes of the budget: of all but notifications that were read
	notices int            // bytes of the notifications since the last probe
	probed  int            // bytes of the notifications before the probe that is out; 0: none is
	replies int            // bytes of the responses
	cancels [2]int         // those in notices and in probed that are of cancellations
}

func (b *inbox) len() int { return len(b.items) - b.head }

// put adds a message at the end. It fails with jsonrpc.ErrBusy.
func (b *inbox) put(it item, held *budget.Account) error {
	it.size += budget.ItemCost
	_, response := it.msg.(*sdk.Response)
	switch {
	case b.full(it.size) && !b.passes(it, response):
		b.askAgain()
		return jsonrpc.ErrBusy
	case response, b.bytes+it.size <= budget.Free: // it may be what ends other work
		held.Force(it.size)
	case !held.Take(it.size, metrics.HeldSend):
		return budget.ErrBusy
	}
	b.bytes += it.size
	b.taken += it.size
	if it.number != 0 {
		b.work(it.number, it.size)
	}
	b.add(it)
	if response {
		b.replies += it.size
	}
	if it.cancels {
		b.cancels[0] += it.size
		b.doubt(it.request)
	}
	if it.lingers {
		b.notices += it.size
		b.probe()
	}
	return nil
}

// full reports whether the inbox has no room for a message of size bytes. One that is idle
// takes a message of any size; it may hold a few notifications that no probe has followed
// yet.
func (b *inbox) full(size int) bool {
	idle := len(b.working) == 0 && b.len() == 0 && b.bytes < probeAfter
	return !idle && (b.bytes+size > maxBytes || len(b.working) >= maxWorking)
}

// passes reports whether a full inbox takes a message.
func (b *inbox) passes(it item, response bool) bool {
	return response && b.replies <= maxResponses || it.cancels && b.cancels[0]+b.cancels[1] <= maxCancels
}

// doubt notes that a request was cancelled, and asks whether go-sdk works on it.
func (b *inbox) doubt(number int64) {
	if w, ok := b.working[number]; !ok || w.answering || b.doubted[number] {
		return
	}
	if b.doubted == nil {
		b.doubted = make(map[int64]bool)
	}
	b.doubted[number] = true
	b.ask(number)
}

// askAgain asks for one of the cancelled requests, unless go-sdk has more to read.
func (b *inbox) askAgain() {
	if b.len() > 0 {
		return
	}
	for number := range b.doubted { // in random order
		b.ask(number)
		return
	}
}

func (b *inbox) ask(number int64) {
	id, err := sdk.MakeID(float64(number))
	if err != nil {
		return // never: it is a number
	}
	b.add(item{msg: &sdk.Request{ID: id, Method: askMethod}})
}

// responds notes that go-sdk has a response to a number. It reports false if that is to
// ask, because it names askMethod and no client's request of that method waits for it:
// then go-sdk has responded to the number before, or never will.
func (b *inbox) responds(number int64, namesAsk bool, held *budget.Account) bool {
	w, ok := b.working[number]
	if namesAsk && (!ok || w.answering || b.doubted[number]) {
		if !w.answering {
			b.answered(number, held)
		}
		return false
	}
	if ok {
		w.answering = true
		b.working[number] = w
		delete(b.doubted, number)
	}
	return true
}

func (b *inbox) work(number int64, size int) {
	if b.working == nil {
		b.working = make(map[int64]work)
	}
	b.working[number] = work{size: b.working[number].size + size}
	b.peak = max(b.peak, len(b.working))
}

func (b *inbox) add(it item) {
	if b.head > 0 && len(b.items) == cap(b.items) && b.head >= len(b.items)/2 {
		n := copy(b.items, b.items[b.head:])
		clear(b.items[n:])
		b.items, b.head = b.items[:n], 0
	}
	b.items = append(b.items, it)
}

// take removes and returns the first message. The inbox must have one.
func (b *inbox) take(held *budget.Account) sdk.Message {
	it := b.items[b.head]
	b.items[b.head] = item{}
	b.head++
	if b.head == len(b.items) {
		b.items, b.head = b.items[:0], 0
		if cap(b.items) > keepItems {
			b.items = nil
		}
	}
	if it.number == 0 {
		b.give(it.size, held)
	}
	if it.number == 0 && !it.lingers {
		b.bytes -= it.size
	}
	if _, response := it.msg.(*sdk.Response); response {
		b.replies -= it.size
	}
	return it.msg
}

func (b *inbox) give(n int, held *budget.Account) {
	b.taken -= n
	held.Give(n)
}

// answered removes a request whose response was taken, or that will get none.
func (b *inbox) answered(number int64, held *budget.Account) {
	w, ok := b.working[number]
	if !ok {
		return
	}
	delete(b.working, number)
	delete(b.doubted, number)
	b.bytes -= w.size
	b.give(w.size, held)
	if len(b.working) == 0 && b.peak > keepWorking {
		b.working, b.doubted, b.peak = nil, nil, 0
	}
}

// probe adds a probe if it is due and none is out.
func (b *inbox) probe() {
	if b.probed > 0 || b.notices < probeAfter && b.cancels[0] < maxCancels/2 {
		return
	}
	id, err := sdk.MakeID("handled")
	if err != nil {
		return // never: it is a string
	}
	b.probed, b.notices = b.notices, 0
	b.cancels = [2]int{0, b.cancels[0]}
	b.add(item{msg: &sdk.Request{ID: id, Method: "ping"}})
}

// settled notes that the probe was answered.
func (b *inbox) settled() {
	b.bytes -= b.probed
	b.probed, b.cancels[1] = 0, 0
	b.probe()
}

// release gives back what the inbox has of the budget, and empties it.
func (b *inbox) release(held *budget.Account) {
	b.give(b.taken, held)
	*b = inbox{}
}
