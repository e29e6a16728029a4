package remote

import (
	"bytes"
	"encoding/json"
	"sync"

	"github.com/mcp-sse/mcp-sse/internal/mcp"
	"github.com/mcp-sse/mcp-sse/internal/rawjson"
	"github.com/mcp-sse/mcp-sse/internal/upstream/exchange"
	"github.com/mcp-sse/mcp-sse/jsonrpc"
)

// errNeedsLogin retires a session with a server that wants a login for its lists, when that has ended or is not made
// yet.
var errNeedsLogin error = needsLogin{}

type needsLogin struct{}

func (needsLogin) Error() string { return "the server wants a login for its lists" }

// Planned says that the end is no failure of the server: see handshake.IsPlanned.
func (needsLogin) Planned() bool { return true }

// loginEnd notices that a session needs a login, by a list that the server refuses: after it has given one, as the
// login has ended, or that of its tools, as nobody has logged in yet. It has the session retired: one in its place has
// the lists of before, or the tool login, and calls that the server has taken before are answered. It is safe for
// concurrent use; a nil *loginEnd notices nothing.
type loginEnd struct {
	loggedIn   func() bool
	isHindered func() bool // there is a login that requests cannot use
	// noteToolsNeedLogin has the next session be one in the place of one with the server, though that answers
	// initialize.
	noteToolsNeedLogin func()

	mu      sync.Mutex            // guards what follows
	asked   map[jsonrpc.ID]string // the methods of requests for lists without an answer
	hasList bool                  // the server has given one to somebody who was logged in
}

// sent notes a message of the client.
func (e *loginEnd) sent(msg []byte) {
	if e == nil || !bytes.Contains(msg, []byte("/list")) { // most are not read
		return
	}
	m, err := jsonrpc.Parse(msg)
	if err != nil || m.Kind != jsonrpc.Request || !isList(m.Method) {
		return
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	if len(e.asked) < maxAsked {
		e.asked[m.ID] = m.Method
	}
}

// received notes a message of the server. If that is a refusal that retires the session, it returns the id of the
// request; else an empty one.
func (e *loginEnd) received(msg []byte) jsonrpc.ID {
	if e == nil {
		return ""
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	if len(e.asked) == 0 {
		return ""
	}
	m, err := jsonrpc.Parse(msg)
	if err != nil || m.Kind != jsonrpc.Response || e.asked[m.ID] == "" {
		return ""
	}
	isOfTools := e.asked[m.ID] == mcp.MethodListTools
	delete(e.asked, m.ID)
	var data exchange.ErrorData
	if raw, has := rawjson.Member(m.Error(), "data"); has {
		_ = json.Unmarshal(raw, &data) // that of a server may be anything
	}
	isWanted := e.hasList || isOfTools && (data.NeedsLogin || e.isHindered())
	switch {
	case m.Error() == nil:
		e.hasList = e.hasList || e.loggedIn() // some servers give one to anybody
		return ""
	case data.Reason != exchange.ReasonUnauthorized, e.loggedIn(), !isWanted:
		return ""
	}
	if isOfTools {
		e.noteToolsNeedLogin()
	}
	return m.ID
}
