// Package statelessclient serves clients of MCP 2026-07-28, which know neither initialize
// nor sessions, with connections like those of clients that do: each of its connections is
// an ordinary client of 2025-11-25 to everything behind it, so it works with every upstream.
//
//	server/discover                 answered from the result of the connection's initialize
//	tools/call and the others       the same request on a pooled connection
//	a request of the server         input_required; the call waits for the retry
//	subscriptions/listen            resources/subscribe, and a stream of what changes
//	logLevel of a request           logging/setLevel, and its messages alone
//	the end of the response         notifications/cancelled
//
// Requests share a connection if nothing tells their clients apart: principal or network,
// capabilities, name and version, log level, and the headers that are passed on. A call
// that may need input has its connection to itself among such calls, because over stdio no
// request of a server says which call it belongs to.
//
// Package internal/stateless holds the vocabulary. Source: MCP 2026-07-28, basic,
// basic/transports/streamable-http and basic/patterns/mrtr.
package statelessclient
