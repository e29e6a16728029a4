// Package handshake supplies sessions with a server: it starts the server or takes one that is ready, runs the MCP
// handshake on it, also for clients that do not, and remembers what it says.
//
// A [Supplier] is what there is of one server that is configured; its [Supplier.Open] gives a client a [Session].
// Package internal/bridge gets a client the next session, or does without one: it is told as a [Follower] of the
// supplier and as a [SessionUser] of the session.
//
// docs/design/life.md has the files in their reading order: each uses only those below it.
//
//	Supplier ── supplier.go   one for each server that is configured
//	 ├─ readiness.go          whether sessions can be started
//	 ├─ renewal               a session without a client, for what is remembered
//	 ├─ emptyFolder           a session in an empty folder, for what is told in any
//	 ├─ shared                the session that all connections share
//	 ├─ pool                  servers started ahead, and sessions of clients' own
//	 └─ source                the server as its sessions see it
//	Session ── session.go     has a source, which tells the Supplier what concerns others
//	 ├─ look.go               what it says of itself, to remember
//	 └─ contacts              what its server has got of clients, after which that is for them alone
//
// A session is initialized once: two SDKs refuse or end a session at a second initialize. So
// [Result.Answer] answers a client's later initialize from the stored result, under the client's id
// and with the protocol version negotiated for that client. The synthetic request declares no
// client capabilities: the gateway must not promise the server what perhaps no client serves.
//
// Source: MCP 2024-11-05 to 2025-11-25, basic/lifecycle.
//
// Version 1 makes no promise about this package: it may change at any time.
package handshake
