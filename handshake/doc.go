// Package handshake supplies sessions with a server: it starts the server or takes one that is ready, runs the MCP
// handshake on it, also for clients that do not, and remembers what it says.
//
// A [Supplier] is what there is of one server that is configured; its [Supplier.Open] gives a client a [Session]. What a
// client needs beyond one session, the next one or none, is in package internal/bridge, which is told as a [Follower] of
// the supplier and as a [User] of the session.
//
// Where sessions come from:
//
//	Supplier ── supplier.go   one for each server that is configured
//	         ├─ open.go       takes a server, asks for the params of initialize, runs the handshake
//	         ├─ pool.go       servers started ahead, not initialized
//	         ├─ shared.go     the session that all connections share
//	         ├─ session.go    a session, its proof and its end
//	         ├─ memory.go     what is remembered, and for whom
//	         ├─ look.go       what a session says of itself, to remember
//	         ├─ contact.go    what the server has got of clients, after which that is for them alone
//	         ├─ renew.go      a session without a client, for what is remembered
//	         ├─ anyfolder.go  a session in an empty folder, for what is told in any
//	         ├─ readiness.go  whether sessions can be started
//	         └─ try.go        a look at the server for operators
//
// What goes over the wire:
//
//	initialize.go  runs the handshake on a session, and answers a client's own from the result
//	params.go      the params of the synthetic initialize, and older revisions to try
//	failure.go     how a start failed, and what of that a client may see
//	once.go        what happens once an hour, for the log
//
// A session is initialized once: two SDKs refuse or end a session at a second initialize. So
// [Result.Answer] answers a client's later initialize from the stored result, under the client's id
// and with the protocol version negotiated for that client. The synthetic request declares no
// client capabilities: the gateway must not promise the server what perhaps no client serves.
//
// Source: MCP 2024-11-05 to 2025-11-25, basic/lifecycle.
package handshake
