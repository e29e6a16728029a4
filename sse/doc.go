// Package sse is the HTTP+SSE transport of MCP (2024-11-05): a GET opens a stream,
// a POST to its path with /{id}/message sends one message on it.
//
// On the stream, in this order:
//
//	event: endpoint      the path to POST to; first, alone, once
//	event: connection    a notification that names the connection and its state
//	event: mcp-response  the announcement, if the backend makes one
//	event: message       JSON-RPC messages, from then on
//	: heartbeat          when nothing else has been sent for a while
//
// The first event in bytes:
//
//	id: 1
//	event: endpoint
//	data: /sse/QYMUS55A.ac0293d5-fd2f-47be-8805-60a0e45c6d71.0MW1a8z9Oz_6ObPwmNDbZQ/message
//
// The gateway answers a POST with 202 at once; the answer to the message comes on
// the stream. The whole contract is in docs/reference/wire.md.
//
// One goroutine, that of the GET, writes the response. It closes a client that does
// not read when the outbox stays full or a write takes too long. The [httpcheck.Backend]
// decides what is behind a connection; this package knows no MCP session and no
// process.
//
// The stream engine is r3labs/sse/v2, used in the one way that neither leaks nor
// hangs; the table in engine.go says how.
//
// Version 1 makes no promise about this package: it may change at any time.
package sse
