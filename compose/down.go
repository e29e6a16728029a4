package compose

import (
	"errors"
	"fmt"
	"strconv"

	"github.com/mcp-sse/mcp-sse/internal/mcp"
	"github.com/mcp-sse/mcp-sse/jsonrpc"
)

// SendRequest takes a request of the client. It is answered by the view, or goes to a member under the same number. It
// fails with jsonrpc.ErrBusy if the member takes no more, and if the session is over.
func (s *session) SendRequest(m *jsonrpc.Message, number int64) error {
	r := newRequest(m, number)
	if routes[m.Method].by != nil {
		r.judged = judge(m, s.warm(request{}))
	}
	s.mu.Lock()
	if s.err != nil {
		defer s.mu.Unlock()
		return s.err
	}
	if row := routes[m.Method]; row.answer != nil {
		defer s.unlock()
		row.answer(s, r)
		return nil
	}
	r, done := s.unwrap(r)
	if done {
		s.unlock()
		return nil
	}
	to, fault, wait := s.route(r)
	switch {
	case wait:
		s.wait(&waiter{request: r, purpose: toRoute})
	case fault != nil:
		s.refuseRoute(number, to, fault)
	case to.link.conn == nil:
		s.refuse(number, to.link.unavailable())
	default:
		return s.send(r, to) // which gives up mu
	}
	s.unlock()
	return nil
}

// send sends a request to its member, in the goroutine of the client. It is called with mu held, and gives it up.
func (s *session) send(r request, to destination) error {
	if row := routes[r.m.Method]; row.needs != "" && to.link.lacks(row.needs) {
		s.answer(r.number, row.instead)
		s.unlock()
		return nil
	}
	c := to.link.conn
	m, err := to.addressed(r)
	if err != nil {
		s.refuse(r.number, jsonrpc.Errorf(jsonrpc.CodeInvalidRequest, "%s", err))
		s.unlock()
		return nil
	}
	to.link.use()
	if to.link.awaitsLevel(r) {
		s.wait(&waiter{request: r, purpose: toRoute})
		s.unlock()
		return nil
	}
	if r.m.Method == mcp.MethodSubscribe {
		if fault := s.noteWish(r, to); fault != nil {
			s.refuse(r.number, fault)
			s.unlock()
			return nil
		}
	}
	s.open[r.number] = openRequest{conn: c, method: r.m.Method, beside: r.beside}
	if r.m.Method == mcp.MethodCallTool {
		s.lastCalled = to.link.m.Name
	}
	r.beside.LeadsTo(to.link.m.Name, to.own) // before the answer, which may come inside the call
	s.unlock()
	err = c.sendRequest(m, r.number)
	if err == nil {
		return nil
	}
	s.mu.Lock()
	defer s.unlock()
	if s.open[r.number].conn != c { // it is answered
		return nil
	}
	r.beside.LeadsTo("", "")
	s.endOpen(r.number, false)
	if errors.Is(err, jsonrpc.ErrBusy) {
		return err
	}
	s.refuse(r.number, sessionLost(to.link.m, true))
	return nil
}

// sendRequest sends a request under its number.
func (c *conn) sendRequest(m *jsonrpc.Message, number int64) error {
	if c.local != nil {
		return c.local.SendRequest(m, number)
	}
	return c.Send(m.Renumbered(jsonrpc.NumberID(number)))
}

// forward routes a request that has waited. It is sent later, and answered if that fails.
func (s *session) forward(r request) {
	to, fault, _ := s.route(r)
	switch {
	case fault != nil:
		s.refuseRoute(r.number, to, fault)
	case to.link.conn == nil:
		s.refuse(r.number, to.link.unavailable())
	default:
		s.forwardTo(r, to)
	}
}

// refuseRoute answers a request that leads nowhere. What the error adds about similar tools is found after mu is given
// up: an index may have thousands of tools to read.
func (s *session) refuseRoute(number int64, to destination, fault *jsonrpc.Error) {
	if to.similar == nil {
		s.refuse(number, fault)
		return
	}
	receive := s.receive
	s.later(func() {
		fault.Message += to.similar()
		id := jsonrpc.NumberID(number)
		receive(jsonrpc.NewError(id, fault), id, nil)
	})
}

// forwardTo sends a request later, and answers it if that fails.
func (s *session) forwardTo(r request, to destination) {
	s.later(func() {
		s.mu.Lock()
		if s.err != nil || to.link.conn == nil {
			s.refuse(r.number, to.link.unavailable())
			s.unlock()
			return
		}
		if err := s.send(r, to); err != nil {
			s.mu.Lock()
			busy := fmt.Sprintf("%s does not read, and too much waits for it", to.link.m.Name)
			s.refuse(r.number, jsonrpc.ReasonError(busy, "server_busy", true))
			s.unlock()
		}
	})
}

// Send takes a notification of the client, or its answer to a question.
func (s *session) Send(msg []byte) error {
	m, err := jsonrpc.Parse(msg)
	if err != nil {
		return fmt.Errorf("send: %w", err)
	}
	s.mu.Lock()
	defer s.unlock()
	switch {
	case s.err != nil:
		return s.err
	case m.Kind == jsonrpc.Request:
		return errors.New("send: the session of a view takes requests by SendRequest")
	case m.Kind == jsonrpc.Response:
		s.takeReply(m)
	case m.Method == mcp.MethodCancelled:
		s.cancel(m)
	case m.Method == mcp.MethodProgress:
		s.passProgress(m)
	case m.Method == mcp.MethodInitialized: // each member has got its own
	case m.Method == mcp.MethodRootsChanged:
		for _, l := range s.links {
			if l.used {
				l.send(m.Raw())
			}
		}
	case routes[m.Method].isKnown() || m.Method == mcp.MethodListen:
		// It is a request without an id, which no rule has judged.
	default:
		if l := s.only(); l != nil {
			l.send(m.Raw())
		}
	}
	return nil
}

// cancel passes a cancellation to the member that has the request. A request that waits is answered: it leads to no
// member yet.
func (s *session) cancel(m *jsonrpc.Message) {
	number, err := strconv.ParseInt(string(m.RequestID.Value), 10, 64)
	if err != nil {
		return
	}
	if w := s.waiting[number]; w != nil {
		delete(s.waiting, number)
		w.timer.Stop()
		s.refuse(number, jsonrpc.ReasonError("the request was cancelled by the client", "cancelled", true))
		return
	}
	if r, ok := s.open[number]; ok {
		r.isCancelled = true
		s.open[number] = r
		s.later(func() { _ = r.conn.Send(m.Raw()) }) // if it fails, the request does so too
	}
}
