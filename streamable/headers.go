package streamable

import (
	"mime"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/mcp-sse/mcp-sse/internal/httpcheck"
	"github.com/mcp-sse/mcp-sse/internal/mcp"
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

// accepts returns the quality of the media type kind/sub in the Accept header, 0 if it is
// not accepted, and the place of the media range that says so: the first of the most
// specific ones that match (RFC 9110, 12.5.1).
func accepts(r *http.Request, kind, sub string) (q float64, place int) {
	best, i := 0, -1
	for part := range strings.SplitSeq(strings.Join(r.Header["Accept"], ","), ",") {
		i++
		media, quality := strings.ToLower(strings.TrimSpace(part)), 1.0
		if strings.Contains(media, ";") {
			var params map[string]string
			media, params, _ = mime.ParseMediaType(media) // an invalid one has no media type, or no params
			if value, err := strconv.ParseFloat(params["q"], 64); err == nil && value >= 0 && value <= 1 {
				quality = value
			}
		}
		if match := 1 + slices.Index([]string{"*/*", kind + "/*", kind + "/" + sub}, media); match > best {
			best, q, place = match, quality, i
		}
	}
	return q, place
}

// checkAccept returns which forms of an answer the client of a POST takes: MCP wants both,
// but many clients list one. It reports whether the client prefers a stream, or takes JSON
// alone. It refuses a POST that takes neither.
//
//	Accept has                | the answer is
//	--------------------------|-----------------------------------------------
//	both, or there is none    | JSON, or a stream if it takes long
//	both, the stream first    | a stream
//	application/json alone    | JSON
//	text/event-stream alone   | a stream
//	neither                   | 406
func checkAccept(r *http.Request) (stream, jsonOnly bool, _ *httpcheck.Refusal) {
	if strings.TrimSpace(strings.Join(r.Header["Accept"], "")) == "" {
		return false, false, nil
	}
	answer, answerPlace := accepts(r, "application", "json")
	events, eventsPlace := accepts(r, "text", "event-stream")
	if answer == 0 && events == 0 {
		return false, false, httpcheck.Refused(http.StatusNotAcceptable, metrics.PostNotAcceptable, "the Accept header must list application/json, text/event-stream, or both")
	}
	return events > answer || events == answer && eventsPlace < answerPlace, events == 0, nil
}

// checkSingle refuses a request with two values of a header of the transport: what is
// between may have looked at the other one.
func checkSingle(r *http.Request) *httpcheck.Refusal {
	for _, name := range []string{headerSession, httpcheck.HeaderVersion, "Last-Event-Id"} {
		if len(r.Header[name]) > 1 {
			return httpcheck.Refused(http.StatusBadRequest, metrics.RejectedBadRequest, "the header %s must come once", name)
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
		_, named = jsonrpc.Member(p.messages[0].Params(), "_meta", mcp.MetaVersion)
	}
	return named || isModern(p.version) && !p.initialize
}

func checkVersion(version string) *httpcheck.Refusal {
	if version == "" || mcp.HasInitialize(version) {
		return nil
	}
	return httpcheck.Refused(http.StatusBadRequest, metrics.RejectedBadRequest,
		"the MCP-Protocol-Version %.64q is not supported: use one of %s", version, strings.Join(append(mcp.VersionsWithInitialize(), mcp.VersionStateless), ", "))
}
