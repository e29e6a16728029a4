package background

import (
	"errors"
	"io"
	"net"
	"os"
	"path/filepath"
	"runtime"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/mcp-sse/mcp-sse/cmd/sse-server/internal/clitest"
	"github.com/mcp-sse/mcp-sse/internal/ssetest"
)

// asAnotherUser calls f on a thread with the effective user id 4711 that can open what root can. Only root can do that.
func asAnotherUser(t *testing.T, f func()) {
	t.Helper()
	if os.Geteuid() != 0 {
		t.Skip("only root can become another user")
	}
	done := make(chan struct{})
	go func() {
		defer close(done)
		runtime.LockOSThread() // the thread ends with this goroutine
		_, _, wrong := unix.RawSyscall(unix.SYS_SETRESUID, ^uintptr(0), 4711, ^uintptr(0))
		_, _, _ = unix.RawSyscall(unix.SYS_SETFSUID, 0, 0, 0)
		if wrong != 0 {
			t.Errorf("become another user: %v", wrong)
			return
		}
		f()
	}()
	<-done
}

// A window does not speak with an sse-server of another user, whoever can put one into the place of the socket.
func TestWindowLeavesTheSocketOfAnotherUser(t *testing.T) {
	s := windowOf(t, clitest.State(t), "--", "x")
	asAnotherUser(t, func() {
		l, err := net.Listen("unix", s.socket)
		if err != nil {
			t.Error(err)
			return
		}
		t.Cleanup(func() { l.Close() })
	})
	if who, err := s.ask(t.Context()); who != nil || !errors.Is(err, errOtherUser) {
		t.Errorf("got %v, %v", who, err)
	}
}

// A shared sse-server closes the connection of another user at once, and serves the next one.
func TestSharedListenerClosesOtherUsers(t *testing.T) {
	dir := t.TempDir()
	ssetest.Must(t, os.Chmod(dir, 0o700))
	socket := filepath.Join(dir, "s")
	l, err := Listen(t.Context(), socket)
	ssetest.Must(t, err)
	defer l.Close()
	dial := func() net.Conn {
		conn, err := net.Dial("unix", socket)
		if err != nil {
			t.Error(err)
		}
		return conn
	}
	var theirs net.Conn
	asAnotherUser(t, func() { theirs = dial() })
	defer theirs.Close()
	own := dial()
	defer own.Close()
	_, err = io.WriteString(own, "own")
	ssetest.Must(t, err)
	conn, err := l.Accept()
	ssetest.Must(t, err)
	defer conn.Close()
	got := make([]byte, 3)
	_, err = io.ReadFull(conn, got)
	ssetest.Must(t, err)
	ssetest.Want(t, "what the connection that is served says", string(got), "own")
	if _, err := theirs.Read(got); !errors.Is(err, io.EOF) {
		t.Errorf("the connection of another user: got %v", err)
	}
}
