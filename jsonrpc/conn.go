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
	// ErrTooLong reports that the peer sent a message over the size limit.
	ErrTooLong = errors.New("message over the size limit")
	// ErrDenied reports that the peer is there, but refuses the credentials.
	ErrDenied = errors.New("access denied")
	// ErrDismissed reports that the peer ended the session and wants none with the same
	// client in its place: the client's connection ends too.
	ErrDismissed = errors.New("the server ended the session with this client")
)

// NotTakenError is the final error of a Conn whose peer did not take one of the requests: it could not
// be reached, or refused it unread because it does not know the session any more. So that request
// may be sent again in another session, whatever it does.
type NotTakenError struct {
	ID  ID    // of the request, as sent
	Err error // why the session is over
}

// Error says why the session is over.
func (e *NotTakenError) Error() string { return e.Err.Error() }

// Unwrap returns why the session is over.
func (e *NotTakenError) Unwrap() error { return e.Err }

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
	// blocks until there is one. Its error is final: io.EOF if the peer ended in good
	// order, ErrClosed after Close, ErrTooLong after a message over the limit.
	Recv() ([]byte, error)
	// Close ends the session and releases all that it holds. It is idempotent,
	// unblocks Recv, and returns within a bound that the implementation states.
	Close() error
}

// Local is a Conn to a server in this process. It takes requests parsed, with their
// context, and delivers by calling a function, so that no goroutine has to wait in Recv.
type Local interface {
	Conn
	// Push sets the function that gets what Recv would return. The caller calls Push
	// once, before the first Send, and never calls Recv. Calls of receive may be
	// concurrent. The one with the final error comes once, possibly from inside Close,
	// and calls Close; messages that were on their way may come after it. Until receive
	// returns, the message counts as not taken.
	Push(receive func(msg []byte, err error))
	// SendRequest is Send for the request m with number, which is positive, as its id and
	// in place of its progress token, if it has one.
	SendRequest(m *Message, number int64) error
}

// Attributed is a Conn that can tell which request a message of its peer came with:
// over Streamable HTTP, messages in the response to a POST belong to the request in
// that POST. Its final error may be a [*NotTakenError].
type Attributed interface {
	Conn
	// RecvFor is Recv, and also returns the id, as sent, of the request that the
	// message came with; empty if unknown. The caller calls it instead of Recv, from
	// one goroutine at a time.
	RecvFor() (msg []byte, request ID, err error)
}

// Stateless is a Conn that can tell whether its peer is a server of MCP 2026-07-28. Such a Conn
// takes requests of that version as they are, beside those of sessions.
type Stateless interface {
	Conn
	// Stateless reports whether the peer is such a server. It is known when the peer has
	// answered initialize.
	Stateless() bool
}

// Dialer opens sessions with one peer. It is safe for concurrent use.
type Dialer interface {
	// Dial opens one session with the peer. ctx bounds only the dialling: its end does
	// not end the session. Of its values, a server in this process gets those that
	// upstream.CallerValues returns. The caller must Close the Conn, even after
	// Recv has returned a final error.
	Dial(ctx context.Context) (Conn, error)
}
