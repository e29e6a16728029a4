package connstate

// State is the state of a connection.
type State uint8

// The states of a connection. See docs/reference/states.md for the drawing.
const (
	// Initializing: a session with the server is being started; requests wait.
	Initializing State = iota
	// Ready: messages pass to the server as they come.
	Ready
	// Failed: the last start failed. Requests wait while another start is due;
	// otherwise they get its error.
	Failed
	// Resting: there is no session, and none is needed: what is remembered of the server answers the
	// client. Other requests wait for the session that they make the connection start.
	Resting
	// Draining: the requests in flight may finish; new ones are refused.
	Draining
	// Closed: the stream is over. No other state follows.
	Closed
	numStates
)

var stateNames = [numStates]string{"initializing", "ready", "failed", "resting", "draining", "closed"}

// String returns the name that metrics, logs and the connection event use.
func (s State) String() string {
	if s >= numStates {
		return "unknown"
	}
	return stateNames[s]
}

// MarshalText returns the name, for JSON.
func (s State) MarshalText() ([]byte, error) { return []byte(s.String()), nil }

// moves lists which states may follow which.
var moves = [numStates][]State{
	Initializing: {Ready, Failed, Resting, Draining, Closed},
	Ready:        {Initializing, Draining, Closed},
	Failed:       {Initializing, Draining, Closed},
	Resting:      {Initializing, Draining, Closed},
	Draining:     {Closed},
}
