package rawjson

import (
	"bytes"
	"encoding/json"
)

// maxOnceDepth bounds how deep a value is that HasMembersOnce looks through.
const maxOnceDepth = 32

// HasMembersOnce reports whether no object in a JSON value has a member twice: of two a reader may take either. It
// reports false for a value that is nested too deep.
func HasMembersOnce(value json.RawMessage) bool { return hasMembersOnce(value, 0) }

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
		if in.Decode(&member) != nil || depth == maxOnceDepth || !hasMembersOnce(member, depth+1) {
			return false
		}
	}
	return true
}
