// Package sessions starts sessions with the MCP server and supplies them: one at a
// time, on a server from a pool that was started ahead, or shared by all.
//
//	Supplier ── Attempt    starts one session: turn, server, handshake
//	         ├─ pool       servers started ahead, not initialized
//	         └─ shared     slots, each with one session that many members use
//
// It does not know what uses a session. The owner of a session learns of its end by
// the function given to [Session.Own], a member of a shared one by that given to
// [Supplier.Join].
package sessions
