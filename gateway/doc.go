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
// A message passes these parts on its way to the server, and an answer the same ones back:
//
//	transport ─▶ connection ─▶ bridge ─▶ session ─▶ upstream
//
// The transport reads messages from a client and writes answers to it: HTTP+SSE, Streamable HTTP or stdio. The
// connection keeps all that belongs to one client: its unanswered requests, the messages that wait, its state. The
// bridge joins the connection with its session, and with the next session if that one is lost. The session gives each
// request a number of its own, because several clients may use the same ids, and gives the answer the client's id
// back. The upstream reaches the server: see package upstream.
//
// A [Gateway] connects these parts and ends them; [Servers] serves several gateways.
// In the repository docs/glossary.md explains the words, docs/reference/states.md has the states of a connection, and
// docs/reference/errors.md the errors.
package gateway
