// Package stateless serves clients of MCP 2026-07-28, who know neither initialize nor
// sessions, with the connections of clients who do.
//
// To everything behind it, each of its connections is an ordinary client of 2025-11-25.
// So every kind of upstream works, and what serves the others serves these clients too.
//
//	server/discover                 answered from the result of the connection's initialize
//	tools/call and the other ones   the same request on a pooled connection
//	a request of the server         input_required, and the call waits for the retry
//	subscriptions/listen            resources/subscribe, and a stream of what changes
//	logLevel of a request           logging/setLevel, and its messages alone
//	the end of the response         notifications/cancelled
//
// A connection belongs to one client, as far as its requests tell: principal,
// capabilities, name and version, and the headers that are passed on. A call that may
// need input has its connection to itself among such calls, because over stdio no request
// of a server says which call it belongs to. All other requests share one.
//
// Source: MCP 2026-07-28, basic, basic/transports/streamable-http and
// basic/patterns/mrtr.
package stateless
