package stateless

import (
	"bytes"
	"context"
	"encoding/json"
	"net/http"
	"slices"

	"github.com/mcp-sse/mcp-sse/front"
	"github.com/mcp-sse/mcp-sse/internal/mcp"
	"github.com/mcp-sse/mcp-sse/jsonrpc"
	"github.com/mcp-sse/mcp-sse/metrics"
	"github.com/mcp-sse/mcp-sse/multiplex/sharing"
)

// request is a client's request, and what its _meta says.
type request struct {
	*jsonrpc.Message
	principal    string
	version      string
	capabilities json.RawMessage
	info         json.RawMessage // nil: there is none
	logLevel     sharing.Level   // 0: no log messages
	passed       context.Context // what is passed on of the HTTP request; nil: nothing
}

// refused is the refusal of a request, with the JSON-RPC error e.
func refused(status int, e *jsonrpc.Error) *front.Refusal {
	return front.RefusedWith(status, metrics.PostInvalidRequest, e)
}

func invalidParams(format string, args ...any) *front.Refusal {
	return refused(http.StatusBadRequest, jsonrpc.Errorf(jsonrpc.CodeInvalidParams, format, args...))
}

// parseRequest reads the _meta of a request (MCP 2026-07-28, basic, _meta).
func parseRequest(m *jsonrpc.Message, principal string) (*request, *front.Refusal) {
	meta, ok := jsonrpc.Member(m.Params(), "_meta")
	if !ok || meta[0] != '{' {
		return nil, invalidParams("params._meta is missing")
	}
	r := &request{Message: m, principal: principal}
	raw, _ := jsonrpc.Member(meta, mcp.MetaVersion)
	if r.version, ok = jsonrpc.Text(raw); !ok {
		return nil, invalidParams("params._meta has no %q", mcp.MetaVersion)
	}
	if r.capabilities, ok = jsonrpc.Member(meta, mcp.MetaCapabilities); !ok || r.capabilities[0] != '{' {
		return nil, invalidParams("params._meta has no %q", mcp.MetaCapabilities)
	}
	if r.info, ok = jsonrpc.Member(meta, mcp.MetaClientInfo); ok && r.info[0] != '{' {
		return nil, invalidParams("%q is not an object", mcp.MetaClientInfo)
	}
	if len(r.capabilities) > maxCapabilities || len(r.info) > maxClientInfo {
		return nil, invalidParams("params._meta is too long")
	}
	if raw, ok := jsonrpc.Member(meta, mcp.MetaLogLevel); ok {
		level, _ := jsonrpc.Text(raw)
		if r.logLevel = sharing.ParseLevel(level); r.logLevel == 0 {
			return nil, invalidParams("%q is no level", mcp.MetaLogLevel)
		}
	}
	return r, nil
}

// declares reports whether the client has declared a capability.
func (r *request) declares(names ...string) bool { return mcp.Declares(r.capabilities, names...) }

// mayAsk reports whether the server may ask the client something during the request.
func (r *request) mayAsk() bool {
	return asksInput(r.Method) && (r.declares("elicitation") || r.declares("sampling") || r.declares("roots"))
}

// asksInput reports whether a server may ask for input to a request of that method.
func asksInput(method string) bool {
	return slices.Contains([]string{mcp.MethodCallTool, mcp.MethodGetPrompt, mcp.MethodReadResource}, method)
}

// plainParams returns the params as a server of 2025-11-25 expects them.
func (r *request) plainParams() json.RawMessage {
	params := r.Params()
	for _, name := range []string{"inputResponses", "requestState"} {
		params = jsonrpc.RemoveMember(params, name)
	}
	return cutMeta(params, mcp.MetaVersion, mcp.MetaCapabilities, mcp.MetaClientInfo, mcp.MetaLogLevel)
}

// canonical returns JSON in a form that does not depend on white space nor, up to
// maxCanonical, on the order of members. It returns anything but JSON unchanged.
func canonical(raw json.RawMessage) []byte {
	if raw = jsonrpc.Compact(raw); len(raw) > maxCanonical {
		return raw
	}
	decoder := json.NewDecoder(bytes.NewReader(raw))
	decoder.UseNumber() // keeps every digit
	var v any
	if decoder.Decode(&v) != nil {
		return raw
	}
	out, err := json.Marshal(v)
	if err != nil {
		return raw
	}
	return out
}
