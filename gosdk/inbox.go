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
}

// inbox holds the messages for one server that it has not read, and counts those that
// it has not handled. The zero inbox is empty. It is not safe for concurrent use.
//
// A request counts until its response has been taken, a response until it is read.
// go-sdk does not say when it has handled a notification; but it handles all in order
// until their handlers begin. So after some of them a probe follows, a ping: its answer
// says that all before it are handled.
type inbox struct {
	items   []item
	head    int
	working map[int64]int // sizes of the unanswered requests
	peak    int           // the most requests in working since it was made
	bytes   int           // of all that counts
	taken   int           // bytes of the budget: of all but notifications that were read
	notices int           // bytes of the notifications since the last probe
	probed  int           // bytes of the notifications before the probe that is out; 0: none is
}

func (b *inbox) len() int { return len(b.items) - b.head }

// put adds a message at the end. It fails with jsonrpc.ErrBusy.
func (b *inbox) put(it item, held *budget.Account) error {
	it.size += budget.ItemCost
	_, response := it.msg.(*sdk.Response)
	switch {
	case b.bytes > 0 && (b.bytes+it.size > maxBytes || len(b.working) >= maxWorking):
		return jsonrpc.ErrBusy
	case response, b.bytes+it.size <= budget.Free: // it may be what ends other work
		held.Force(it.size)
	case !held.Take(it.size, metrics.HeldSend):
		return errUsedUp
	}
	b.bytes += it.size
	b.taken += it.size
	if it.number != 0 {
		b.work(it.number, it.size)
	}
	b.add(it)
	if it.lingers {
		b.notices += it.size
		b.probe()
	}
	return nil
}

func (b *inbox) work(number int64, size int) {
	if b.working == nil {
		b.working = make(map[int64]int)
	}
	b.working[number] += size
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
	return it.msg
}

func (b *inbox) give(n int, held *budget.Account) {
	b.taken -= n
	held.Give(n)
}

// answered removes a request whose response was taken.
func (b *inbox) answered(number int64, held *budget.Account) {
	size, ok := b.working[number]
	if !ok {
		return
	}
	delete(b.working, number)
	b.bytes -= size
	b.give(size, held)
	if len(b.working) == 0 && b.peak > keepWorking {
		b.working, b.peak = nil, 0
	}
}

// probe adds a probe if it is due and none is out.
func (b *inbox) probe() {
	if b.probed > 0 || b.notices < probeAfter {
		return
	}
	id, err := sdk.MakeID("handled")
	if err != nil {
		return // never: it is a string
	}
	b.probed, b.notices = b.notices, 0
	b.add(item{msg: &sdk.Request{ID: id, Method: "ping"}})
}

// settled notes that the probe was answered.
func (b *inbox) settled() {
	b.bytes -= b.probed
	b.probed = 0
	b.probe()
}

// release gives back what the inbox has of the budget, and empties it.
func (b *inbox) release(held *budget.Account) {
	b.give(b.taken, held)
	*b = inbox{}
}

// errUsedUp is the jsonrpc.ErrBusy of a session that has room where the budget has none.
var errUsedUp error = usedUpError{}

type usedUpError struct{}

func (usedUpError) Error() string        { return budget.ErrUsedUp.Error() }
func (usedUpError) Is(target error) bool { return target == jsonrpc.ErrBusy }
