package life

import (
	"github.com/mcp-sse/mcp-sse/connstate"
	"github.com/mcp-sse/mcp-sse/internal/asker"
)

// Told is what the client knows of the server, by whomever it was told.
type Told string

// A client can have been told one of these.
const (
	// ToldNothing: it has had no session and no answer.
	ToldNothing Told = "nothing"
	// ToldResult: it has what the server said to initialize, and no lists that count. It has just
	// initialized, or nobody has looked at the lists of its session.
	ToldResult Told = "result"
	// ToldNearest: what the server said to another kind of client, or elsewhere.
	ToldNearest Told = "nearest"
	// ToldLists: lists that hold. They are remembered for its kind, or its own session has said them.
	ToldLists Told = "lists"
	// ToldOutdated: lists that may not hold any more, and it is told so as soon as there is a session. They are kept
	// for the comparison alone: until then nobody gets them.
	ToldOutdated Told = "outdated"
	// ToldUncertain: as ToldOutdated, but nobody knows which lists it has. Its session was lost, replaced or has said
	// that lists have changed, before the lists were read.
	ToldUncertain Told = "uncertain"
)

var tolds = []Told{ToldNothing, ToldResult, ToldNearest, ToldLists, ToldOutdated, ToldUncertain}

// HasLists reports whether the client has lists that are known here, though they may not hold. The driver keeps
// them then, and no others.
func (t Told) HasLists() bool { return t == ToldNearest || t == ToldLists || t == ToldOutdated }

// MayBeOutdated reports whether the client may have lists that do not hold any more.
func (t Told) MayBeOutdated() bool { return t == ToldOutdated || t == ToldUncertain }

// Declared says whether the client has sent an initialize of its own for a session to come, and whose params the next
// session gets.
type Declared string

// A client can have declared one of these.
const (
	// DeclaredNothing: it has sent none. The next session gets the gateway's params.
	DeclaredNothing Declared = "nothing"
	// DeclaredOwn: it has sent one, whose params are kept. The next session gets them.
	DeclaredOwn Declared = "own"
	// DeclaredUnkept: it has sent one, whose params could not be kept. The next session gets the gateway's.
	DeclaredUnkept Declared = "unkept"
	// DeclaredRefused: it has sent one, whose params the server has refused. The next session gets the gateway's.
	DeclaredRefused Declared = "refused"
)

var declareds = []Declared{DeclaredNothing, DeclaredOwn, DeclaredUnkept, DeclaredRefused}

// BeginsAnew reports whether an event is an initialize of the client for a session to come: there is none
// that answers it.
func BeginsAnew(phase Phase, event Event) bool {
	switch event {
	case OwnInitialize, OwnUnkept:
		return !phase.sessionTakesRequests() && !phase.isLast()
	case MoreDeclared:
		return phase != Opening && phase != Awake && !phase.isLast()
	}
	return false
}

// toldAfter returns what an event makes of what the client was told.
func toldAfter(state State, event Event) Told {
	told := state.Told
	switch event {
	case OwnInitialize, OwnUnkept, MoreDeclared:
		if told != ToldNothing && BeginsAnew(state.Phase, event) {
			return ToldResult
		}
	case Known, KnownNeeded, KnownOld, Idle: // at Idle the session has said its lists, or that it has none
		return ToldLists
	case KnownNearly:
		if told != ToldLists {
			return ToldNearest
		}
	case Renewed:
		if state.Phase == Asleep {
			return ToldLists
		}
	case Up:
		if told == ToldNothing || told.MayBeOutdated() {
			return ToldResult
		}
	case Looked:
		if !told.MayBeOutdated() { // the server has said so after the look began
			return ToldLists
		}
	case NotLooked:
		if told == ToldNearest {
			return ToldResult
		}
	case Unlookable:
		switch told {
		case ToldNearest, ToldLists:
			return ToldResult
		case ToldOutdated:
			return ToldUncertain
		}
	case ListsChanged:
		if told.HasLists() {
			return ToldOutdated
		}
		return ToldUncertain
	case Lost, LostSoon, LostLast, Retired:
		if told == ToldResult {
			return ToldUncertain
		}
	case Replaced:
		switch {
		case told.HasLists():
			return ToldOutdated
		case told == ToldResult && state.Phase.sessionTakesRequests():
			return ToldUncertain
		}
	}
	return told
}

// declaredAfter returns what the client has declared after an event.
func declaredAfter(state State, event Event) Declared {
	switch {
	case BeginsAnew(state.Phase, event) && event == OwnUnkept:
		return DeclaredUnkept
	case BeginsAnew(state.Phase, event):
		return DeclaredOwn
	case event == OwnRefused:
		return DeclaredRefused
	}
	return state.Declared
}

// isDue reports whether an action of a move has something to do, after what the client was told.
func isDue(action Action, told Told, event Event) bool {
	switch action {
	case Recall:
		return event != Renewed || told == ToldNothing || told == ToldResult
	case AnnounceResult:
		return told == ToldNothing
	case TellIfDifferent:
		return told != ToldNothing && told != ToldResult
	case TellCompared:
		return told.HasLists()
	case TellAllChanged:
		switch event {
		case Up:
			return told.MayBeOutdated()
		case NotLooked:
			return told == ToldNearest
		case Unlookable:
			return told == ToldNearest || told == ToldLists
		}
	}
	return true
}

// AnswersLists reports whether a request for a list is answered from what the client was told.
func (s State) AnswersLists() bool {
	if s.Phase.isLast() || s.Phase == Opening || s.Phase == Fresh || s.Phase == Awake {
		return false
	}
	return s.Told == ToldNearest || s.Told == ToldLists
}

// Condition returns how it is with the server.
func (s State) Condition() asker.Condition {
	switch {
	case s.Phase.isLast():
		return asker.Gone
	case s.Phase.sessionTakesRequests():
		return asker.Up
	case s.AnswersLists():
		return asker.Known
	case s.Phase == Waking:
		return asker.Starting
	case s.Phase == Pausing, s.Phase == Refusing, s.Phase == GivenUp:
		return asker.Failed
	}
	return asker.Asking
}

// Verdict is what becomes of a message that nothing has answered.
type Verdict string

// The verdicts on a message.
const (
	// Pass: it goes to the session.
	Pass Verdict = "pass"
	// Use: Needed happens, and it goes to the session.
	Use Verdict = "use"
	// Wait: it waits at the gate, and Needed happens.
	Wait Verdict = "wait"
	// Refuse: a request gets the failure, or why the connection ends. A notification is dropped.
	Refuse Verdict = "refuse"
)

// Takes returns what becomes of a request or a notification. retry says that the time has come from which
// a request causes a start in GivenUp.
func (p Phase) Takes(isRequest, retry bool) Verdict {
	switch p {
	case Recalling, RecallingNow, Asleep, Waking, Preparing, Opening, Pausing:
		return Wait
	case Fresh:
		return Use
	case Awake:
		return Pass
	case GivenUp:
		if isRequest && retry {
			return Wait
		}
	case Finishing:
		if !isRequest {
			return Pass
		}
	}
	return Refuse
}

// Shown returns the state of the connection that people see.
func (p Phase) Shown() connstate.State {
	switch p {
	case Recalling, RecallingNow, Waking, Preparing:
		return connstate.Initializing
	case Asleep:
		return connstate.Resting
	case Opening, Fresh, Awake:
		return connstate.Ready
	case Pausing, Refusing, GivenUp:
		return connstate.Failed
	case Closed:
		return connstate.Closed
	}
	return connstate.Draining
}
