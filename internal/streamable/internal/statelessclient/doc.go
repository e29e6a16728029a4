// Package statelessclient serves clients of MCP 2026-07-28, which know neither initialize
// nor sessions, with connections like those of clients that do: each of its connections is
// an ordinary client of 2025-11-25 to everything behind it, so it works with every upstream.
// While a client is asked for input, its call waits on the connection for the retry.
// Package internal/stateless has the table of what becomes what.
//
// Requests share a connection if nothing tells their clients apart: principal or network,
// capabilities, name and version, and the headers that are passed on. A call
// that may need input has its connection to itself among such calls, because over stdio no
// request of a server says which call it belongs to.
//
// Source: MCP 2026-07-28, basic,
// basic/transports/streamable-http and basic/patterns/mrtr.
package statelessclient
