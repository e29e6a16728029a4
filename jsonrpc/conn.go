package jsonrpc

import (
	"context"
	"encoding/json"
	"errors"
)

var (
	// ErrClosed reports that a Conn was closed by its own side.
	ErrClosed = errors.New("connection closed")
	// ErrBusy reports that the peer takes messages too slowly: the bounded
	// queue in front of it is full, and the message was not queued.
	ErrBusy = errors.New("peer is not reading: send queue full")
	// ErrTooLong reports that the peer sent a message over the size limit. The
	// message was dropped; the Conn goes on.
	ErrTooLong = errors.New("message over the size limit")
	// ErrDenied reports that the peer is there, but refuses the credentials.
	ErrDenied = errors.New("access denied")
	// ErrDismissed reports that the peer ended the session and wants none with the same
	// client in its place: the client's connection ends too.
	ErrDismissed = errors.New("the server ended the session with this client")
)

// TooLongError is an ErrTooLong with the ends of the message, for ParseCut.
type TooLongError struct {
	Head, Tail []byte
	// Busy says that the message is under the limit, and found no room.
	Busy bool
}

// Error is that of ErrTooLong.
func (e *TooLongError) Error() string { return ErrTooLong.Error() }

// Unwrap returns ErrTooLong.
func (e *TooLongError) Unwrap() error { return ErrTooLong }

// Conn is one session with a peer. It carries JSON-RPC messages both ways.
//
// Send and Close are safe for concurrent use. Only one goroutine may call Recv at a
// time.
type Conn interface {
	// Send queues one message: compact JSON on one line, without the newline. It does
	// not wait for the peer. It fails with ErrBusy when the queue is full, and after
	// the end of the session with ErrClosed or the reason why the peer ended. The Conn
	// keeps msg; the caller must not change it.
	Send(msg []byte) error
	// Recv returns the peer's next message, which then belongs to the caller. It
	// blocks until there is one. ErrTooLong, which may be a *TooLongError, is not
	// final; any other error is: io.EOF if the peer ended in good order, ErrClosed
	// after Close.
	Recv() ([]byte, error)
	// Close ends the session and releases all that it holds. It is idempotent,
	// unblocks Recv, and returns within a bound that the implementation states.
	Close() error
}

// Pusher is a Conn that delivers what its peer sends by calling a function, so that
// no goroutine has to wait in Recv.
type Pusher interface {
	Conn
	// Push sets the function that gets what Recv would return. The caller calls Push
	// once, before the first Send, and never calls Recv. Calls of receive may be
	// concurrent. The one with the final error comes once, possibly from inside Close,
	// and calls Close; messages that were on their way may come after it. receive reports
	// whether it takes more. Until it returns, the message counts as not taken.
	Push(receive func(msg []byte, err error) bool)
}

// RequestSender is a Conn of this process that takes a request that is already parsed, so
// that nobody has to encode and parse it once more.
type RequestSender interface {
	Conn
	// SendRequest is Send for the request m with number as its id, which is positive,
	// and also in place of the progress token at token, unless that is nowhere. m's own
	// id and token are the client's.
	SendRequest(m *Message, number int64, token Place) error
}

// Waiter is a goroutine that passes a request on and then waits for the response. It can run
// the handler of a server in this process meanwhile, so that no other goroutine has to be
// woken, and to wake it again.
type Waiter interface {
	// Take makes the goroutine call Run once, after the calls that pass the request on have
	// returned. It reports false if the goroutine has gone on to something else: the server
	// must run the handler itself.
	Take(h Handling) bool
	// Returned tells that the handler has returned, and that Run is about to.
	Returned()
}

// Handling is a request that a server in this process handles.
type Handling interface {
	// Run runs the handler, calls Returned, and passes the response on.
	Run()
}

// ResultPusher is a Pusher that delivers responses in parts, so that nobody has to parse
// them.
type ResultPusher interface {
	Pusher
	// PushResults sets the function that gets the responses to the requests of
	// SendRequest, by their number. One of result and fault, the error object, is nil; the
	// other is valid JSON and UTF-8 without line breaks, and belongs to receive. The
	// caller calls PushResults before Push. Calls of receive may be concurrent; until it
	// returns, the response counts as not taken.
	PushResults(receive func(number int64, result, fault json.RawMessage))
}

// Attributed is a Conn that can tell which request a message of its peer came with:
// over Streamable HTTP, messages in the response to a POST belong to the request in
// that POST.
type Attributed interface {
	Conn
	// RecvFor is Recv, and also returns the id, as sent, of the request that the
	// message came with; empty if unknown. The caller calls it instead of Recv, from
	// one goroutine at a time.
	RecvFor() (msg []byte, request ID, err error)
}

// Dialer opens sessions with one peer. It is safe for concurrent use.
type Dialer interface {
	// Dial opens one session with the peer. ctx bounds only the dialling: its end does
	// not end the session. Of its values, a server in this process gets those that
	// peer.Values returns. The caller must Close the Conn, even after
	// Recv has returned a final error.
	Dial(ctx context.Context) (Conn, error)
}
