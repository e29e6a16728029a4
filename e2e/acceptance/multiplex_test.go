package acceptance

import (
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"testing"
	"time"

	gw "github.com/mcp-sse/mcp-sse/gateway"
	"github.com/mcp-sse/mcp-sse/internal/ssetest"
)

// Four parallel requests complete, while a fifth, the oldest, is still pending.
func TestFourParallelRequestsCompleteWhileAnotherIsPending(t *testing.T) {
	t.Parallel()
	s := startGateway(t, "names answers").open("")
	s.call(`"oldest"`, "hang", `{}`)
	echo(s)
	ssetest.Want(t, "answers to the oldest", len(s.answers(`"oldest"`)), 0)
}

// Each request has a timeout of its own, that of one leaves the others alone.
func TestARequestThatTimesOutLeavesTheOthersAlone(t *testing.T) {
	t.Parallel()
	inFakeTime(t, gw.Options{RequestTimeout: 10 * time.Second}, sleeper, func(l *library) {
		l.initialized()
		inParallel(func(n int) {
			if n == 0 {
				ssetest.Want(l.t, "reason", l.sleep(0, 3600).Error.Data.Reason, "timeout")
				return
			}
			time.Sleep(time.Duration(n) * 2 * time.Second) // then it is out when the first times out
			ssetest.Want(l.t, "result", l.sleep(n, 9).text(), "9 s")
		})
		ssetest.Want(l.t, "a later result", l.sleep(4, 1).text(), "1 s")
	})
}

// When the connection to the server is lost, each pending request is answered with an error at
// once, not at its timeout of an hour. None of them may be repeated.
func TestALostConnectionRejectsAllPendingRequestsAtOnce(t *testing.T) {
	t.Parallel()
	s := startGateway(t, "names answers").open("")
	s.call(`"first"`, "echo", `{"text":"first"}`)
	s.wantText(`"first"`, "first")
	for n := range 4 {
		s.call(strconv.Itoa(n), "hang", `{}`)
	}
	s.call("4", "die", `{}`) // the server reads it last
	for n := range 5 {
		s.wantError(strconv.Itoa(n), "session_lost")
	}
	s.call("5", "echo", `{"text":"a new server"}`)
	s.wantText("5", "a new server")
}

// With max-in-flight 1, a server that could have more gets one request at a time.
func TestAnOptionSerializesRequests(t *testing.T) {
	t.Parallel()
	oneAtATime(t, "names answers", "--max-in-flight", "1")
}

// A client cancels a request, which the server answers all the same, and one that the gateway would have
// to answer: it hears of neither.
func TestAClientHearsNothingOfWhatItHasCancelled(t *testing.T) {
	t.Parallel()
	for _, sessions := range []string{"per-connection", "shared"} {
		g := startGateway(t, "names answers", "--sessions", sessions)
		s := g.open("")
		file := filepath.Join(t.TempDir(), "answers")
		s.call("7", "wait", fmt.Sprintf(`{"text":"late","file":%q}`, file))
		s.call("8", "hang", `{}`)
		for _, id := range []string{"7", "8"} {
			ssetest.Must(t, s.Send(`{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":`+id+`}}`))
		}
		ssetest.Must(t, os.WriteFile(file, nil, 0o600))
		g.awaitLine(7, "mcp POST failed")
		g.awaitLine(8, "mcp POST failed")
		s.call("9", "echo", `{"text":"after them"}`)
		s.wantText("9", "after them")
		ssetest.Want(t, "answers to what was cancelled", len(s.answers("7"))+len(s.answers("8")), 0)
	}
}
