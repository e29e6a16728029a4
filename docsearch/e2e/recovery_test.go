package e2e

import (
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"
)

// However often the daemon is killed, before, between and during calls: every call
// succeeds, and one daemon runs at the end.
func TestAgentNeverKnowsThatTheDaemonWasDown(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	s := w.agent()
	w.ready(s)
	random := rand.New(rand.NewPCG(1, 2))
	for round := range kills {
		pid := w.daemon()
		var calls sync.WaitGroup
		for n := range 3 {
			calls.Go(func() {
				if err := find(t.Context(), s, (3*round+n)%documents); err != nil {
					t.Errorf("round %d: %v", round, err)
				}
			})
		}
		// From before the requests have left the agent until after they are answered.
		timer := time.NewTimer(time.Duration(random.IntN(10_000)) * time.Microsecond)
		<-timer.C
		if err := syscall.Kill(pid, syscall.SIGKILL); err != nil {
			t.Fatalf("round %d: kill %d: %v", round, pid, err)
		}
		calls.Wait()
		if err := find(t.Context(), s, round%documents); err != nil {
			t.Fatalf("round %d, after the kill: %v", round, err)
		}
	}
	if all := w.daemons(); len(all) != 1 {
		t.Errorf("%d daemons run: %v", len(all), all)
	}
}

// Several agents that all find the daemon gone start one.
func TestManyAgentsStartOneDaemon(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	first := w.agent()
	w.ready(first)
	for range 5 {
		if err := syscall.Kill(w.daemon(), syscall.SIGKILL); err != nil {
			t.Fatal(err)
		}
		var agents sync.WaitGroup
		for range 6 {
			s := w.agent()
			agents.Go(func() { w.findAll(s) })
		}
		agents.Wait()
		if all := w.daemons(); len(all) != 1 {
			t.Fatalf("%d daemons run: %v", len(all), all)
		}
	}
}

// A daemon that hangs is replaced.
func TestHungDaemonIsReplaced(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	s := w.agent()
	w.ready(s)
	hung := w.daemon()
	if err := syscall.Kill(hung, syscall.SIGSTOP); err != nil {
		t.Fatal(err)
	}
	w.eventually("the daemon is stopped", func() bool {
		stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", hung))
		return err == nil && strings.Contains(string(stat), ") T ")
	})
	if err := find(t.Context(), s, 3); err != nil {
		t.Fatal(err)
	}
	if now := w.daemon(); now == hung {
		t.Error("the hung daemon is still the one")
	}
}

// A daemon that was started by hand and is stopped by hand comes back too.
func TestStoppedDaemonComesBack(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	s := w.agent()
	w.ready(s)
	w.stop()
	w.findAll(s)
}

// A second daemon for a state directory says where the first is.
func TestSecondDaemonIsRefused(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.ready(w.agent())
	out, err := w.command("daemon", "--addr", "127.0.0.1:0").CombinedOutput()
	if want := fmt.Sprintf("pid %d", w.daemon()); err == nil || !strings.Contains(string(out), want) {
		t.Errorf("a second daemon: %v, %s; want an error with %q", err, out, want)
	}
}

// The binary is gone when the daemon has to be started: the agent is told what to do,
// and the next call works when the binary is back.
func TestBinaryIsMissing(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	linked := filepath.Join(t.TempDir(), "docsearch")
	if err := os.Link(binary(t, "docsearch"), linked); err != nil { // a copy could be open in a process that another test starts: "text file busy"
		t.Fatal(err)
	}
	s := w.agentOf(linked)
	w.ready(s)
	if err := os.Rename(linked, linked+".away"); err != nil {
		t.Fatal(err)
	}
	if err := syscall.Kill(w.daemon(), syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	w.eventually("the daemon has ended", func() bool { return len(w.daemons()) == 0 })
	if err := find(t.Context(), s, 1); err == nil || !strings.Contains(err.Error(), linked) {
		t.Errorf("without the binary: %v, want an error that names %s", err, linked)
	}
	if err := os.Rename(linked+".away", linked); err != nil {
		t.Fatal(err)
	}
	if err := find(t.Context(), s, 1); err != nil {
		t.Errorf("with the binary again: %v", err)
	}
}
