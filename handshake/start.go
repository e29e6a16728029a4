package handshake

// StartState is how far one start of a session has come, as the connection that waits for
// it sees it. [Next] has all moves, and docs/reference/states.md the same as a diagram.
type StartState uint8

// The states of a start. Those from Started on are its ends.
const (
	// Dialing: the server is being started or reached. Nothing has asked for initialize.
	Dialing StartState = iota
	// DueSynthetic: as Dialing, but a message of the client needs the server. The synthetic
	// initialize goes out as soon as the server can take it.
	DueSynthetic
	// DueOwn: as Dialing, but the client has sent its own initialize, which goes out as
	// soon as the server can take it.
	DueOwn
	// Joining: the session will need no initialize of this connection, because the
	// session is shared, or the client initializes it like any other request.
	Joining
	// Held: the server can take initialize. The gateway waits a moment for the client's
	// own.
	Held
	// InitializingSynthetic: the synthetic initialize is at the server.
	InitializingSynthetic
	// InitializingOwn: the client's own initialize is at the server.
	InitializingOwn
	// Superseded: another start is to follow, and this one is being ended.
	Superseded
	// Abandoned: the connection is closed, and the start is being ended.
	Abandoned

	// Started: the client uses the session.
	Started
	// Failed: there is no session. The connection pauses before the next start.
	Failed
	// Again: there is no session, and the next start follows without a pause.
	Again
	// Gone: there is no session, and none is needed.
	Gone
)

// Over reports whether the start is at its end.
func (s StartState) Over() bool { return s >= Started }

// InitializeSent reports whether initialize has gone to the server: from then on the
// start has the params that it has.
func (s StartState) InitializeSent() bool {
	return s == InitializingSynthetic || s == InitializingOwn
}

func (s StartState) String() string {
	return [...]string{
		"dialing", "due-synthetic", "due-own", "joining", "held", "initializing-synthetic", "initializing-own",
		"superseded", "abandoned", "started", "failed", "again", "gone",
	}[s]
}

// StartEvent is what can happen during a start.
type StartEvent uint8

// The events of a start.
const (
	// Dialed: the server can take initialize.
	Dialed StartEvent = iota
	// OwnInitialize: the client has sent its own initialize.
	OwnInitialize
	// MoreDeclared: as OwnInitialize, and it declares capabilities that the synthetic
	// initialize does not.
	MoreDeclared
	// Needed: another message of the client needs the server.
	Needed
	// DelayOver: the client has been silent for as long as the gateway waits for its own
	// initialize.
	DelayOver
	// Late: the initialization timeout is over.
	Late
	// ServerReplaced: the configuration has another server now.
	ServerReplaced
	// ConnectionClosed: nobody needs the session any more.
	ConnectionClosed
	// Up: the session is there, and initialized if it has to be.
	Up
	// Down: the start has ended without a session: it failed, its time was up, or it
	// was cancelled.
	Down
)

func (e StartEvent) String() string {
	return [...]string{
		"dialed", "own-initialize", "more-declared", "needed", "delay-over", "late", "server-replaced",
		"connection-closed", "up", "down",
	}[e]
}

// StartAction is what to do when a start moves.
type StartAction uint8

// The actions of a start.
const (
	// DoNothing: the event only changes the state, or nothing.
	DoNothing StartAction = iota
	// StartDelay: begin to wait for the client's own initialize. DelayOver ends that.
	StartDelay
	// SendSynthetic: send the gateway's own initialize.
	SendSynthetic
	// SendOwn: send the client's initialize.
	SendOwn
	// AnnounceLate: tell the client that the server is still starting.
	AnnounceLate
	// Cancel: end what is under way. Up or Down will follow.
	Cancel
	// UseSession: give the session to the connection.
	UseSession
	// DiscardSession: close the session, which nobody uses.
	DiscardSession
	// ReportFailure: count, log and announce the failure.
	ReportFailure
)

func (a StartAction) String() string {
	return [...]string{
		"nothing", "start-delay", "send-synthetic", "send-own", "announce-late", "cancel", "use-session",
		"discard-session", "report-failure",
	}[a]
}

// Next returns where an event leads a start, and what to do. It has no effects of its own.
// An event without a place in the table changes nothing.
func Next(state StartState, event StartEvent) (StartState, StartAction) {
	if state.Over() {
		return state, DoNothing
	}
	switch event { // the same in all states
	case Up:
		return upFrom(state)
	case Down:
		return downFrom(state)
	case ConnectionClosed:
		if state == Superseded || state == Abandoned {
			return Abandoned, DoNothing // it is being ended already
		}
		return Abandoned, Cancel
	case ServerReplaced:
		if state == Superseded || state == Abandoned {
			return state, DoNothing
		}
		return Superseded, Cancel
	case Late:
		if state == Superseded || state == Abandoned {
			return state, DoNothing
		}
		return state, AnnounceLate
	}
	own := event == OwnInitialize || event == MoreDeclared
	switch state {
	case Dialing:
		switch {
		case event == Dialed:
			return Held, StartDelay
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
	case Held:
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

// upFrom is Next for Up.
func upFrom(state StartState) (StartState, StartAction) {
	switch state {
	case Superseded:
		return Again, DiscardSession
	case Abandoned:
		return Gone, DiscardSession
	}
	return Started, UseSession
}

// downFrom is Next for Down.
func downFrom(state StartState) (StartState, StartAction) {
	switch state {
	case Superseded:
		return Again, DoNothing
	case Abandoned:
		return Gone, DoNothing
	}
	return Failed, ReportFailure
}
