package remote

import (
	"net/http"

	"github.com/mcp-sse/mcp-sse/jsonrpc"
	"github.com/mcp-sse/mcp-sse/upstream/internal/inprocess"
)

// handlerAddress is where a handler in process seems to be. The name can never be
// one of a host (RFC 6761).
const handlerAddress = "http://handler.invalid/mcp"

// HTTPHandler reaches a server that is an http.Handler of this program, over
// Streamable HTTP or HTTP+SSE as [URL] does, without a socket: each request calls
// h in a goroutine of its own, whose context ends when the session does or the
// response is not wanted any more. h gets the path /mcp and the host
// handler.invalid.
//
// h may flush, and write while it reads. It has no deadlines to set, and cannot
// hijack. A panic in it is an error of the request, as in net/http.
func HTTPHandler(h http.Handler) jsonrpc.Dialer {
	return URL{Address: handlerAddress, Client: &http.Client{Transport: inprocess.Transport{Handler: h}}, site: &site{}}
}
