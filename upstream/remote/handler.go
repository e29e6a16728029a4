package remote

import (
	"net/http"

	"github.com/mcp-sse/mcp-sse/jsonrpc"
	"github.com/mcp-sse/mcp-sse/upstream/internal/inprocess"
)

// handlerAddress is the URL of a handler in process. No host can have this name
// (RFC 6761).
const handlerAddress = "http://handler.invalid/mcp"

// HTTPHandler reaches a server that is an http.Handler of this program, over
// Streamable HTTP or HTTP+SSE as [URL] does, without a socket. Each request calls h in
// its own goroutine. Its context ends with the session, or when nobody needs the response
// any more, and has the values of Dial's context that peer.Values returns. h gets the path
// /mcp and the host handler.invalid.
//
// h may flush, and write while it reads. It cannot set deadlines or hijack. A panic in
// it fails the request, as in net/http.
func HTTPHandler(h http.Handler) jsonrpc.Dialer {
	return URL{Address: handlerAddress, Client: &http.Client{Transport: inprocess.Transport{Handler: h}}, site: newSite()}
}
