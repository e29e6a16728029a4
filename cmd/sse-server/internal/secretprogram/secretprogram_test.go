package secretprogram

import (
	"context"
	"io"
	"net"
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"

	"github.com/mcp-sse/mcp-sse/internal/ssetest"
)

// The test is the program too.
func TestMain(m *testing.M) {
	switch os.Getenv("SECRETPROGRAM_TEST") {
	case "print":
		_, _ = os.Stdout.WriteString("  $(s3cret) ${X}\n")
		_, _ = os.Stderr.WriteString("s3cret")
	case "fail":
		_, _ = os.Stdout.WriteString("s3cret")
		_, _ = os.Stderr.WriteString("s3cret")
		os.Exit(3)
	case "hang":
		time.Sleep(time.Minute)
	case "much":
		_, _ = os.Stdout.WriteString(strings.Repeat("x", maxBytes+1))
	case "nothing":
	case "wait for a child":
		_ = child("hold").Run()
	case "leave a child":
		_, _ = os.Stdout.WriteString("s3cret\n")
		_ = child("hold").Start()
	case "hold": // until the other end of the connection is closed
		if conn, err := net.Dial("tcp", os.Getenv("SECRETPROGRAM_HOLDS")); err == nil {
			_, _ = io.Copy(io.Discard, conn)
		}
	default:
		os.Exit(m.Run())
	}
}

// child returns a process that does something, and keeps the stdout of this one.
func child(does string) *exec.Cmd {
	cmd := exec.Command(os.Args[0])
	cmd.Env, cmd.Stdout = append(os.Environ(), "SECRETPROGRAM_TEST="+does), os.Stdout
	return cmd
}

// A program that takes too long ends with the processes that it has started. One that succeeds is not waited for until
// they end, although they keep its stdout open.
func TestChildren(t *testing.T) {
	self, err := os.Executable()
	ssetest.Must(t, err)
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	ssetest.Must(t, err)
	defer listener.Close()
	t.Setenv("SECRETPROGRAM_HOLDS", listener.Addr().String())
	accept := func() net.Conn {
		conn, err := listener.Accept()
		if err != nil {
			t.Error(err)
			return nil
		}
		return conn
	}

	t.Setenv("SECRETPROGRAM_TEST", "wait for a child")
	ctx, cancel := context.WithCancel(t.Context())
	held := make(chan net.Conn, 1)
	go func() { held <- accept(); cancel() }() // the child is there
	_, err = read(ctx, []string{self})
	ssetest.WantText(t, "error", err, "has not ended within")
	conn := <-held
	_, err = conn.Read(make([]byte, 1))
	if err == nil {
		t.Error("the child goes on")
	}
	conn.Close()

	t.Setenv("SECRETPROGRAM_TEST", "leave a child")
	got, err := Read([]string{self})
	ssetest.Must(t, err)
	ssetest.Want(t, "secret", got, "s3cret")
	accept().Close() // ends the child
}

func TestRead(t *testing.T) {
	self, err := os.Executable()
	ssetest.Must(t, err)
	for does, want := range map[string]string{
		"fail": "has failed: exit status 3", "hang": "has not ended within", "much": "has printed over 64 KiB", "nothing": "has printed nothing",
	} {
		t.Setenv("SECRETPROGRAM_TEST", does)
		ctx, cancel := context.WithCancel(t.Context())
		if does == "hang" {
			time.AfterFunc(50*time.Millisecond, cancel)
		}
		got, err := read(ctx, []string{self})
		cancel()
		ssetest.WantText(t, does, err, want)
		ssetest.Want(t, does, got, "")
		if strings.Contains(err.Error(), "s3cret") {
			t.Errorf("the error has the secret: %v", err)
		}
	}
	t.Setenv("SECRETPROGRAM_TEST", "print")
	got, err := Read([]string{self})
	ssetest.Must(t, err)
	ssetest.Want(t, "secret", got, "$(s3cret) ${X}")
	for _, command := range [][]string{nil, {""}, {"no-such-program-at-all"}} {
		if got, err := Read(command); err == nil {
			t.Errorf("%q: got %q", command, got)
		}
	}
}
