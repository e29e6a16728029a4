package life

import (
	"fmt"
	"strings"
)

// State is all that the next move depends on. It is a value.
type State struct {
	Phase    Phase
	Told     Told
	Declared Declared
}

// Phase is what a life is doing.
type Phase string

// The phases of a life. It begins in Recalling and ends in Closed.
const (
	// Recalling: there is no session, and memory is asked what to tell the client. Nothing is in a hurry: the
	// client may get a moment for its own initialize, and memory may learn something for it.
	Recalling Phase = "recalling"
	// RecallingNow: as Recalling, but what memory has now decides.
	RecallingNow Phase = "recalling-now"
	// Asleep: there is no session. Memory answers, and nothing needs the server.
	Asleep Phase = "asleep"
	// Waking: a start is under way, which has a table of its own. Memory may answer meanwhile.
	Waking Phase = "waking"
	// Preparing: there is a session. It is looked at, what it said early is delivered, and the
	// client's settings are restored. Messages wait.
	Preparing Phase = "preparing"
	// Opening: what waited at the gate goes to the session, in order.
	Opening Phase = "opening"
	// Fresh: the gate is open, and no message has gone through it. The client may still declare more.
	Fresh Phase = "fresh"
	// Awake: messages pass to the session.
	Awake Phase = "awake"
	// Pausing: the last start failed, or its session ended soon. Messages wait for the next start.
	Pausing Phase = "pausing"
	// Refusing: as Pausing, but the server has never worked and fails in the same way. Messages get
	// the failure.
	Refusing Phase = "refusing"
	// GivenUp: too many starts have failed. No start follows by itself.
	GivenUp Phase = "given-up"
	// Finishing: the connection drains, and the session answers what is in flight.
	Finishing Phase = "finishing"
	// Drained: the connection drains, and there is no session.
	Drained Phase = "drained"
	// Dismissed: the server wants no more of this client. The connection ends when it is quiet.
	Dismissed Phase = "dismissed"
	// Closed: the connection is over.
	Closed Phase = "closed"
)

var phases = []Phase{
	Recalling, RecallingNow, Asleep, Waking, Preparing, Opening, Fresh, Awake,
	Pausing, Refusing, GivenUp, Finishing, Drained, Dismissed, Closed,
}

// Recalls reports whether there is neither a session nor a start, and memory is asked what to tell the client.
func (p Phase) Recalls() bool { return p == Recalling || p == RecallingNow }

// sessionTakesRequests reports whether there is a session that takes requests of the client, now or soon. The session
// of Finishing takes none.
func (p Phase) sessionTakesRequests() bool {
	return p == Preparing || p == Opening || p == Fresh || p == Awake
}

// isLast reports whether no session will follow.
func (p Phase) isLast() bool {
	return p == Finishing || p == Drained || p == Dismissed || p == Closed
}

// Event is what can happen to a life. Each comes from a source: the client, the connection, or the
// start, session, question to memory or timer that the life has now. The report of an earlier source is
// no event.
type Event string

// The events of a life.
const (
	// Needed: a message of the client that memory does not answer needs the server.
	Needed Event = "needed"
	// OwnInitialize: the client has sent its own initialize.
	OwnInitialize Event = "own-initialize"
	// OwnUnkept: as OwnInitialize, but its params cannot be kept for a session: they are too long, there are none, or
	// the session is shared.
	OwnUnkept Event = "own-unkept"
	// MoreDeclared: as OwnInitialize, and it declares more than the session, or its start, was told.
	MoreDeclared Event = "more-declared"

	// Unknown: memory has nothing to tell.
	Unknown Event = "unknown"
	// Unsure: something is known, but not for what this client has declared so far.
	Unsure Event = "unsure"
	// MomentOver: the client has not sent its own initialize in the moment that it got for that.
	MomentOver Event = "moment-over"
	// Learnable: one start in the background can learn it for all that sleep.
	Learnable Event = "learnable"
	// Learned: that start is over.
	Learned Event = "learned"
	// Known: memory has what the server says to this client, and nothing needs the server.
	Known Event = "known"
	// KnownNeeded: as Known, but something needs the server.
	KnownNeeded Event = "known-needed"
	// KnownOld: as Known, but it is to be renewed by a session of this client's own.
	KnownOld Event = "known-old"
	// KnownNearly: memory has what the server says to another kind of client, or elsewhere.
	KnownNearly Event = "known-nearly"
	// Renewed: memory has something newer for this client.
	Renewed Event = "renewed"

	// Up: the start has a session.
	Up Event = "up"
	// Again: the start has ended because another one is to follow.
	Again Event = "again"
	// OwnRefused: the server has refused the client's own initialize. How the start ended follows.
	OwnRefused Event = "own-refused"
	// Failed: the start has failed.
	Failed Event = "failed"
	// FailedHopeless: as Failed, as before, at a server that has never worked.
	FailedHopeless Event = "failed-hopeless"
	// FailedLast: as Failed, and it was the last one in a row that was allowed.
	FailedLast Event = "failed-last"
	// PauseOver: the next start is due.
	PauseOver Event = "pause-over"

	// PreparedWaits: the session is prepared, and messages wait for it.
	PreparedWaits Event = "prepared-waits"
	// PreparedUnused: the session is prepared, nothing waits, and the client has not used it.
	PreparedUnused Event = "prepared-unused"
	// PreparedUsed: the session is prepared, nothing waits, and the client will get no other for
	// what it declares.
	PreparedUsed Event = "prepared-used"
	// Emptied: nothing waits at the gate any more.
	Emptied Event = "emptied"
	// Looked: the lists of the session are read.
	Looked Event = "looked"
	// NotLooked: they cannot be read.
	NotLooked Event = "not-looked"
	// Unlookable: they are not read, because nothing is remembered any more.
	Unlookable Event = "unlookable"
	// ListsChanged: the server has sent a list_changed.
	ListsChanged Event = "lists-changed"
	// Idle: the session has had no message for long, and holds nothing of the client.
	Idle Event = "idle"
	// Lost: the session has ended, and was shared or had proved itself.
	Lost Event = "lost"
	// LostSoon: the session has ended before it had. That is a failed start.
	LostSoon Event = "lost-soon"
	// LostLast: as LostSoon, and it was the last start in a row that was allowed.
	LostLast Event = "lost-last"
	// Retired: the session has ended, or answers only what it has, because a login at its server was made, has ended or
	// is wanted. That is no failure of the server.
	Retired Event = "retired"
	// Dismiss: the server has ended the session with this client for good.
	Dismiss Event = "dismiss"
	// Replaced: the configuration has another server.
	Replaced Event = "replaced"

	// Drain: the connection takes no more requests.
	Drain Event = "drain"
	// Close: the connection is over.
	Close Event = "close"
)

var events = []Event{
	Needed, OwnInitialize, OwnUnkept, MoreDeclared,
	Unknown, Unsure, MomentOver, Learnable, Learned, Known, KnownNeeded, KnownOld, KnownNearly, Renewed,
	Up, Again, OwnRefused, Failed, FailedHopeless, FailedLast, PauseOver,
	PreparedWaits, PreparedUnused, PreparedUsed, Emptied, Looked, NotLooked, Unlookable, ListsChanged,
	Idle, Lost, LostSoon, LostLast, Retired, Dismiss, Replaced, Drain, Close,
}

// Action is what to do when a life moves.
type Action string

// The actions of a life.
const (
	// Recall: ask memory. Unknown, or one of the Known, follows; in Recalling also Unsure or Learnable.
	Recall Action = "recall"
	// StartMoment: begin to wait for the client's own initialize. MomentOver ends that.
	StartMoment Action = "start-moment"
	// Learn: begin a start in the background. Learned follows.
	Learn Action = "learn"
	// StopWaiting: end the question to memory, the moment, the learning or the pause, if there is one.
	StopWaiting Action = "stop-waiting"
	// TellMemory: keep what memory has, and answer with it what waits.
	TellMemory Action = "tell-memory"
	// TellIfDifferent: send list_changed for what differs from what the client was told.
	TellIfDifferent Action = "tell-if-different"
	// TellCompared: send list_changed where the session has other lists than the client was told.
	TellCompared Action = "tell-compared"
	// TellAllChanged: send list_changed for all lists that the session advertises.
	TellAllChanged Action = "tell-all-changed"

	// BeginStart: begin a start.
	BeginStart Action = "begin-start"
	// StartNeeded: Needed happens in the start's table.
	StartNeeded Action = "start-needed"
	// StartOwn: OwnInitialize happens there.
	StartOwn Action = "start-own"
	// StartMore: MoreDeclared happens there.
	StartMore Action = "start-more"
	// StartReplaced: ServerReplaced happens there.
	StartReplaced Action = "start-replaced"
	// AbandonStart: ConnectionClosed happens there, if a start is under way. It ends by itself.
	AbandonStart Action = "abandon-start"
	// AnswerRefusal: give the client the server's answer to its initialize.
	AnswerRefusal Action = "answer-refusal"
	// NoteFailure: count the failure, log it, and keep it for those who wait.
	NoteFailure Action = "note-failure"
	// ForgetFailures: the next start is the first.
	ForgetFailures Action = "forget-failures"
	// StartPause: begin to wait for the next start. PauseOver ends that.
	StartPause Action = "start-pause"
	// SetRetry: note the time from which a request causes a start.
	SetRetry Action = "set-retry"
	// RefuseWaiting: what waits gets the failure.
	RefuseWaiting Action = "refuse-waiting"
	// TakeServer: take the server that the configuration has now.
	TakeServer Action = "take-server"

	// AnnounceResult: announce what the server said to initialize.
	AnnounceResult Action = "announce-result"
	// AnswerInitializes: answer each initialize of the client that waits, from what the server said.
	AnswerInitializes Action = "answer-initializes"
	// Prepare: begin to prepare the session. One of the Prepared follows.
	Prepare Action = "prepare"
	// Release: begin to send what waits. Emptied follows.
	Release Action = "release"
	// NoteLoss: count the loss and log it.
	NoteLoss Action = "note-loss"
	// RetireSession: the session finishes its answers, and ends by itself.
	RetireSession Action = "retire-session"
	// SupersedeSession: close the session, which nobody has used.
	SupersedeSession Action = "supersede-session"
	// CloseSession: close the session, if there is one, and those that finish their answers.
	CloseSession Action = "close-session"
	// RefuseDraining: what waits gets the reason for which the connection ends.
	RefuseDraining Action = "refuse-draining"
	// EndConnection: close the connection when it is quiet.
	EndConnection Action = "end-connection"
)

// move is where an event leads, and what is to be done, in this order.
type move struct {
	phase   Phase // empty: the same
	actions []Action
}

func moveTo(phase Phase, actions ...Action) move { return move{phase, actions} }
func stay(actions ...Action) move                { return move{"", actions} }

// moves are those of one phase each.
var moves = map[Phase]map[Event]move{
	Recalling: {
		Needed:        moveTo(RecallingNow, Recall),
		OwnInitialize: moveTo(RecallingNow, Recall),
		OwnUnkept:     moveTo(RecallingNow, Recall),
		MoreDeclared:  moveTo(RecallingNow, Recall),
		Unsure:        stay(StartMoment),
		MomentOver:    moveTo(RecallingNow, Recall),
		Learnable:     stay(Learn),
		Learned:       moveTo(RecallingNow, Recall),
		Replaced:      stay(StopWaiting, TakeServer, Recall),
	},
	RecallingNow: {
		Needed:        stay(Recall),
		OwnInitialize: stay(Recall),
		OwnUnkept:     stay(Recall),
		MoreDeclared:  stay(Recall),
		Replaced:      moveTo(Recalling, StopWaiting, TakeServer, Recall),
	},
	Asleep: {
		Needed:        moveTo(Waking, BeginStart),
		OwnInitialize: moveTo(RecallingNow, Recall),
		OwnUnkept:     moveTo(RecallingNow, Recall),
		MoreDeclared:  moveTo(RecallingNow, Recall),
		Renewed:       stay(TellIfDifferent),
		Replaced:      moveTo(Recalling, TakeServer, Recall),
	},
	Waking: {
		Needed:        stay(StartNeeded),
		OwnInitialize: stay(StartOwn, Recall),
		OwnUnkept:     stay(StartNeeded, Recall),
		MoreDeclared:  stay(StartMore, Recall),
		Renewed:       stay(Recall),
		Unknown:       stay(),
		Known:         stay(TellMemory),
		KnownNeeded:   stay(TellMemory),
		KnownOld:      stay(TellMemory),
		KnownNearly:   stay(TellMemory),
		// The announcement is the first that a client hears of its server.
		Up:             moveTo(Preparing, StopWaiting, AnnounceResult, AnswerInitializes, TellAllChanged, Prepare),
		Again:          moveTo(RecallingNow, ForgetFailures, TakeServer, Recall),
		OwnRefused:     stay(AnswerRefusal),
		Failed:         moveTo(Pausing, StopWaiting, NoteFailure, StartPause),
		FailedHopeless: moveTo(Refusing, StopWaiting, NoteFailure, RefuseWaiting, StartPause),
		FailedLast:     moveTo(GivenUp, StopWaiting, NoteFailure, RefuseWaiting, SetRetry),
		Replaced:       stay(StartReplaced),
	},
	Preparing: {
		Needed:         stay(), // it waits
		OwnInitialize:  stay(AnswerInitializes),
		OwnUnkept:      stay(AnswerInitializes),
		MoreDeclared:   moveTo(RecallingNow, SupersedeSession, ForgetFailures, Recall),
		PreparedWaits:  moveTo(Opening, Release),
		PreparedUnused: moveTo(Fresh),
		PreparedUsed:   moveTo(Awake),
	},
	Opening: {
		Needed:        stay(), // it waits
		OwnInitialize: stay(AnswerInitializes),
		OwnUnkept:     stay(AnswerInitializes),
		MoreDeclared:  stay(AnswerInitializes),
		Emptied:       moveTo(Awake),
	},
	Fresh: {
		Needed:        moveTo(Awake),
		OwnInitialize: stay(AnswerInitializes),
		OwnUnkept:     stay(AnswerInitializes),
		MoreDeclared:  moveTo(RecallingNow, SupersedeSession, ForgetFailures, Recall),
		Idle:          moveTo(RecallingNow, RetireSession, ForgetFailures, Recall),
	},
	Awake: {
		OwnInitialize: stay(AnswerInitializes),
		OwnUnkept:     stay(AnswerInitializes),
		MoreDeclared:  stay(AnswerInitializes),
		Idle:          moveTo(RecallingNow, RetireSession, ForgetFailures, Recall),
	},
	Pausing: {
		Needed:        stay(), // it waits
		OwnInitialize: moveTo(RecallingNow, StopWaiting, Recall),
		OwnUnkept:     moveTo(RecallingNow, StopWaiting, Recall),
		MoreDeclared:  moveTo(RecallingNow, StopWaiting, Recall),
		PauseOver:     moveTo(RecallingNow, Recall),
		Replaced:      moveTo(Recalling, StopWaiting, ForgetFailures, TakeServer, Recall),
	},
	Refusing: {
		OwnInitialize: moveTo(RecallingNow, StopWaiting, Recall),
		OwnUnkept:     moveTo(RecallingNow, StopWaiting, Recall),
		MoreDeclared:  moveTo(RecallingNow, StopWaiting, Recall),
		PauseOver:     moveTo(RecallingNow, Recall),
		Replaced:      moveTo(Recalling, StopWaiting, ForgetFailures, TakeServer, Recall),
	},
	GivenUp: {
		Needed:        moveTo(Waking, BeginStart),
		OwnInitialize: moveTo(RecallingNow, Recall),
		OwnUnkept:     moveTo(RecallingNow, Recall),
		MoreDeclared:  moveTo(RecallingNow, Recall),
		Replaced:      moveTo(Recalling, ForgetFailures, TakeServer, Recall),
	},
	Finishing: {
		OwnInitialize:  stay(AnswerInitializes),
		OwnUnkept:      stay(AnswerInitializes),
		MoreDeclared:   stay(AnswerInitializes),
		PreparedWaits:  stay(),
		PreparedUnused: stay(),
		PreparedUsed:   stay(),
		Emptied:        stay(),
		Looked:         stay(),
		NotLooked:      stay(),
		Unlookable:     stay(),
		ListsChanged:   stay(),
		Idle:           stay(),
		Lost:           moveTo(Drained, RetireSession, NoteLoss),
		LostSoon:       moveTo(Drained, RetireSession, NoteLoss),
		LostLast:       moveTo(Drained, RetireSession, NoteLoss),
		Retired:        moveTo(Drained, RetireSession),
		Dismiss:        moveTo(Drained, RetireSession),
	},
	Drained: {
		OwnInitialize: stay(RefuseDraining),
		OwnUnkept:     stay(RefuseDraining),
		MoreDeclared:  stay(RefuseDraining),
	},
	Dismissed: {
		OwnInitialize: stay(RefuseDraining),
		OwnUnkept:     stay(RefuseDraining),
		MoreDeclared:  stay(RefuseDraining),
	},
	Closed: {
		OwnInitialize: stay(RefuseDraining),
		OwnUnkept:     stay(RefuseDraining),
		MoreDeclared:  stay(RefuseDraining),
		Close:         stay(),
	},
}

// movesWithAnswer are those of both phases in which there is no session, and memory answers.
var movesWithAnswer = map[Event]move{
	Unknown:     moveTo(Waking, BeginStart),
	Known:       moveTo(Asleep, TellIfDifferent, TellMemory),
	KnownNeeded: moveTo(Waking, TellIfDifferent, TellMemory, BeginStart),
	KnownOld:    moveTo(Waking, TellIfDifferent, TellMemory, BeginStart),
	KnownNearly: moveTo(Waking, TellIfDifferent, TellMemory, BeginStart),
}

// movesWithSession are those of all phases with a session that takes requests, now or soon.
var movesWithSession = map[Event]move{
	Looked:       stay(TellCompared),
	NotLooked:    stay(TellAllChanged),
	Unlookable:   stay(TellAllChanged),
	ListsChanged: stay(),
	Lost:         moveTo(RecallingNow, RetireSession, NoteLoss, ForgetFailures, Recall),
	LostSoon:     moveTo(Pausing, RetireSession, NoteLoss, NoteFailure, StartPause),
	LostLast:     moveTo(GivenUp, RetireSession, NoteLoss, NoteFailure, RefuseWaiting, SetRetry),
	Retired:      moveTo(RecallingNow, RetireSession, ForgetFailures, Recall),
	Dismiss:      moveTo(Dismissed, RetireSession, RefuseDraining, EndConnection),
	Replaced:     moveTo(Recalling, RetireSession, ForgetFailures, TakeServer, Recall),
	Drain:        moveTo(Finishing, RefuseDraining),
}

// movesAtTheEnd are those of all phases after which no session follows.
var movesAtTheEnd = map[Event]move{
	Replaced: stay(),
	Drain:    stay(),
}

// movesOfAll are those of all phases that have no other.
var movesOfAll = map[Event]move{
	Renewed: stay(), // the next question, or the look, compares
	Drain:   moveTo(Drained, StopWaiting, AbandonStart, RefuseDraining),
	Close:   moveTo(Closed, StopWaiting, AbandonStart, CloseSession, RefuseDraining),
}

// findMove returns the move that an event makes in a phase. It reports false for an event that cannot happen.
func findMove(phase Phase, event Event) (move, bool) {
	if m, ok := moves[phase][event]; ok {
		return m, true
	}
	if m, ok := movesWithAnswer[event]; ok && phase.Recalls() {
		return m, true
	}
	if m, ok := movesWithSession[event]; ok && phase.sessionTakesRequests() {
		return m, true
	}
	if m, ok := movesAtTheEnd[event]; ok && phase.isLast() {
		return m, true
	}
	m, ok := movesOfAll[event]
	return m, ok
}

// Next returns what follows from an event, and what is to be done, in this order. It has no effects. It
// reports false for an event that cannot happen in this state, and changes nothing then.
func Next(state State, event Event) (next State, actions []Action, ok bool) {
	m, ok := findMove(state.Phase, event)
	if !ok {
		return state, nil, false
	}
	next = State{m.phase, toldAfter(state, event), declaredAfter(state, event)}
	if m.phase == "" {
		next.Phase = state.Phase
	}
	for _, action := range m.actions {
		if isDue(action, state.Told, event) {
			actions = append(actions, action)
		}
	}
	return next, actions, true
}

// Diagram returns the table as a diagram in Mermaid. Moves that stay in their phase are not in it, nor
// those that happen in all phases: to Closed, and from those without a session to Drained.
func Diagram() string {
	var b strings.Builder
	fmt.Fprintf(&b, "stateDiagram-v2\n    [*] --> %s\n", Recalling)
	for _, from := range phases {
		for _, into := range phases {
			if into == from || into == Closed || into == Drained && from != Finishing {
				continue
			}
			var why []string
			for _, event := range events {
				if m, ok := findMove(from, event); ok && m.phase == into {
					why = append(why, string(event))
				}
			}
			if why != nil {
				fmt.Fprintf(&b, "    %s --> %s: %s\n", inDiagram(from), inDiagram(into), strings.Join(why, ", "))
			}
		}
	}
	return b.String()
}

// inDiagram returns the name of a phase as Mermaid takes it.
func inDiagram(p Phase) string { return strings.ReplaceAll(string(p), "-", "_") }
