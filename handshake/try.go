package handshake

import (
	"context"
	"encoding/json"
	"fmt"

	"github.com/mcp-sse/mcp-sse/internal/mcp"
	"github.com/mcp-sse/mcp-sse/jsonrpc"
)

// maxPages bounds the pages of tools that Try reads: a server may never end its list.
const maxPages = 1000

// Try starts a session and ends it. It returns what the server says of itself, and the tools that
// it lists. The supplier must run handshakes.
func (s *Supplier) Try(ctx context.Context) (server Server, tools []json.RawMessage, err error) {
	session, err := s.startOwn(ctx)
	if err != nil {
		return Server{}, nil, err
	}
	defer session.Close(errNotNeeded)
	server = session.Result().Server()
	ctx, cancel := context.WithTimeout(ctx, s.opts().Session.RequestTimeout)
	defer cancel()
	more := session.Result().Advertises("tools")
	pages, last := 0, ""
	for params := json.RawMessage(nil); more; {
		pages++
		if pages > maxPages {
			return server, tools, fmt.Errorf("list tools: there are over %d pages", maxPages)
		}
		response, err := session.Call(ctx, mcp.MethodListTools, params)
		if err == nil && response.Error() != nil {
			err = fmt.Errorf("the server answered %s", response.Error())
		}
		if err != nil {
			return server, tools, fmt.Errorf("list tools: %w", err)
		}
		list, _ := jsonrpc.Member(response.Result(), "tools")
		jsonrpc.Each(list, func(tool json.RawMessage) { tools = append(tools, tool) })
		cursor, _ := jsonrpc.Member(response.Result(), "nextCursor")
		next, _ := jsonrpc.Text(cursor)
		more = next != ""
		if more && next == last {
			return server, tools, fmt.Errorf("list tools: the server returns the same nextCursor for each page: %.40q", next)
		}
		last = next
		params = json.RawMessage(`{"cursor":` + string(cursor) + `}`)
	}
	return server, tools, nil
}
