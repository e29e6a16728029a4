package streamable

import (
	"cmp"
	"time"

	"github.com/mcp-sse/mcp-sse/internal/httpcheck"
	"github.com/mcp-sse/mcp-sse/internal/streamable/internal/statelessclient"
	"github.com/mcp-sse/mcp-sse/jsonrpc"
)

// Options configure a Handler. The zero value gives the defaults.
type Options struct {
	// Options are those of every HTTP transport.
	httpcheck.Options
	// RequireInitialize refuses a request without a session that is no initialize, with
	// 400, as the specification has it. Otherwise the Handler makes a session for it.
	RequireInitialize bool
	// Repeatable reports whether a request may be run twice; nil: none may.
	Repeatable func(*jsonrpc.Message) bool
	// SessionTimeout closes a session that has had no POST, no request in flight and no
	// stream for so long. A session that its client has not used since it was opened has
	// at most a minute. Default 10 min; negative: never.
	SessionTimeout time.Duration
	// MaxQueuedBytes bounds what waits to be written to one response; what is over it
	// waits where events are kept for clients that were cut. Default 1 MiB.
	MaxQueuedBytes int
	// MaxKeptBytes bounds the events that are kept for clients that were cut, of all
	// sessions; one session may have an eighth. Default 64 MiB.
	MaxKeptBytes int
	// LeaseStream calls end once the credentials, with which a GET was opened, are no longer
	// good, until stop is called; with Reauthenticate alone. nil: they always are.
	LeaseStream func(credentials, principal, connectionID string, end func()) (stop func())
	// SamePeer says that the server sees nothing of the context of a request but the
	// principal. Then requests of clients without sessions may share connections although
	// PassRequest is set.
	SamePeer bool
}

func (o Options) withDefaults() Options {
	o.Options = o.Options.WithDefaults()
	if o.HeartbeatInterval < 0 { // none
		o.HeartbeatInterval = 24 * time.Hour
	}
	o.SessionTimeout = cmp.Or(o.SessionTimeout, 10*time.Minute)
	o.MaxQueuedBytes = cmp.Or(o.MaxQueuedBytes, 1<<20)
	o.MaxKeptBytes = cmp.Or(o.MaxKeptBytes, 64<<20)
	if o.Repeatable == nil {
		o.Repeatable = func(*jsonrpc.Message) bool { return false }
	}
	return o
}

// modern returns the options for clients without sessions.
func (o *Options) modern() statelessclient.Options {
	return statelessclient.Options{
		Options: o.Options, IdleTimeout: cmp.Or(max(0, o.SessionTimeout), 5*time.Minute), SamePeer: o.SamePeer,
	}
}
