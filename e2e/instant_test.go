package e2e

import (
	"bufio"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/mcp-sse/mcp-sse/internal/ssetest"
)

// From the second start of the gateway on, each client has its tools before its server has booted, however
// long that takes, and its call waits for the boot. A client that only looks starts no process.
func TestClientHasItsToolsBeforeTheServerHasBooted(t *testing.T) {
	forEachClient(t, lasting, func(t *testing.T, k kind) {
		booted := filepath.Join(t.TempDir(), "booted")
		ssetest.Must(t, os.WriteFile(booted, nil, 0o600))
		args := fake(t, "--until", booted)
		g := startGateway(t, args...)
		c := connect(t, k, g.url)
		wantTools(t, c)
		awaitRemembered(t)
		c.close()
		g.stop()
		// A client that initializes late is a silent one until then. The check starts no server of which something new is
		// known: so nothing is new here.
		g = startGateway(t, append([]string{"--start-check", "--remember-for", "1ms"}, args...)...)
		awaitMemory(t, func() bool { return ssetest.RememberedFor(t, "gateway") })
		g.stop()

		ssetest.Must(t, os.Remove(booted))
		g = startGateway(t, args...)
		c = connect(t, k, g.url)
		wantTools(t, c)
		ssetest.Want(t, "processes for a client that looks", len(g.started()), 0)
		ssetest.Must(t, os.WriteFile(booted, nil, 0o600))
		wantEcho(t, c)
	})
}

// A client of a view has the tools of all its servers before any of them has booted, and a call starts the one server
// that it is for.
func TestClientOfAViewHasItsToolsBeforeTheServersHaveBooted(t *testing.T) {
	t.Parallel()
	boots := t.TempDir()
	names := []string{"coral"}
	for n := range 19 {
		names = append(names, fmt.Sprint("other", n))
	}
	boot := func() {
		for _, name := range names {
			ssetest.Must(t, os.WriteFile(filepath.Join(boots, name), nil, 0o600))
		}
	}
	servers, members, want := map[string]any{}, map[string]any{}, map[string]bool{}
	for _, name := range names { // servers with one command are one to the memory
		servers[name] = entryOf(fake(t, "--until", filepath.Join(boots, name)))
		members[name], want[name+"__echo"] = nil, true
	}
	boot()
	file := writeViews(t, servers, map[string]any{"team": map[string]any{"servers": members}})
	g, urls := startViewsOf(t, file)
	c := connect(t, kinds()[0], urls["team"])
	awaitTools(t, c, want)
	awaitMemory(t, func() bool { return ssetest.RememberedServers(t) == len(servers) })
	c.close()
	g.stop()

	for _, name := range names {
		ssetest.Must(t, os.Remove(filepath.Join(boots, name)))
	}
	g, urls = startViewsOf(t, file)
	c = connect(t, kinds()[0], urls["team"])
	tools, err := c.listTools(within(t))
	ssetest.Must(t, err)
	for name := range want {
		ssetest.Want(t, name+" is in the list", slices.Contains(tools, name), true)
	}
	ssetest.Want(t, "processes for a client that looks", len(g.started()), 0)

	boot()
	ssetest.Want(t, "coral__echo", mustCall(t, c, "coral__echo", message("hi")), "hi")
	for line := range strings.Lines(g.log.String()) {
		if strings.Contains(line, `"msg":"server started"`) && !strings.Contains(line, `"coral"`) {
			t.Errorf("a call of coral has started another server: %s", line)
		}
	}
	ssetest.Want(t, "processes for a client of twenty servers that calls one", len(g.started()), 1)
}

// A server of which something is remembered is kept warm during its start check.
func TestKnownServerIsWarmBeforeItsStartCheckIsOver(t *testing.T) {
	t.Parallel()
	booted := filepath.Join(t.TempDir(), "booted")
	ssetest.Must(t, os.WriteFile(booted, nil, 0o600))
	args := append([]string{"--start-check", "--warm", "1"}, fake(t, "--until", booted)...)
	g := startGateway(t, args...)
	c := connect(t, kinds()[0], g.url)
	wantTools(t, c)
	awaitRemembered(t)
	c.close()
	g.stop()

	ssetest.Must(t, os.Remove(booted))
	g = startGateway(t, args...)
	tick := time.NewTicker(10 * time.Millisecond)
	defer tick.Stop()
	for !strings.Contains(g.log.String(), "warm server starts") {
		<-tick.C
	}
	ssetest.Must(t, os.WriteFile(booted, nil, 0o600))
}

// So does an agent that starts sse-server itself.
func TestAgentOnStdioHasItsToolsBeforeTheServerHasBooted(t *testing.T) {
	t.Parallel()
	booted := filepath.Join(t.TempDir(), "booted")
	ssetest.Must(t, os.WriteFile(booted, nil, 0o600))
	args := fake(t, "--until", booted)
	a := startAgent(t, args...)
	_, err := a.ListTools(within(t), nil)
	ssetest.Must(t, err)
	awaitRemembered(t)
	ssetest.Must(t, a.Close())

	ssetest.Must(t, os.Remove(booted))
	a = startAgent(t, args...)
	tools, err := a.ListTools(within(t), nil)
	ssetest.Must(t, err)
	ssetest.Want(t, "tools", len(tools.Tools) > 0, true)
	ssetest.Must(t, os.WriteFile(booted, nil, 0o600))
	ssetest.Want(t, "echo", a.call(t, "echo", map[string]any{"message": "hi"}), "hi")
	ssetest.Must(t, a.Close())
}

// An agent that has given up before the server has booted finds its tools at the next start, also if it kills
// sse-server: the server is started once more, for nobody.
func TestAgentOnStdioThatGaveUpHasItsToolsNextTime(t *testing.T) {
	for name, c := range map[string]struct {
		sig         syscall.Signal
		initialized bool
	}{
		"it ends its input":                          {},
		"it ends sse-server":                         {sig: syscall.SIGTERM},
		"it kills sse-server":                        {sig: syscall.SIGKILL},
		"it kills sse-server once it is initialized": {sig: syscall.SIGKILL, initialized: true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			giveUpAndComeAgain(t, c.sig, c.initialized)
		})
	}
}

// An agent that has ended its input before the server has booted, and still waits for its answer, has had the server
// say what it has: nothing is started once more.
func TestAgentOnStdioThatLeavesBeforeTheBootTeaches(t *testing.T) {
	t.Parallel()
	booted := filepath.Join(t.TempDir(), "booted")
	cmd, in, out, log := startInitializing(t, booted, booted, "15s")
	go func() { _, _ = io.Copy(io.Discard, log) }() // ends with the process
	awaitStandBy(t, cmd)
	ssetest.Must(t, in.Close())
	ssetest.Must(t, os.WriteFile(booted, nil, 0o600))
	_, _ = io.Copy(io.Discard, out)
	ssetest.Must(t, cmd.Wait())
	awaitRemembered(t)
	for _, line := range learnerStarted(t) {
		if !strings.Contains(line, "an empty one") {
			t.Errorf("the server was started once more: %s", line)
		}
	}
}

// awaitStandBy waits until sse-server has started its server, and the process that stands by, and returns both.
func awaitStandBy(t *testing.T, cmd *exec.Cmd) (both []process) {
	t.Helper()
	tick := time.NewTicker(10 * time.Millisecond)
	defer tick.Stop()
	for len(both) < 2 {
		<-tick.C
		both = descendants(t, cmd.Process.Pid)
	}
	return both
}

// learnerStarted returns the lines of the process that stands by about the servers that it has started.
func learnerStarted(t *testing.T) (lines []string) {
	t.Helper()
	learned, err := os.ReadFile(filepath.Join(ssetest.StateDir(t), "sse-server", "learn.log"))
	ssetest.Must(t, err)
	for line := range strings.Lines(string(learned)) {
		if strings.Contains(line, "server started") {
			lines = append(lines, line)
		}
	}
	return lines
}

// startRemembered starts sse-server for an agent that has been answered, beside a process that stands by, and waits until what
// the server says is remembered.
func startRemembered(t *testing.T) (cmd *exec.Cmd, in io.WriteCloser) {
	t.Helper()
	booted := filepath.Join(t.TempDir(), "booted")
	cmd, in, out, log := startInitializing(t, booted, booted, "15s")
	go func() { _, _ = io.Copy(io.Discard, log) }() // ends with the process
	awaitStandBy(t, cmd)
	ssetest.Must(t, os.WriteFile(booted, nil, 0o600))
	_, err := io.WriteString(in, `{"jsonrpc":"2.0","id":2,"method":"tools/list"}`+"\n")
	ssetest.Must(t, err)
	for range 2 {
		_, err := out.ReadString('\n')
		ssetest.Must(t, err)
	}
	awaitRemembered(t)
	return cmd, in
}

// awaitAnyFolder waits until it is remembered what a server says in an empty folder.
func awaitAnyFolder(t *testing.T) {
	t.Helper()
	awaitMemory(t, func() bool { return ssetest.RememberedInAnyFolder(t) })
}

// A server starts in an empty folder once its agent has left: some servers end the process that ran before.
func TestAgentOnStdioMeetsNoSecondProcessOfItsServer(t *testing.T) {
	t.Parallel()
	cmd, in := startRemembered(t)
	leaves := time.Now()
	ssetest.Must(t, in.Close())
	ssetest.Must(t, cmd.Wait())
	awaitAnyFolder(t)
	lines := learnerStarted(t)
	ssetest.Want(t, "starts", len(lines), 1)
	text, _, _ := strings.Cut(strings.TrimPrefix(lines[0], "time="), " ")
	at, err := time.Parse(time.RFC3339, text)
	ssetest.Must(t, err)
	if at.Before(leaves.Truncate(time.Millisecond)) {
		t.Errorf("the server was started in an empty folder %v before its agent left", leaves.Sub(at))
	}
}

// An agent that is killed with its programs leaves a process that learns what its server says in an empty folder.
func TestAgentOnStdioThatIsKilledTeachesNewFolders(t *testing.T) {
	t.Parallel()
	cmd, _ := startRemembered(t)
	ssetest.Must(t, cmd.Process.Kill())
	_ = cmd.Wait() // killed
	awaitAnyFolder(t)
	ssetest.Want(t, "starts", len(learnerStarted(t)), 1)
}

// An agent that has been answered and leaves in order leaves nothing behind, also if what its server says
// cannot be remembered.
func TestAgentOnStdioThatLeavesInOrderLeavesNoProcess(t *testing.T) {
	t.Parallel()
	booted := filepath.Join(t.TempDir(), "booted")
	never := filepath.Join(t.TempDir(), "never")
	cmd, in, out, log := startInitializing(t, booted, never, "10ms")
	go func() { _, _ = io.Copy(io.Discard, log) }() // ends with the process
	left := awaitStandBy(t, cmd)
	ssetest.Must(t, os.WriteFile(booted, nil, 0o600))
	line, err := out.ReadString('\n')
	if err != nil || !strings.Contains(line, `"protocolVersion"`) {
		t.Fatalf("the agent got %s, %v, want the answer to its initialize", line, err)
	}
	ssetest.Must(t, in.Close())
	ssetest.Must(t, cmd.Wait())
	for _, p := range left {
		if !p.endsSoon() {
			t.Errorf("process %d outlived sse-server", p.pid)
		}
	}
	if lines := learnerStarted(t); len(lines) > 0 {
		t.Errorf("the server was started once more:\n%s", lines)
	}
}

// startInitializing starts sse-server stdio in front of a server that boots and lists its tools when these files
// exist, and sends initialize.
func startInitializing(t *testing.T, booted, lists, grace string) (cmd *exec.Cmd, in io.WriteCloser, out, log *bufio.Reader) {
	t.Helper()
	command := overStdio(t, append([]string{"--shutdown-timeout", grace, "--learn-after", "1ms"}, fake(t, "--until", booted, "--list-until", lists)...)...)
	cmd = exec.CommandContext(within(t), command[0], command[1:]...)
	cmd.Env = ssetest.WithState(t)
	in, err := cmd.StdinPipe()
	ssetest.Must(t, err)
	stdout, err := cmd.StdoutPipe()
	ssetest.Must(t, err)
	stderr, err := cmd.StderrPipe()
	ssetest.Must(t, err)
	ssetest.Must(t, cmd.Start())
	_, err = io.WriteString(in, `{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"x","version":"1"}}}`+"\n")
	ssetest.Must(t, err)
	return cmd, in, bufio.NewReader(stdout), bufio.NewReader(stderr)
}

func giveUpAndComeAgain(t *testing.T, sig syscall.Signal, initialized bool) {
	booted, lists := filepath.Join(t.TempDir(), "booted"), filepath.Join(t.TempDir(), "lists")
	cmd, in, out, log := startInitializing(t, booted, lists, "10ms")
	for line := ""; !strings.Contains(line, "mcp POST start"); {
		next, err := log.ReadString('\n')
		ssetest.Must(t, err)
		line = next
	}
	if sig != syscall.SIGTERM {
		awaitStandBy(t, cmd)
	}
	if initialized {
		ssetest.Must(t, os.WriteFile(booted, nil, 0o600))
		line, err := out.ReadString('\n')
		if err != nil || !strings.Contains(line, `"protocolVersion"`) {
			t.Fatalf("the agent got %s, %v, want the answer to its initialize", line, err)
		}
		for range 10 { // the gateway alone answers these, and has done what follows from the answer before
			_, err := io.WriteString(in, "{\n")
			ssetest.Must(t, err)
			_, err = out.ReadString('\n')
			ssetest.Must(t, err)
		}
	}
	if sig == 0 {
		ssetest.Must(t, in.Close())
	} else {
		ssetest.Must(t, cmd.Process.Signal(sig))
	}
	_, _ = io.Copy(io.Discard, log)
	if err := cmd.Wait(); sig != syscall.SIGKILL {
		ssetest.Must(t, err)
	}

	ssetest.Must(t, os.WriteFile(booted, nil, 0o600))
	ssetest.Must(t, os.WriteFile(lists, nil, 0o600))
	awaitRemembered(t)
	ssetest.Must(t, os.Remove(booted))
	cmd, in, out, log = startInitializing(t, booted, lists, "10ms")
	go func() { _, _ = io.Copy(io.Discard, log) }() // ends with the process
	wants := func(text string) {
		t.Helper()
		line, err := out.ReadString('\n')
		if err != nil || !strings.Contains(line, text) {
			t.Errorf("the agent got %s, %v, want %s in it", line, err, text)
		}
	}
	wants(`"protocolVersion"`)
	_, err := io.WriteString(in, `{"jsonrpc":"2.0","id":2,"method":"tools/list"}`+"\n")
	ssetest.Must(t, err)
	wants(`"echo"`)
	ssetest.Must(t, cmd.Process.Signal(syscall.SIGTERM))
	_, _ = io.Copy(io.Discard, out)
	ssetest.Must(t, cmd.Wait())
}

func wantTools(t *testing.T, c client) {
	t.Helper()
	tools, err := c.listTools(within(t))
	if err != nil || !slices.Contains(tools, "echo") {
		t.Fatalf("tools = %v, %v, want echo among them", tools, err)
	}
}

// awaitRemembered waits until what the server of the test has said is kept.
func awaitRemembered(t *testing.T) {
	t.Helper()
	awaitMemory(t, func() bool { return ssetest.Remembered(t) })
}

// awaitMemory waits until the gateway has kept what is meant.
func awaitMemory(t *testing.T, isKept func() bool) {
	t.Helper()
	tick := time.NewTicker(10 * time.Millisecond)
	defer tick.Stop()
	for deadline := time.After(patience); !isKept(); {
		select {
		case <-tick.C:
		case <-deadline:
			log, _ := os.ReadFile(filepath.Join(ssetest.StateDir(t), "sse-server", "learn.log"))
			t.Fatalf("what the server said was not kept; the process that stands by logs:\n%s", log)
		}
	}
}
