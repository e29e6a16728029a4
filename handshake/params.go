package handshake

import (
	"bytes"
	"encoding/json"

	"github.com/mcp-sse/mcp-sse/internal/mcp"
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

// Exceeds reports whether a client declares a capability that the session's
// initialize params lack or declare otherwise. An empty "experimental" declares
// nothing, and neither do null and false.
func Exceeds(client, session json.RawMessage) bool {
	has := capabilities(session)
	for name, value := range capabilities(client) {
		if !mcp.IsDeclared(value) || name == "experimental" && string(jsonrpc.Compact(value)) == "{}" {
			continue
		}
		have, ok := has[name]
		if !ok || !bytes.Equal(jsonrpc.Compact(have), jsonrpc.Compact(value)) {
			return true
		}
	}
	return false
}

// capabilities returns the capabilities that initialize params declare; nil for none.
func capabilities(params json.RawMessage) map[string]json.RawMessage {
	var all map[string]json.RawMessage
	raw, _ := jsonrpc.Member(params, "capabilities")
	if json.Unmarshal(raw, &all) != nil {
		return nil
	}
	return all
}
