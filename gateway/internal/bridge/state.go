package bridge

import "slices"

// State is the state of the start of a session.
//
//	| state        | what it means                                         | run | what follows                      |
//	|--------------|-------------------------------------------------------|-----|-----------------------------------|
//	| pausing      | the next attempt is due, at once or after a failure   | yes | reaching, gaveUp                  |
//	| reaching     | the server is being started, or taken from the pool   | yes | holding, taking, pausing, gaveUp  |
//	| holding      | the server runs; initialize waits for the client      | yes | initializing                      |
//	| initializing | initialize is out, the server has not answered        | yes | taking, reaching, pausing, gaveUp |
//	| taking       | the client is told of the session, the gate is opened | yes | serving, reaching, gaveUp         |
//	| serving      | messages go to the session                            | no  | pausing                           |
//	| gaveUp       | the last attempt failed; a request makes the next one | no  | pausing                           |
//	| over         | the connection is closed, or drains without a session | no  | nothing                           |
//
// Every state but over may go to over. A shared session, and one without the gateway's
// initialize, are taken as they are reached.
type State uint8

// The states of a start.
const (
	pausing State = iota
	reaching
	holding
	initializing
	taking
	serving
	gaveUp
	over
)

// moves is the table above.
var moves = [...][]State{
	pausing:      {reaching, gaveUp, over},
	reaching:     {holding, taking, pausing, gaveUp, over},
	holding:      {initializing, over},
	initializing: {taking, reaching, pausing, gaveUp, over},
	taking:       {serving, reaching, gaveUp, over},
	serving:      {pausing, over},
	gaveUp:       {pausing, over},
	over:         {},
}

var stateNames = [...]string{
	"pausing", "reaching", "holding", "initializing", "taking", "serving", "gave up", "over",
}

// String returns the name of the state.
func (s State) String() string { return stateNames[s] }

// Next returns the states that may follow.
func (s State) Next() []State { return moves[s] }

// running reports whether run owns the start in that state.
func (s State) running() bool { return s <= taking }

// moveLocked changes the state. A move that is not in the table is a mistake in this
// package: it is logged, and made.
func (s *start) moveLocked(to State) {
	if s.state == over {
		return
	}
	if !slices.Contains(s.state.Next(), to) {
		s.b.log().Error("start made a move that it must not make", "from", s.state.String(), "to", to.String())
	}
	if s.b.opts.Moved != nil {
		s.b.opts.Moved(s.state, to)
	}
	s.state = to
}
