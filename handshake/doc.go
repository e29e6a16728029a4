// Package handshake runs the MCP handshake for clients that do not: it builds
// an initialize request, runs it on a session, names the phase in which it
// failed, and answers a client's own initialize from the result.
//
// A session is initialized once: two SDKs refuse or end a session at a second
// initialize. So [Result.Answer] answers a client's later initialize from the
// stored result, under the client's id and with the protocol version negotiated
// for that client.
//
// The synthetic request declares no client capabilities: the gateway must not promise
// the server what perhaps no client serves.
//
// Source: MCP 2024-11-05 to 2025-11-25, basic/lifecycle.
package handshake
