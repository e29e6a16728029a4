// Package mcpgo serves a server of mcp-go (github.com/mark3labs/mcp-go) in this process.
//
// NewSSEServer takes the place of mcp-go's server.NewSSEServer. Server is the upstream
// behind it, for a gateway.Gateway with options of its own.
//
// Each connection of a client is one session of the server: it is registered with it, and
// has session tools, resources and templates, a log level, subscriptions, and what the
// client says of itself. Unlike a session of mcp-go's own SSE server, it also passes
// sampling, elicitation and roots requests to the client. Hooks and middleware run as
// they do there, except that the gateway answers pings itself, so that the hooks of a ping
// do not run.
//
//	POST ─▶ gateway ─▶ upstream.Handle ─▶ a goroutine ─▶ HandleMessage
//	                                                         │
//	stream ◀─ gateway ◀─ its result ◀─ after all ◀───────────┘
//	                                   notifications before it
//
// # What differs from server.NewSSEServer
//
//   - The stream and the messages have one path, and the client learns it from the stream.
//     So SSEServer has no methods about endpoints, and none of the options about them: see
//     NewSSEServer. SendEventToSession and CloseSessions have no counterpart: send through
//     the server, and end all with Shutdown.
//   - A client that tries MCP 2026-07-28 first (server/discover) gets the answer that this
//     transport has none, and goes on with initialize. mcp-go's own handler says that it
//     has, and then refuses each request.
//   - The gateway answers pings, and initializes a client that never does.
//   - Web pages of other origins are refused unless gateway.Options.AllowedOrigins has
//     them.
//   - The Header of mcp-go's requests is empty. WithSSEContextFunc puts what a handler needs
//     into the context; gateway.PassRequest.Headers names headers for upstream.CallerFromContext.
//
// One goroutine of a session takes the server's notifications out of its channel. Answers
// pass through that channel too, so that an answer comes after the notifications that its
// handler sent before.
package mcpgo
