package bridge

import (
	"time"

	"github.com/mcp-sse/mcp-sse/connstate"
	"github.com/mcp-sse/mcp-sse/internal/bridge/internal/life"
	"github.com/mcp-sse/mcp-sse/internal/mcp"
	"github.com/mcp-sse/mcp-sse/internal/multiplex"
	"github.com/mcp-sse/mcp-sse/jsonrpc"
	"github.com/mcp-sse/mcp-sse/metrics"
)

// passMessage sends a message to the session that takes messages at once. Otherwise it does what the life says: answer
// it, send it, let it wait at the gate, or refuse it. A message that a session has not taken comes back once.
func (l *sessionLife) passMessage(r *connstate.Request) {
	isBack := false
	if a := l.direct.Load(); a != nil {
		if a.send(r) {
			return
		}
		isBack = true
		l.c.Passed(r)
	}
	for {
		to, err := l.routeMessage(r)
		switch {
		case err != nil:
			l.refuse(r, err)
			return
		case to == nil || to.send(r):
			return
		case isBack:
			l.refuse(r, errLost)
			return
		}
		isBack = true
		l.c.Passed(r)
	}
}

// routeMessage decides about a message that no session has taken at once. It returns the session that is to get it, or
// why it is refused, or neither if memory answers it, or it waits at the gate.
func (l *sessionLife) routeMessage(r *connstate.Request) (to *attachment, err error) {
	l.mu.Lock()
	defer l.unlock()
	m := r.Message
	isRequest := m.Kind == jsonrpc.Request
	if l.state.Phase == life.Asleep && m.Method == mcp.MethodRootsChanged {
		return nil, nil // the session to come asks for the roots anyway
	}
	if answer := l.fromMemory(r); answer != nil {
		l.doLater(answer) // after that to an initialize which may be there
		return nil, nil
	}
	switch l.state.Phase.Takes(isRequest, !time.Now().Before(l.retry)) {
	case life.Pass:
		return l.session, nil
	case life.Use:
		l.move(life.Needed)
		return l.session, nil
	case life.Wait:
		// Before the client has been told anything, its own initialize may follow a notification.
		if isRequest || l.state.Told != life.ToldNothing {
			l.move(life.Needed)
		}
		return nil, l.c.Enqueue(r, l.hasLists())
	}
	return nil, l.whyRefused()
}

// nextWaiting returns the next message that waits for a session; nil if that is not the current one any more, or
// nothing waits: then later messages pass.
func (l *sessionLife) nextWaiting(a *attachment) *connstate.Queued {
	l.mu.Lock()
	defer l.unlock()
	if l.session != a {
		return nil
	}
	w := l.c.Next()
	if w == nil {
		l.move(life.Emptied)
	}
	return w
}

// notTaken has a message that a session has not taken wait for the next one. There may be one already.
func (l *sessionLife) notTaken(w *connstate.Queued) {
	l.mu.Lock()
	defer l.unlock()
	verdict := l.state.Phase.Takes(w.ID != "", false)
	if verdict == life.Wait {
		if err := l.c.PutBack(w, l.hasLists()); err != nil {
			l.doLater(func() { l.refuse(w.Request, err) })
			return
		}
		l.move(life.Needed)
		return
	}
	l.c.Sent(w)
	l.doLater(func() { l.passMessage(w.Request) })
}

// repeat puts a request of a lost session back into the gate, where it waits for the
// next session, unless it was repeated before. If it may not be repeated, repeat answers
// it with e.
func (l *sessionLife) repeat(r *connstate.Request, loss multiplex.Loss, e *jsonrpc.Error) {
	if loss == multiplex.MustFail || l.phase() == life.Dismissed || !l.c.Repeat(r) {
		r.Fail(l.visibleLoss(e), metrics.ErrorSessionLost)
		return
	}
	r.FromServer(metrics.ErrorSessionLost)
	l.opts.Metrics.RequestRepeated()
	l.passMessage(r)
}
