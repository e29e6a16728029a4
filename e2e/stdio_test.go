package e2e

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/mcp-sse/mcp-sse/internal/ssetest"
)

// overStdio returns the command line of sse-server for one client on stdin and stdout.
func overStdio(t *testing.T, args ...string) []string {
	return append([]string{built(t, "sse-server"), "stdio", "--log-level", "debug"}, args...)
}

// agent is a go-sdk client that has started sse-server as its server.
type agent struct {
	*mcp.ClientSession
	cmd *exec.Cmd
	log output
}

func startAgent(t *testing.T, args ...string) *agent {
	t.Helper()
	return startAgentIn(t, "", nil, overStdio(t, patient(args...)...)...)
}

// patient returns arguments with which messages wait for a server that boots slowly.
func patient(args ...string) []string {
	return append([]string{"--initialization-timeout", patience.String()}, args...)
}

// startAgentIn starts an agent whose server is this command, in a folder, with more variables than others have.
func startAgentIn(t *testing.T, dir string, env []string, command ...string) *agent {
	t.Helper()
	a := &agent{cmd: exec.Command(command[0], command[1:]...)}
	a.cmd.Dir, a.cmd.Env = dir, append(ssetest.WithState(t), env...)
	a.cmd.Stderr = &a.log
	a.cmd.SysProcAttr = endsWithParent()
	session, err := mcp.NewClient(&mcp.Implementation{Name: "agent", Version: "1"}, nil).Connect(
		t.Context(), &mcp.CommandTransport{Command: a.cmd}, nil)
	if err != nil {
		t.Fatalf("connect: %v\n%s", err, a.log.Tail())
	}
	a.ClientSession = session
	t.Cleanup(func() {
		_ = session.Close() // a test may have ended the program
		if t.Failed() {
			t.Log(a.log.Tail())
		}
		if strings.Contains(a.log.String(), "DATA RACE") {
			t.Error("the race detector found something")
		}
	})
	return a
}

func (a *agent) call(t *testing.T, tool string, args map[string]any) string {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	result, err := a.CallTool(ctx, &mcp.CallToolParams{Name: tool, Arguments: args})
	if err != nil || result.IsError {
		t.Fatalf("%s: got %+v, %v", tool, result, err)
	}
	return result.Content[0].(*mcp.TextContent).Text
}

// awaitTools lists until these tools are there: a view tells its clients of a server that boots slowly.
func (a *agent) awaitTools(t *testing.T, names ...string) {
	t.Helper()
	ctx := within(t)
	for has := false; !has; {
		listed, err := a.ListTools(ctx, nil)
		if err != nil {
			t.Fatalf("list tools until there are %q: %v", names, err)
		}
		has = !slices.ContainsFunc(names, func(name string) bool {
			return !slices.ContainsFunc(listed.Tools, func(tool *mcp.Tool) bool { return tool.Name == name })
		})
	}
}

// The server dies between calls and the agent never notices; when the agent leaves,
// nothing is left but the process that learns what the server says in an empty folder.
func TestStdioServerDiesAndTheAgentNeverNotices(t *testing.T) {
	t.Parallel()
	a := startAgent(t, fake(t)...)
	for i := range 5 {
		pid, err := strconv.Atoi(a.call(t, "pid", nil))
		ssetest.Must(t, err)
		ssetest.Must(t, syscall.Kill(pid, syscall.SIGKILL))
		// As lists change nothing, they are repeated, whenever the loss is noticed.
		if _, err := a.ListTools(t.Context(), nil); err != nil {
			t.Errorf("kill %d: list: %v", i, err)
		}
		if got := a.call(t, "pid", nil); got == strconv.Itoa(pid) {
			t.Errorf("kill %d: the dead process answers", i)
		}
	}
	left := slices.DeleteFunc(descendants(t, a.cmd.Process.Pid), func(p process) bool {
		line, _ := os.ReadFile(fmt.Sprintf("/proc/%d/cmdline", p.pid))
		return bytes.Contains(line, []byte("\x00--learn\x00"))
	})
	if len(left) == 0 {
		t.Fatal("there is no child")
	}
	if err := a.Close(); err != nil {
		t.Errorf("the end: %v", err)
	}
	for _, p := range left {
		if !p.endsSoon() {
			t.Errorf("process %d outlived sse-server", p.pid)
		}
	}
}

// The program that has started sse-server is killed, while another process has the other end
// of stdin too.
func TestStdioEndsWithItsParent(t *testing.T) {
	t.Parallel()
	in, open, err := os.Pipe()
	ssetest.Must(t, err)
	defer open.Close()
	// A program in the background has another stdin unless it is told.
	parent := exec.Command("sh", append([]string{"-c", `"$@" <&3 & wait`, "sh"}, overStdio(t, fake(t)...)...)...)
	parent.ExtraFiles = []*os.File{in}
	parent.SysProcAttr = endsWithParent()
	out, err := parent.StdoutPipe()
	ssetest.Must(t, err)
	ssetest.Must(t, parent.Start())
	_ = in.Close() // the parent has its own
	if _, err := fmt.Fprintln(open, requestJSON("1", "tools/list", "{}")); err != nil {
		t.Fatal(err)
	}
	if _, err := bufio.NewReader(out).ReadString('\n'); err != nil {
		t.Fatalf("no answer: %v", err)
	}
	all := descendants(t, parent.Process.Pid)
	if len(all) < 2 {
		t.Fatalf("%d processes, want sse-server and its server", len(all))
	}
	_ = parent.Process.Kill() // it waits
	_ = parent.Wait()         // it was killed
	for _, p := range all {
		if !p.endsSoon() {
			t.Errorf("process %d outlived the parent", p.pid)
		}
	}
}

func TestStdioForTypeScript(t *testing.T) {
	t.Parallel()
	for _, sdk := range []string{"sdk1", "client2", "client2-auto"} {
		t.Run(sdk, func(t *testing.T) {
			t.Parallel()
			command, err := json.Marshal(overStdio(t, fake(t)...))
			ssetest.Must(t, err)
			d := startDriver(t, sdk, "stdio:"+string(command))
			defer d.close()
			ssetest.Must(t, d.connect(within(t)))
			if tools, err := d.listTools(within(t)); err != nil || !slices.Contains(tools, "echo") {
				t.Errorf("got tools %q, %v", tools, err)
			}
			wantEcho(t, d)
			pid, err := strconv.Atoi(mustCall(t, d, "pid", map[string]any{}))
			if err != nil || syscall.Kill(pid, syscall.SIGKILL) != nil {
				t.Fatalf("kill %d: %v", pid, err)
			}
			if _, err := d.listTools(within(t)); err != nil {
				t.Errorf("list after a kill: %v", err)
			}
		})
	}
}

func TestStdioForTheInspector(t *testing.T) {
	t.Parallel()
	cmd := exec.CommandContext(within(t), node(t), npm(t, ".bin/mcp-inspector"), "--cli", built(t, "sse-server"), "stdio",
		"--method", "tools/call", "--tool-name", "echo", "--tool-arg", "message=hello", "--format", "json", "--quiet")
	out, err := cmd.Output()
	if err != nil || !strings.Contains(string(out), "hello") {
		t.Errorf("got %s, %v", out, err)
	}
}

// When the agent reads no more, sse-server says so and ends what its server has started.
func TestStdioLeavesNothingWhenItsOutputBreaks(t *testing.T) {
	t.Parallel()
	grandchild := filepath.Join(t.TempDir(), "pid")
	command := overStdio(t, "--shutdown-timeout", "2s", "--", "sh", "-c", "sleep 1000 & echo $! > "+grandchild+"; exec cat")
	cmd := exec.CommandContext(within(t), command[0], command[1:]...)
	var log output
	cmd.Stderr = &log
	in, err := cmd.StdinPipe()
	ssetest.Must(t, err)
	out, err := cmd.StdoutPipe()
	ssetest.Must(t, err)
	ssetest.Must(t, cmd.Start())
	var pid int
	for pid == 0 && within(t).Err() == nil {
		data, _ := os.ReadFile(grandchild) // not there yet
		pid, _ = strconv.Atoi(strings.TrimSpace(string(data)))
	}
	p, ok := readProcess(pid)
	if !ok {
		t.Fatalf("there is no process %d", pid)
	}
	out.Close()
	if _, err := in.Write([]byte(`{"jsonrpc":"2.0","id":1,"method":"ping"}` + "\n")); err != nil {
		t.Fatal(err)
	}
	if err := cmd.Wait(); err == nil || cmd.ProcessState.ExitCode() != 1 || !strings.Contains(log.String(), "client lost") {
		t.Errorf("got %v, want exit code 1 and the reason in the log:\n%s", err, log.Tail())
	}
	if !p.endsSoon() {
		t.Errorf("process %d outlived sse-server", pid)
		_ = syscall.Kill(pid, syscall.SIGKILL)
	}
}

// One line gives a client that starts programs chosen tools: the others are in no list, and cannot be called.
func TestStdioWithChosenTools(t *testing.T) {
	t.Parallel()
	a := startAgent(t, append([]string{"--include", "p*,late", "--exclude", "late"}, fake(t)...)...)
	listed, err := a.ListTools(t.Context(), nil)
	ssetest.Must(t, err)
	var names []string
	for _, tool := range listed.Tools {
		names = append(names, tool.Name)
	}
	ssetest.Want(t, "tools", strings.Join(names, " "), "pid")
	a.call(t, "pid", nil)
	_, err = a.CallTool(t.Context(), &mcp.CallToolParams{Name: "late"})
	ssetest.WantText(t, "a call of another", err, "unknown tool")
}
