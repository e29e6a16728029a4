//go:build unix

package config

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/mcp-sse/mcp-sse/cmd/sse-server/internal/clitest"
	"github.com/mcp-sse/mcp-sse/internal/ssetest"
)

// Reading the configuration ends even if a file is a pipe without a writer, an endless
// device, or far too large.
func TestFilesThatAreNone(t *testing.T) {
	t.Parallel()
	pipe := filepath.Join(t.TempDir(), "pipe")
	ssetest.Must(t, syscall.Mkfifo(pipe, 0o600))
	large := clitest.WriteFile(t, "gw.yaml", "#"+string(bytes.Repeat([]byte("x"), maxFile)))
	wantRefusal(t, nil, pipe+": the file is empty", "--config", pipe)
	wantRefusal(t, nil, "--auth-tokens-file: "+pipe+" holds no token", "--auth-tokens-file", pipe)
	wantRefusal(t, nil, "--id-key-file: ", "--id-key-file", pipe)
	wantRefusal(t, nil, "config: /dev/zero is over 1048576 bytes", "--config", "/dev/zero")
	wantRefusal(t, nil, "config: "+large+" is over 1048576 bytes", "--config", large)
}

// Whether others can read a key depends on the file that was read, not on one that has its name by then.
func TestIDKeyThatIsReplacedMeanwhile(t *testing.T) {
	t.Parallel()
	path, other := filepath.Join(t.TempDir(), "pipe"), clitest.WriteFile(t, "id-key", strings.Repeat("x", 32))
	ssetest.Must(t, errors.Join(syscall.Mkfifo(path, 0o600), os.Chmod(other, 0o644)))
	pipe := clitest.Must(os.OpenFile(path, os.O_RDWR, 0))
	want := strings.Repeat("k", 32)
	go func() {
		_, _ = pipe.WriteString(want + strings.Repeat("\n", 1<<18)) // more than a pipe holds: waits for the reader
		_ = errors.Join(os.Rename(other, path), pipe.Close())
	}()
	if key, err := readKeyFile(path); string(key) != want {
		t.Errorf("got %q, %v", key, err)
	}
}

// A shell's <(program) is a pipe that somebody writes.
func TestPipeOfAShell(t *testing.T) {
	t.Parallel()
	out, in, err := os.Pipe()
	ssetest.Must(t, err)
	defer out.Close()
	go func() {
		_, _ = in.WriteString("warm: 2\n")
		_ = in.Close()
	}()
	if c := mustLoad(t, nil, "--config", fmt.Sprintf("/dev/fd/%d", out.Fd())); c.Warm == nil || *c.Warm != 2 {
		t.Errorf("got %v, want 2", c.Warm)
	}
}
