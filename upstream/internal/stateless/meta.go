package stateless

import (
	"encoding/base64"
	"encoding/json"
	"net/http"
	"strings"

	"github.com/mcp-sse/mcp-sse/internal/mcp"
	"github.com/mcp-sse/mcp-sse/jsonrpc"
	"github.com/mcp-sse/mcp-sse/upstream/internal/exchange"
)

// Members of _meta (MCP 2026-07-28, basic/index).
const (
	metaVersion      = "io.modelcontextprotocol/protocolVersion"
	metaClientInfo   = "io.modelcontextprotocol/clientInfo"
	metaCapabilities = "io.modelcontextprotocol/clientCapabilities"
	metaLogLevel     = "io.modelcontextprotocol/logLevel"
	metaServerInfo   = "io.modelcontextprotocol/serverInfo"
	metaSubscription = "io.modelcontextprotocol/subscriptionId"
)

// Headers of a request (MCP 2026-07-28, basic/transports/streamable-http), in the
// canonical form of http.Header.
const (
	headerMethod = "Mcp-Method"
	headerName   = "Mcp-Name"
	headerParam  = "Mcp-Param-"
)

// requestMeta is what each request tells a stateless server about the client, from
// the client's initialize. It is immutable.
type requestMeta struct {
	clientInfo, capabilities, logLevel json.RawMessage // nil: there is none
}

// newRequestMeta reads the params of an initialize. It leaves out tasks of
// 2025-11-25, which no server of this version has.
func newRequestMeta(params json.RawMessage) requestMeta {
	var m requestMeta
	if v, ok := jsonrpc.Member(params, "capabilities"); ok && v[0] == '{' {
		m.capabilities = jsonrpc.RemoveMember(v, "tasks")
	}
	if v, ok := jsonrpc.Member(params, "clientInfo"); ok && v[0] == '{' {
		m.clientInfo = v
	}
	return m
}

// declares reports whether the client has declared a capability, such as "sampling",
// "tools".
func (m requestMeta) declares(names ...string) bool {
	return mcp.Declares(m.capabilities, names...)
}

// into returns params with the members of _meta that each request must have, and all
// other bytes unchanged. It reports false for params that are not an object.
func (m requestMeta) into(params json.RawMessage) (json.RawMessage, bool) {
	if params == nil || string(params) == "null" {
		params = json.RawMessage("{}")
	}
	if params[0] != '{' {
		return nil, false
	}
	meta, ok := jsonrpc.Member(params, "_meta")
	if !ok || meta[0] != '{' {
		meta = json.RawMessage("{}")
	}
	capabilities := m.capabilities
	if capabilities == nil {
		capabilities = json.RawMessage("{}")
	}
	meta = jsonrpc.SetMember(meta, json.RawMessage(`"`+mcp.VersionStateless+`"`), metaVersion)
	meta = jsonrpc.SetMember(meta, capabilities, metaCapabilities)
	if m.clientInfo != nil {
		meta = jsonrpc.SetMember(meta, m.clientInfo, metaClientInfo)
	}
	if m.logLevel != nil {
		meta = jsonrpc.SetMember(meta, m.logLevel, metaLogLevel)
	}
	return jsonrpc.SetMember(params, meta, "_meta"), true
}

// requestHeader returns the headers that mirror a request. The error is for the
// client, whose request the server would refuse.
func requestHeader(method string, params json.RawMessage, mirrored []paramHeader) (http.Header, *jsonrpc.Error) {
	if !plainHeader(method) {
		return nil, jsonrpc.Errorf(jsonrpc.CodeMethodNotFound, "method not found")
	}
	h := http.Header{exchange.HeaderVersion: {mcp.VersionStateless}, headerMethod: {method}}
	if member := nameMember(method); member != "" {
		raw, _ := jsonrpc.Member(params, member)
		name, ok := jsonrpc.Text(raw)
		if !ok {
			return nil, jsonrpc.Errorf(jsonrpc.CodeInvalidParams, "params.%s must be a string", member)
		}
		h[headerName] = []string{encodeHeader(name)}
	}
	for _, p := range mirrored {
		raw, ok := jsonrpc.Member(params, append([]string{"arguments"}, p.path...)...)
		if !ok || string(raw) == "null" {
			continue
		}
		value, ok := headerText(raw)
		if !ok {
			return nil, jsonrpc.Errorf(jsonrpc.CodeInvalidParams, "argument %.64s must be a string, a boolean or an integer below 2^53", strings.Join(p.path, "."))
		}
		h.Set(headerParam+p.name, encodeHeader(value))
	}
	return h, nil
}

// nameMember returns the member of a method's params that Mcp-Name mirrors; empty for
// none.
func nameMember(method string) string {
	switch method {
	case mcp.MethodCallTool, mcp.MethodGetPrompt:
		return "name"
	case mcp.MethodReadResource:
		return "uri"
	}
	return ""
}

// Marks of a header value that is encoded.
const (
	encodedPrefix = "=?base64?"
	encodedSuffix = "?="
)

// encodeHeader returns a value as a header can carry it: unchanged, or in base64. It
// encodes an empty value too, because an empty header looks like none.
func encodeHeader(v string) string {
	marked := strings.HasPrefix(v, encodedPrefix) && strings.HasSuffix(v, encodedSuffix)
	if v != "" && plainHeader(v) && !marked {
		return v
	}
	return encodedPrefix + base64.StdEncoding.EncodeToString([]byte(v)) + encodedSuffix
}

// plainHeader reports whether v is printable ASCII without a space at its ends.
func plainHeader(v string) bool {
	for i := range len(v) {
		if v[i] < ' ' || v[i] > '~' {
			return false
		}
	}
	return strings.Trim(v, " ") == v
}
