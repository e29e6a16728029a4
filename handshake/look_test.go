package handshake

import (
	"log/slog"
	"testing"
	"testing/synctest"
	"time"

	"github.com/mcp-sse/mcp-sse/internal/multiplex"
	"github.com/mcp-sse/mcp-sse/internal/remember"
	"github.com/mcp-sse/mcp-sse/internal/ssetest"
	"github.com/mcp-sse/mcp-sse/jsonrpc"
)

// A look at a session goes through the states of its table, and ends by what the server answers.
func TestStatesOfALook(t *testing.T) {
	const timeout = time.Minute
	named := func(m *jsonrpc.Message, rest string) string {
		return `{"jsonrpc":"2.0","id":` + string(m.ID) + `,` + rest + `}`
	}
	die := func(s *Session) { s.Close(errNotNeeded) }
	for _, tc := range []struct {
		name   string
		list   func(m *jsonrpc.Message) string // the answer to tools/list
		during func(*Session)                  // nil: nothing happens
		want   lookState
	}{
		{"the list is read", func(m *jsonrpc.Message) string { return named(m, `"result":{"tools":[]}`) }, nil, lookRead},
		{"the server has no list", func(m *jsonrpc.Message) string {
			return named(m, `"error":{"code":-32601,"message":"m"}`)
		}, nil, lookRead},
		{"the server does not answer", func(*jsonrpc.Message) string { return "" }, nil, lookUnread},
		{"the session ends", func(*jsonrpc.Message) string { return "" }, die, lookUnread},
		{"the server names no answer", func(*jsonrpc.Message) string {
			return `{"jsonrpc":"2.0","id":null,"result":{"tools":[]}}`
		}, nil, lookUnread},
	} {
		synctest.Test(t, func(t *testing.T) {
			log := slog.New(slog.DiscardHandler)
			server := &scripted{answer: func(m *jsonrpc.Message) string {
				if m.Method == "initialize" {
					return named(m, `"result":{"protocolVersion":"2025-11-25","capabilities":{"tools":{}}}`)
				}
				return tc.list(m)
			}}
			s := NewSupplier(server, SupplierOptions{Params: Synthetic(ClientInfo{}), StartTimeout: timeout,
				Memory:  remember.Open("", log).Server(remember.Identity{Server: "s", Place: "p"}),
				Session: multiplex.Options{Logger: log, RequestTimeout: timeout}})
			session, err := s.startOwn(t.Context())
			ssetest.Must(t, err)
			ssetest.Want(t, tc.name+": before", session.lookState(), lookDue)
			done := session.StartLook()
			synctest.Wait()
			ssetest.Want(t, tc.name+": meanwhile", session.lookState(), lookRunning)
			ssetest.Want(t, tc.name+": has shown nothing", session.Looked() == nil, true)
			if tc.during != nil {
				tc.during(session)
			}
			<-session.StartLook() // it is one and the same
			<-done
			ssetest.Want(t, tc.name+": at the end", session.lookState(), tc.want)
			ssetest.Want(t, tc.name+": has shown what the server says", session.Looked() != nil, tc.want == lookRead)
			session.Close(errNotNeeded)
			s.Close()
			s.Wait()
		})
	}
}

// Nobody looks at a session of a server of which nothing is remembered.
func TestNoLookWithoutMemory(t *testing.T) {
	s := NewSupplier(&scripted{}, SupplierOptions{StartTimeout: time.Minute,
		Session: multiplex.Options{Logger: slog.New(slog.DiscardHandler)}})
	session, err := s.startOwn(t.Context())
	ssetest.Must(t, err)
	ssetest.Want(t, "state", session.lookState(), lookNone)
	ssetest.Want(t, "can look", session.CanLook(), false)
	session.CloseAfterLook(errNotNeeded)
	s.Close()
	s.Wait()
}
