package e2e

import (
	"net"
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

	ssetest.Must(t, syscall.Kill(daemons()[0], syscall.SIGKILL))
	sockets, err := filepath.Glob(filepath.Join(ssetest.StateDir(t), "sse-server", "run", "daemon-"+port+"-*.sock"))
	ssetest.Must(t, err)
	ssetest.Want(t, "sockets", len(sockets), 1)
	for refused := false; !refused; { // a request to a server that is just dying may be lost
		conn, err := net.Dial("unix", sockets[0])
		if refused = err != nil; !refused {
			ssetest.Must(t, conn.Close())
		}
	}
	for _, a := range agents {
		if _, err := a.ListTools(within(t), nil); err != nil {
			t.Errorf("after the end of the shared server: %v", err)
		}
		ssetest.Want(t, "echo", a.call(t, "echo", map[string]any{"message": "hi"}), "hi")
	}
	ssetest.Want(t, "servers that were started", len(daemons()), 2)
}
