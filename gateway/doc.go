// Package gateway serves an MCP server over HTTP+SSE, Streamable HTTP and stdio. For each
// connection it starts a session with the server, runs the MCP handshake on it, and over
// HTTP+SSE announces the result. So a client gets answers even if it never initializes, or
// reconnects without initializing again.
//
//	gw, err := gateway.New(upstream.Command{Path: "my-mcp-server"}, gateway.Options{})
//	…
//	http.Handle("/mcp", gw)
//	http.Handle("/mcp/", gw)
//
// A message passes these hops:
//
//	sse, streamable or stdio ─▶ connstate.Connection ─▶ bridge.Bridge ─▶ multiplex.Session ─▶ upstream
//
// A [Gateway] wires the hops and ends them; [Servers] serves several gateways.
// Package internal/bridge connects a connection to its sessions, which package handshake supplies.
// docs/reference/states.md has the states, docs/reference/errors.md the errors.
package gateway
