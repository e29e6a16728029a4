// Package upstream reaches MCP servers.
//
// An [Upstream] opens sessions. Each session is a [jsonrpc.Conn]. [Handle] calls a
// function for each message, [Serve] runs a server over an in-memory pair of streams,
// [Command] starts a child process for each session and speaks to it over stdio, [URL]
// reaches a server over HTTP, and [HTTPHandler] does so without a socket. No kind knows
// who the clients are, or changes the content of messages. Only sessions with servers
// of MCP 2026-07-28 translate, because those servers have no sessions.
//
// All kinds keep the contract of jsonrpc.Conn. Send never waits: a session keeps up to
// 8 MiB for a server that does not read, then Send fails with jsonrpc.ErrBusy. One
// larger message passes if it is alone. Recv returns one message at a time, without
// line breaks. After the last one it says why the session ended: io.EOF for a server
// that ended in good order, else an error such as "exit status 1". Close is bounded;
// each kind documents its bound. After Close a session holds no goroutine, descriptor
// or process, unless a function of the caller does not return.
package upstream

// Handle and Serve are in this package. The implementation of the others is in internal/upstream:
//
//	stdio            child processes: Command
//	remote           servers over HTTP: URL, HTTPHandler
//	streamable       MCP 2025-03-26 to 2025-11-25: a POST for each message, resumption, GET
//	statelessserver  MCP 2026-07-28: presents a server without sessions as a session
//	httpsse          MCP 2024-11-05: one stream, and POSTs to the endpoint that it names
//	exchange         HTTP requests and responses, for those three
//	implementation   what the gateway uses of a Command or a URL, which users do not need
