package streamable

import (
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/mcp-sse/mcp-sse/front"
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

// accepts reports whether a request accepts a response of the media type kind/sub.
func accepts(r *http.Request, kind, sub string) bool {
	for _, line := range r.Header["Accept"] {
		for part := range strings.SplitSeq(line, ",") {
			media, params, _ := strings.Cut(part, ";")
			k, s, _ := strings.Cut(strings.TrimSpace(media), "/")
			if (k == "*" && s == "*" || strings.EqualFold(k, kind) && (s == "*" || strings.EqualFold(s, sub))) && !refusedByWeight(params) {
				return true
			}
		}
	}
	return false
}

// refusedByWeight reports whether the parameters of a media range have the weight 0
// (RFC 9110, 12.4.2).
func refusedByWeight(params string) bool {
	for param := range strings.SplitSeq(params, ";") {
		name, value, _ := strings.Cut(strings.TrimSpace(param), "=")
		if strings.EqualFold(name, "q") {
			weight, err := strconv.ParseFloat(value, 64)
			return err == nil && weight == 0
		}
	}
	return false
}

// checkAccept refuses a POST whose client does not take both forms of an answer.
func checkAccept(r *http.Request) *front.Refusal {
	if accepts(r, "application", "json") && accepts(r, "text", "event-stream") {
		return nil
	}
	return front.Refused(http.StatusNotAcceptable, metrics.PostNotAcceptable, "the Accept header must list application/json and text/event-stream")
}

// isModern reports whether a version is that of a client without sessions: MCP
// 2026-07-28 or later.
func isModern(version string) bool {
	_, err := time.Parse(time.DateOnly, version)
	return err == nil && version >= mcp.VersionStateless
}

// speaksModern reports whether a POST is of a client without sessions: its header or its
// _meta says so (MCP 2026-07-28, versioning).
func speaksModern(version string, messages []*jsonrpc.Message) bool {
	if isModern(version) {
		return true
	}
	if len(messages) != 1 || messages[0].Kind != jsonrpc.Request {
		return false
	}
	_, ok := jsonrpc.Member(messages[0].Params(), "_meta", mcp.MetaVersion)
	return ok
}

// versions are the versions of clients with sessions on this transport.
func versions() []string {
	return slices.DeleteFunc(mcp.VersionsWithInitialize(), func(v string) bool { return v < versionAssumed })
}

// checkVersion refuses a version that the gateway does not speak.
func checkVersion(version string) *front.Refusal {
	if version == "" || mcp.HasInitialize(version) {
		return nil
	}
	return front.Refused(http.StatusBadRequest, metrics.PostBadRequest,
		"the MCP-Protocol-Version %.64q is not supported: use one of %s", version, strings.Join(mcp.VersionsWithInitialize(), ", "))
}

// eventID returns the text of an event's id: visible to clients, which send it back.
func (id EventID) String() string {
	return strconv.FormatInt(id.Stream, 10) + "-" + strconv.FormatInt(id.Number, 10)
}

// parseEventID is the inverse of String.
func parseEventID(text string) (id EventID, ok bool) {
	stream, number, _ := strings.Cut(text, "-")
	var errs [2]error
	id.Stream, errs[0] = strconv.ParseInt(stream, 10, 64)
	id.Number, errs[1] = strconv.ParseInt(number, 10, 64)
	return id, errs[0] == nil && errs[1] == nil && id.Stream >= 0 && id.Number >= 0 && id.String() == text
}
