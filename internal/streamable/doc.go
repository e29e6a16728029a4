// Package streamable serves Streamable HTTP: POST, GET and DELETE, for clients of MCP
// 2025-03-26, 2025-06-18 and 2025-11-25 (basic/transports), which have sessions.
//
//	POST ─▶ Handler ─▶ session ─▶ connstate.Connection ─▶ …
//	                      │
//	            stream ◀──┘  answers, and what came with a request
//	            │
//	            ├─ response: JSON, or a stream of events
//	            └─ store: what a client missed while it was cut
//
// A session is a connection of package connstate, whose id is the Mcp-Session-Id. Each
// POST with requests has its own stream. Messages that belong to no request have one too,
// which the client reads with GET. A stream whose client has left goes on: a GET with
// Last-Event-ID gets the rest.
//
// The contract:
//   - Each request gets its own answer, on the response to its POST or on the stream that
//     continues it, and nowhere else.
//   - A POST with an answer alone is answered with JSON. Anything else that comes first,
//     or a wait, makes the response a stream.
//   - No client delays another, nor the server: a stream whose client does not read is cut.
//   - A request of a client that has not initialized is answered like any other.
package streamable
