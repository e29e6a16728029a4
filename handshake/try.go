package handshake

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	"github.com/mcp-sse/mcp-sse/internal/mcp"
	"github.com/mcp-sse/mcp-sse/jsonrpc"
)

// maxPages bounds the pages of a list that Try reads: a server may never end its list.
const maxPages = 1000

// Found is what a server says of itself, and what it lists.
type Found struct {
	Server
	Tools              []json.RawMessage
	NoTools            error // why there is no list of tools, although the server has some
	Prompts, Resources int
	// Memory is what its processes hold, in bytes; 0 where that is unknown.
	Memory int64
}

// Try starts a session and ends it. It returns what the server says of itself and lists. The supplier
// must run handshakes.
func (s *Supplier) Try(ctx context.Context) (Found, error) {
	until := time.Now().Add(s.opts().StartTimeout) // bounds the lists, too
	session, err := s.startOwn(ctx)
	if err != nil {
		return Found{}, err
	}
	defer session.Close(errNotNeeded)
	return session.find(ctx, until)
}

// quiet is how long no server is started ahead after a check that has failed: it would fail for the same reason,
// which its log lines would push out of sight.
const quiet = 10 * time.Second

// CheckStart is Try of a server before its first client comes. A shared session goes on for that client. Ready
// and Health know the result.
func (s *Supplier) CheckStart(ctx context.Context) (found Found, err error) {
	if s.shared != nil {
		until := time.Now().Add(s.opts().StartTimeout)
		session, err := s.shared.get(ctx)
		if err != nil {
			return Found{}, err
		}
		return session.find(ctx, until)
	}
	found, err = s.Try(ctx)
	switch {
	case err == nil:
		s.NoteStart()
	case ctx.Err() == nil:
		s.NoteFailure(err)
		s.pool.rest(quiet)
	}
	return found, err
}

// find returns what the server of a session says of itself, and lists until a time. A list of tools that
// cannot be read is no fault of the start; some servers declare prompts and resources, and have none. The
// error is that of ctx.
func (s *Session) find(ctx context.Context, until time.Time) (found Found, _ error) {
	found.Server = s.Result().Server()
	whole := ctx
	ctx, cancel := context.WithDeadline(ctx, until)
	defer cancel()
	ctx, cancel = context.WithTimeout(ctx, s.supplier.opts().Session.RequestTimeout)
	defer cancel()
	found.Tools, found.NoTools = s.list(ctx, "tools", mcp.MethodListTools)
	if whole.Err() != nil {
		return found, found.NoTools
	}
	prompts, _ := s.list(ctx, "prompts", mcp.MethodListPrompts)
	resources, _ := s.list(ctx, "resources", mcp.MethodListResources)
	found.Prompts, found.Resources = len(prompts), len(resources)
	if process, ok := s.conn.(interface{ Memory() int64 }); ok {
		found.Memory = process.Memory()
	}
	return found, nil
}

// list reads all pages of a list, if the server has it.
func (s *Session) list(ctx context.Context, kind, method string) (all []json.RawMessage, err error) {
	more, pages, last := s.Result().Advertises(kind), 0, ""
	for params := json.RawMessage(nil); more; {
		pages++
		if pages > maxPages {
			return all, fmt.Errorf("list %s: there are over %d pages", kind, maxPages)
		}
		response, err := s.Call(ctx, method, params)
		if err == nil && response.Error() != nil {
			err = fmt.Errorf("the server answered %s", response.Error())
		}
		if err != nil {
			return all, fmt.Errorf("list %s: %w", kind, err)
		}
		list, _ := jsonrpc.Member(response.Result(), kind)
		jsonrpc.Each(list, func(one json.RawMessage) { all = append(all, one) })
		cursor, _ := jsonrpc.Member(response.Result(), "nextCursor")
		next, _ := jsonrpc.Text(cursor)
		more = next != ""
		if more && next == last {
			return all, fmt.Errorf("list %s: the server returns the same nextCursor for each page: %.40q", kind, next)
		}
		last = next
		params = json.RawMessage(`{"cursor":` + string(cursor) + `}`)
	}
	return all, nil
}
