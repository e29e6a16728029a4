// Package multiplex puts callers on one MCP session and matches every response
// to its request.
//
//	port ─ Forward ─▶ pending table ─▶ jsonrpc.Conn ─▶ server
//	port ◀─ Client ── pending table ◀─ reader loop ◀─┘
//
// The contract:
//   - Ids on the server's side are ours, positive integers from 1: SDK servers
//     damage ids that are large, fractional or strange. The client's bytes are
//     kept and restored; nothing else of a message is touched.
//   - Every request gets one answer: the server's response, or an error that
//     names the reason when its time is up, the server is too busy, the answer
//     is unusable, or the session ends.
//   - A request that times out is cancelled at the server and touches no other.
//   - Requests of the server get ids of ours towards the client, which no other
//     session of that client has used, so that a late answer cannot reach the
//     wrong session.
//
// A [Session] owns one goroutine, the reader loop, which ends with its Conn.
package multiplex
