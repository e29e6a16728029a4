package remote

import (
	"bytes"
	"sync"

	"github.com/mcp-sse/mcp-sse/internal/rawjson"
	"github.com/mcp-sse/mcp-sse/internal/upstream/exchange"
	"github.com/mcp-sse/mcp-sse/internal/wire"
	"github.com/mcp-sse/mcp-sse/jsonrpc"
)

// errLoginEnded retires a session with a server when its login has ended.
var errLoginEnded error = loginEnded{}

type loginEnded struct{}

func (loginEnded) Error() string { return "the login at the server has ended" }

// Planned says that the end is no failure of the server: see handshake.IsPlanned.
func (loginEnded) Planned() bool { return true }

// loginEnd notices that the login of a session has ended, by a list that the server refuses after it has given one. It
// has the session retired: one in its place has the lists of before, and asks for the login, and calls that the server
// has taken before are answered. It is safe for concurrent use; a nil *loginEnd notices nothing.
type loginEnd struct {
	loggedIn func() bool

	mu      sync.Mutex          // guards what follows
	asked   map[jsonrpc.ID]bool // requests for lists without an answer
	hasList bool                // the server has given one to somebody who was logged in
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
		e.asked[m.ID] = true
	}
}

// received notes a message of the server, and returns the error that retires the session; nil: it goes on.
func (e *loginEnd) received(msg []byte) error {
	if e == nil {
		return nil
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	if len(e.asked) == 0 {
		return nil
	}
	m, err := jsonrpc.Parse(msg)
	if err != nil || m.Kind != jsonrpc.Response || !e.asked[m.ID] {
		return nil
	}
	delete(e.asked, m.ID)
	reason, _ := rawjson.MemberText(m.Error(), "data", "reason")
	switch {
	case m.Error() == nil:
		e.hasList = e.hasList || e.loggedIn() // some servers give one to anybody
	case e.hasList && reason == exchange.ReasonUnauthorized && !e.loggedIn():
		return &wire.RetiredError{ID: m.ID, Err: errLoginEnded}
	}
	return nil
}
