// Package multiplex puts clients on one MCP session and matches every response to
// its request.
//
//	client ─ Forward ─▶ table of requests ─▶ jsonrpc.Conn ─▶ server
//	Client ◀─ Answer ── table of requests ◀─ reader loop ◀─┘
//
// The contract:
//   - The server sees ids of ours, positive integers from 1, because SDK servers
//     damage ids that are large, fractional or strange. The same goes for progress
//     tokens, which clients count from 0. The client's bytes are kept and restored;
//     nothing else of a message is touched.
//   - Every request gets one answer: the server's response, or an error that names
//     the reason when its time is up, the server is too busy, the queue is full, the
//     answer is unusable, or the session ends.
//   - A request that times out is cancelled at the server and affects no other.
//     Progress gives it more time, up to a maximum.
//   - Requests of the server get ids of ours towards the client, which no other
//     session of that client uses, so a late answer cannot reach the wrong session.
//   - When a session ends, [Client.Lost] hands back the requests that may be made
//     again: those not sent, and those that [Repeatable] knows to be safe.
//   - A silent server that has requests to answer is pinged once it has none left,
//     and given up when it misses two pings.
//
// A session with [Options.Shared] has several clients that must not learn of each
// other. It attributes a message of the server by the request that it came with, or
// its progress token, task, subscription or elicitation; a list that has changed
// concerns all clients. It drops and counts what it cannot attribute, and refuses
// such requests; it never guesses. It merges log levels and subscriptions (package
// sharing), and keeps from the server what would change the session for all.
//
// Otherwise the session is one client's, and messages pass as they are, except for
// ids and tokens.
//
// A [Session] owns one goroutine, the reader loop, which ends with its Conn, and one
// timer while requests are in flight. It holds no lock while it sends or calls a
// client. Its tables are bounded: requests that wait by Options.MaxWaiting and 8 MiB,
// requests of the server by 256, tasks by 4096, elicitations by 1024, subscriptions
// of a client by 1024.
package multiplex
