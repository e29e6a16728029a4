package compose

import (
	"cmp"
	"encoding/json"
	"strings"

	"github.com/mcp-sse/mcp-sse/internal/asker"
	"github.com/mcp-sse/mcp-sse/internal/buildinfo"
	"github.com/mcp-sse/mcp-sse/internal/mcp"
	"github.com/mcp-sse/mcp-sse/internal/rawjson"
)

// The bounds of instructions, in bytes: of one member, and together.
const (
	maxInstructions    = 2 << 10
	maxAllInstructions = 8 << 10
)

// said is what a member has answered to initialize.
type said struct {
	member string
	result json.RawMessage // nil: nothing yet
}

// ownName is the name of a view if neither it nor the gateway in front has one.
const ownName = "mcp-sse"

// serverInfo returns what the view calls itself, with mu held.
func (s *session) serverInfo() map[string]string {
	opts, inFront := s.setup.opts, ""
	if a := asker.FromContext(s.ctx); a != nil {
		inFront = a.Gateway
	}
	info := map[string]string{
		"name":    cmp.Or(opts.Name, inFront, ownName),
		"version": cmp.Or(opts.Version, buildinfo.Read().Version),
	}
	if opts.Title != "" {
		info["title"] = opts.Title
	}
	return info
}

// declare returns the answer of a view to initialize, out of what its members have answered, in their order. What may
// yet come from a member of which nothing is known is declared, because a client asks for nothing else. info is
// serverInfo.
func declare(info map[string]string, search, several bool, requested string, all []said) json.RawMessage {
	version := mcp.VersionNewest
	if mcp.HasInitialize(requested) {
		version = requested
	}
	answer := map[string]any{
		"protocolVersion": version, "serverInfo": info, "capabilities": capabilities(search, several, all),
	}
	if text := instructions(search, several, all); text != "" {
		answer["instructions"] = text
	}
	encoded, _ := json.Marshal(answer) // all of it has a JSON form
	return encoded
}

// capabilities joins those of the members.
func capabilities(searches, several bool, all []said) map[string]any {
	perhaps := func(names ...string) bool {
		for _, one := range all {
			if one.result == nil || mcp.Declares(one.result, append([]string{"capabilities"}, names...)...) {
				return true
			}
		}
		return false
	}
	joined := make(map[string]any)
	for _, kind := range []string{"tools", "prompts", "resources"} {
		if perhaps(kind) {
			joined[kind] = map[string]bool{"listChanged": true}
		}
	}
	if searches { // it has tools of its own
		joined["tools"] = map[string]bool{"listChanged": true}
	}
	if perhaps("resources", "subscribe") {
		joined["resources"] = map[string]bool{"listChanged": true, "subscribe": true}
	}
	for _, name := range []string{"completions", "logging"} {
		if perhaps(name) {
			joined[name] = struct{}{}
		}
	}
	for _, name := range []string{"tasks", "extensions", "experimental"} {
		first := firstOf(all, name)
		if name == "tasks" {
			first = tasksOf(several, first)
		}
		if len(first) > 0 {
			joined[name] = first
		}
	}
	return joined
}

// firstOf joins the members of a capability. Of two with one name the first counts.
func firstOf(all []said, capability string) map[string]json.RawMessage {
	joined := make(map[string]json.RawMessage)
	for _, one := range all {
		value, ok := rawjson.Member(one.result, "capabilities", capability)
		if !ok {
			continue
		}
		var members map[string]json.RawMessage
		_ = json.Unmarshal(value, &members) // anything but an object has no members
		for name, value := range members {
			if _, has := joined[name]; !has {
				joined[name] = value
			}
		}
	}
	return joined
}

// searchInstructions stand before those of the members, which may name tools that are not listed.
const searchInstructions = "The tools of this server are not listed. " + findTools + " finds them; " + readTool +
	" and " + callTool + " call them."

// instructions joins those of the members, each under its name. Those of a view of one stay as they are.
func instructions(searches, several bool, all []said) string {
	var b strings.Builder
	if searches {
		b.WriteString(searchInstructions)
	}
	for _, one := range all {
		text, _ := rawjson.MemberText(one.result, "instructions")
		switch {
		case !several && !searches:
			return text
		case text == "":
			continue
		}
		part := "# " + one.member + "\n\n" + strings.ToValidUTF8(text[:min(maxInstructions, len(text))], "")
		if b.Len() > 0 {
			part = "\n\n" + part
		}
		if b.Len()+len(part) > maxAllInstructions {
			break
		}
		b.WriteString(part)
	}
	return b.String()
}
