package compose

import (
	"testing"

	"github.com/mcp-sse/mcp-sse/internal/merge"
	"github.com/mcp-sse/mcp-sse/internal/ssetest"
)

// Entries do not keep their page: a server may fill it with megabytes of anything else.
func TestEntriesAreCopies(t *testing.T) {
	page := []byte(`{"junk":"jjjj","tools":[{"name":"x"},{"name":"y"}]}`)
	r := newListRead()
	ssetest.Want(t, "it is the last page", r.add(merge.Tools, page), true)
	clear(page)
	ssetest.Want(t, "entries", string(r.entries[0])+string(r.entries[1]), `{"name":"x"}{"name":"y"}`)
}
