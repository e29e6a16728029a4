// Package multiplex puts clients on one MCP session and matches every response to
// its request.
//
//	Caller.Send(r) ─▶ table of requests ─▶ jsonrpc.Conn ─▶ server
//	r.Answer ◀─────── table of requests ◀─ reader loop ◀─┘
//
// r is a [connstate.Request]: it belongs to the client's connection, and the session's
// entry in the table points to it.
//
// Where to look:
//
//	caller.go   a client on the session: what it sends beside requests, and how it leaves
//	send.go     the way of a request to the server
//	table.go    the requests that the server has, and the queue of those that wait
//	session.go  the reader loop, and the end of a session
//	match.go    which request a response answers; words.go has the names of its values
//	answer.go   the way of an answer back, and other ends of a request
//	server.go   what the server sends of its own: requests, notifications, progress
//	shared.go   what several clients of one session have set
//	tools.go    what is known of the server's tools
//
// The contract:
//   - The session gives requests its own ids towards the server, positive integers
//     from 1, because SDK servers damage ids that are large, fractional or strange. It
//     does the same with progress tokens, which clients count from 0. It keeps the
//     client's bytes and restores them; it changes nothing else of a message, except that
//     with traces a request gets the trace context in params._meta ([connstate.Request.ToServer]).
//   - Every request gets one answer: the server's response, or an error that names
//     the reason when its time is up, the server is too busy, the queue is full, the
//     answer is unusable, or the session ends.
//   - The session cancels a request that times out at the server. That affects no
//     other request. Progress gives a request more time, up to a maximum.
//   - The session gives the server's requests its own ids towards the client. No other
//     session of that client uses them, so a late answer cannot reach the wrong session.
//   - When a session ends, [Client.Lost] returns its requests, and says which of them may be
//     repeated: those not sent, and those that [Tools] knows to be safe.
//   - If a request times out and the server has sent nothing since it got it, the session
//     pings the server once. If the server stays silent, the session ends with [ErrHung].
//   - A response without the id of a request answers the oldest request, as the table in
//     match.go says, and the server gets one request at a time from then on. Nothing crosses
//     from one client to another: requests that nobody can tell apart get an error at once,
//     and if one of them was given up, the session ends.
//   - A message over the size limit ends the session. If one request was out, that one gets
//     an error that says so.
//
// A session with [Options.Shared] has several clients that must not learn of each
// other. It attributes a notification of the server by its related request (the one in
// whose HTTP response it came), or by its progress token, task or subscription; a list that has changed concerns all
// clients. It drops and counts others; it never guesses. It refuses requests of the
// server, merges log levels and subscriptions (package sharing), and keeps from the
// server what would change the session for all.
//
// Any other session has one client, and changes only ids, tokens and the trace context of its messages.
//
// A [Session] owns the reader loop, a goroutine that ends with its Conn (none for a
// [jsonrpc.Local]), and a timer for each request. Over a [jsonrpc.Relay] it allows twenty
// times the timeouts of requests, because the sessions behind it bound them earlier. It
// holds no lock while it sends or calls a client. Its tables are bounded: waiting requests
// by Options.MaxWaiting and 8 MiB, requests of the server by 256, tasks by 4096,
// subscriptions of a client by 1024.
package multiplex
