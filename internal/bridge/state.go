package bridge

// StartState is how far one start of a session has come, as the connection that waits for
// it sees it. [Next] has all moves, and docs/design/life.md the same as a diagram.
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
	// ListsTold: the client knows lists of the server, and waits for the answers to its requests.
	ListsTold StartEvent = "lists-told"
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
	// StartReports: begin to tell those who wait, every few seconds, that the start goes on. It is begun once.
	StartReports StartAction = "start-reports"
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

// when is a state in which an event happens.
type when struct {
	state StartState
	event StartEvent
}

// then is where that leads, and what to do.
type then struct {
	state  StartState
	action StartAction
}

// moves are those of one state each.
var moves = map[when]then{
	{Dialing, Dialed}:        {AwaitingOwn, StartDelay},
	{Dialing, OwnInitialize}: {DueOwn, DoNothing},
	{Dialing, MoreDeclared}:  {DueOwn, DoNothing},
	{Dialing, Needed}:        {DueSynthetic, DoNothing},

	{DueSynthetic, Dialed}:        {InitializingSynthetic, SendSynthetic},
	{DueSynthetic, OwnInitialize}: {DueOwn, DoNothing},
	{DueSynthetic, MoreDeclared}:  {DueOwn, DoNothing},

	{DueOwn, Dialed}: {InitializingOwn, SendOwn},

	{AwaitingOwn, OwnInitialize}: {InitializingOwn, SendOwn},
	{AwaitingOwn, MoreDeclared}:  {InitializingOwn, SendOwn},
	{AwaitingOwn, Needed}:        {InitializingSynthetic, SendSynthetic},
	{AwaitingOwn, DelayOver}:     {InitializingSynthetic, SendSynthetic},

	{InitializingSynthetic, MoreDeclared}: {Superseded, Cancel},

	// The start has been cancelled: it fails, or its session comes all the same.
	{Superseded, Up}:               {Again, DiscardSession},
	{Superseded, Down}:             {Again, ReportCancelled},
	{Superseded, ConnectionClosed}: {Abandoned, DoNothing},
	{Superseded, ListsTold}:        {Superseded, StartReports}, // they wait for the next start as well
	{Abandoned, Up}:                {Gone, DiscardSession},
	{Abandoned, Down}:              {Gone, ReportCancelled},
}

// movesOfAll are those of each state in which a start is under way and has not been cancelled.
var movesOfAll = map[StartEvent]then{
	Up:               {Started, UseSession},
	Down:             {Failed, ReportFailure},
	ServerReplaced:   {Superseded, Cancel},
	ConnectionClosed: {Abandoned, Cancel},
}

// Next returns where an event leads a start, and what to do. It has no effects of its own.
// An event without a place in the tables changes nothing.
func Next(state StartState, event StartEvent) (StartState, StartAction) {
	if move, ok := moves[when{state, event}]; ok {
		return move.state, move.action
	}
	if state.Over() || state == Superseded || state == Abandoned {
		return state, DoNothing
	}
	if move, ok := movesOfAll[event]; ok {
		return move.state, move.action
	}
	switch event {
	case Late:
		return state, AnnounceLate
	case ListsTold:
		return state, StartReports
	}
	return state, DoNothing
}
