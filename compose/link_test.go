package compose

import (
	"testing"

	"github.com/mcp-sse/mcp-sse/internal/merge"
	"github.com/mcp-sse/mcp-sse/internal/ssetest"
	"github.com/mcp-sse/mcp-sse/jsonrpc"
)

// Entries do not keep their page: a server may fill it with megabytes of anything else.
func TestEntriesAreCopies(t *testing.T) {
	page := []byte(`{"junk":"jjjj","tools":[{"name":"x"},{"name":"y"}]}`)
	r := newListRead()
	ssetest.Want(t, "it is the last page", r.add(merge.Tools, page), true)
	clear(page)
	ssetest.Want(t, "entries", string(r.entries[0])+string(r.entries[1]), `{"name":"x"}{"name":"y"}`)
}

// The log, and the page of a view, say why a list of a member fails, but have no link of a login: it is for one client.
func TestWhyOf(t *testing.T) {
	for answer, want := range map[string]string{
		`{"jsonrpc":"2.0","id":1,"result":{}}`:                                                                               "",
		`{"jsonrpc":"2.0","id":1,"error":{"code":1,"message":"broken"}}`:                                                     "broken",
		`{"jsonrpc":"2.0","id":1,"error":{"code":1,"message":"the server refused access","data":{"reason":"unauthorized"}}}`: "the server refused access",
		`{"jsonrpc":"2.0","id":1,"error":{"code":1,"message":"see https://example.com","data":{"reason":"unauthorized"}}}`:   "see https://example.com",
		`{"jsonrpc":"2.0","id":1,"error":{"code":1,"message":"Log in at https://gw.example.com/login?ticket=WORD","data":{"link":"https://gw.example.com/login?ticket=WORD"}}}`: "the server needs a login, " +
			"and the link to it is for the client of a call",
	} {
		m, err := jsonrpc.Parse([]byte(answer))
		ssetest.Must(t, err)
		ssetest.Want(t, answer, whyOf(m), want)
	}
}
