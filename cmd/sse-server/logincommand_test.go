package main

import (
	"net"
	"net/url"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"github.com/mcp-sse/mcp-sse/cmd/sse-server/internal/clitest"
	"github.com/mcp-sse/mcp-sse/cmd/sse-server/internal/exit"
	"github.com/mcp-sse/mcp-sse/internal/ssetest"
)

// A signal ends the command login cleanly: nothing is kept.
func TestSignalEndsALogin(t *testing.T) {
	t.Parallel()
	remote, env := newProtected(t), clitest.State(t)
	var out, log output
	signals, code := make(chan os.Signal), make(chan int, 1)
	m := &Main{Args: []string{"login", remote.URL + "/mcp"}, Stdin: strings.NewReader(""), Stdout: &out, Stderr: &log,
		LookupEnv: clitest.Environment(env), Notify: func(...os.Signal) <-chan os.Signal { return signals }}
	go func() { code <- m.Run() }() // ends with the signal
	out.await(t, 1, "Paste it here")
	signals <- syscall.SIGINT
	ssetest.Want(t, "exit code", <-code, exit.BySignal(syscall.SIGINT))
	ssetest.WantText(t, "stderr", log.String(), "sse-server: the login was given up\n")
	left := clitest.Must(filepath.Glob(filepath.Join(env["XDG_STATE_HOME"], "sse-server", "logins", "*")))
	ssetest.Want(t, "files that are left", len(left), 0)
}

// With --port the browser comes back at that port. The next login of the server has it too, and the scopes are said.
func TestPortOfALogin(t *testing.T) {
	t.Parallel()
	remote, env := newProtected(t), clitest.State(t)
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	ssetest.Must(t, err)
	port := strconv.Itoa(listener.Addr().(*net.TCPAddr).Port)
	ssetest.Must(t, listener.Close())
	for _, args := range [][]string{{"--port", port, "--scope", "read", "--scope", "write"}, nil} {
		out := remote.logIn(t, env, args...)
		at := clitest.Must(url.Parse(remote.linkIn(t, out)))
		ssetest.Want(t, "redirect is at the port", at.Query().Get("redirect_uri") == "http://127.0.0.1:"+port+"/callback", args != nil)
		ssetest.WantText(t, "output", out, "Scopes: read write.")
	}
}

// The help of the commands about logins names no command of a server, and says how long a login waits.
func TestHelpOfLogins(t *testing.T) {
	t.Parallel()
	for _, name := range []string{"login", "logout", "logins"} {
		p := launchWith(t, clitest.State(t), name, "--help")
		p.wantExit(exit.OK)
		ssetest.WantText(t, name, p.out.String(), "Usage: sse-server "+name)
		ssetest.Want(t, name+" names a command", strings.Contains(p.out.String(), "command args"), false)
		ssetest.Want(t, name+" says how long it waits", strings.Contains(p.out.String(), "It waits 5 minutes"), name == "login")
	}
}

// The command login names the server before it waits for its answer.
func TestLoginSaysWhomItAsks(t *testing.T) {
	t.Parallel()
	p := launchWith(t, clitest.State(t), "login", "http://127.0.0.1:1/mcp")
	p.wantExit(exit.Failure)
	ssetest.WantText(t, "stderr", p.log.String(), "Asking http://127.0.0.1:1/mcp what it wants …\nsse-server: the server at 127.0.0.1:1 cannot be asked: nothing listens there (connection refused)")
}
