package streamable

import (
	"net/http"
	"strings"
	"time"

	"github.com/mcp-sse/mcp-sse/internal/httpcheck"
	"github.com/mcp-sse/mcp-sse/internal/mcp"
	"github.com/mcp-sse/mcp-sse/internal/rawjson"
	"github.com/mcp-sse/mcp-sse/jsonrpc"
	"github.com/mcp-sse/mcp-sse/metrics"
)

// Headers of the transport.
const (
	headerSession     = "Mcp-Session-Id"
	headerLastEventID = "Last-Event-ID"
)

// versionAssumed is the version of a client that names none (MCP 2025-11-25,
// transports, protocol version header). It is the only one with batches.
const versionAssumed = "2025-03-26"

// checkSingle refuses a request with two values of a header of the transport: what is
// between may have looked at the other one.
func checkSingle(r *http.Request) *httpcheck.Refusal {
	for _, name := range []string{headerSession, httpcheck.HeaderVersion, "Last-Event-Id"} {
		if len(r.Header[name]) > 1 {
			return httpcheck.Refused(http.StatusBadRequest, metrics.RejectedBadRequest,
				"the header %s must come once", name)
		}
	}
	return nil
}

// isModern reports whether a version is that of a client without sessions: MCP
// 2026-07-28 or later.
func isModern(version string) bool {
	if version < mcp.VersionStateless { // most: no need to look whether it is a date
		return false
	}
	_, err := time.Parse(time.DateOnly, version)
	return err == nil
}

// speaksModern reports whether a POST is of a client without sessions (MCP 2026-07-28,
// versioning): its header says so, or its _meta. One that names a session, or opens one by
// initialize, is not, whatever its header says.
func (p *post) speaksModern() bool {
	if p.id != "" {
		return false
	}
	named := false
	if len(p.messages) == 1 && p.messages[0].Kind != jsonrpc.Response {
		_, named = rawjson.Member(p.messages[0].Params(), "_meta", mcp.MetaVersion)
	}
	return named || isModern(p.version) && !p.initialize
}

func checkVersion(version string) *httpcheck.Refusal {
	if version == "" || mcp.HasInitialize(version) {
		return nil
	}
	return httpcheck.Refused(http.StatusBadRequest, metrics.RejectedBadRequest,
		"the MCP-Protocol-Version %.64q is not supported: use one of %s",
		version, strings.Join(append(mcp.VersionsWithInitialize(), mcp.VersionStateless), ", "))
}
