package stateless

import (
	"encoding/json"
	"net/http"
	"strings"

	"github.com/mcp-sse/mcp-sse/internal/mcp"
	"github.com/mcp-sse/mcp-sse/internal/mirror"
	"github.com/mcp-sse/mcp-sse/jsonrpc"
	"github.com/mcp-sse/mcp-sse/upstream/internal/exchange"
)

// requestMeta is what each request tells a stateless server about the client, from
// the client's initialize. It is immutable.
type requestMeta struct {
	clientInfo, capabilities, logLevel json.RawMessage // nil: there is none
	keys                               bool            // the client wants mcp.InputKeys
}

// newRequestMeta reads the params of an initialize. It leaves out tasks of
// 2025-11-25, which no server of this version has.
func newRequestMeta(params json.RawMessage) requestMeta {
	var m requestMeta
	if v, ok := jsonrpc.Member(params, "capabilities"); ok && v[0] == '{' {
		m.capabilities = jsonrpc.RemoveMember(v, "tasks")
		m.takeKeys()
	}
	if v, ok := jsonrpc.Member(params, "clientInfo"); ok && v[0] == '{' {
		m.clientInfo = v
	}
	return m
}

// takeKeys takes mcp.InputKeys, which is for the gateway, out of the capabilities.
func (m *requestMeta) takeKeys() {
	if m.keys = mcp.Declares(m.capabilities, "experimental", mcp.InputKeys); !m.keys {
		return
	}
	experimental, _ := jsonrpc.Member(m.capabilities, "experimental")
	if experimental = jsonrpc.RemoveMember(experimental, mcp.InputKeys); emptyObject(experimental) {
		m.capabilities = jsonrpc.RemoveMember(m.capabilities, "experimental")
		return
	}
	m.capabilities = jsonrpc.SetMember(m.capabilities, experimental, "experimental")
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
	meta = jsonrpc.SetMember(meta, json.RawMessage(`"`+mcp.VersionStateless+`"`), mcp.MetaVersion)
	meta = jsonrpc.SetMember(meta, capabilities, mcp.MetaCapabilities)
	if m.clientInfo != nil {
		meta = jsonrpc.SetMember(meta, m.clientInfo, mcp.MetaClientInfo)
	}
	if m.logLevel != nil {
		meta = jsonrpc.SetMember(meta, m.logLevel, mcp.MetaLogLevel)
	}
	return jsonrpc.SetMember(params, meta, "_meta"), true
}

// requestHeader returns the headers that mirror a request. The error is for the
// client, whose request the server would refuse.
func requestHeader(method string, params json.RawMessage, mirrored []mirror.Param) (http.Header, *jsonrpc.Error) {
	if !mirror.IsPlain(method) {
		return nil, jsonrpc.Errorf(jsonrpc.CodeMethodNotFound, "method not found")
	}
	h := http.Header{exchange.HeaderVersion: {mcp.VersionStateless}, mirror.HeaderMethod: {method}}
	if member := mirror.NameMember(method); member != "" {
		raw, _ := jsonrpc.Member(params, member)
		name, ok := jsonrpc.Text(raw)
		if !ok {
			return nil, jsonrpc.Errorf(jsonrpc.CodeInvalidParams, "params.%s must be a string", member)
		}
		h[mirror.HeaderName] = []string{mirror.Encode(name)}
	}
	for _, p := range mirrored {
		raw, ok := p.Argument(params)
		if !ok {
			continue
		}
		value, ok := mirror.Text(raw)
		if !ok {
			return nil, jsonrpc.Errorf(jsonrpc.CodeInvalidParams, "argument %.64s must be a string, a boolean or an integer below 2^53", strings.Join(p.Path, "."))
		}
		h.Set(mirror.HeaderParam+p.Name, mirror.Encode(value))
	}
	return h, nil
}
