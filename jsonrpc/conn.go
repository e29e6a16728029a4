package jsonrpc

import (
	"context"
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
)

// Conn carries JSON-RPC messages to one peer and back, one session long.
//
// Send and Close are safe for concurrent use. Recv is called by one goroutine
// at a time.
type Conn interface {
	// Send queues one message: compact JSON on one line, without the newline.
	// It does not wait for the peer. It fails with ErrBusy when the queue is
	// full and with ErrClosed, or the reason why the peer ended, afterwards.
	// The Conn keeps msg; the caller must not change it.
	Send(msg []byte) error
	// Recv returns the peer's next message, which then belongs to the caller.
	// It blocks until there is one. ErrTooLong is not final; any other error
	// is: io.EOF when the peer ended in good order, ErrClosed after Close.
	Recv() ([]byte, error)
	// Close ends the session and releases all that it holds. It is idempotent,
	// unblocks Recv, and returns within a bound that the implementation states.
	Close() error
}

// Pusher is a Conn that hands over by itself what its peer sends, so that no
// goroutine has to wait in Recv.
type Pusher interface {
	Conn
	// Push has receive called with what Recv would return, instead of Recv. It
	// is called once, before the first Send. Calls of receive may come at the
	// same time. The one with the final error comes once, also from inside
	// Close; messages that were on their way may come after it. receive reports
	// whether it takes more. While it runs, the message counts as not taken.
	Push(receive func(msg []byte, err error) bool)
}

// Attributed is a Conn that can tell which request a message of its peer came
// with: over Streamable HTTP, what comes on the response of a POST belongs to the
// request in it.
type Attributed interface {
	Conn
	// RecvFor is Recv, and names the request that the message came with: the id
	// under which it was sent. It is empty where that is not known. RecvFor is
	// called instead of Recv, by one goroutine at a time.
	RecvFor() (msg []byte, request ID, err error)
}

// Dialer reaches one peer. It is safe for concurrent use.
type Dialer interface {
	// Dial opens one session with the peer. ctx bounds only the dialling: its
	// end does not end the session, and its values are not passed on, because a
	// session may be used for others than the one who caused the dialling. The
	// caller must Close the Conn, also after Recv has returned a final error.
	Dial(ctx context.Context) (Conn, error)
}
