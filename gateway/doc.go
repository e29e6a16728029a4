// Package gateway serves an MCP server over HTTP+SSE, and speaks first: for
// each stream that a client opens it starts a session with the server, runs the
// MCP handshake on it, and announces the result, so that a client which never
// initializes, or comes back without doing it again, gets answers.
//
//	gw, err := gateway.New(upstream.Command{Path: "my-mcp-server"}, gateway.Options{})
//	…
//	http.Handle("/sse", gw)
//	http.Handle("/sse/", gw)
//
// A [Gateway] wires the hops that a message travels:
//
//	sse.Handler ─▶ connstate.Connection ─▶ bridge.Bridge ─▶ multiplex.Session ─▶ upstream
//
// This package wires them and ends them; [Servers] puts several gateways together.
// The life of one connection behind its gate is in internal/bridge, and where its
// session comes from in internal/sessions. The states are in
// docs/reference/states.md, the errors in docs/reference/errors.md.
package gateway
