// Package sessions starts sessions with the MCP server and supplies them to
// connections: to each its own, on a server that was started ahead if there is one, or
// one session to all.
//
//	Supplier.Open ── start.go    takes a server, asks for the params, runs the handshake
//	              ├─ pool.go     servers started ahead, not initialized
//	              └─ shared.go   the session that all connections share
//
// The package does not know the users of sessions. They learn of the end of a session
// by [Session.Over].
package sessions
