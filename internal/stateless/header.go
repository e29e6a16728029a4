package stateless

import (
	"encoding/base64"
	"encoding/json"
	"fmt"
	"strings"

	"github.com/mcp-sse/mcp-sse/internal/mcp"
	"github.com/mcp-sse/mcp-sse/internal/rawjson"
)

// Headers of a request, in the canonical form of http.Header. They repeat parts of it, so
// that what is between client and server need not read its body (MCP 2026-07-28,
// basic/transports/streamable-http).
const (
	HeaderVersion = "Mcp-Protocol-Version"
	HeaderMethod  = "Mcp-Method"
	HeaderName    = "Mcp-Name"
	HeaderParam   = "Mcp-Param-" // and the name of an argument
)

// Header is a header that repeats a part of a request, with its value before Encode.
type Header struct{ Name, Value string }

// NameMember returns the member of the params of a method that HeaderName repeats; empty
// if there is none.
func NameMember(method string) string {
	switch method {
	case mcp.MethodCallTool, mcp.MethodGetPrompt:
		return "name"
	case mcp.MethodReadResource:
		return "uri"
	}
	return ""
}

// Headers returns the headers that every request has. The error says what the request
// must have for one of them.
func Headers(version, method string, params json.RawMessage) ([]Header, error) {
	headers := []Header{{HeaderVersion, version}, {HeaderMethod, method}}
	member := NameMember(method)
	if member == "" {
		return headers, nil
	}
	name, ok := rawjson.MemberText(params, member)
	if !ok {
		return nil, fmt.Errorf("params.%s must be a string", member)
	}
	return append(headers, Header{HeaderName, name}), nil
}

// Argument returns the value of a mirrored argument in the params of a tools/call. It
// reports false if there is none: then there must be no header.
func (p Param) Argument(params json.RawMessage) (json.RawMessage, bool) {
	raw, ok := rawjson.Member(params, append([]string{"arguments"}, p.Path...)...)
	return raw, ok && string(raw) != "null"
}

// Marks of a header value that is encoded.
const (
	encodedPrefix = "=?base64?"
	encodedSuffix = "?="
)

// Encode returns a value as a header can carry it: unchanged, or in base64. It encodes an
// empty value too, because an empty header looks like none.
func Encode(v string) string {
	if v != "" && IsPlain(v) && !marked(v) {
		return v
	}
	return encodedPrefix + base64.StdEncoding.EncodeToString([]byte(v)) + encodedSuffix
}

// Decode returns the value that a header carries, and false for one that is marked as
// encoded and is not.
func Decode(v string) (string, bool) {
	if !marked(v) {
		return v, true
	}
	decoded, err := base64.StdEncoding.Strict().DecodeString(v[len(encodedPrefix) : len(v)-len(encodedSuffix)])
	return string(decoded), err == nil
}

func marked(v string) bool {
	return len(v) >= len(encodedPrefix)+len(encodedSuffix) && strings.HasPrefix(v, encodedPrefix) &&
		strings.HasSuffix(v, encodedSuffix)
}

// IsPlain reports whether v is printable ASCII without a space at its ends.
func IsPlain(v string) bool {
	for i := range len(v) {
		if v[i] < ' ' || v[i] > '~' {
			return false
		}
	}
	return strings.Trim(v, " ") == v
}
