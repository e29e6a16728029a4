// Package bridge is the life of one connection behind its gate: a [Bridge] gets the
// connection a session, runs the handshake, gets another session when that one is
// lost, and answers what a client may ask about the handshake itself.
//
//	Bridge ── start       the state machine that gets a session; its table is at State
//	       ├─ attachment  the connection on the current session
//	       ├─ memory      what a new session must be told
//	       └─ repeated    requests that are sent for the second time
//
// Its log, metrics and errors are those of package gateway.
package bridge
