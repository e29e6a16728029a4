// Package connstate is one client's connection without its wire: the state
// table, the readiness gate, the outbox, the unanswered requests, and the
// registry that finds, limits and drains connections.
//
//	        POST ──▶ Observe ─▶ Handler.Receive ─▶ Admit ──▶ gate ──▶ Open
//	client                                             (FIFO, bounded, timed)
//	        GET  ◀── Attach ◀── outbox ◀── Respond, Send, Announce
//	                 (bounded in bytes)
//
// The contract:
//   - States move by the table in state.go alone; an impossible move is a
//     [MoveError].
//   - Messages leave the gate in the order in which they came. None overtakes.
//   - [Connection.Finish] reports true once for each [Connection.Begin]: what
//     answers requests asks it first, so that each is answered exactly once.
//   - Nothing here blocks, except a sender that waits for room in the outbox,
//     for a bounded time.
//
// The package does no I/O. It knows neither HTTP nor the server behind.
package connstate
