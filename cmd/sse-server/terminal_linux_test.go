package main

import (
	"fmt"
	"io"
	"os"
	"regexp"
	"strings"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/mcp-sse/mcp-sse/cmd/sse-server/internal/clitest"
	"github.com/mcp-sse/mcp-sse/cmd/sse-server/internal/exit"
	"github.com/mcp-sse/mcp-sse/internal/ssetest"
)

// newTerminal returns a terminal, and what is on its screen.
func newTerminal(t *testing.T) (end *os.File, screen *output) {
	t.Helper()
	end, screen, _ = newKeyboard(t)
	return end, screen
}

// newKeyboard is newTerminal, and returns what types there.
func newKeyboard(t *testing.T) (end *os.File, screen *output, master *os.File) {
	t.Helper()
	master, err := os.OpenFile("/dev/ptmx", os.O_RDWR|syscall.O_NOCTTY, 0)
	ssetest.Must(t, err)
	ssetest.Must(t, unix.IoctlSetPointerInt(int(master.Fd()), unix.TIOCSPTLCK, 0))
	number := clitest.Must(unix.IoctlGetInt(int(master.Fd()), unix.TIOCGPTN))
	end, err = os.OpenFile(fmt.Sprintf("/dev/pts/%d", number), os.O_RDWR|syscall.O_NOCTTY, 0)
	ssetest.Must(t, err)
	screen = new(output)
	read := make(chan struct{})
	go func() { // ends with the other end
		defer close(read)
		_, _ = io.Copy(screen, master)
	}()
	t.Cleanup(func() {
		_ = end.Close()
		<-read
		_ = master.Close()
	})
	return end, screen, master
}

// On a terminal a server that fails is one block: neither what it writes nor the tries after it surround that. A server
// that starts has its lines in the log, and so has one that fails at level debug, or if the log is elsewhere.
func TestTerminalHasOneBlockOfAServerThatFails(t *testing.T) {
	t.Parallel()
	const fails = "echo one >&2; echo two >&2; exit 3"
	file := clitest.WriteFile(t, "gw.yaml", fmt.Sprintf("servers:\n  bad: {command: [sh, -c, %q]}\n  good: %s\n", fails, childConfig(t, "")))
	for name, test := range map[string]struct {
		args      []string
		elsewhere bool // the log
		isWhole   bool
	}{
		"plain": {nil, false, false}, "debug": {[]string{"--log-level", "debug"}, false, true}, "a file": {nil, true, true},
	} {
		end, screen := newTerminal(t)
		var stderr output
		m := &Main{
			Args:   append([]string{"--addr", "127.0.0.1:0", "--config", file}, test.args...),
			Stdout: end, Stderr: end, LookupEnv: clitest.Environment(clitest.State(t)),
		}
		log := screen
		if test.elsewhere {
			m.Stderr, log = &stderr, &stderr
		}
		p, code := &program{t: t, signals: make(chan os.Signal)}, make(chan int, 1)
		m.Notify = p.notify
		go func() { code <- m.Run() }() // ends with the signal
		screen.await(t, 1, "sse-server keeps running")
		log.await(t, 1, `msg="server started" server=good`)
		_, err := tryConnect(t, regexp.MustCompile(`http://[\d.:]+/bad/mcp`).FindString(screen.String()), "")
		if err == nil {
			t.Error("the server starts")
		}
		log.await(t, 1, `msg="session start failed" server=bad`)
		p.signals <- syscall.SIGTERM
		ssetest.Want(t, name+": exit code", <-code, exit.OK)
		text := log.String()
		if has := strings.Contains(text, `msg="server stderr" server=bad`) && strings.Contains(text, `msg="server exited" server=bad`); has != test.isWhole {
			t.Errorf("%s: the lines of the server are there: %v\n%s", name, has, text)
		}
		if !test.isWhole && strings.Contains(text, "server=bad command=") {
			t.Errorf("%s: there are lines about its processes:\n%s", name, text)
		}
		if block := "        | one\r\n        | two\r\n"; !strings.Contains(screen.String(), block) {
			t.Errorf("%s: there is no block:\n%s", name, screen.String())
		}
	}
}
