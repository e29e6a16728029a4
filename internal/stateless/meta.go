package stateless

import (
	"encoding/json"
	"errors"
	"fmt"

	"github.com/mcp-sse/mcp-sse/internal/mcp"
	"github.com/mcp-sse/mcp-sse/internal/rawjson"
)

// Meta is what each request says of its client (MCP 2026-07-28, basic, _meta).
type Meta struct {
	Version      string
	Capabilities json.RawMessage // an object; nil means {}
	ClientInfo   json.RawMessage // an object; nil: there is none
	LogLevel     json.RawMessage // nil: no log messages
}

// Bounds on members of _meta, in bytes.
const (
	maxCapabilities = 32 << 10
	maxClientInfo   = 4 << 10
)

// ReadMeta reads the _meta of a request. The error is for the client.
func ReadMeta(params json.RawMessage) (m Meta, err error) {
	meta, ok := rawjson.Member(params, "_meta")
	if !ok || meta[0] != '{' {
		return m, errors.New("params._meta is missing")
	}
	m.Version, ok = rawjson.MemberText(meta, mcp.MetaVersion)
	if !ok {
		return m, fmt.Errorf("params._meta has no %q", mcp.MetaVersion)
	}
	m.Capabilities, ok = rawjson.Member(meta, mcp.MetaCapabilities)
	if !ok || m.Capabilities[0] != '{' {
		return m, fmt.Errorf("params._meta has no %q", mcp.MetaCapabilities)
	}
	m.ClientInfo, ok = rawjson.Member(meta, mcp.MetaClientInfo)
	if ok && m.ClientInfo[0] != '{' {
		return m, fmt.Errorf("%q is not an object", mcp.MetaClientInfo)
	}
	m.LogLevel, _ = rawjson.Member(meta, mcp.MetaLogLevel)
	if len(m.Capabilities) > maxCapabilities || len(m.ClientInfo) > maxClientInfo {
		return m, errors.New("params._meta is too long")
	}
	return m, nil
}

// Into returns params with m in their _meta, and all other bytes unchanged. It reports
// false for params that are not an object.
func (m Meta) Into(params json.RawMessage) (json.RawMessage, bool) {
	if params == nil || string(params) == "null" {
		params = json.RawMessage("{}")
	}
	if params[0] != '{' {
		return nil, false
	}
	capabilities := m.Capabilities
	if capabilities == nil {
		capabilities = json.RawMessage("{}")
	}
	meta := objectMember(params, "_meta")
	meta = rawjson.SetMember(meta, json.RawMessage(`"`+mcp.VersionStateless+`"`), mcp.MetaVersion)
	meta = rawjson.SetMember(meta, capabilities, mcp.MetaCapabilities)
	if m.ClientInfo != nil {
		meta = rawjson.SetMember(meta, m.ClientInfo, mcp.MetaClientInfo)
	}
	if m.LogLevel != nil {
		meta = rawjson.SetMember(meta, m.LogLevel, mcp.MetaLogLevel)
	}
	return rawjson.SetMember(params, meta, "_meta"), true
}

// WithoutMeta returns params without what only requests of this version have.
func WithoutMeta(params json.RawMessage) json.RawMessage {
	params = rawjson.RemoveMember(rawjson.RemoveMember(params, "inputResponses"), "requestState")
	return CutMeta(params, mcp.MetaVersion, mcp.MetaCapabilities, mcp.MetaClientInfo, mcp.MetaLogLevel)
}

// CutMeta returns params without these members of _meta, and without an empty _meta.
func CutMeta(params json.RawMessage, names ...string) json.RawMessage {
	meta, ok := rawjson.Member(params, "_meta")
	if !ok {
		return params
	}
	for _, name := range names {
		meta = rawjson.RemoveMember(meta, name)
	}
	if IsEmpty(meta) {
		return rawjson.RemoveMember(params, "_meta")
	}
	return rawjson.SetMember(params, meta, "_meta")
}

// IsEmpty reports whether JSON is an object without members.
func IsEmpty(raw json.RawMessage) bool { return string(rawjson.Compact(raw)) == "{}" }

// objectMember returns a member that is an object; {} if there is none.
func objectMember(obj json.RawMessage, names ...string) json.RawMessage {
	if value, ok := rawjson.Member(obj, names...); ok && value[0] == '{' {
		return value
	}
	return json.RawMessage("{}")
}
