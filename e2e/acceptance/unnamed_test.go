package acceptance

import (
	"fmt"
	"strconv"
	"testing"
)

// foreign are scripts of servers whose ids match nothing.
var foreign = []string{"foreign numbers", "foreign texts", "foreign but initialize", "always 1", "counts from 0", "floats"}

// A server names its answer to initialize, and no other. Its calls are answered at once, with no
// option set, whether they are posted one by one or together.
func TestTheCallsOfAServerThatNamesOnlyItsAnswerToInitializeAreAnsweredAtOnce(t *testing.T) {
	t.Parallel()
	answeredAtOnce(t, "names initialize alone")
}

// So are those of a server whose ids match nothing.
func TestTheCallsOfAServerWhoseIDsMatchNothingAreAnsweredAtOnce(t *testing.T) {
	t.Parallel()
	for _, script := range foreign {
		t.Run(script, func(t *testing.T) {
			t.Parallel()
			answeredAtOnce(t, script)
		})
		t.Run(script+", one session for all", func(t *testing.T) {
			t.Parallel()
			answeredAtOnce(t, script, "--sessions", "shared")
		})
	}
}

// answeredAtOnce checks that calls have their own results before their timeout of an hour.
func answeredAtOnce(t *testing.T, script string, flags ...string) {
	t.Helper()
	g := startGateway(t, script, flags...)
	oneByOne := g.open("")
	for n := range 4 {
		oneByOne.call(strconv.Itoa(n), "echo", fmt.Sprintf(`{"text":"result %d"}`, n))
		oneByOne.wantText(strconv.Itoa(n), fmt.Sprintf("result %d", n))
	}
	echo(g.open(""))
}

// Four calls are at a server that then stops naming its answers, and answers the oldest first.
func TestAResponseThatMatchesNothingGoesToTheOldestOfSeveralPendingRequests(t *testing.T) {
	t.Parallel()
	for _, script := range []string{"names initialize alone", "foreign but initialize"} {
		t.Run(script, func(t *testing.T) {
			t.Parallel()
			s := startGateway(t, script).open("")
			for n := range 4 {
				s.call(strconv.Itoa(n), "meet", fmt.Sprintf(`{"text":"result %d","of":4}`, n))
			}
			for n := range 4 {
				s.wantText(strconv.Itoa(n), fmt.Sprintf("result %d", n))
			}
		})
	}
}

// After its first answer without an id, a server gets one request at a time, whatever it named
// before.
func TestAServerThatNamesOnlyItsAnswerToInitializeGetsOneRequestAtATime(t *testing.T) {
	t.Parallel()
	oneAtATime(t, "names initialize alone")
}

// So does a server whose ids match nothing.
func TestAServerWhoseIDsMatchNothingGetsOneRequestAtATime(t *testing.T) {
	t.Parallel()
	for _, script := range foreign[:5] { // a float may be read as the number that it is
		t.Run(script, func(t *testing.T) {
			t.Parallel()
			oneAtATime(t, script)
		})
	}
}
