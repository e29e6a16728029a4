package multiplex_test

import (
	"encoding/json"
	"strings"
	"sync"

	"github.com/mcp-sse/mcp-sse/connstate"
	"github.com/mcp-sse/mcp-sse/internal/mcp"
	"github.com/mcp-sse/mcp-sse/internal/multiplex"
	"github.com/mcp-sse/mcp-sse/jsonrpc"
)

// listener hears what reaches a client: also the answers, and the errors of the gateway
// apart from those of the server.
type listener interface {
	Answer(id jsonrpc.ID, response []byte, errorType string)
	Fail(id jsonrpc.ID, e *jsonrpc.Error, errorType string)
	Lost(m *jsonrpc.Message, e *jsonrpc.Error)
	Deliver(method string, related jsonrpc.ID, message []byte)
	Serves(m *jsonrpc.Message) bool
}

// caller is a client on a session, with a connection for its requests.
type caller struct {
	*multiplex.Caller
	listener
	c whole

	order sync.Mutex // serializes hear

	mu    sync.Mutex
	types map[jsonrpc.ID]string // error types of answers on their way, or muted
}

var registry = connstate.NewRegistry(connstate.Limits{}, connstate.Options{MaxPending: 1 << 20})

// attach puts a client on a session.
func attach(s *multiplex.Session, l listener, name, principal string) *caller {
	opened, err := registry.Open(connstate.Client{Dialect: connstate.EventMessage})
	if err != nil {
		panic(err)
	}
	registry.Remove(opened)
	c := wholeOf(opened)
	a := &caller{listener: l, c: c, types: make(map[jsonrpc.ID]string)}
	c.DeliverTo(a.hear)
	a.Caller = s.Attach(a, name, principal)
	return a
}

// Forward sends any message.
func (a *caller) Forward(m *jsonrpc.Message) error {
	switch {
	case m.Kind == jsonrpc.Request:
		r, err := a.c.BeginRequest(m)
		if err != nil {
			return err
		}
		r.OnAnswer(func(errorType string) {
			a.mu.Lock()
			defer a.mu.Unlock()
			a.types[r.ID] = errorType
		})
		if err := a.Send(r); err != nil {
			a.discard(r)
			return err
		}
	case m.Method == mcp.MethodCancelled:
		a.Cancel(a.c.Request(jsonrpc.ID(m.RequestID.Value)), m)
	default:
		a.Caller.Forward(m)
	}
	return nil
}

const muted = "muted"

// discard answers a request without telling the listener.
func (a *caller) discard(r *connstate.Request) {
	r.OnAnswer(func(string) {
		a.mu.Lock()
		defer a.mu.Unlock()
		a.types[r.ID] = muted
	})
	r.Answer(nil, "")
}

func (a *caller) SeesDetails() bool { return true }

func (a *caller) Lost(r *connstate.Request, loss multiplex.Loss, e *jsonrpc.Error) {
	if loss == multiplex.MustFail {
		r.Fail(e, "session_lost")
		return
	}
	a.discard(r)
	a.listener.Lost(r.Message, e)
}

func (a *caller) Progress(r *connstate.Request, message []byte) { r.SendProgress(message, false) }

// hear tells the listener of progress or an answer.
func (a *caller) hear(event connstate.Event) {
	a.order.Lock()
	defer a.order.Unlock()
	switch {
	case event.IsLate():
		return
	case !event.Answer:
		a.Deliver(mcp.MethodProgress, event.Related, event.Data)
		return
	}
	a.mu.Lock()
	errorType := a.types[event.Related]
	delete(a.types, event.Related)
	a.mu.Unlock()
	if errorType == muted {
		return
	}
	var response struct{ Error *jsonrpc.Error }
	_ = json.Unmarshal(event.Data, &response)
	if e := response.Error; e != nil && (e.Data != nil && strings.Contains(string(event.Data), `"reason":`) || ownCode(e, errorType)) {
		a.Fail(event.Related, e, errorType)
		return
	}
	a.Answer(event.Related, event.Data, errorType)
}

// ownCode reports whether an error without data is the gateway's. The servers of the tests
// say only m.
func ownCode(e *jsonrpc.Error, errorType string) bool {
	return e.Message != "m" && (errorType == "-32602" || errorType == "-32600")
}

// whole is a connection with the methods for its transport and for its handler.
type whole struct {
	*connstate.Connection
	connstate.ForTransport
	connstate.ForHandler
}

func wholeOf(c *connstate.Connection) whole {
	return whole{c, connstate.ForTransport{Connection: c}, connstate.ForHandler{Connection: c}}
}
