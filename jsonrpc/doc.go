// Package jsonrpc parses JSON-RPC 2.0 messages, and keeps their id, params and
// result as the bytes that came.
//
// A gateway must not change what it carries: 9007199254740993, 1.5 and 1e3 are
// different ids to some peer, and a member that the gateway does not know may
// matter to the two ends. So [Parse] checks a message and notes where its parts
// are, and [Message.WithID] splices another id into the same bytes. Nothing is
// decoded and encoded again.
//
// The package also declares [Conn], one session with an MCP server. The gateway puts the requests of one client, or of
// several, on it under numbers of its own; package upstream implements it for each way to reach a server. Conn knows
// no MCP method and no HTTP.
//
// Source: JSON-RPC 2.0 (2013-01-04) and RFC 8259.
package jsonrpc
