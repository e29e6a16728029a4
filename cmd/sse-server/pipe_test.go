//go:build unix

package main

import (
	"bufio"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"testing"

	"github.com/mcp-sse/mcp-sse/cmd/sse-server/internal/clitest"
)

// A reader of stdout that leaves, such as head, does not end the daemon.
func TestReaderOfStdoutLeaves(t *testing.T) {
	t.Parallel()
	read, write, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	read.Close()
	cmd := exec.CommandContext(t.Context(), clitest.Must(os.Executable()), "--addr", "127.0.0.1:0", "--no-start-check")
	cmd.Env = append(os.Environ(), childVariable+"="+asProgram, "HOME="+t.TempDir(), "STATE_DIRECTORY="+t.TempDir())
	cmd.Stdout = write
	log := clitest.Must(cmd.StderrPipe())
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	write.Close()
	lines := bufio.NewScanner(log)
	for lines.Scan() {
		if strings.Contains(lines.Text(), "msg=serving") {
			_ = cmd.Process.Signal(syscall.SIGTERM) // is taken after the banner has been written
		}
	}
	if err := cmd.Wait(); err != nil {
		t.Errorf("got %v, want an end in order", err)
	}
}
