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

// loginWatch notices that a session needs a login, by a list that the server refuses: after it has given one, as the
// login has ended, or that of its tools, as nobody has logged in yet. It has the session retired: one in its place has
// the lists of before, or the tool login, and calls that the server has taken before are answered. It is safe for
// concurrent use; a nil *loginWatch notices nothing.
type loginWatch struct {
	loggedIn   func() bool
	isHindered func() bool // there is a login that requests cannot use
	// noteToolsNeedLogin has all sessions that are opened at the URL in the next ten minutes, while requests can use no
	// login, be ones in the place of one with the server, though that answers initialize.
	noteToolsNeedLogin func()

	mu      sync.Mutex            // guards what follows
	asked   map[jsonrpc.ID]string // the methods of requests for lists without an answer
	hasList bool                  // the server has given one to somebody who was logged in
}

// sent notes a message of the client.
func (w *loginWatch) sent(msg []byte) {
	if w == nil || !bytes.Contains(msg, []byte("/list")) { // most are not read
		return
	}
	m, err := jsonrpc.Parse(msg)
	if err != nil || m.Kind != jsonrpc.Request || !isList(m.Method) {
		return
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	if len(w.asked) < maxAsked {
		w.asked[m.ID] = m.Method
	}
}

// received notes a message of the server. If that is a refusal that retires the session, it returns the id of the
// request; else an empty one.
func (w *loginWatch) received(msg []byte) jsonrpc.ID {
	if w == nil {
		return ""
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	if len(w.asked) == 0 {
		return ""
	}
	m, err := jsonrpc.Parse(msg)
	if err != nil || m.Kind != jsonrpc.Response || w.asked[m.ID] == "" {
		return ""
	}
	isOfTools := w.asked[m.ID] == mcp.MethodListTools
	delete(w.asked, m.ID)
	var data exchange.ErrorData
	if raw, has := rawjson.Member(m.Error(), "data"); has {
		_ = json.Unmarshal(raw, &data) // that of a server may be anything
	}
	isWanted := w.hasList || isOfTools && (data.NeedsLogin || w.isHindered())
	switch {
	case m.Error() == nil:
		w.hasList = w.hasList || w.loggedIn() // some servers give one to anybody
		return ""
	case data.Reason != exchange.ReasonUnauthorized, w.loggedIn(), !isWanted:
		return ""
	}
	if isOfTools {
		w.noteToolsNeedLogin()
	}
	return m.ID
}
