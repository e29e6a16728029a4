// Command docsearch searches the documents of folders: for agents over MCP, for
// programs over REST, and for people on the command line.
package main

import (
	"context"
	"os"
	"os/signal"
	"syscall"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	code := (&program{
		stdin:  os.Stdin,
		stdout: os.Stdout,
		stderr: os.Stderr,
		getenv: os.Getenv,
	}).run(ctx, os.Args[1:])
	stop()
	os.Exit(code)
}
