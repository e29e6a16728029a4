//go:build agents

package agents

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/mcp-sse/mcp-sse/internal/ssetest"
)

// From an entry of the client to a call of a tool through the gateway, with one command between them: the client has one
// entry then, and gets its own back.
func TestInitToACallOfATool(t *testing.T) {
	userFiles := map[string]string{"Claude Code": ".claude.json", "Codex": ".codex/config.toml"}
	forEachAgent(t, func(t *testing.T, a agent) {
		file := userFiles[a.name]
		if file == "" {
			table.set(a.name, "init", "–")
			t.Skip("its own way to the gateway is tested")
		}
		home, err := os.MkdirTemp("", "i") // short: it has a socket
		ssetest.Must(t, err)
		t.Cleanup(func() { _ = os.RemoveAll(home) })
		command, journal := serverCommand(t)
		m := startModel(t, nil, calls(hello)(nil)...)
		entryOfAgent := a.entry
		a.entry = func(t *testing.T, s target) (string, string) {
			_, content := entryOfAgent(t, s)
			return file, content
		}
		at := target{over: stdio, command: command}
		a.furnish(t, home, at, m.URL)
		before := contentOf(filepath.Join(home, file))

		initialize := func(args ...string) string {
			cmd := exec.Command(sseServer(t), args...)
			cmd.Dir, cmd.Env = filepath.Join(home, "work"), []string{"HOME=" + home, "PATH=" + os.Getenv("PATH")}
			out, err := cmd.CombinedOutput()
			if err != nil {
				t.Fatalf("%q: %v\n%s", args, err, out)
			}
			return string(out)
		}
		config := filepath.Join(home, "work", "servers.yaml")
		t.Cleanup(func() { endShared(t, config) })
		said := initialize("init", "--yes")
		after := contentOf(filepath.Join(home, file))
		if !strings.Contains(after, "gateway") || strings.Contains(after, command[0]) {
			t.Fatalf("the client has other entries:\n%s\n%s", after, said)
		}

		a.entry = func(*testing.T, target) (string, string) { return file, after }
		a.args = slices.Clone(a.args)
		for i, arg := range a.args {
			a.args[i] = strings.ReplaceAll(arg, "mcp__demo", "mcp__gateway")
		}
		printed, ended := a.run(t, home, at, m, 3*time.Minute)
		result, ok := m.result(0)
		ok = ok && strings.Contains(result, "called with ") && ended
		table.set(a.name, "init", map[bool]string{true: "yes", false: "no"}[ok])
		if !ok {
			t.Errorf("no result of the tool (%q); ended: %v\n%s\n%s\n%s\n%s", result, ended, said, printed, m.journal(), contentOf(journal))
		}
		client := map[string]string{"Claude Code": "claude-code", "Codex": "codex"}[a.name]
		initialize("connect", client, "--undo")
		if got := contentOf(filepath.Join(home, file)); strings.Contains(got, "gateway") || !strings.Contains(got, command[0]) {
			t.Errorf("undone, the client has\n%s\nwant what it had\n%s", got, before)
		}
	})
}

// endShared ends the shared sse-server of a file.
func endShared(t *testing.T, file string) {
	t.Helper()
	processes, err := filepath.Glob("/proc/[0-9]*/cmdline")
	ssetest.Must(t, err)
	for _, process := range processes {
		data, err := os.ReadFile(process)
		if err != nil || !bytes.Contains(data, []byte("\x00--config="+file+"\x00")) {
			continue
		}
		pid, err := strconv.Atoi(filepath.Base(filepath.Dir(process)))
		ssetest.Must(t, err)
		_ = syscall.Kill(pid, syscall.SIGTERM) // it may have ended
		await(20*time.Second, func() bool { return syscall.Kill(pid, 0) != nil })
	}
}
