package stateless

import (
	"encoding/json"
	"net/url"

	"github.com/mcp-sse/mcp-sse/internal/mcp"
	"github.com/mcp-sse/mcp-sse/jsonrpc"
	"github.com/mcp-sse/mcp-sse/upstream/internal/exchange"
)

// initialize answers from the server's result of server/discover.
func (c *Conn) initialize(k *exchange.Call) {
	c.mu.Lock()
	discovered := c.discovered
	c.mu.Unlock()
	if discovered == nil {
		m, release, err := c.post(k.Ctx, own(mcp.MethodDiscover), nil, nil)
		defer release()
		switch {
		case err != nil:
			c.failed(k, err)
			return
		case m.Error() != nil:
			c.refuse(k, m)
			return
		}
		discovered = m.Result()
		c.mu.Lock()
		c.discovered = discovered
		c.mu.Unlock()
	}
	c.result(k, initializeResult(discovered, k.Msg.Params(), c.host()))
}

// host returns the host of the URL, the name of a server that does not give its own.
func (c *Conn) host() string {
	u, err := url.Parse(c.x.URL)
	if err != nil || u.Host == "" {
		return "remote"
	}
	return u.Host
}

// initializeResult makes the answer to an initialize from the result of
// server/discover. It uses name if the server gives none.
func initializeResult(discovered, params json.RawMessage, name string) json.RawMessage {
	member, _ := jsonrpc.Member(params, "protocolVersion")
	version, _ := jsonrpc.Text(member)
	if !mcp.HasInitialize(version) {
		version = mcp.VersionNewest
	}
	capabilities, ok := jsonrpc.Member(discovered, "capabilities")
	if !ok || capabilities[0] != '{' {
		capabilities = json.RawMessage("{}")
	}
	info, ok := jsonrpc.Member(discovered, "_meta", mcp.MetaServerInfo)
	if !ok || info[0] != '{' {
		info, _ = json.Marshal(struct { // strings always have a JSON form
			Name    string `json:"name"`
			Version string `json:"version"`
		}{name, "unknown"})
	}
	result := json.RawMessage(`{"protocolVersion":"` + version + `"}`)
	result = jsonrpc.SetMember(result, jsonrpc.RemoveMember(capabilities, "tasks"), "capabilities")
	result = jsonrpc.SetMember(result, info, "serverInfo")
	if text, ok := jsonrpc.Member(discovered, "instructions"); ok && text[0] == '"' {
		result = jsonrpc.SetMember(result, text, "instructions")
	}
	return result
}

// ping asks for server/discover, which every server of this version answers. Any
// response shows that the server is there.
func (c *Conn) ping(k *exchange.Call) {
	_, release, err := c.post(k.Ctx, own(mcp.MethodDiscover), nil, nil)
	defer release()
	if err != nil {
		c.failed(k, err)
		return
	}
	c.result(k, json.RawMessage("{}"))
}

// own returns a request of the gateway. post gives it an id.
func own(method string) *jsonrpc.Message {
	m, _ := jsonrpc.Parse(jsonrpc.NewRequest("0", method, nil)) // is valid
	return m
}
