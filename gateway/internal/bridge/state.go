package bridge

import "slices"

// State is the state of a start.
//
//	| state        | what it means                                         | run | what follows                      |
//	|--------------|-------------------------------------------------------|-----|-----------------------------------|
//	| pausing      | the next attempt begins, at once or after a pause     | yes | reaching, gaveUp                  |
//	| reaching     | the server starts, or comes from the pool             | yes | holding, taking, pausing, gaveUp  |
//	| holding      | the server runs; initialize waits for the client      | yes | initializing                      |
//	| initializing | the server has initialize and has not answered it     | yes | taking, reaching, pausing, gaveUp |
//	| taking       | the client learns of the session, the gate opens      | yes | serving, reaching, gaveUp         |
//	| serving      | messages go to the session                            | no  | pausing                           |
//	| gaveUp       | the last attempt failed; a request makes the next one | no  | pausing                           |
//	| over         | the connection is closed, or drains without a session | no  | nothing                           |
//
// Every state but over may go to over. A shared session, and a session that the client
// initializes itself, go from reaching to taking.
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

// running reports whether run is active in the state.
func (s State) running() bool { return s <= taking }

// moveLocked changes the state, unless it is over. A move that the table lacks is a
// bug in this package: moveLocked logs it and makes it.
func (s *start) moveLocked(to State) {
	if s.state == over {
		return
	}
	if !slices.Contains(s.state.Next(), to) {
		s.b.log().Error("start made an invalid move", "from", s.state.String(), "to", to.String())
	}
	if s.b.opts.Moved != nil {
		s.b.opts.Moved(s.state, to)
	}
	s.state = to
}
