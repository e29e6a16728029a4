package bridge

import (
	"time"

	"github.com/mcp-sse/mcp-sse/connstate"
	"github.com/mcp-sse/mcp-sse/internal/bridge/internal/life"
	"github.com/mcp-sse/mcp-sse/internal/remember"
)

// decide returns the event that the answer to a question is, and what the client is told.
func (l *sessionLife) decide(q *question) (life.Event, *remember.Answers) {
	told, declared, isPatient := l.state.Told, l.state.Declared, l.state.Phase == life.Recalling
	known := l.usable(q.answer.Exact)
	hold := told == life.ToldLists && !l.answers.Partial
	if hold && (known == nil || len(l.answers.Pages) > 0 && l.answers.Learned.After(known.Learned)) {
		known = l.answers
	}
	waits := len(l.c.Queued()) > 0 || len(l.initializes) > 0
	isSilent := told == life.ToldNothing && declared == life.DeclaredNothing && !waits
	if isPatient && known == nil && q.answer.HasAny && isSilent {
		return life.Unsure, nil
	}
	hasNoLists := told == life.ToldNothing || told == life.ToldResult
	if known == nil && l.own == nil {
		known = l.usable(q.answer.Earlier)
	}
	switch {
	case known != nil && l.isWanted(known):
		return life.KnownNeeded, known
	case known != nil && l.isOld(known) && hasNoLists && !q.supplier.LearnsAlone():
		return life.KnownOld, known
	case known != nil:
		return life.Known, known
	case l.usable(q.answer.Nearest) != nil && (hasNoLists || told == life.ToldNearest):
		return life.KnownNearly, q.answer.Nearest
	case isPatient && told.MayBeOutdated() && !l.isWanted(nil) && q.supplier.LearnsAlone():
		return life.Learnable, nil
	}
	return life.Unknown, nil
}

// usable returns answers that count for this client, else nil.
func (l *sessionLife) usable(answers *remember.Answers) *remember.Answers {
	if answers == nil || !answers.Learned.After(l.since) {
		return nil
	}
	return answers
}

func (l *sessionLife) isOld(answers *remember.Answers) bool {
	return time.Since(answers.Learned) >= l.supplier.Options().RememberFor
}

// isWanted reports whether something needs the server that these answers, which may be nil, do not answer: a
// message that waits at the gate, or a subscription.
func (l *sessionLife) isWanted(answers *remember.Answers) bool {
	for _, r := range l.c.Queued() {
		if r.ID == "" || answers == nil || !canAnswer(answers, r) {
			return true
		}
	}
	return l.settings.hasSubscriptions()
}

func canAnswer(answers *remember.Answers, r *connstate.Request) bool {
	_, ok := answers.Answer(r.Message)
	return ok || answers.Lacks(r.Method)
}
