package handshake

import (
	"bytes"
	"encoding/json"
	"regexp"
	"slices"
	"strings"

	"github.com/mcp-sse/mcp-sse/internal/mcp"
	"github.com/mcp-sse/mcp-sse/internal/rawjson"
	"github.com/mcp-sse/mcp-sse/jsonrpc"
)

// ClientInfo names the client in an initialize request.
type ClientInfo struct {
	Name    string `json:"name"`
	Version string `json:"version"`
}

// Synthetic returns the params of the synthetic initialize request.
func Synthetic(info ClientInfo) json.RawMessage {
	params, _ := json.Marshal(struct { // texts always have a JSON form
		ProtocolVersion string     `json:"protocolVersion"`
		Capabilities    struct{}   `json:"capabilities"`
		ClientInfo      ClientInfo `json:"clientInfo"`
	}{mcp.VersionNewest, struct{}{}, info})
	return params
}

// WithVersion returns params of initialize that request another protocol version.
func WithVersion(params json.RawMessage, version string) json.RawMessage {
	return rawjson.SetMember(params, rawjson.Quote(version), "protocolVersion")
}

// versionInText matches what may be a protocol version in a text.
var versionInText = regexp.MustCompile(`\b20\d\d-\d\d-\d\d\b`)

// olderVersions returns the protocol versions to ask a server for that has refused
// initialize with params. MCP wants it to answer a version of its own instead, but some
// refuse. Older than one that the gateway does not know are all that it knows.
//
//	the server refuses with                                              | it is asked for
//	---------------------------------------------------------------------|--------------------------
//	400, -32602, -32000 or the word "version", and names older versions  | the newest of these
//	400, -32602 or the word "version", and names none                    | all older ones in turn
//	anything else                                                        | nothing
func olderVersions(refusal *jsonrpc.Message, params json.RawMessage) (all []string) {
	code, _ := rawjson.Member(refusal.Error(), "code")
	status, _ := rawjson.Member(refusal.Error(), "data", "status")
	message, _ := rawjson.MemberText(refusal.Error(), "message")
	perhaps := string(code) == "-32602" || string(status) == "400" ||
		strings.Contains(strings.ToLower(message), "version")
	if !perhaps && string(code) != "-32000" {
		return nil
	}
	asked, ok := rawjson.MemberText(params, "protocolVersion")
	if !ok { // the server refuses that there is none
		return nil
	}
	for _, version := range mcp.VersionsWithInitialize() {
		if version < asked || !mcp.HasInitialize(asked) {
			all = append(all, version)
		}
	}
	slices.Sort(all)
	slices.Reverse(all)
	named := versionInText.FindAllString(string(refusal.Error()), -1)
	for _, version := range all {
		if slices.Contains(named, version) {
			return []string{version}
		}
	}
	if !perhaps {
		return nil
	}
	return all
}

// Exceeds reports whether a client declares a capability that the session's
// initialize params lack or declare otherwise. An empty "experimental" declares
// nothing, and neither do null and false.
func Exceeds(client, session json.RawMessage) bool {
	has := capabilities(session)
	for name, value := range capabilities(client) {
		if !mcp.IsDeclared(value) || name == "experimental" && string(rawjson.Compact(value)) == "{}" {
			continue
		}
		have, ok := has[name]
		if !ok || !bytes.Equal(rawjson.Compact(have), rawjson.Compact(value)) {
			return true
		}
	}
	return false
}

// capabilities returns the capabilities that initialize params declare; nil for none.
func capabilities(params json.RawMessage) map[string]json.RawMessage {
	var all map[string]json.RawMessage
	raw, _ := rawjson.Member(params, "capabilities")
	if json.Unmarshal(raw, &all) != nil {
		return nil
	}
	return all
}
