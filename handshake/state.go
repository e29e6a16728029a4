package handshake

// StartState is how far one start of a session has come, as the connection that waits for
// it sees it. [Next] has all moves, and docs/reference/states.md the same as a diagram.
type StartState string

// The states of a start. Started, Failed, Again and Gone are its ends.
const (
	// Dialing: the server is being started or reached. Nothing has asked for initialize.
	Dialing StartState = "dialing"
	// DueSynthetic: as Dialing, but a message of the client needs the server. The synthetic
	// initialize goes out as soon as the server can take it.
	DueSynthetic StartState = "due-synthetic"
	// DueOwn: as Dialing, but the client has sent its own initialize, which goes out as
	// soon as the server can take it.
	DueOwn StartState = "due-own"
	// Joining: the session will need no initialize of this connection, because the
	// session is shared, or the client initializes it like any other request. After a loss
	// the gateway has the params of that client, and the next start is DueOwn.
	Joining StartState = "joining"
	// AwaitingOwn: the server can take initialize. The gateway waits a moment for the client's
	// own.
	AwaitingOwn StartState = "awaiting-own"
	// InitializingSynthetic: the synthetic initialize is at the server.
	InitializingSynthetic StartState = "initializing-synthetic"
	// InitializingOwn: the client's own initialize is at the server.
	InitializingOwn StartState = "initializing-own"
	// Superseded: another start is to follow, and this one is being ended.
	Superseded StartState = "superseded"
	// Abandoned: the connection is closed, and the start is being ended.
	Abandoned StartState = "abandoned"

	// Started: the client uses the session.
	Started StartState = "started"
	// Failed: there is no session. The connection pauses before the next start.
	Failed StartState = "failed"
	// Again: there is no session, and the next start follows without a pause.
	Again StartState = "again"
	// Gone: there is no session, and none is needed.
	Gone StartState = "gone"
)

// Over reports whether the start is at its end.
func (s StartState) Over() bool {
	return s == Started || s == Failed || s == Again || s == Gone
}

// StartEvent is what can happen during a start.
type StartEvent string

// The events of a start.
const (
	// Dialed: the server can take initialize.
	Dialed StartEvent = "dialed"
	// OwnInitialize: the client has sent its own initialize.
	OwnInitialize StartEvent = "own-initialize"
	// MoreDeclared: as OwnInitialize, and it declares capabilities that the synthetic
	// initialize does not.
	MoreDeclared StartEvent = "more-declared"
	// Needed: another message of the client needs the server.
	Needed StartEvent = "needed"
	// DelayOver: the client has been silent for as long as the gateway waits for its own
	// initialize.
	DelayOver StartEvent = "delay-over"
	// Late: the initialization timeout is over.
	Late StartEvent = "late"
	// ServerReplaced: the configuration has another server now.
	ServerReplaced StartEvent = "server-replaced"
	// ConnectionClosed: nobody needs the session any more.
	ConnectionClosed StartEvent = "connection-closed"
	// Up: the session is there, and initialized if it has to be.
	Up StartEvent = "up"
	// Down: the start has ended without a session: it failed, its time was up, or it
	// was cancelled.
	Down StartEvent = "down"
)

// StartAction is what to do when a start moves.
type StartAction string

// The actions of a start.
const (
	// DoNothing: the event only changes the state, or nothing.
	DoNothing StartAction = "nothing"
	// StartDelay: begin to wait for the client's own initialize. DelayOver ends that.
	StartDelay StartAction = "start-delay"
	// SendSynthetic: send the gateway's own initialize.
	SendSynthetic StartAction = "send-synthetic"
	// SendOwn: send the client's initialize.
	SendOwn StartAction = "send-own"
	// AnnounceLate: tell the client that the server is still starting.
	AnnounceLate StartAction = "announce-late"
	// Cancel: end what is under way. Up or Down will follow.
	Cancel StartAction = "cancel"
	// UseSession: give the session to the connection.
	UseSession StartAction = "use-session"
	// DiscardSession: close the session, which nobody uses.
	DiscardSession StartAction = "discard-session"
	// ReportFailure: count, log and announce the failure.
	ReportFailure StartAction = "report-failure"
	// ReportCancelled: count a start that was ended before it had a session.
	ReportCancelled StartAction = "report-cancelled"
)

// Next returns where an event leads a start, and what to do. It has no effects of its own.
// An event without a place in the table changes nothing.
func Next(state StartState, event StartEvent) (StartState, StartAction) {
	switch state {
	case Started, Failed, Again, Gone:
		return state, DoNothing
	case Superseded: // what is under way has been cancelled
		switch event {
		case Up:
			return Again, DiscardSession
		case Down:
			return Again, ReportCancelled
		case ConnectionClosed:
			return Abandoned, DoNothing
		}
		return state, DoNothing
	case Abandoned: // as Superseded
		switch event {
		case Up:
			return Gone, DiscardSession
		case Down:
			return Gone, ReportCancelled
		}
		return state, DoNothing
	}

	switch event { // the same in all other states
	case Up:
		return Started, UseSession
	case Down:
		return Failed, ReportFailure
	case Late:
		return state, AnnounceLate
	case ServerReplaced:
		return Superseded, Cancel
	case ConnectionClosed:
		return Abandoned, Cancel
	}

	own := event == OwnInitialize || event == MoreDeclared
	switch state {
	case Dialing:
		switch {
		case event == Dialed:
			return AwaitingOwn, StartDelay
		case own:
			return DueOwn, DoNothing
		case event == Needed:
			return DueSynthetic, DoNothing
		}
	case DueSynthetic:
		switch {
		case event == Dialed:
			return InitializingSynthetic, SendSynthetic
		case own:
			return DueOwn, DoNothing
		}
	case DueOwn:
		if event == Dialed {
			return InitializingOwn, SendOwn
		}
	case AwaitingOwn:
		switch {
		case own:
			return InitializingOwn, SendOwn
		case event == Needed, event == DelayOver:
			return InitializingSynthetic, SendSynthetic
		}
	case InitializingSynthetic:
		if event == MoreDeclared {
			return Superseded, Cancel
		}
	}
	return state, DoNothing
}
