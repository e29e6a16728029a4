package cluster

import (
	"encoding/binary"
	"errors"
	"io"
	"os"
	"slices"
	"strconv"
	"sync"
	"time"

	"github.com/nats-io/nats.go"
)

const (
	// window bounds the parts that are sent before the receiver has taken them.
	window = 16
	// maxPart bounds a part, in bytes. With window it bounds what an exchange holds.
	maxPart = 64 << 10

	// These count ticks of a second in which nothing has come from the other side.
	resendAfter = 2  // while parts are not acknowledged
	goneAfter   = 5  // then
	probeAfter  = 15 // while nothing is to be sent
)

var (
	errGone        = errors.New("no replica has received the request, or none has the connection")
	errBusy        = errors.New("the replica serves too many requests of others")
	errAway        = errors.New("the replica, or NATS, cannot be reached now")
	errUnreachable = errors.New("the replica is not reachable")
	errOver        = errors.New("the exchange is over")
	errDraining    = errors.New("this replica shuts down")
)

// exchangeID identifies an exchange among those of a replica.
type exchangeID struct {
	entry  string // the replica that has begun it; empty: this one
	number uint64
}

// exchange is one side of a forwarded request and its response: in each direction a
// sequence of parts, each of which is taken once and in order. The sender sends parts again
// until they are acknowledged. All methods are safe for concurrent use; only one goroutine
// may send, and one receive.
type exchange struct {
	n      *Node
	id     exchangeID
	peer   string // the other replica
	reply  string // where NATS tells that it does not get a frame; empty at the owner
	flags  byte   // of all frames of this side
	stop   func() // called at the end
	server string // if this side has begun it
	stream bool   // it is a GET that this side has begun

	mu       sync.Mutex // guards what follows
	changed  sync.Cond
	err      error     // why it is over
	deadline time.Time // of send

	unacked       [][]byte // frames, up to next
	next, room    uint32   // of the parts to send: the next one, and the first without room
	sentLast      bool
	sent, refused int // frames, and how many of them nobody has received

	parts            [][]byte // that are received and not taken
	in, taken        uint32   // how many were received, and taken
	gotLast          bool
	sentIn, sentRoom uint32 // in, and the room, as last sent to the other side
	quiet            int    // ticks
}

// beginLocked makes an exchange, which is over if this replica has left. It needs Node.mu.
func (n *Node) beginLocked(id exchangeID, peer string, stop func()) *exchange {
	x := &exchange{n: n, id: id, peer: peer, flags: fromOwner, stop: stop, room: window, sentRoom: window}
	if id.entry == "" {
		x.flags, x.reply = 0, n.frames(n.id, strconv.FormatUint(id.number, 10))
	}
	x.changed.L = &x.mu
	if n.exchanges[id] = x; n.closed {
		x.err = errOver
		delete(n.exchanges, id)
	}
	return x
}

// send sends a part, when there is room. It fails after the end and the deadline.
func (x *exchange) send(part []byte, isLast bool) error {
	x.mu.Lock()
	defer x.mu.Unlock()
	for x.err == nil && x.next == x.room {
		if !x.deadline.IsZero() && !time.Now().Before(x.deadline) {
			return os.ErrDeadlineExceeded
		}
		x.changed.Wait()
	}
	if x.err != nil {
		return x.err
	}
	if len(x.unacked) == 0 {
		x.quiet = 0
	}
	x.sentLast = isLast
	data := x.sealLocked(kindData, part)
	x.unacked = append(x.unacked, data)
	x.next++
	x.publishLocked(data)
	return nil
}

// receive waits for the next part. The error is io.EOF with the last one. Parts that came
// before the end of the exchange are returned.
func (x *exchange) receive() (part []byte, err error) {
	x.mu.Lock()
	defer x.mu.Unlock()
	for len(x.parts) == 0 && x.err == nil {
		x.changed.Wait()
	}
	if len(x.parts) == 0 {
		return nil, x.err
	}
	part = x.parts[0]
	x.parts = slices.Delete(x.parts, 0, 1)
	x.taken++
	if x.err == nil && x.taken+window-x.sentRoom >= window/2 && !x.gotLast {
		x.publishLocked(x.sealLocked(kindAck, nil))
	}
	if x.gotLast && len(x.parts) == 0 {
		return part, io.EOF
	}
	return part, nil
}

// sealLocked returns a frame, which also tells what this side has received and taken.
func (x *exchange) sealLocked(k kind, payload []byte) []byte {
	f := &frame{
		kind: k, flags: x.flags, to: x.peer, from: x.n.id, number: x.id.number,
		seq: x.next, ack: x.in, room: x.taken + window, payload: payload,
	}
	if k == kindData && x.sentLast {
		f.flags |= last
	}
	x.sentIn, x.sentRoom = f.ack, f.room
	return x.n.sealer.seal(f)
}

// publishLocked sends a frame. What NATS does not take now is sent again.
func (x *exchange) publishLocked(data []byte) {
	if x.n.nc.PublishMsg(&nats.Msg{Subject: x.n.frames(x.peer, "q"), Reply: x.reply, Data: data}) == nil {
		x.sent++
	}
}

// take takes a frame from the other side.
func (x *exchange) take(f *frame) {
	x.mu.Lock()
	x.quiet = 0
	if first := x.next - uint32(len(x.unacked)); f.ack-first <= x.next-first {
		x.unacked = slices.Delete(x.unacked, 0, int(f.ack-first))
	}
	if grown := f.room - x.room; grown <= window {
		x.room = f.room
	}
	tell := f.kind == kindProbe || f.kind == kindData && int32(f.seq-x.in) < 0
	if f.kind == kindData && f.seq == x.in && x.err == nil && !x.gotLast && len(x.parts) < window {
		x.parts, x.gotLast = append(x.parts, f.payload), f.flags&last != 0
		x.in++
		tell = x.in-x.sentIn >= window/2
	}
	if tell {
		x.publishLocked(x.sealLocked(kindAck, nil))
	}
	over := f.kind == kindReset || x.sentLast && len(x.unacked) == 0 && x.flags&fromOwner != 0
	x.changed.Broadcast()
	x.mu.Unlock()
	if over {
		x.end(errOver)
	}
}

// tick does what is due once a second while NATS is connected: it acknowledges, sends again,
// asks for a sign of life, or ends the exchange, which it reports. Back says that NATS was away
// until now, lost that the other replica is: a frame that was just sent may still be refused.
func (x *exchange) tick(back, lost bool) (ended bool) {
	x.mu.Lock()
	if x.quiet++; back {
		x.quiet = 0
	}
	patience, waits, full := probeAfter+goneAfter, len(x.unacked) > 0, x.next == x.room
	if waits || full {
		patience = goneAfter
	}
	over := x.quiet > patience || lost && (x.quiet > 1 || x.sent > 0 && x.sent == x.refused)
	switch {
	case over: // what is sent now could not be refused any more
	case waits && (back || x.quiet >= resendAfter):
		for _, data := range x.unacked {
			x.publishLocked(data)
		}
	case x.quiet >= probeAfter || full && x.quiet >= resendAfter:
		x.publishLocked(x.sealLocked(kindProbe, nil))
	case x.in != x.sentIn || x.taken+window != x.sentRoom:
		x.publishLocked(x.sealLocked(kindAck, nil))
	}
	x.mu.Unlock()
	return over && x.end(errUnreachable)
}

// refuse notes that nobody has received a frame, which is sent again while the replica may come back.
func (x *exchange) refuse() {
	x.mu.Lock()
	x.refused++
	none := x.refused == x.sent
	x.mu.Unlock()
	if _, silent, _ := x.n.state(x.peer); silent && none {
		x.end(errUnreachable)
	}
}

// end ends this side: nothing is sent any more. It reports false if it had ended, or has sent
// the whole response.
func (x *exchange) end(err error) bool {
	x.mu.Lock()
	if x.err != nil {
		x.mu.Unlock()
		return false
	}
	if x.err = err; err == errUnreachable && x.sent > 0 && x.refused == x.sent {
		x.err = errGone
	}
	x.unacked = nil
	x.changed.Broadcast()
	entry := x.id.entry == ""
	answered, open := entry && x.gotLast, entry || !x.sentLast
	x.mu.Unlock()
	var all []byte
	x.n.mu.Lock()
	delete(x.n.exchanges, x.id)
	if m := x.n.members[x.peer]; answered && m != nil {
		if m.answered = binary.BigEndian.AppendUint64(m.answered, x.id.number); len(m.answered) == 8*maxAnswered {
			all, m.answered = m.answered, nil
		}
	}
	x.n.mu.Unlock()
	x.n.tell(x.peer, all)
	x.stop()
	return open
}

// abort ends both sides.
func (x *exchange) abort(err error) {
	if x.end(err) {
		x.n.sendReset(x.peer, x.flags, x.id.number)
	}
}
