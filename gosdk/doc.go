// Package gosdk serves a server of the official go-sdk
// (github.com/modelcontextprotocol/go-sdk) through a gateway, in process and without a
// pipe: the server gets each message as the gateway has parsed it, and encodes each
// response once.
//
// [NewSSEHandler] takes the place of mcp.NewSSEHandler, and may be mounted as that is.
// [Server] is one server as an upstream, for gateway.New.
//
// Each connection has a session of its own with the server, which Server.Sessions shows.
// All of MCP passes both ways. A handler sees
//
//   - in its context the values of the context of the HTTP request that opened the
//     connection, and its upstream.Caller. Over HTTP+SSE that request is the client's GET,
//     over Streamable HTTP its first POST;
//   - in RequestExtra.Header those headers of the POST with its call that
//     gateway.PassRequest.Headers names, and in RequestExtra.TokenInfo the token that
//     RequireBearerToken of go-sdk's package auth, a middleware around the gateway, has
//     checked for that POST. If the POST has no such header, or no token, the handler sees
//     the headers, or the token, of the request that opened the connection. go-sdk's own
//     handler of HTTP+SSE gives no RequestExtra.
//
// With [Server], both need gateway.Options.PassRequest; NewSSEHandler sets it. A session
// that the server closes, by ServerSession.Close or because keep-alive pings fail, ends
// its connection.
//
// # What differs from mcp.NewSSEHandler
//
//   - A function that returns no server gets the client a 404, not a 400.
//   - A request of an unknown method, or without the params that it needs, gets an answer
//     with an error from the server, not a 400 for the POST.
//   - Ids and numbers of more than 53 bits pass unchanged. A response has the id of its
//     request byte by byte.
//   - The end of a connection ends the contexts of its handlers.
//   - The gateway initializes the session of a client that does not send initialize
//     within a tenth of a second. If such a client then declares capabilities,
//     the server sees a second session in place of the first. NoAutoInitialize turns this
//     off.
//   - The gateway answers ping in both directions, so a keep-alive ping of the server
//     finds the gateway alive. The gateway itself closes connections that take nothing.
//   - On a loopback address both refuse other names in Host: gateway.Options.AllowedHosts
//     is for names of your own, and "*" in place of DisableLocalhostProtection. The
//     gateway also checks Origin (AllowedOrigins).
//   - A POST may have any media type for JSON, not only application/json.
//   - gateway.Options.MaxMessageBytes is MaxRequestBodyBytes, with the same default of
//     4 MiB and the same status 413. It must be positive.
//
// In both, go-sdk does not answer a call whose result has no JSON form, such as
// StructuredContent of json.RawMessage("{"). Its client gets the gateway's error after
// gateway.Options.RequestTimeout; the call counts among those of its session until the
// session ends. A middleware that marshals results could answer at once.
//
// In both, a handler that panics ends the program, because go-sdk calls it in a goroutine
// of its own. One that calls runtime.Goexit, as testing.T.FailNow does, is never answered,
// and go-sdk keeps its session for ever. [Recover] is a middleware that answers with an
// error instead.
package gosdk
