package remember

import (
	"bytes"
	"encoding/json"
	"regexp"
	"slices"
	"strings"
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
	words        []string
	info         string // a hash of what it calls itself, without a plain version
}

// clientKey is what clients have in common that are told the same.
type clientKey struct{ version, capabilities, who string }

func (c Client) key() clientKey { return clientKey{c.version, c.capabilities, c.who} }

// Equal reports whether both are told the same, but for what names one of them.
func (c Client) Equal(other Client) bool { return c.key() == other.key() }

// String returns the key of the client: equal for clients that are told the same, but for what names one of them.
func (c Client) String() string { return c.version + " " + c.capabilities + " " + c.who }

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
	in := json.NewDecoder(bytes.NewReader(params))
	in.UseNumber()
	var top map[string]any
	plain = (in.Decode(&top) == nil || len(params) == 0) && hasMembersOnce(params, 0) && isSubset(top, plainParams)
	c.who = who
	c.version, _ = top["protocolVersion"].(string)
	text, _ := json.Marshal(top["capabilities"]) // it has been JSON
	c.capabilities = string(text)
	info, isObject := top["clientInfo"].(map[string]any)
	plain = plain && (c.version == "" || isVersion.MatchString(c.version)) && len(texts(top)) <= maxWords
	plain = plain && (isObject || top["clientInfo"] == nil) && isSubset(info, plainInfo) && isShort(info["version"])
	if version, _ := info["version"].(string); isPlainVersion.MatchString(version) {
		delete(info, "version") // "1.0.0" is that of many
	}
	for _, value := range info {
		for _, text := range texts(value) {
			c.words = append(append(c.words, text), shortOf(text)...)
		}
	}
	self, _ := json.Marshal(info)
	c.info = hashOf(string(self))
	declared, _ := top["capabilities"].(map[string]any)
	c.words = append(c.words, texts(declared["experimental"])...) // MCP defines none of them
	for _, word := range texts(top["capabilities"]) {
		if len(word) >= minText { // shorter ones are names of MCP
			c.words = append(c.words, word)
		}
	}
	return c, plain
}

// shortOf returns what servers make of a name with several words: its first one, and what stands before a bracket.
func shortOf(name string) (all []string) {
	first, _, isLong := strings.Cut(strings.TrimSpace(name), " ")
	if isLong && len(first) >= 4 {
		all = append(all, first)
	}
	if before, _, ok := strings.Cut(name, " ("); ok && len(before) >= 4 && before != first {
		all = append(all, before)
	}
	return all
}

// isVersion matches a revision of MCP: anything else is a text of the client.
var isVersion = regexp.MustCompile(`^[0-9]{4}-[0-9]{2}-[0-9]{2}$`)

// isPlainVersion matches a version that says nothing to a model. Any other one is a text of the client.
var isPlainVersion = regexp.MustCompile(`^v?[0-9]+(\.[0-9]+)*$`)

// maxWords bounds the texts of a client that are looked for in what the server says.
const maxWords = 256

// minText is the length from which a text in the capabilities is one of the client's own, in bytes.
const minText = 16

// maxDepth bounds how deep params are that are looked through.
const maxDepth = 32

// hasMembersOnce reports whether no object in a JSON value has a member twice: of two the server may read either.
func hasMembersOnce(value json.RawMessage, depth int) bool {
	value = bytes.TrimSpace(value)
	if len(value) == 0 || value[0] != '{' && value[0] != '[' {
		return true
	}
	in := json.NewDecoder(bytes.NewReader(value))
	_, _ = in.Token() // it has been JSON, here and below
	names := make(map[string]bool)
	for in.More() {
		if value[0] == '{' {
			token, _ := in.Token()
			name, _ := token.(string)
			if names[name] {
				return false
			}
			names[name] = true
		}
		var member json.RawMessage
		if in.Decode(&member) != nil || depth == maxDepth || !hasMembersOnce(member, depth+1) {
			return false
		}
	}
	return true
}

func isSubset(all map[string]any, of []string) bool {
	for name := range all {
		if !slices.Contains(of, name) {
			return false
		}
	}
	return true
}

// isShort reports whether a value is none, or a short text without blanks, as the version of a program is.
func isShort(value any) bool {
	text, ok := value.(string)
	return value == nil || ok && len(text) <= 32 && !strings.ContainsAny(text, " \t\r\n")
}

// texts returns all texts in a JSON value, also the names of members.
func texts(value any) (all []string) {
	switch v := value.(type) {
	case string:
		all = append(all, v)
	case []any:
		for _, one := range v {
			all = append(all, texts(one)...)
		}
	case map[string]any:
		for name, one := range v {
			all = append(append(all, name), texts(one)...)
		}
	}
	return all
}
