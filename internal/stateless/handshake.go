package stateless

import (
	"encoding/json"

	"github.com/mcp-sse/mcp-sse/internal/mcp"
	"github.com/mcp-sse/mcp-sse/internal/rawjson"
)

// Initialize returns the params of the initialize of a client with this Meta. It leaves
// out tasks, which are another thing in 2025-11-25.
func (m Meta) Initialize() json.RawMessage {
	capabilities := rawjson.RemoveMember(m.Capabilities, "tasks")
	info := m.ClientInfo
	if info == nil {
		info = json.RawMessage(`{"name":"unknown","version":"0"}`)
	}
	params := json.RawMessage(`{"protocolVersion":"` + mcp.VersionNewest + `"}`)
	params = rawjson.SetMember(params, capabilities, "capabilities")
	return rawjson.SetMember(params, info, "clientInfo")
}

// MetaOf is the inverse of Initialize: it returns the Meta of a client that has sent an
// initialize with these params.
func MetaOf(params json.RawMessage) (m Meta) {
	if v, ok := rawjson.Member(params, "clientInfo"); ok && v[0] == '{' {
		m.ClientInfo = v
	}
	m.Capabilities = rawjson.RemoveMember(objectMember(params, "capabilities"), "tasks")
	return m
}

// DiscoverResult makes a result of server/discover from one of initialize.
func DiscoverResult(initialized json.RawMessage, versions []string) json.RawMessage {
	supported, _ := json.Marshal(versions) // strings always have a JSON form
	return withDescription(rawjson.SetMember(json.RawMessage("{}"), supported, "supportedVersions"), initialized)
}

// withDescription adds to a result the server's capabilities and instructions, which the other
// result has.
func withDescription(result, other json.RawMessage) json.RawMessage {
	capabilities := rawjson.RemoveMember(objectMember(other, "capabilities"), "tasks")
	result = rawjson.SetMember(result, capabilities, "capabilities")
	if text, ok := rawjson.Member(other, "instructions"); ok && text[0] == '"' {
		result = rawjson.SetMember(result, text, "instructions")
	}
	return result
}

// InitializeResult makes the result of an initialize with these params from one of
// server/discover. name is the server's if it gives none.
func InitializeResult(discovered, params json.RawMessage, name string) json.RawMessage {
	version, _ := rawjson.MemberText(params, "protocolVersion")
	if !mcp.HasInitialize(version) {
		version = mcp.VersionNewest
	}
	info, ok := rawjson.Member(discovered, "_meta", mcp.MetaServerInfo)
	if !ok || info[0] != '{' {
		info = json.RawMessage(`{"name":` + string(rawjson.Quote(name)) + `,"version":"unknown"}`)
	}
	result := withDescription(json.RawMessage(`{"protocolVersion":"`+version+`"}`), discovered)
	return rawjson.SetMember(result, info, "serverInfo")
}

// IsStateless reports whether the _meta of a request's params names this version.
func IsStateless(params json.RawMessage) bool {
	version, _ := rawjson.Member(params, "_meta", mcp.MetaVersion)
	return string(version) == `"`+mcp.VersionStateless+`"`
}
