package asker

// Condition is how it is with the server of a connection.
type Condition uint8

// The conditions of a connection.
const (
	Asking   Condition = iota // memory is asked: milliseconds
	Known                     // memory answers initialize and lists
	Starting                  // nothing is known; a start is under way
	Up                        // there is a session
	Failed                    // nothing is known, and the last start failed
	Gone                      // the connection is over, or about to be
)

var conditionNames = [...]string{"asking", "known", "starting", "up", "failed", "gone"}

// String returns the name of the condition.
func (c Condition) String() string { return conditionNames[c] }

// Conditional is a Conn that knows its Condition. changed is closed at the next change.
type Conditional interface {
	Condition() (c Condition, changed <-chan struct{})
}
