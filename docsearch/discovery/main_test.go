package discovery_test

import (
	"bufio"
	"fmt"
	"io"
	"os"
	"os/exec"
	"testing"

	"go.uber.org/goleak"

	"github.com/mcp-sse/mcp-sse/docsearch/discovery"
)

// holderVariable makes this test's own program hold the lock of the directory it names.
const holderVariable = "DOCSEARCH_TEST_HOLD"

func TestMain(m *testing.M) {
	if dir := os.Getenv(holderVariable); dir != "" {
		hold(dir)
		return
	}
	goleak.VerifyTestMain(m)
}

// hold takes the lock, publishes a record, prints a line and waits for the end of stdin.
func hold(dir string) {
	lock, err := discovery.Acquire(dir)
	if err != nil {
		fmt.Println(err)
		os.Exit(1)
	}
	if err := lock.Publish(discovery.NewRecord("127.0.0.1:3002", "test")); err != nil {
		fmt.Println(err)
		os.Exit(1)
	}
	fmt.Println("held")
	_, _ = io.Copy(io.Discard, os.Stdin)
}

// startHolder starts a process that holds the lock of dir, and returns it.
func startHolder(t *testing.T, dir string) *exec.Cmd {
	t.Helper()
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), holderVariable+"="+dir)
	in, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = in.Close()
		_ = cmd.Wait()
	})
	if line, _ := bufio.NewReader(out).ReadString('\n'); line != "held\n" {
		t.Fatalf("holder says %q, want held", line)
	}
	return cmd
}
