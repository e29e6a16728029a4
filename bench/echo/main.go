// Command echo is an MCP server on stdin and stdout that does next to nothing,
// fast: what is measured in front of it is the gateway or the proxy, not the
// server. It has two tools, echo and progress, which return their message;
// progress reports it twice before that, if the call has a progress token.
package main

import (
	"flag"
	"fmt"
	"os"
)

func main() {
	shuffle := flag.Bool("shuffle", false, "answer what came together in random order")
	flag.Parse()
	if err := newServer(os.Stdin, os.Stdout, *shuffle).run(); err != nil {
		fmt.Fprintln(os.Stderr, "echo:", err)
		os.Exit(1)
	}
}
