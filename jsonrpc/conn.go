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
	// ErrDismissed reports that the peer ended the session for good. The gateway opens no session with it in the
	// place of this one: it closes the client's connection.
	ErrDismissed = errors.New("the server ended the session with this client")
)

// NotTakenError is the final error of a Conn whose peer did not take one of the requests: the peer could not
// be reached, or refused the request unread because it does not know the session any more. So the request
// may be sent again in another session, even if it must not be done twice.
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
//
// Its Send may refuse requests, and its Recv may fail: who has a Local uses SendRequest and Push. So a Conn that wraps
// a Local must be one itself, and pass these two methods on. A wrapper that has only the methods of Conn gets an error
// for each request.
type Local interface {
	Conn
	// Push sets the function to which the Conn delivers: it calls receive with each message and nil, and with nil
	// and the final error, in place of what Recv would return. Whoever uses the Conn calls Push once, before the
	// first Send, and never calls Recv.
	//
	// The Conn may call receive in several goroutines at a time. It calls it once with the final error, possibly
	// from inside Close; that call of receive itself calls Close. Messages that were on their way may
	// come after the final error. Until receive returns, its message counts among those that wait for Recv.
	Push(receive func(msg []byte, err error))
	// SendRequest sends the request m, as Send does, under another id: number, which is positive. If m has a
	// progress token, number takes the place of that too.
	SendRequest(m *Message, number int64) error
}

// Relay is a Local in front of sessions with other servers. Its deliveries come from the readers of those sessions,
// which other clients may share: receive must not wait for a client. Each request is bounded in time behind it.
type Relay interface {
	Local
	// PushFor is Push. receive also gets the id, as sent, of the request that a message answers or came with; empty if
	// that is unknown, and null if it came with none.
	PushFor(receive func(msg []byte, request ID, err error))
}

// Attributed is a Conn that can tell to which request a message of its peer belongs:
// over Streamable HTTP, the messages in the response to a POST belong to the request in
// that POST. Its final error may be a [*NotTakenError].
type Attributed interface {
	Conn
	// RecvFor is Recv, and also returns the id of the request to which the message belongs, in the form in which
	// Send got it; empty if that is unknown. Whoever uses the Conn calls RecvFor in place of Recv, from
	// one goroutine at a time.
	RecvFor() (msg []byte, request ID, err error)
}

// Stateless is a Conn that can tell whether its peer is a server of MCP 2026-07-28, which has no sessions. If it is,
// Send takes requests of that version and passes them on unchanged, beside requests of a session, which it translates.
type Stateless interface {
	Conn
	// Stateless reports whether the peer is a server of MCP 2026-07-28. The answer is right once the peer has
	// answered initialize.
	Stateless() bool
}

// Dialer opens sessions with one peer. It is safe for concurrent use.
type Dialer interface {
	// Dial opens one session with the peer. ctx bounds only the dialling: the session goes on when ctx ends, until
	// Close. Of the values of ctx, a server in this process gets those that upstream.CallerValues returns.
	// The caller must Close the Conn, even after Recv has returned a final error.
	Dial(ctx context.Context) (Conn, error)
}
