package acceptance

import (
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"sync"
	"testing"
	"testing/synctest"

	gw "github.com/mcp-sse/mcp-sse/gateway"
	"github.com/mcp-sse/mcp-sse/internal/ssetest"
)

// inParallel runs four posts at once, and returns when all are taken.
func inParallel(post func(n int)) {
	var all sync.WaitGroup
	for n := range 4 {
		all.Go(func() { post(n) })
	}
	all.Wait()
}

// orders are all orders of four.
func orders() (all [][4]int) {
	for code := range 4 * 4 * 4 * 4 {
		order := [4]int{code & 3, code >> 2 & 3, code >> 4 & 3, code >> 6}
		if 1<<order[0]|1<<order[1]|1<<order[2]|1<<order[3] == 0b1111 {
			all = append(all, order)
		}
	}
	return all
}

// meet has four calls be at the server at once, which answers them in this order, and checks
// that each is answered with its own result.
func meet(s *stream, order [4]int) {
	s.t.Helper()
	id := func(n int) string { return fmt.Sprintf(`"%d of %v"`, n, order) }
	inParallel(func(n int) {
		s.call(id(n), "meet", fmt.Sprintf(`{"text":%s,"of":4,"place":%d}`, id(n), order[n]))
	})
	for n := range 4 {
		s.wantText(id(n), fmt.Sprintf("%d of %v", n, order))
	}
}

// Four parallel calls to one server are each answered with their own result.
func TestFourParallelCallsAreEachAnsweredWithTheirOwnResult(t *testing.T) {
	t.Parallel()
	s := startGateway(t, "names answers").open("")
	meet(s, [4]int{0, 1, 2, 3})
}

// In whatever order the server answers.
func TestTheServerMayAnswerParallelCallsInAnyOrder(t *testing.T) {
	t.Parallel()
	s := startGateway(t, "names answers").open("")
	for _, order := range orders() {
		meet(s, order)
	}
}

// A response is matched by its id, also if the server returns that as a string.
func TestAResponseIsMatchedByItsID(t *testing.T) {
	t.Parallel()
	for _, script := range []string{"names answers", "names by strings"} {
		t.Run(script, func(t *testing.T) {
			t.Parallel()
			s := startGateway(t, script).open("")
			s.call("1", "hang", `{}`)
			s.call("2", "echo", `{"text":"the younger"}`)
			s.wantText("2", "the younger") // the older one is still pending
		})
	}
}

// echo posts four calls at once, and checks that each is answered with its own result.
func echo(s *stream) {
	s.t.Helper()
	inParallel(func(n int) { s.call(strconv.Itoa(n), "echo", fmt.Sprintf(`{"text":"result %d"}`, n)) })
	for n := range 4 {
		s.wantText(strconv.Itoa(n), fmt.Sprintf("result %d", n))
	}
}

// A server that names none of its answers, not even that to initialize: none of its calls hangs.
func TestAResponseWithoutAnIDGoesToTheOldestPendingRequest(t *testing.T) {
	t.Parallel()
	for _, script := range []string{"names none", "names null"} {
		t.Run(script, func(t *testing.T) {
			t.Parallel()
			echo(startGateway(t, script).open(""))
		})
	}
}

// oneAtATime checks that a server that has answered a call has four parallel ones one after the
// other. They wait at the server until all are posted.
func oneAtATime(t *testing.T, script string, flags ...string) {
	s := startGateway(t, script, flags...).open("")
	s.call(`"first"`, "echo", `{"text":"first"}`)
	s.wantText(`"first"`, "first")
	s.call(`"before"`, "most", `{}`)
	s.answer(`"before"`)
	file := filepath.Join(t.TempDir(), "all are posted")
	inParallel(func(n int) { s.call(strconv.Itoa(n), "wait", fmt.Sprintf(`{"text":"result %d","file":%q}`, n, file)) })
	ssetest.Must(t, os.WriteFile(file, nil, 0o600))
	for n := range 4 {
		s.wantText(strconv.Itoa(n), fmt.Sprintf("result %d", n))
	}
	s.call(`"at a time"`, "most", `{}`)
	s.wantText(`"at a time"`, "1")
}

// A server that does not name its answers gets one request at a time.
func TestAServerThatDoesNotNameItsAnswersGetsOneRequestAtATime(t *testing.T) {
	t.Parallel()
	oneAtATime(t, "names none")
}

// Each POST is logged: when it comes, when the server has answered, and when that is passed on.
// The line about the server's answer says how its request was found.
func TestEachPOSTIsLoggedWithItsRequestAndHowThatWasMatched(t *testing.T) {
	t.Parallel()
	for script, matchedBy := range map[string]string{"names answers": "id", "names none": "fifo"} {
		t.Run(matchedBy, func(t *testing.T) {
			t.Parallel()
			g := startGateway(t, script)
			echo(g.open(""))
			for n := range 4 {
				g.awaitLine(n, "mcp POST start")
				g.awaitLine(n, "mcp POST ok", "mcp POST slow") // slow on a machine that is very busy
				ssetest.Want(t, "matchedBy", g.awaitLine(n, "mcp transport send resolve").MatchedBy, matchedBy)
			}
		})
	}
}

// A POST that takes five seconds or longer is logged as slow.
func TestASlowPOSTIsLoggedAsSlow(t *testing.T) {
	t.Parallel()
	inFakeTime(t, gw.Options{}, sleeper, func(l *library) {
		l.initialized()
		l.sleep(7, 5)
		synctest.Wait() // all that is to be logged is
		ssetest.WantText(l.t, "log", l.log.String(), `"msg":"mcp POST slow"`, `"requestId":"7"`)
	})
}
