package bridge

import (
	"github.com/mcp-sse/mcp-sse/handshake"
	"github.com/mcp-sse/mcp-sse/jsonrpc"
	"github.com/mcp-sse/mcp-sse/metrics"
)

// This file answers the client's own initialize requests that wait.

// takeInitializes removes and returns the initialize requests that wait.
func (l *sessionLife) takeInitializes() []*waitingInitialize {
	all := l.initializes
	l.initializes = nil
	for _, w := range all {
		if w.late != nil {
			w.late.Stop()
		}
	}
	return all
}

// answerInitializes answers them from what the server said.
func (l *sessionLife) answerInitializes(result *handshake.Result) {
	if result == nil {
		return
	}
	for _, w := range l.takeInitializes() {
		l.doLater(func() { w.Answer(result.Answer(w.ID, w.version), "") })
	}
}

// answerRefusal answers them with the server's refusal.
func (l *sessionLife) answerRefusal(refusal *jsonrpc.Message) {
	l.own = nil
	for _, w := range l.takeInitializes() {
		l.doLater(func() { w.Answer(refusal.WithID(w.ID), metrics.ErrorInitialization) })
	}
}

func (l *sessionLife) refuseInitializes(why error) {
	for _, w := range l.takeInitializes() {
		l.doLater(func() { l.refuse(w.Request, why) })
	}
}

// refuseWaiting gives what waits the failure.
func (l *sessionLife) refuseWaiting() {
	refused, failure := l.c.TakeRefused(), l.failure
	l.doLater(func() {
		for _, r := range refused {
			l.refuse(r, failure)
		}
	})
	l.refuseInitializes(failure)
}
