// Command echo is an MCP server on stdin and stdout that does next to nothing,
// fast: what is measured in front of it is the gateway or the proxy, not the
// server. It has two tools, echo and progress, which return their message;
// progress reports it twice before that, if the call has a progress token, and may also
// ask the client with it.
package main

import (
	"flag"
	"fmt"
	"os"
	"time"
)

func main() {
	shuffle := flag.Bool("shuffle", false, "answer what came together in random order")
	dieAt := flag.Int("die-at", 0, "end without an answer at the `N`th call; 0: never")
	ask := flag.Bool("ask", false, "let progress send a request to the client, whose answer it waits for")
	boot := flag.Duration("boot", 0, "how long to boot, before anything is read")
	tools := flag.Int("tools", 2, "how many tools to list; those after the first two cannot be called")
	flag.Parse()
	time.Sleep(*boot)
	s := newServer(os.Stdin, os.Stdout, *shuffle)
	s.dieAt, s.ask, s.tools = *dieAt, *ask, toolList(*tools)
	if err := s.run(); err != nil {
		fmt.Fprintln(os.Stderr, "echo:", err)
		os.Exit(1)
	}
}
