// Package upstream reaches MCP servers.
//
// An [Upstream] opens sessions; each session is a [jsonrpc.Conn]. There are
// these kinds: [Handle] calls a function for each message, [Serve] runs a
// server over an in-memory pair of streams, [Command] starts a child process for
// each session and speaks to it over stdio, [URL] reaches a server over HTTP, and
// [HTTPHandler] does so without a socket. None of them knows who the clients are,
// or changes what is in a message; only sessions with servers of MCP 2026-07-28
// translate, because those know no sessions.
//
// All keep the contract of jsonrpc.Conn. Send never waits: what the
// server has not taken yet is kept up to 8 MiB, then Send fails with
// jsonrpc.ErrBusy; one message over that size passes when it is alone. Recv
// returns one message at a time, without line breaks, and at the end says why
// it ended: io.EOF for a server that ended in good order, else an error such as
// "exit status 1". Close is bounded; how long it may take stands at each kind.
// After Close a session holds no goroutine, descriptor or process, functions of
// the caller that do not return aside.
//
// The kinds of upstream are packages of their own:
//
//	stdio                 child processes: Command
//	remote                servers over HTTP: URL, HTTPHandler
//	  internal/streamable   MCP 2025-03-26 to 2025-11-25: a POST for each message, resumption, GET
//	  internal/stateless    MCP 2026-07-28: no session at the server, one presented here
//	  internal/httpsse      MCP 2024-11-05: one stream, POSTs to the endpoint that it names
//	  internal/exchange     requests and responses of HTTP, which those three share
//	internal/buffer       queues and lines, bounded
//
// Handle and Serve stand here.
package upstream
