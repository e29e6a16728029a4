// Package handshake gets each connection its session with the server: it starts the server or takes
// one that is ready, runs the MCP handshake on it, also for clients that do not, and gets another
// session when that one is lost.
//
// What a connection needs:
//
//	Bridge ── bridge.go      the client's messages: answered here, or sent to the session
//	       ├─ life.go        its sessions, one after the other: events in, moves out
//	       │    ├─ internal/life   the table: what follows from each event
//	       │    ├─ actions.go      what a move does
//	       │    ├─ recall.go       what memory has for this client
//	       │    ├─ told.go         what the client is told without a session, and when that was otherwise
//	       │    ├─ initializes.go  the client's own initialize
//	       │    ├─ prepare.go      brings a session into use
//	       │    └─ idle.go         a session that its client does not use ends
//	       ├─ start.go       one start: events in, actions out
//	       │    └─ state.go  the table of a start: what follows from each event
//	       ├─ attachment.go  the connection as its session sees it
//	       ├─ early.go       what a server sends before its session is in use
//	       ├─ restore.go     what a new session must get again
//	       └─ report.go      log lines and errors
//
// Where sessions come from:
//
//	Supplier ── supplier.go   one for each server that is configured
//	         ├─ open.go       takes a server, asks for the params of initialize, runs the handshake
//	         ├─ pool.go       servers started ahead, not initialized
//	         ├─ shared.go     the session that all connections share
//	         ├─ session.go    a session, its proof and its end
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
//
// A session is initialized once: two SDKs refuse or end a session at a second initialize. So
// [Result.Answer] answers a client's later initialize from the stored result, under the client's id
// and with the protocol version negotiated for that client. The synthetic request declares no
// client capabilities: the gateway must not promise the server what perhaps no client serves.
//
// Source: MCP 2024-11-05 to 2025-11-25, basic/lifecycle.
package handshake
