// Package bridge connects one connection to its session. A [Bridge] gets the
// connection a session, runs the handshake, gets another session when that one is
// lost, and answers the client's requests about the handshake itself.
//
//	Bridge ── start       the state machine that gets a session; see State for its table
//	       ├─ attachment  the connection on the current session
//	       ├─ memory      log level and subscriptions, for a new session
//	       └─ repeated    requests sent for the second time
//
// Its log lines, metrics and errors belong to package gateway.
package bridge
