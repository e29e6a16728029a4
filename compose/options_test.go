package compose_test

import (
	"os"
	"strings"
	"testing"

	"github.com/mcp-sse/mcp-sse/internal/clients"
	"github.com/mcp-sse/mcp-sse/internal/ssetest"
)

// The comment of Options.For names each client that has a limit which a view keeps, and no other one.
func TestForNamesTheClientsWithLimits(t *testing.T) {
	source, err := os.ReadFile("member.go")
	ssetest.Must(t, err)
	_, comment, _ := strings.Cut(string(source), "These have\n	// limits:\n")
	comment, _, found := strings.Cut(comment, "\n	// Over a limit")
	words := strings.FieldsFunc(comment, func(r rune) bool { return strings.ContainsRune(" ,\n\t/", r) })
	named := make(map[string]bool)
	for _, word := range words {
		named[word] = true
	}
	for _, c := range clients.All {
		if hasLimit := c.Tools > 0 || c.Descriptions > 0 || c.NameLength > 0; found && named[c.Name] != hasLimit {
			t.Errorf("%s has a limit: %v, and the comment names it: %v", c.Name, hasLimit, named[c.Name])
		}
	}
	ssetest.Want(t, "the comment has a table", found, true)
}
