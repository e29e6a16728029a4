package main

import (
	"fmt"
	"io"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"testing"

	"github.com/mcp-sse/mcp-sse/cmd/sse-server/internal/clitest"
	"github.com/mcp-sse/mcp-sse/cmd/sse-server/internal/exit"
	"github.com/mcp-sse/mcp-sse/internal/ssetest"
)

// Of the processes that are left by clients in many folders, of many kinds, one starts the server.
func TestLearnersOfOneServerStartItOnce(t *testing.T) {
	env := clitest.State(t)
	ssetest.Must(t, os.MkdirAll(filepath.Join(env["XDG_STATE_HOME"], "sse-server"), 0o700))
	starts := filepath.Join(t.TempDir(), "starts")
	var signals [20]chan os.Signal
	for n := range signals {
		signals[n] = make(chan os.Signal, 1)
	}
	learn := func(n int) {
		m := &Main{
			Args:  []string{"stdio", "--learn", "--start-timeout", "1h", "--dir", t.TempDir(), "--env", fmt.Sprint("N=", n), "--", "sh", "-c", "echo >>" + starts + "; cat >/dev/null"},
			Stdin: strings.NewReader(fmt.Sprintf(`{"protocolVersion":"2025-11-25","capabilities":{"experimental":{"kind-%d":{}}}}`+"\n", n)), Stdout: io.Discard, Stderr: io.Discard,
			LookupEnv: clitest.Environment(env), Notify: func(...os.Signal) <-chan os.Signal { return signals[n] },
		}
		m.Run()
	}
	count := func() int {
		lines, _ := os.ReadFile(starts) // none: there is no start yet
		return len(lines)
	}
	var all, others sync.WaitGroup
	all.Go(func() { learn(0) }) // ends with its signal
	for count() == 0 {
		runtime.Gosched()
	}
	for n := range signals[1:] {
		others.Go(func() { learn(n + 1) })
	}
	done := make(chan struct{})
	go func() {
		others.Wait()
		close(done)
	}()
	for isOver := false; !isOver && count() == 1; runtime.Gosched() {
		select {
		case <-done:
			isOver = true
		default:
		}
	}
	ssetest.Want(t, "starts", count(), 1)
	for _, signal := range signals {
		signal <- os.Interrupt
	}
	all.Wait()
	<-done
}

// A command starts in an empty folder a bounded number of times in 24 h, also if each of its clients of sse-server stdio has a
// variable of its own, as agents number their runs.
func TestAVariableThatIsNewForEachClientStartsNothingForEach(t *testing.T) {
	env := clitest.State(t)
	env["XDG_STATE_HOME"] = ssetest.PrivateDir(t)
	starts := filepath.Join(t.TempDir(), "starts")
	script := filepath.Join(t.TempDir(), "server.sh")
	ssetest.Must(t, os.WriteFile(script, []byte(`case "$PWD" in *empty-qzx*) echo >>`+starts+`;; esac
while read -r line; do
	id=${line#*\"id\":}; id=${id%%,*}
	case "$line" in
	*'"initialize"'*) echo '{"jsonrpc":"2.0","id":'$id',"result":{"protocolVersion":"2025-11-25","capabilities":{"tools":{"listChanged":true}},"serverInfo":{"name":"s","version":"1"}}}';;
	*'"tools/list"'*) echo '{"jsonrpc":"2.0","id":'$id',"result":{"tools":[]}}';;
	esac
done`), 0o700))
	const clients = 12
	for n := range clients {
		t.Setenv("RUN_ID", fmt.Sprint(n)) // it is the editor's, and reaches the server
		m := &Main{
			Args:  []string{"stdio", "--learn", "--learn-after", "1ms", "--dir", t.TempDir(), "--", "sh", script},
			Stdin: strings.NewReader(`{"protocolVersion":"2025-11-25","capabilities":{}}` + "\n"), Stdout: io.Discard, Stderr: io.Discard,
			LookupEnv: clitest.Environment(env), Notify: func(...os.Signal) <-chan os.Signal { return nil },
		}
		m.Run()
	}
	lines, _ := os.ReadFile(starts)
	t.Logf("%d clients, %d starts in an empty folder", clients, len(lines))
	if len(lines) == 0 || len(lines) > 8 {
		t.Errorf("got %d starts, want 1 to 8 (states.md)", len(lines))
	}
}

// The command check remembers what a server says if init asks for that, so that the next start has its tools at once.
// Otherwise it leaves no trace.
func TestCheckRemembersWhenItIsTold(t *testing.T) {
	t.Parallel()
	server := []string{"--env", childVariable + "=demo", "--", clitest.Must(os.Executable())}
	for command, isKnown := range map[string]bool{"check --start": false, "check --start --learn-too": true} {
		env := map[string]string{"XDG_STATE_HOME": t.TempDir()}
		p := launchWith(t, env, append(strings.Fields(command), server...)...)
		p.wantExit(exit.OK)
		ssetest.WantText(t, "what check says", p.out.String(), ": 2 tools (")
		p = startWith(t, env, append([]string{"--addr", "127.0.0.1:0", "--start-check"}, server...)...)
		line := p.out.await(t, 1, ": 2 tools (")
		ssetest.Want(t, "after "+command+" it is known", strings.Contains(line, "from memory"), isKnown)
		p.stop()
		p.wantExit(exit.OK)
	}
}
