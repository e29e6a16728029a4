package remember

import (
	"bytes"
	"encoding/json"
	"regexp"
	"slices"
	"sync"

	lru "github.com/hashicorp/golang-lru/v2"

	"github.com/mcp-sse/mcp-sse/internal/buildinfo"
	"github.com/mcp-sse/mcp-sse/internal/clients"
	"github.com/mcp-sse/mcp-sse/internal/rawjson"
)

// Own stands for the gateway, when it starts a server for no client.
const Own = "gateway"

// Principal stands for a client: the hash of its principal, or "anybody" without authentication.
func Principal(principal string) string {
	if principal == "" {
		return "anybody"
	}
	return hashOf("principal " + principal)
}

// Client is who asks a server, as far as the answers may depend on it.
type Client struct {
	version      string // the protocol version that it asks for
	capabilities string // what it declares, as JSON in one form
	who          string // Own, or a Principal
	alone        bool   // it is told only what was said to itself
	// info is a hash of what it calls itself, without a plain version; empty: nothing, or the same as the gateway where
	// that initializes a server in its own name.
	info string
	// saysNothing: no text in its params is one that somebody could have chosen.
	saysNothing bool
}

// clientKey is what clients have in common that are told the same.
type clientKey struct{ version, capabilities, who, info string }

func (c Client) key() clientKey { return clientKey{c.version, c.capabilities, c.who, c.info} }

// Equal reports whether both are told the same.
func (c Client) Equal(other Client) bool { return c.key() == other.key() }

// String returns the key of the client: equal for clients that are told the same.
func (c Client) String() string { return c.version + " " + c.capabilities + " " + c.who + " " + c.info }

// listensTo returns whose answers the client may get: its own, and those of starts for no client.
func (c Client) listensTo() []string {
	if c.alone || c.who == Own {
		return []string{c.who}
	}
	return []string{c.who, Own}
}

// Alone returns the client of a server that sees its principal: no other one is told the same.
func (c Client) Alone() Client {
	c.alone = true
	return c
}

// The members of the params of initialize, and of clientInfo there, beside which the server gets nothing that
// could be for one client alone.
var (
	plainParams = []string{"protocolVersion", "capabilities", "clientInfo"}
	plainInfo   = []string{"name", "title", "version", "description", "websiteUrl", "icons"}
)

// ClientOf returns the client that initializes with these params. It reports false if they have more than MCP
// defines: what the server says then may be for that client alone, so nothing is remembered from it,
// and it gets nothing from memory.
func ClientOf(params json.RawMessage, who string) (c Client, plain bool) {
	if len(params) > maxLastParams {
		return clientOf(params, who)
	}
	key := asked{string(params), who}
	if known, ok := lastClients.Get(key); ok {
		return known.Client, known.plain
	}
	c, plain = clientOf(params, who)
	lastClients.Add(key, recognized{c, plain})
	return c, plain
}

// lastClients are those of ClientOf lately: a view asks for the same one several times for each of its members.
var lastClients, _ = lru.New[asked, recognized](64)

// maxLastParams bounds the bytes of params in lastClients.
const maxLastParams = 4 << 10

type (
	asked      struct{ params, who string }
	recognized struct {
		Client
		plain bool
	}
)

func clientOf(params json.RawMessage, who string) (c Client, plain bool) {
	in := json.NewDecoder(bytes.NewReader(params))
	in.UseNumber()
	var top map[string]any
	plain = (in.Decode(&top) == nil || len(params) == 0) && rawjson.HasMembersOnce(params) && isSubset(top, plainParams)
	c.who = who
	version, hasVersion := top["protocolVersion"]
	c.version, _ = version.(string)
	text, _ := json.Marshal(top["capabilities"]) // it has been JSON
	c.capabilities = string(text)
	info, isObject := top["clientInfo"].(map[string]any)
	plain = plain && (!hasVersion || isVersion.MatchString(c.version)) &&
		(isObject || top["clientInfo"] == nil) && isSubset(info, plainInfo)
	c.saysNothing = plain && isWellKnown(info) && isOfMCP(top["capabilities"])
	if len(info) == 0 || isOwn(info) {
		return c, plain
	}
	if version, _ := info["version"].(string); isPlainVersion.MatchString(version) {
		delete(info, "version") // an update is the same client
	}
	self, _ := json.Marshal(info)
	c.info = hashOf(string(self))
	return c, plain
}

// OwnName is what the gateway calls itself where it initializes a server in its own name.
const OwnName = "mcp-sse"

var ownVersion = sync.OnceValue(func() string { return buildinfo.Read().Version })

// isOwn reports whether a client calls itself as the gateway does.
func isOwn(info map[string]any) bool {
	return len(info) == 2 && info["name"] == OwnName && info["version"] == ownVersion()
}

// isWellKnown reports whether a client calls itself as the gateway does, as one of package clients, or nothing.
func isWellKnown(info map[string]any) bool {
	if isOwn(info) {
		return true
	}
	name, _ := info["name"].(string)
	texts := clients.Texts(name)
	for member, value := range info {
		text, isText := value.(string)
		if !isText || !slices.Contains(texts, text) && (member != "version" || !isPlainVersion.MatchString(text)) {
			return false
		}
	}
	return true
}

// wordsOfMCP are the names of the capabilities of clients, and of their members.
var wordsOfMCP = []string{
	"roots", "listChanged", "sampling", "context", "tools", "elicitation", "form", "url", "tasks", "list",
	"cancel", "requests", "create", "createMessage",
}

// isOfMCP reports whether capabilities have only names that MCP has, and no other texts.
func isOfMCP(capabilities any) bool {
	switch value := capabilities.(type) {
	case nil, bool:
		return true
	case map[string]any:
		for name, member := range value {
			if !slices.Contains(wordsOfMCP, name) || !isOfMCP(member) {
				return false
			}
		}
		return true
	}
	return false
}

// isVersion matches a revision of MCP: anything else is a text of the client.
var isVersion = regexp.MustCompile(`^[0-9]{4}-[0-9]{2}-[0-9]{2}$`)

// isPlainVersion matches a version that says nothing to a model. Any other one is a text of the client's own.
var isPlainVersion = regexp.MustCompile(`^v?[0-9]{1,9}(\.[0-9]{1,9}){0,3}$`)

func isSubset(all map[string]any, of []string) bool {
	for name := range all {
		if !slices.Contains(of, name) {
			return false
		}
	}
	return true
}
