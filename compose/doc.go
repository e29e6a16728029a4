// Package compose brings several MCP servers together as one: a view.
//
// A [View] is an upstream of a gateway, as any other server is. Its members are gateways themselves. Each client of the
// view has a session of its own, with a link to each member. The session answers initialize and lists out of what the
// members say, and routes all else: calls by the names that the view gives, responses and progress by numbers that pass
// unchanged, questions of members by ids that the view gives. A member that is late or fails costs its own tools alone.
//
// The package knows neither HTTP nor processes, and nothing of the gateways in front and behind but the interfaces of
// package jsonrpc. [The design] has the reasons.
//
// [The design]: https://github.com/mcp-sse/mcp-sse/blob/main/docs/design/views.md
package compose

// Package internal/merge makes the names and the lists, internal/selection judges what a member's rules leave out, and
// internal/asker has what the gateways in front and behind tell the view beside messages.
