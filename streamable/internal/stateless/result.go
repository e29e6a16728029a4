package stateless

import (
	"encoding/json"
	"net/http"
	"strconv"

	"github.com/mcp-sse/mcp-sse/internal/mcp"
	"github.com/mcp-sse/mcp-sse/jsonrpc"
)

// answer answers a request with the server's answer. lacking are the capabilities for want
// of which the server was refused input, nil for none.
func (l *link) answer(a *reply, q *request, m *jsonrpc.Message, lacking json.RawMessage) {
	if result := m.Result(); result != nil {
		if q.Method == mcp.MethodListTools {
			l.group.tools.learn(result, listsAll(q))
		}
		a.result(l.complete(q.Method, result))
		return
	}
	e := errorOf(m.Error())
	switch e.Code {
	case jsonrpc.CodeMethodNotFound:
		if lacking != nil { // the server passes on how its request for input was refused
			a.fail(http.StatusBadRequest, missingCapability(lacking))
			return
		}
		a.fail(http.StatusNotFound, e)
	case mcp.CodeResourceNotFound:
		e.Code = jsonrpc.CodeInvalidParams
		a.fail(http.StatusOK, e)
	case mcp.CodeElicitationRequired:
		l.askURLs(a, q, e)
	case mcp.CodeHeaderMismatch, mcp.CodeUnsupportedVersion: // they would speak of the client's own request
		e.Code = jsonrpc.CodeInternalError
		a.fail(http.StatusOK, e)
	default:
		if required, ok := requiredCapabilities(e); ok {
			a.fail(http.StatusBadRequest, missingCapability(required))
			return
		}
		a.fail(http.StatusOK, e)
	}
}

// requiredCapabilities returns what the server says that the client must declare.
func requiredCapabilities(e *jsonrpc.Error) (json.RawMessage, bool) {
	data, _ := e.Data.(json.RawMessage)
	required, ok := jsonrpc.Member(data, "requiredCapabilities")
	return required, ok && required[0] == '{'
}

func missingCapability(required json.RawMessage) *jsonrpc.Error {
	e := jsonrpc.Errorf(mcp.CodeMissingCapability, "the server needs capabilities that the client has not declared")
	e.Data = struct {
		Required json.RawMessage `json:"requiredCapabilities"`
	}{required}
	return e
}

// complete returns a result as this version demands it.
func (l *link) complete(method string, result json.RawMessage) json.RawMessage {
	result = jsonrpc.SetMember(result, json.RawMessage(strconv.Quote(mcp.ResultComplete)), "resultType")
	if cacheable(method) {
		result = setDefault(result, "ttlMs", json.RawMessage("0"))
		result = setDefault(result, "cacheScope", json.RawMessage(`"private"`))
	}
	return l.signed(result)
}

// signed returns a result that names the server (MCP 2026-07-28, basic, _meta).
func (l *link) signed(result json.RawMessage) json.RawMessage {
	info, ok := jsonrpc.Member(l.result, "serverInfo")
	if !ok {
		return result
	}
	meta, ok := jsonrpc.Member(result, "_meta")
	if !ok || meta[0] != '{' {
		meta = json.RawMessage("{}")
	}
	return jsonrpc.SetMember(result, setDefault(meta, mcp.MetaServerInfo, info), "_meta")
}

// setDefault adds a member that is missing.
func setDefault(obj json.RawMessage, name string, value json.RawMessage) json.RawMessage {
	if _, ok := jsonrpc.Member(obj, name); ok {
		return obj
	}
	return jsonrpc.SetMember(obj, value, name)
}

// cacheable reports whether results of a method say for how long they are valid (MCP
// 2026-07-28, server/utilities/caching).
func cacheable(method string) bool {
	switch method {
	case mcp.MethodDiscover, mcp.MethodListTools, mcp.MethodListPrompts, mcp.MethodListResources, mcp.MethodListTemplates, mcp.MethodReadResource:
		return true
	}
	return false
}
