package remember

import (
	"encoding/json"
	"log/slog"
	"testing"
	"testing/synctest"
	"time"

	"github.com/mcp-sse/mcp-sse/internal/ssetest"
)

// Callers wait for a disk that hangs for a moment, and later ones do not wait. Memory answers with what it has; what it
// learns counts at once.
func TestDiskThatHangs(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		hangs := make(chan struct{})
		s := Open("/a disk that hangs", slog.New(slog.DiscardHandler)).Server(Identity{Server: "s"})
		s.reads.does = func() { <-hangs }
		s.writes.does = s.reads.does
		client, _ := ClientOf(json.RawMessage(`{"protocolVersion":"v"}`), Own)
		began := time.Now()
		for range 100 {
			if s.Answers(client) != nil || s.HasAny() || s.Nearest(client) != nil {
				t.Fatal("something is known")
			}
		}
		ssetest.Want(t, "all reads took", time.Since(began), firstReadWait)

		began = time.Now()
		for range 10 {
			s.Learn(client, &Answers{Initialize: `{"protocolVersion":"v"}`, Learned: time.Now()})
		}
		ssetest.Want(t, "what was learned is known", s.Answers(client) != nil, true)
		ssetest.Want(t, "all writes took", time.Since(began), writeWait)
		close(hangs)
		synctest.Wait()
		began = time.Now()
		ssetest.Want(t, "what was learned is still known", s.Answers(client) != nil, true)
		ssetest.Want(t, "a read took", time.Since(began), time.Duration(0))
	})
}

// A caller that comes while the job is done gets the result of the next time.
func TestJobIsDoneAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		done := 0
		j := job{does: func() { time.Sleep(time.Second); done++ }}
		go j.do(time.Minute)
		synctest.Wait()
		for range 3 {
			go j.do(time.Minute)
		}
		ssetest.Want(t, "done", j.do(time.Minute), true)
		ssetest.Want(t, "times", done, 2)
	})
}

// A gateway that has just started waits for a disk that is slow: to know nothing would cost the boot of the server. Once
// the disk has answered, nobody waits for long.
func TestFirstReadIsWaitedFor(t *testing.T) {
	dir := t.TempDir()
	client, _ := ClientOf(json.RawMessage(`{"protocolVersion":"v"}`), Own)
	quiet := slog.New(slog.DiscardHandler)
	Open(dir, quiet).Server(Identity{Server: "s"}).Learn(client,
		&Answers{Initialize: `{"protocolVersion":"v"}`, Learned: time.Now()})
	synctest.Test(t, func(t *testing.T) {
		s := Open(dir, quiet).Server(Identity{Server: "s"})
		s.reads.does = func() {
			time.Sleep(time.Second)
			s.readAgain()
		}
		ssetest.Want(t, "what was learned is known", s.Answers(client) != nil, true)
		synctest.Wait() // the read has ended
		began := time.Now()
		s.Answers(client)
		ssetest.Want(t, "the next read took", time.Since(began), readWait)
		time.Sleep(time.Minute) // the read under way ends
	})
}
