package handshake

import (
	"encoding/json"
	"time"

	"github.com/mcp-sse/mcp-sse/internal/multiplex"
	"github.com/mcp-sse/mcp-sse/internal/remember"
	"github.com/mcp-sse/mcp-sse/upstream"
)

// SupplierOptions configure a Supplier. The fields have no defaults. A field that Reconfigure can change
// says so.
type SupplierOptions struct {
	// Name is what clients call the server; empty: what it calls itself.
	Name string
	// Params are the params of the synthetic initialize. nil: the supplier runs no
	// handshake.
	Params json.RawMessage
	// Shared gives all connections one session; else each has its own.
	Shared bool
	// Warm is the number of servers that the pool keeps started. With Shared, any
	// number above 0 makes Start start the session. It can change.
	Warm int
	// WarmFollowsUse keeps those servers started only while nothing is remembered of the server, and
	// for ProcessIdle after it was used last. It can change.
	WarmFollowsUse bool
	// Forwards says that sessions get something of their clients' requests. A probe may
	// lack the credentials, and the server may have other tools for each client.
	Forwards bool
	// The fields of gateway.Options with these names. They can change.
	MaxSessions           int // below 1: unlimited
	StartTimeout          time.Duration
	InitializationTimeout time.Duration // after it a start is late, and Ready fails
	// Memory has what the server said before; nil: nothing is remembered, and ProcessIdle has no effect.
	Memory *remember.Server
	// ProcessIdle is the time without a message after which a session with nothing open ends, until its
	// client needs it again; 0: never.
	ProcessIdle time.Duration
	// RememberFor is the age of what is remembered from which the server is asked again in the background.
	RememberFor time.Duration
	// Locks are those of the server's command: each session says to other programs that it is there. nil: none does. It
	// can change.
	Locks *remember.Locks
	// AnyFolder learns what may be told in any folder, and needs Locks; nil: nothing. It can change.
	AnyFolder *AnyFolder
	// Boots says that servers are processes, which keep the machine busy while they boot.
	Boots bool
	// Authenticates says that clients have principals.
	Authenticates bool
	// Offers reports whether clients see a tool of the server; nil: each. It can change.
	Offers func(tool json.RawMessage) bool
	// Session configures each session. Its Logger and Metrics, which the supplier
	// uses too, must not be nil. The supplier sets Shared, Tools, Limited, and all
	// functions On…. The times and bounds can change.
	Session multiplex.Options
}

// IdleCheck returns the time between two looks whether a session is idle.
func (o *SupplierOptions) IdleCheck() time.Duration { return o.ProcessIdle / 4 }

// AnyFolder starts a server in an empty folder, and keeps its answers for clients in every folder. So the client of a
// new project has tools while its server boots, and no project decides what clients of another one are told.
type AnyFolder struct {
	// Memory keeps what the server says there.
	Memory *remember.Server
	// In returns the server as it starts in a folder.
	In func(dir string) upstream.Upstream
	// ByItself says that each Supplier starts it once nobody uses the server; else LearnInAnyFolder alone does.
	ByItself bool
}
