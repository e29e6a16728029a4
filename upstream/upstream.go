package upstream

import (
	"net/http"

	"github.com/mcp-sse/mcp-sse/jsonrpc"
	"github.com/mcp-sse/mcp-sse/upstream/remote"
	"github.com/mcp-sse/mcp-sse/upstream/stdio"
)

// Upstream reaches one MCP server. It is safe for concurrent use. Its Dial opens a
// session, until its context ends.
type Upstream = jsonrpc.Dialer

// Command starts a child process for each session and speaks to it over stdio. See
// [stdio.Command].
type Command = stdio.Command

// LineBreak stands between the lines of stderr in an error about a child process.
const LineBreak = stdio.LineBreak

// URL reaches a server over HTTP. See [remote.URL].
type URL = remote.URL

var (
	_ Upstream = Handle(nil)
	_ Upstream = Serve(nil)
)

// Transports of a URL; see the constants of package remote.
const (
	TransportStreamable = remote.TransportStreamable
	TransportStateless  = remote.TransportStateless
	TransportSSE        = remote.TransportSSE
)

// HTTPHandler reaches a server that is an http.Handler of this program, without a
// socket. See [remote.HTTPHandler].
func HTTPHandler(h http.Handler) Upstream { return remote.HTTPHandler(h) }
