package main

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/mcp-sse/mcp-sse/cmd/sse-server/internal/clitest"
	"github.com/mcp-sse/mcp-sse/internal/ssetest"
)

// The log of a shared server is emptied when it has grown too large, and only then.
func TestLogOfASharedServerIsBounded(t *testing.T) {
	file, err := os.OpenFile(filepath.Join(t.TempDir(), "log"), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	ssetest.Must(t, err)
	defer file.Close()
	log := slog.New(slog.NewTextHandler(file, nil))
	for _, tt := range []struct{ size, least, most int64 }{{maxDaemonLog, maxDaemonLog, maxDaemonLog}, {maxDaemonLog + 1, 1, 1000}} {
		ssetest.Must(t, file.Truncate(tt.size))
		boundLog(file, log)
		info, err := file.Stat()
		ssetest.Must(t, err)
		if info.Size() < tt.least || info.Size() > tt.most {
			t.Errorf("of %d bytes %d are left", tt.size, info.Size())
		}
	}
}

// A server ends when nobody has been connected for a while, or can be, and not before.
func TestAwaitUnused(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		began, always := time.Now(), func() bool { return true }
		why := awaitUnused(t.Context(), 10*time.Minute, always, func() int {
			if time.Since(began) < time.Hour {
				return 1
			}
			return 0
		})
		if took := time.Since(began); took < time.Hour+9*time.Minute || took > time.Hour+11*time.Minute {
			t.Errorf("it ended after %v, want about an hour and ten minutes", took)
		}
		ssetest.Want(t, "why", why, "no client has been connected")
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		began = time.Now()
		awaitUnused(ctx, time.Hour, always, func() int { return 0 })
		if took := time.Since(began); took > 2*time.Minute {
			t.Errorf("it ended %v after its context", took)
		}
		began = time.Now()
		why = awaitUnused(t.Context(), time.Hour, func() bool { return time.Since(began) < time.Minute }, func() int { return 1 })
		ssetest.Want(t, "why", why, "its socket has been deleted or replaced")
	})
}

// Why a shared server has ended is what it says itself, now: its log also has what servers have written, and what was
// there before.
func TestWhyASharedServerEndedIsItsOwnLine(t *testing.T) {
	t.Setenv(childVariable, asProgram)
	env := stateOf(t)
	s := windowOf(t, env, "--", "x")
	log := filepath.Join(s.dir, "daemon-8080.log")
	ssetest.Must(t, os.MkdirAll(s.dir, 0o700))
	ssetest.Must(t, os.WriteFile(log, []byte("sse-server: of an earlier one\nPASSWORD=secret\n"), 0o600))
	s.args = []string{"--no-such-flag"}
	_, err := s.Dial(t.Context())
	ssetest.WantText(t, "the error", fmt.Sprint(err), "sse-server ended at once: exit status 2: unknown flag --no-such-flag")
	ssetest.Must(t, os.WriteFile(log, []byte("sse-server: of an earlier one\n"), 0o600))
	if got := whyEnded(log, 30); got != "see "+log {
		t.Errorf("got %q", got)
	}
}

// A shared server that is killed at its start, before it listens, is started once more: a window has it, or the reason.
func TestSharedServerThatIsKilledAtItsStartIsStartedAgain(t *testing.T) {
	killed := filepath.Join(t.TempDir(), "killed")
	t.Setenv(childVariable, asProgram+":"+killed)
	env := stateOf(t)
	t.Setenv("XDG_STATE_HOME", env["XDG_STATE_HOME"])
	s := windowOf(t, env, "--no-start-check", "--warm", "0", "--", "sh")
	ssetest.Must(t, os.WriteFile(killed, nil, 0o600))
	who, err := s.ensure(t.Context())
	ssetest.Must(t, err)
	again, err := s.ensure(t.Context())
	ssetest.Must(t, err)
	ssetest.Want(t, "the one that is asked next", again.PID, who.PID)
	ssetest.Must(t, who.differenceFrom(s.parts))
	ssetest.Must(t, syscall.Kill(-who.PID, syscall.SIGKILL))
	for syscall.Kill(who.PID, 0) == nil { // start waits for its end
		runtime.Gosched()
	}
}

// The lock of a learner has one file, which stays: one that was removed while somebody had it open is held by two.
func TestLearnersLockStays(t *testing.T) {
	dir := stateOf(t)["XDG_STATE_HOME"]
	ssetest.Must(t, os.MkdirAll(filepath.Join(dir, "sse-server"), 0o700))
	t.Chdir(t.TempDir()) // where a relative path would be
	for _, env := range []map[string]string{{"XDG_STATE_HOME": dir}, {"XDG_STATE_HOME": dir}, nil} {
		m := &Main{
			Args: []string{"stdio", "--learn", "--", "true"}, Stdin: strings.NewReader("{}\n"), Stdout: io.Discard, Stderr: io.Discard,
			LookupEnv: clitest.Environment(env), Notify: func(...os.Signal) <-chan os.Signal { return nil },
		}
		m.Run()
	}
	locks, err := filepath.Glob(filepath.Join(dir, "sse-server", "learn-*.lock"))
	ssetest.Must(t, err)
	here, err := filepath.Glob("*")
	ssetest.Must(t, err)
	if len(locks) != 1 || len(here) > 0 {
		t.Errorf("got the locks %q, and here %q", locks, here)
	}
}
