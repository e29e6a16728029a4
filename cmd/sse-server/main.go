// Command sse-server serves an MCP server over HTTP+SSE, Streamable HTTP or stdio.
package main

import (
	"os"
	"os/signal"
	"syscall"

	"github.com/coreos/go-systemd/v22/activation"
)

func main() {
	os.Exit((&Main{
		Args:      os.Args[1:],
		Stdin:     os.Stdin,
		Stdout:    os.Stdout,
		Stderr:    os.Stderr,
		LookupEnv: os.LookupEnv,
		Notify:    stopSignals,
		Sockets:   activation.Files(true),
	}).Run())
}

// stopSignals catches the signals that stop the program.
func stopSignals() <-chan os.Signal {
	// Two places: the second signal must not be lost while the first is handled.
	signals := make(chan os.Signal, 2)
	signal.Notify(signals, syscall.SIGINT, syscall.SIGTERM)
	if !signal.Ignored(syscall.SIGHUP) { // as under nohup
		signal.Notify(signals, syscall.SIGHUP)
	}
	return signals
}
