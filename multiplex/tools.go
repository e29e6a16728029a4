package multiplex

import (
	"encoding/json"
	"unicode/utf8"

	"github.com/mcp-sse/mcp-sse/jsonrpc"
)

// ToolList is the size of a server's list of tools, as far as clients have limits for it.
type ToolList struct {
	Tools                 int `json:"tools"`
	DescriptionCharacters int `json:"descriptionCharacters"`
	LongestName           int `json:"longestName"` // in characters
}

func (l *ToolList) add(tool json.RawMessage) {
	l.Tools++
	l.DescriptionCharacters += characters(tool, "description")
	l.LongestName = max(l.LongestName, characters(tool, "name"))
}

func characters(tool json.RawMessage, member string) int {
	text, _ := jsonrpc.MemberText(tool, member)
	return utf8.RuneCountInString(text)
}

// Tools returns the size of the list that a client last read to its end, nil if none has.
func (h *Habits) Tools() *ToolList {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.list
}
