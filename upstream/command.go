package upstream

import (
	"context"
	"log/slog"
	"time"

	"github.com/mcp-sse/mcp-sse/internal/upstream/stdio"
	"github.com/mcp-sse/mcp-sse/jsonrpc"
)

// Command starts a child process for each session and speaks newline-delimited
// JSON-RPC over its stdin and stdout. No shell is involved: the operating system gets
// Path and Args unchanged. A Command must not change while it is in use; its methods
// are safe for concurrent use.
type Command struct {
	// Path is the program: a name to look up in PATH, or a path. A relative path with a
	// slash in it is relative to Dir.
	Path string
	// Args are its arguments, without the program's name.
	Args []string
	// Env is its environment, as "key=value". nil: that of this process. The process also finds in MCP_SSE_PARENTS the
	// gateways above it, by which sse-server sees that it starts itself.
	Env []string
	// PrincipalEnv names an environment variable in which the child finds the principal
	// of its client ([Caller]). The variable is empty if the client has none. Default: no
	// variable.
	PrincipalEnv string
	// Dir is its working directory, and an inherited PWD is that too. Empty: that of this process.
	Dir string
	// MaxLineBytes is the longest message that the child may send. A longer one ends the
	// session with jsonrpc.ErrTooLong. Default 16 MiB.
	MaxLineBytes int
	// CloseTimeout is how long Close waits after the end of stdin, and again after
	// SIGTERM. Default 2 s.
	CloseTimeout time.Duration
	// Logger receives starts and exits of children, and their stderr. nil: the Logger of the gateway
	// in front.
	Logger *slog.Logger
}

// Check returns an error if the program cannot be found or executed, without starting
// it: so that a mistyped name shows before the first client comes.
func (c Command) Check() error { return c.implementation().Check() }

// Dial starts the child process. One that refuses initialize because it speaks only MCP
// 2026-07-28 is served as one of 2025-11-25. Dial fails when ctx ends first, and when the
// process cannot be started; the error then names the program and says what to do.
//
// After the process has exited, Recv returns an error such as "exit status 1" or "killed by
// signal: killed"; "exit status 0" wraps io.EOF. Unless the status is 0, the error ends with
// what the process wrote to stderr in its last five seconds. If it sent no message, the error ends with what it
// last wrote there at any time; if its status is 0 then, the error says so too. A
// process that closes its stdin or stdout ends the session too. Processes left in its
// process group are killed.
//
// Close lets the process read what was sent before, and ends its stdin. If the process
// does not end, Close sends SIGTERM and then SIGKILL to its process group. It takes at
// most twice CloseTimeout and five seconds, and fails only if the process survives.
func (c Command) Dial(ctx context.Context) (jsonrpc.Conn, error) { return c.implementation().Dial(ctx) }

func (c Command) implementation() stdio.Command {
	return stdio.Command{
		Path: c.Path, Args: c.Args, Env: c.Env, PrincipalEnv: c.PrincipalEnv, Dir: c.Dir,
		MaxLineBytes: c.MaxLineBytes, CloseTimeout: c.CloseTimeout, Logger: c.Logger,
	}
}
