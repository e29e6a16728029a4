// Command sse-server serves an MCP server over HTTP+SSE, Streamable HTTP or stdio.
//
// This package connects its parts, each of which is a package below internal. Read it in this order:
//
//	app.go       reads the configuration, and chooses between what follows and a command that ends at once
//	stdio.go     serves one client on stdin and stdout: a server, a view, or the shared sse-server of --connect; and
//	             learns what the server of such a client says
//	daemon.go    builds the gateways and their addresses; views.go builds views over them; routes.go says what is at
//	             which path
//	serve.go     runs them until a signal, and stops them in order; announce.go says where they are
//	reload.go    replaces the configuration; watch.go and signals ask for that
//	systemd.go   tells systemd the state
package main

import (
	"os"
	"os/signal"
	"syscall"

	"github.com/coreos/go-systemd/v22/activation"

	"github.com/mcp-sse/mcp-sse/cmd/sse-server/internal/firstprocess"
)

func main() {
	if code, did := firstprocess.RunAsChild(); did {
		os.Exit(code)
	}
	os.Exit((&Main{
		Args:      os.Args[1:],
		Stdin:     os.Stdin,
		Stdout:    os.Stdout,
		Stderr:    os.Stderr,
		LookupEnv: os.LookupEnv,
		Notify:    catchSignals,
		Sockets:   activation.Files(true),
	}).Run())
}

// catchSignals catches signals.
func catchSignals(catch ...os.Signal) <-chan os.Signal {
	// Two places: the second signal must not be lost while the first is handled.
	signals := make(chan os.Signal, 2)
	for _, sig := range catch {
		if sig != syscall.SIGHUP || !signal.Ignored(sig) { // as under nohup
			signal.Notify(signals, sig)
		}
	}
	return signals
}
