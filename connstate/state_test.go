package connstate_test

import (
	"testing"

	"github.com/mcp-sse/mcp-sse/connstate"
)

func allStates() []connstate.State {
	return []connstate.State{
		connstate.Initializing, connstate.Ready, connstate.Failed, connstate.Draining, connstate.Closed,
	}
}

// in returns a world whose connection is in that state.
func in(t *testing.T, s connstate.State) *world {
	t.Helper()
	w := newWorld(t, connstate.Options{}, connstate.Client{})
	switch s {
	case connstate.Initializing:
	case connstate.Closed:
		w.c.Close(connstate.ClosedClient)
	default:
		must(t, w.c.Move(s))
	}
	return w
}

// The table of design §6, written out: every pair that may be.
func TestEveryPairOfStates(t *testing.T) {
	may := map[[2]connstate.State]bool{
		{connstate.Initializing, connstate.Ready}:    true,
		{connstate.Initializing, connstate.Failed}:   true,
		{connstate.Initializing, connstate.Draining}: true,
		{connstate.Initializing, connstate.Closed}:   true,
		{connstate.Ready, connstate.Initializing}:    true,
		{connstate.Ready, connstate.Draining}:        true,
		{connstate.Ready, connstate.Closed}:          true,
		{connstate.Failed, connstate.Initializing}:   true,
		{connstate.Failed, connstate.Draining}:       true,
		{connstate.Failed, connstate.Closed}:         true,
		{connstate.Draining, connstate.Closed}:       true,
	}
	for _, from := range allStates() {
		for _, to := range append(allStates(), connstate.Closed+1, 255) {
			w := in(t, from)
			err := w.c.Move(to)
			if may[[2]connstate.State{from, to}] && to != connstate.Closed { // closing is Close's
				must(t, err)
			} else if err == nil || w.c.State() != from {
				t.Errorf("Move %v → %v: got %v and state %v", from, to, err, w.c.State())
			}
		}
	}
}
