package compose

// linkState is how far a link has come.
type linkState uint8

const (
	unopened linkState = iota
	asking             // the member has the client's initialize
	reading            // its tools are read
	listed             // its tools are known
	failing            // it has not answered as it should, or its connection is over
	leaving            // it is no member any more, and has requests to answer
	gone
	linkStates
)

var linkStateNames = [linkStates]string{"unopened", "asking", "reading", "listed", "failing", "leaving", "gone"}

func (s linkState) String() string { return linkStateNames[s] }

// linkEvent is what happens to a link.
type linkEvent uint8

const (
	open       linkEvent = iota // the client has sent initialize
	answered                    // the member has answered initialize
	refused                     // it has refused initialize, or could not be reached
	read                        // its tools are known
	unreadable                  // its tools cannot be read
	wanted                      // a list that is not known is needed
	changed                     // the member says that a list is another one
	closed                      // the connection is over, and its open requests have failed
	retry                       // it may answer now
	remove                      // it is no member any more
	forbid                      // its client may not use it
	quiet                       // it has answered all requests
	linkEvents
)

var linkEventNames = [linkEvents]string{
	"open", "answered", "refused", "read", "unreadable", "wanted", "changed", "closed", "retry", "remove", "forbid",
	"quiet",
}

func (e linkEvent) String() string { return linkEventNames[e] }

// linkEffect is what follows from an event.
type linkEffect uint8

const (
	nothing  linkEffect = iota
	begin               // dial if there is no connection, and send initialize
	readList            // read the list
	publish             // make a new result; lists and calls that wait go on
	fail                // lists and calls that wait go on without it; the view tries again later
	finish              // close as soon as it has answered all requests
	end                 // close
)

// linkMove is a row of the table.
type linkMove struct {
	next linkState
	do   linkEffect
}

// linkMoves is the table of docs/design/views.md. An event without a row changes nothing: it comes too late.
var linkMoves = [linkStates]map[linkEvent]linkMove{
	unopened: {open: {asking, begin}, remove: {gone, end}, forbid: {gone, end}},
	asking: {
		answered: {reading, readList}, refused: {failing, fail}, closed: {failing, fail}, remove: {gone, end},
		forbid: {gone, end},
	},
	reading: {
		read: {listed, publish}, unreadable: {failing, fail}, wanted: {reading, readList}, changed: {reading, readList},
		closed: {failing, fail}, remove: {leaving, finish}, forbid: {gone, end},
	},
	listed: {
		wanted: {listed, readList}, changed: {listed, readList}, closed: {failing, fail}, remove: {leaving, finish},
		forbid: {gone, end},
	},
	failing: {
		answered: {reading, readList}, retry: {asking, begin}, closed: {failing, fail}, remove: {gone, end},
		forbid: {gone, end},
	},
	leaving: {quiet: {gone, end}, closed: {gone, end}},
}

// after returns the move that follows from an event. It reports false if there is none.
func (s linkState) after(e linkEvent) (m linkMove, ok bool) {
	m, ok = linkMoves[s][e]
	return m, ok
}
