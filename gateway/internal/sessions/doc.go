// Package sessions starts sessions with the MCP server and supplies them: one at a
// time, on a server from a pool that was started ahead, or shared by all.
//
//	Supplier ── Attempt    starts one session: turn, server, handshake
//	         ├─ pool       servers started ahead, not initialized
//	         └─ shared     slots, each with one session that many members use
//
// The package does not know the users of sessions. At the end of a session it calls
// the function that the owner gave to [Session.Own]; for a shared session, the
// functions that the members gave to [Supplier.Join].
package sessions
