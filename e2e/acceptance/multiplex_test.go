package acceptance

import (
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
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

// Nor does it have progress of it, which the server reports all the same.
func TestAClientHasNoProgressOfWhatItHasCancelled(t *testing.T) {
	t.Parallel()
	const cancel = `{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":7}}`
	call := func(file string) string {
		return fmt.Sprintf(`{"name":"wait","arguments":{"file":%q},"_meta":{"progressToken":"p"}}`, file)
	}
	reports := func(text string, progress int) bool {
		return strings.Contains(text, "notifications/progress") && strings.Contains(text, fmt.Sprintf(`"progress":%d`, progress))
	}
	// goOn lets the server report and answer.
	goOn := func(t *testing.T, file string) {
		ssetest.Must(t, os.WriteFile(file, nil, 0o600))
		await(t, "the server has answered", func() bool { _, err := os.Stat(file + "-answered"); return err == nil })
	}
	for _, sessions := range []string{"per-connection", "shared"} {
		t.Run("/sse, "+sessions, func(t *testing.T) {
			t.Parallel()
			s := startGateway(t, "names answers", "--sessions", sessions).open("")
			file := filepath.Join(t.TempDir(), "go on")
			s.post("7", "tools/call", call(file))
			s.await("progress", func(e ssetest.Event) bool { return reports(e.Data, 1) })
			ssetest.Must(t, s.Send(cancel))
			s.post("9", "ping", "{}") // the gateway has read what came before it
			s.answer("9")
			goOn(t, file)
			s.call("8", "echo", `{"text":"after it"}`)
			s.wantText("8", "after it")
			late := s.all(func(e ssetest.Event) bool { return reports(e.Data, 2) || isAnswer(e.Data, "7") })
			ssetest.Want(t, "events of what was cancelled", len(late), 0)
		})
	}
	t.Run("stdio", func(t *testing.T) {
		t.Parallel()
		a := startAgent(t, "names answers")
		file := filepath.Join(t.TempDir(), "go on")
		a.post("7", "tools/call", call(file))
		a.until("progress", func(line string) bool { return reports(line, 1) })
		a.send(cancel)
		a.post("9", "ping", "{}") // the gateway has read what came before it
		a.answer("9")
		goOn(t, file)
		a.post("8", "tools/call", `{"name":"echo","arguments":{"text":"after it"}}`)
		for _, line := range a.until("the answer to the next request", func(line string) bool { return isAnswer(line, "8") }) {
			if reports(line, 2) || isAnswer(line, "7") {
				t.Errorf("it has %s", line)
			}
		}
		a.leave()
	})
}
