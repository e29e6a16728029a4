package main

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/mcp-sse/mcp-sse/cmd/sse-server/internal/clitest"
	"github.com/mcp-sse/mcp-sse/internal/environ"
	"github.com/mcp-sse/mcp-sse/internal/ssetest"
)

// runAsProcess runs this test's program as sse-server, in a process of its own, and returns what it prints.
func runAsProcess(t *testing.T, stdin string, args ...string) (stdout, stderr string, err error) {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), clitest.Must(os.Executable()), args...)
	cmd.Env = append(os.Environ(), environ.ParentsVariable+"=", childVariable+"="+asProgram, "XDG_STATE_HOME="+clitest.State(t)["XDG_STATE_HOME"], "XDG_RUNTIME_DIR=")
	var out, log bytes.Buffer
	cmd.Stdin, cmd.Stdout, cmd.Stderr = strings.NewReader(stdin), &out, &log
	err = cmd.Run()
	return out.String(), log.String(), err
}

// A gateway whose command starts the same gateway again, behind a shell and with other variables alone, ends after a
// few of them, with what to do.
func TestGatewayThatStartsItselfByAShell(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "gw.yaml")
	command := fmt.Sprintf("exec %s stdio -c %s", clitest.Must(os.Executable()), file)
	ssetest.Must(t, os.WriteFile(file, fmt.Appendf(nil, "command: [sh, -c, %q]\nremember: false\nenv-allow: ["+childVariable+", PATH]\n", command), 0o600))
	stdout, _, err := runAsProcess(t, "", "check", "--start", "-c", file)
	if err == nil {
		t.Error("check says that it starts")
	}
	ssetest.WantText(t, "what check says", stdout, "what to do: name the MCP server itself in the command")
}

// One gateway may be the server of another.
func TestGatewayBehindAGateway(t *testing.T) {
	t.Parallel()
	self := clitest.Must(os.Executable())
	stdout, stderr, err := runAsProcess(t, "", "check", "--start", "--", self, "stdio", "--no-remember", "--", self, "stdio")
	if err != nil {
		t.Errorf("got %v\n%s%s", err, stdout, stderr)
	}
	ssetest.WantText(t, "what check says", stdout, "demo")
}

// A shared gateway whose command leads back to it, by its name, is told so: it would start one after the other.
func TestSharedGatewayThatStartsItself(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "gw.yaml")
	ssetest.Must(t, os.WriteFile(file, fmt.Appendf(nil, "command: [%q, stdio, --connect, \"http://127.0.0.1:8080/mcp\", -c, %q]\nremember: false\n",
		clitest.Must(os.Executable()), file), 0o600))
	const initialize = `{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"t","version":"1"}}}` + "\n"
	stdout, stderr, _ := runAsProcess(t, initialize, "stdio", "--connect", "http://127.0.0.1:8080/mcp", "-c", file)
	for _, found := range regexp.MustCompile(`shared sse-server started.*pid=(\d+)`).FindAllStringSubmatch(stderr, -1) {
		pid := clitest.Must(strconv.Atoi(found[1]))
		ssetest.Must(t, clitest.Must(os.FindProcess(pid)).Kill())
	}
	ssetest.WantText(t, "the answer", stdout, `"remedy":"name the MCP server itself in the command"`)
}
