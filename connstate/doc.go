// Package connstate implements a client's connection without its wire: the state
// table, the gate, the outbox, the unanswered requests, and the registry that
// finds, limits and drains connections.
//
//	        POST ──▶ Observe ─▶ Handler.Receive ─▶ BeginRequest ─▶ Wait ──▶ gate ──▶ Next
//	client                                                     (FIFO, bounded, timed)
//	        GET  ◀── Attach ◀── outbox ◀── Request.Answer, Send, Announce
//	                 (bounded in bytes)
//
// The contract:
//   - The state changes only by the table in state.go; any other move fails.
//   - Messages leave the gate in the order in which they came.
//   - A [Request] gets at most one answer, whoever tries to answer it.
//   - Only senders that wait for room in the outbox, and CloseGracefully, block, for a
//     bounded time.
//
// The package does no I/O. It knows neither HTTP nor the server.
//
// Version 1 makes no promise about this package: it may change at any time.
package connstate
