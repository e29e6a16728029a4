package e2e

import (
	"bufio"
	"encoding/json"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"

	"github.com/mcp-sse/mcp-sse/internal/ssetest"
)

// daemonPID is in the log line of the program that has started the daemon.
var daemonPID = regexp.MustCompile(`shared sse-server started.*pid=(\d+)`)

// Agents that start at the same moment share one sse-server, which the first of them starts. When it is
// killed, the next call starts another one.
func TestAgentsShareOneServer(t *testing.T) {
	t.Parallel()
	free, err := net.Listen("tcp", "127.0.0.1:0")
	ssetest.Must(t, err)
	address := free.Addr().String()
	ssetest.Must(t, free.Close())

	agents := make([]*agent, 3)
	daemons := func() (pids []int) {
		for _, a := range agents {
			if a == nil { // it has not started
				continue
			}
			for _, found := range daemonPID.FindAllStringSubmatch(a.log.String(), -1) {
				pid, _ := strconv.Atoi(found[1])
				pids = append(pids, pid)
			}
		}
		return pids
	}
	t.Cleanup(func() { // after the agents have ended: one starts the next daemon as soon as its own is killed
		for _, pid := range daemons() {
			_ = syscall.Kill(-pid, syscall.SIGKILL)
		}
	})
	var wg sync.WaitGroup
	for i := range agents {
		wg.Go(func() {
			agents[i] = startAgent(t, append([]string{"--connect", "http://" + address + "/shared/mcp"}, fake(t)...)...)
		})
	}
	wg.Wait()
	for _, a := range agents {
		ssetest.Want(t, "echo", a.call(t, "echo", map[string]any{"message": "hi"}), "hi")
	}
	ssetest.Want(t, "servers that were started", len(daemons()), 1)

	// An agent that means the same server with other secrets is not given that of these, by any name of it.
	_, port, err := net.SplitHostPort(address)
	ssetest.Must(t, err)
	for _, host := range []string{address, "localhost:" + port} {
		other := exec.CommandContext(within(t), built(t, "sse-server"), append([]string{"stdio", "--connect", "http://" + host + "/shared/mcp", "--env", "TOKEN=other"}, fake(t)...)...)
		other.Env = ssetest.WithState(t)
		other.Stdin = strings.NewReader(`{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"echo","arguments":{"message":"hi"}}}` + "\n")
		out, err := other.Output()
		ssetest.Must(t, err)
		ssetest.WantText(t, "the answer to the other agent", string(out), "the sse-server of this name differs in the option --env TOKEN")
	}

	killShared(t, daemons()[0])
	for _, a := range agents {
		if _, err := a.ListTools(within(t), nil); err != nil {
			t.Errorf("after the end of the shared server: %v", err)
		}
		ssetest.Want(t, "echo", a.call(t, "echo", map[string]any{"message": "hi"}), "hi")
	}
	ssetest.Want(t, "servers that were started", len(daemons()), 2)
}

// sharedSockets returns the sockets of those that the agents of a test share.
func sharedSockets(t *testing.T) []string {
	t.Helper()
	sockets, err := filepath.Glob(filepath.Join(ssetest.StateDir(t), "sse-server", "run", "daemon-*.sock"))
	ssetest.Must(t, err)
	return sockets
}

// sharedPID asks the sse-server that the agents of a test share who it is.
func sharedPID(t *testing.T) (pid int) {
	t.Helper()
	sockets := sharedSockets(t)
	ssetest.Want(t, "sockets", len(sockets), 1)
	conn, err := net.Dial("unix", sockets[0])
	ssetest.Must(t, err)
	defer conn.Close()
	_, err = io.WriteString(conn, "GET /-/shared HTTP/1.0\r\nHost: 127.0.0.1\r\n\r\n")
	ssetest.Must(t, err)
	response, err := http.ReadResponse(bufio.NewReader(conn), nil)
	ssetest.Must(t, err)
	defer response.Body.Close()
	var who struct{ PID int }
	ssetest.Must(t, json.NewDecoder(response.Body).Decode(&who))
	return who.PID
}

// killShared kills the sse-server that the agents of a test share, and waits until nobody is at its socket: a request
// to one that is just dying may be lost.
func killShared(t *testing.T, pid int) {
	t.Helper()
	sockets := sharedSockets(t)
	ssetest.Want(t, "sockets", len(sockets), 1)
	ssetest.Must(t, syscall.Kill(pid, syscall.SIGKILL))
	for refused := false; !refused; {
		conn, err := net.Dial("unix", sockets[0])
		if refused = err != nil; !refused {
			ssetest.Must(t, conn.Close())
		}
	}
}

// endShared ends the sse-server that the agents of a test share when the test has ended, after the agents that the test
// starts from now on: one of them would start the next.
func endShared(t *testing.T) {
	t.Cleanup(func() {
		if len(sharedSockets(t)) > 0 {
			_ = syscall.Kill(-sharedPID(t), syscall.SIGKILL) // it may have ended
		}
	})
}

// writeGateway writes a file of fake servers with these names, and the view of them all that clients get.
func writeGateway(t *testing.T, file string, names ...string) {
	t.Helper()
	servers, members := map[string]any{}, map[string]any{}
	for _, name := range names {
		servers[name], members[name] = entryOf(fake(t)), nil
	}
	body, err := json.Marshal(map[string]any{
		"servers": servers, "views": map[string]any{"gateway": map[string]any{"servers": members}},
	})
	ssetest.Must(t, err)
	ssetest.Must(t, os.WriteFile(file+".new", body, 0o600))
	ssetest.Must(t, os.Rename(file+".new", file)) // as editors do: nobody reads a half of it
}

// Agents share the sse-server of a file, whatever their folder and their variables are, and have the tools of all its
// servers. When it is killed, the next call starts another one. It reads the file again when that changes.
func TestAgentsShareTheServerOfAFile(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "servers.yaml")
	writeGateway(t, file, "one", "two")
	endShared(t)
	start := func(name string) *agent {
		// Each has a folder and a variable of its own, as windows of editors do.
		path := "PATH=" + t.TempDir() + string(os.PathListSeparator) + os.Getenv("PATH")
		env := []string{"AGENT=" + name, "PWD=/" + name, path}
		return startAgentIn(t, t.TempDir(), env, overStdio(t, patient("--connect", "--config", file)...)...)
	}
	agents := []*agent{start("first"), start("second")}
	wantEchos := func(servers ...string) {
		t.Helper()
		for _, a := range agents {
			for _, server := range servers {
				text := a.call(t, server+"__echo", map[string]any{"message": server})
				ssetest.Want(t, "echo of "+server, text, server)
			}
		}
	}
	for _, a := range agents {
		a.awaitTools(t, "one__echo", "two__echo")
	}
	first := sharedPID(t)
	wantEchos("one", "two")
	ssetest.Want(t, "the one that both have used", sharedPID(t), first)

	killShared(t, first)
	wantEchos("one", "two")
	second := sharedPID(t)
	ssetest.Want(t, "it is the one that was killed", second == first, false)

	writeGateway(t, file, "one", "two", "three")
	for _, a := range agents {
		a.awaitTools(t, "three__echo")
	}
	agents = append(agents, start("third")) // it knows the new file alone
	agents[2].awaitTools(t, "three__echo")
	wantEchos("one", "two", "three")
	ssetest.Want(t, "the one that has read the file again", sharedPID(t), second)

	killShared(t, second) // agents that knew the old file alone start one that has read the new file
	wantEchos("one", "two", "three")
}

// After init --yes the client has one entry, with which its next start has all tools before any server has booted. The
// servers declare that their lists may change, as those of the SDKs do.
func TestInitWarmsTheMemory(t *testing.T) {
	t.Parallel()
	booted := filepath.Join(t.TempDir(), "booted") // the server boots once this file is there
	ssetest.Must(t, os.WriteFile(booted, nil, 0o600))
	home := t.TempDir()
	client := filepath.Join(home, ".claude.json")
	servers := map[string]any{}
	for _, name := range []string{"one", "two"} {
		server := fake(t, "--until", booted, "--list-changed")
		servers[name] = map[string]any{"command": server[1], "args": server[2:], "env": map[string]string{"NAME": name}}
	}
	body, err := json.Marshal(map[string]any{"mcpServers": servers})
	ssetest.Must(t, err)
	ssetest.Must(t, os.WriteFile(client, body, 0o600))
	endShared(t)
	env := []string{"HOME=" + home, "SSE_SERVER_INITIALIZATION_TIMEOUT=" + patience.String()}
	cmd := exec.Command(built(t, "sse-server"), "init", "--yes")
	cmd.Dir, cmd.Env = t.TempDir(), append(ssetest.WithState(t), env...)
	said, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("%v\n%s", err, said)
	}
	var now struct {
		Servers map[string]struct {
			Command string
			Args    []string
		} `json:"mcpServers"`
	}
	body, err = os.ReadFile(client)
	ssetest.Must(t, err)
	ssetest.Must(t, json.Unmarshal(body, &now))
	has := now.Servers["gateway"]
	if len(now.Servers) != 1 || has.Command == "" {
		t.Fatalf("the client has %s\n%s", body, said)
	}

	killShared(t, sharedPID(t)) // which init has started
	ssetest.Must(t, os.Remove(booted))
	a := startAgentIn(t, t.TempDir(), env, append([]string{has.Command}, has.Args...)...)
	listed, err := a.ListTools(within(t), nil)
	ssetest.Must(t, err)
	var names []string
	for _, tool := range listed.Tools {
		names = append(names, tool.Name)
	}
	ssetest.WantText(t, "the tools before a server has booted", strings.Join(names, " "), "one__echo", "two__echo")
	ssetest.Must(t, os.WriteFile(booted, nil, 0o600))
	ssetest.Want(t, "echo", a.call(t, "two__echo", map[string]any{"message": "hi"}), "hi")
}
