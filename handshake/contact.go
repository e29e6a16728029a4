package handshake

import (
	"encoding/json"
	"slices"
	"sync"
	"sync/atomic"

	"github.com/mcp-sse/mcp-sse/internal/closed"
	"github.com/mcp-sse/mcp-sse/internal/mcp"
	"github.com/mcp-sse/mcp-sse/internal/multiplex"
	"github.com/mcp-sse/mcp-sse/internal/pages"
	"github.com/mcp-sse/mcp-sse/internal/rawjson"
	"github.com/mcp-sse/mcp-sse/internal/remember"
	"github.com/mcp-sse/mcp-sse/jsonrpc"
)

// contact is what the server of a session has got of clients so far. It only grows. Once a message has had anything of
// a client's own in it, the server may say something else to that one than to others, or say the client's text to all.
type contact int32

const (
	noContact      contact = iota
	hasMessages            // with nothing of a client's own in them
	heardClient            // something of a client's own: what follows may be for it alone
	mayHaveChanged         // a message that may have changed something
)

// contacts is the contact of a session, which several goroutines see.
type contacts struct {
	looked <-chan struct{} // closed once the look at the session is over; nil: there will be none
	level  atomic.Int32    // a contact
	given  cursors         // that the server gave its clients
}

// reached returns the contact of now.
func (c *contacts) reached() contact { return contact(c.level.Load()) }

// raiseTo raises the contact.
func (c *contacts) raiseTo(to contact) {
	for now := c.level.Load(); now < int32(to) && !c.level.CompareAndSwap(now, int32(to)); now = c.level.Load() {
	}
}

// Hears notes that the server gets a message of a client.
func (c *contacts) Hears(m *jsonrpc.Message) {
	switch {
	case c.looked == nil || closed.Is(c.looked) || c.reached() == mayHaveChanged || c.isEmpty(m):
		c.raiseTo(hasMessages)
	case m.Kind == jsonrpc.Response || multiplex.ReadOnly(m.Method) || m.Method == mcp.MethodSetLevel:
		c.raiseTo(heardClient)
	default:
		c.raiseTo(mayHaveChanged)
	}
}

// HearsState is Hears for the state of a client that a session gets after another one.
func (c *contacts) HearsState() { c.raiseTo(heardClient) }

// isEmpty reports whether a message of a client has nothing in it that the client has chosen: it is one of the
// handshake, or asks for a list with no more than a cursor that the server has given. (A progress token is another
// one at the server.)
func (c *contacts) isEmpty(m *jsonrpc.Message) bool {
	var message, params, meta map[string]json.RawMessage
	isList := slices.ContainsFunc(remember.Kinds(), func(kind string) bool {
		return slices.Contains(remember.Methods(kind), m.Method)
	})
	switch {
	case m.Kind == jsonrpc.Response || !isList && m.Method != mcp.MethodPing && m.Method != mcp.MethodInitialized:
		return false
	case json.Unmarshal(m.Raw(), &message) != nil || !hasOnly(message, "jsonrpc", "id", "method", "params"):
		return false
	case m.Params() == nil:
		return true
	case json.Unmarshal(m.Params(), &params) != nil || !hasOnly(params, "cursor", "_meta"):
		return false
	case params["_meta"] != nil && (json.Unmarshal(params["_meta"], &meta) != nil || !hasOnly(meta, "progressToken")):
		return false
	case m.Param("cursor").Ambiguous || m.Param("_meta").Ambiguous || m.Param("_meta", "progressToken").Ambiguous:
		return false
	}
	return params["cursor"] == nil || isList && c.given.has(params["cursor"])
}

// hasOnly reports whether an object has no member but those of these names.
func hasOnly(all map[string]json.RawMessage, names ...string) bool {
	for name := range all {
		if !slices.Contains(names, name) {
			return false
		}
	}
	return true
}

// cursors are those that the server has given to clients before the look at its session was over.
type cursors struct {
	mu  sync.Mutex // guards all
	all map[string]bool
}

// maxCursors bounds how many are kept: lists that are longer are not remembered.
const maxCursors = 400

// notePage notes the cursor of a page that the server gives to a client.
func (c *contacts) notePage(result json.RawMessage) {
	if c.looked == nil || closed.Is(c.looked) {
		return // the cursors are for that look alone
	}
	if cursor := pages.Next(result); cursor != nil {
		c.given.add(cursor)
	}
}

// add keeps a cursor as compact JSON, of a server that writes "nextCursor": "page-2" the text "page-2" with its quotes.
// Cursors over maxCursors are dropped.
func (c *cursors) add(cursor json.RawMessage) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.all == nil {
		c.all = make(map[string]bool)
	}
	if len(c.all) < maxCursors {
		c.all[string(rawjson.Compact(cursor))] = true
	}
}

func (c *cursors) has(cursor json.RawMessage) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.all[string(rawjson.Compact(cursor))]
}
