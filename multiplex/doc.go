// Package multiplex puts callers on one MCP session and matches every response
// to its request.
//
//	port ─ Forward ─▶ pending table ─▶ jsonrpc.Conn ─▶ server
//	port ◀─ Client ── pending table ◀─ reader loop ◀─┘
//
// The contract:
//   - Ids on the server's side are ours, positive integers from 1: SDK servers
//     damage ids that are large, fractional or strange. So are progress tokens,
//     which clients begin at 0. The client's bytes are kept and restored; nothing
//     else of a message is touched.
//   - Every request gets one answer: the server's response, or an error that
//     names the reason when its time is up, the server is too busy, too many
//     wait for it, the answer is unusable, or the session ends.
//   - A request that times out is cancelled at the server and touches no other.
//     Progress gives it more time, up to a maximum.
//   - Requests of the server get ids of ours towards the client, which no other
//     session of that client has used, so that a late answer cannot reach the
//     wrong session.
//   - What the session ends under, and may be asked again, is handed back by
//     [Client.Lost]: what was not sent, and what [Repeatable] knows to be safe.
//   - A server that has been silent with requests to answer is pinged, but only
//     when it has none left, and given up when it misses two.
//
// A session with [Options.Shared] has several clients that must not learn of each
// other. A message of the server then reaches the one that it is for, by the
// request that it came with, its progress token, its task, its subscription or its
// elicitation; a list that has changed concerns all. What cannot be attributed is
// dropped and counted, and a request refused: it is never guessed. Log level and
// subscriptions of all are merged into what the server is told. What a client sends
// that would change the session for all does not reach the server.
//
// Without it the session is one client's, and messages pass as they are, but for
// ids and tokens.
//
// A [Session] owns one goroutine, the reader loop, which ends with its Conn, and
// one timer while requests are in flight. It holds no lock while it sends or calls
// a client. All its tables are bounded: requests that wait by Options.MaxWaiting and
// 8 MiB, requests of the server by 256, tasks by 4096, elicitations by 1024,
// subscriptions of a client by 1024.
package multiplex
