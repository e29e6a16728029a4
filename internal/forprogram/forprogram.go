// Package forprogram opens what the program sse-server needs of a gateway and its users do not: what memory
// learns ahead of clients, checks of a start, and the end without a shutdown. So none of that is part of the
// public API of package gateway, which may change it at any time.
//
// Package gateway is above this one, and provides the functions when it is initialized.
package forprogram

import (
	"context"
	"encoding/json"
	"time"

	"github.com/mcp-sse/mcp-sse/handshake"
)

// Gateway is a gateway.Gateway as the program sees it. It is safe for concurrent use.
type Gateway interface {
	// Try starts a session with the server and ends it. It returns what the server says of itself and lists. It
	// needs the handshake of the gateway, so must not be called with NoAutoInitialize.
	Try(ctx context.Context) (handshake.Found, error)
	// CheckStart is Try before the first client comes: a shared session goes on, Ready and the status page know
	// the result, and what the server says is remembered.
	CheckStart(ctx context.Context) (handshake.Found, error)
	// Saying returns what a process of the server has written while it has not answered yet, and what may keep it
	// from that; either may be empty.
	Saying() (words, advice string)
	// Warm returns how many servers are kept started ahead of connections, once Start has been called. always
	// says that they are when nobody uses the server, too.
	Warm() (n int, always bool)

	// Remembers reports whether what the server says is remembered.
	Remembers() bool
	// RemembersFor reports whether it is known what the server says to clients that initialize with these params.
	RemembersFor(params json.RawMessage) bool
	// Remembered returns what is remembered of the server, as Try returns it. It reports false if nothing is, or
	// it is older than Remember.For.
	Remembered() (handshake.Found, bool)
	// Learn starts the server once and remembers what it says to clients that initialize with these params, so
	// that the next such client is answered from memory. It does nothing if that is remembered already, or
	// nothing is. It returns when the server has said all, or ctx ends; the error says why the server did not
	// start.
	Learn(ctx context.Context, params json.RawMessage) error

	// WantsAnyFolder reports whether LearnInAnyFolder has something to learn.
	WantsAnyFolder() bool
	// ReserveAnyFolder reports whether no other program is about to call LearnInAnyFolder for the server, and
	// keeps that so until release is called.
	ReserveAnyFolder() (release func(), ok bool)
	// LearnInAnyFolder starts the server once in an empty folder, and remembers what it says there for clients in
	// folders in which nothing is known of it. It does nothing if that is known, or was tried. It returns when
	// the server has ended. isUsed reports that it did nothing because a client uses the server.
	LearnInAnyFolder(ctx context.Context) (isUsed bool)
	// UseServer says to other programs that a client may use the server, until release is called or this program
	// ends: none starts it in an empty folder meanwhile.
	UseServer() (release func())
	// AwaitUnused waits until nobody on this machine has used the server for a time, as far as programs with the
	// same LockDir say.
	AwaitUnused(ctx context.Context, quiet time.Duration) error
}

// Options are options of a gateway for the program alone.
type Options struct {
	// Remedy returns what to do about a server that has not started, with that error. Clients that may see the
	// details get it. It must be safe for concurrent use: each failed request may call it. nil, or an empty text:
	// they are told nothing.
	Remedy func(error) string
	// LockDir is a directory of locks with which gateways tell each other that a command has a session, so that
	// none starts it in an empty folder meanwhile. All gateways of a user have the same one, also those that
	// remember nothing. Default: that of Remember; none without one.
	LockDir string
	// LearnsAnyFolder lets the gateway start the server once more in the background, in an empty folder, when
	// what it says there is not known, or older than Remember.For, and nobody has a session: what the server says
	// there is told to the first client in any other folder in which nothing is known of it. It needs
	// Remember.Dir. It is for gateways that run for long.
	LearnsAnyFolder bool
	// LocalOnly reports whether a request over HTTP that a proxy has brought is refused now: the server would answer
	// it with the login of a person on this machine. It must be safe for concurrent use. nil: none is refused.
	LocalOnly func() bool
	// Restricted says that Authenticate lets in some principals alone. Lists of servers name the server to those.
	Restricted bool
}

// Functions are the functions of package gateway. An argument of another type than its comment says is an error of
// the programmer: they panic.
type Functions struct {
	// Of takes a *gateway.Gateway.
	Of func(gw any) Gateway
	// Abort takes a *gateway.Gateway or *gateway.Servers.
	Abort func(service any)
	// OptionsOf takes a *gateway.Options.
	OptionsOf func(of any) *Options
}

var provided Functions

// Provide sets the functions. Package gateway calls it when it is initialized.
func Provide(f Functions) { provided = f }

// Of returns a *gateway.Gateway as the program sees it.
func Of(gw any) Gateway { return provided.Of(gw) }

// Abort kills at once the processes of the servers of a *gateway.Gateway or *gateway.Servers, and all their children.
// It is for a program that exits without waiting for Shutdown.
func Abort(service any) { provided.Abort(service) }

// OptionsOf returns those of the options in a *gateway.Options that are for the program alone, to be set.
func OptionsOf(of any) *Options { return provided.OptionsOf(of) }
