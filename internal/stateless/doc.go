// Package stateless is the vocabulary of MCP 2026-07-28, which has neither initialize nor
// sessions, and how it maps to the sessions of MCP 2025-11-25 and earlier. Two packages
// translate with it, one in each direction:
//
//	stateless client ─▶ internal/streamable/internal/statelessclient ─▶ a server with sessions
//	client with sessions ─▶ internal/upstream/statelessserver ─▶ a stateless server
//
//	2026-07-28                            2025-11-25
//	server/discover                       initialize, ping
//	_meta of each request ([Meta])        params of initialize, logging/setLevel
//	headers that repeat it ([Headers])    –
//	input_required, and a retry           requests of the server to the client
//	subscriptions/listen ([Filter])       resources/subscribe, list_changed
//	the end of the response               notifications/cancelled
//	resultType, serverInfo in results     –
package stateless
