// Package bridge connects one connection to its session. A [Bridge] gets the
// connection a session, runs the handshake, gets another session when that one is
// lost, and answers the client's requests about the handshake itself.
//
//	Bridge ── bridge.go   the client's messages: answered, or sent to the session
//	       ├─ run.go      one goroutine: gets the session, serves it, gets the next
//	       ├─ client.go   the connection as its session sees it
//	       ├─ memory.go   what a new session must get again
//	       └─ report.go   log lines and errors
//
// The state of a connection is that of its connstate.Connection.
package bridge
