package httpcheck

import (
	"fmt"
	"net/http"
	"strings"

	"golang.org/x/net/http/httpguts"
)

// CheckHeaderName returns an error if neither the operator nor a client may set a
// header on requests to a remote server: the name is not valid, or HTTP or MCP define
// the header.
func CheckHeaderName(name string) error {
	if !httpguts.ValidHeaderFieldName(name) {
		return fmt.Errorf("%.64q is not the name of a header", name)
	}
	name = http.CanonicalHeaderKey(name)
	switch name {
	case "Accept", "Accept-Encoding", "Connection", "Content-Encoding", "Content-Length", "Content-Type", "Host",
		"Keep-Alive", "Last-Event-Id", "Te", "Trailer", "Transfer-Encoding", "Upgrade":
	default:
		if !strings.HasPrefix(name, "Mcp-") {
			return nil
		}
	}
	return fmt.Errorf("the transport sets %s itself", name)
}
