// Everything is an MCP server for the end-to-end tests: the same tools, resource
// and prompt under each SDK and over each transport that a gateway must reach.
//
//	everything -sdk go-sdk -transport stdio
//	everything -sdk mcp-go -transport sse      # prints its URL
//
// Tools: echo {message}, add {a, b}, progress {steps}, slow {ms}, log {level,
// message}, sampling, elicitation and roots (each answers what the client
// answered), touch {uri}, grow (adds a tool), crash.
package main

import (
	"flag"
	"fmt"
	"log"
	"net"
	"net/http"
	"os"
	"time"
)

// transports maps a name to the path of its URL; stdio has none.
var transports = map[string]string{"stdio": "", "streamable": "/mcp", "stateless": "/mcp", "sse": "/sse",
	"adapter": "/sse"}

// server is one SDK's server under each transport.
type server interface {
	stdio() error
	streamable(stateless bool) http.Handler
	sse() http.Handler
	adapter() http.Handler // of this module, in place of sse
}

func main() {
	sdk := flag.String("sdk", "go-sdk", "go-sdk or mcp-go")
	transport := flag.String("transport", "stdio",
		"stdio, streamable (with sessions), stateless (2026-07-28), sse, or adapter: "+
			"sse with the gateway in place of the SDK's own handler")
	addr := flag.String("addr", "127.0.0.1:0", "where to listen")
	flag.Parse()
	if err := run(*sdk, *transport, *addr); err != nil {
		log.Fatal(err)
	}
}

func run(sdk, transport, addr string) error {
	var s server
	switch sdk {
	case "go-sdk":
		s = newGoSDK()
	case "mcp-go":
		s = newMCPGo()
	default:
		return fmt.Errorf("no SDK %q", sdk)
	}
	switch transport {
	case "stdio":
		return s.stdio()
	case "streamable", "stateless":
		return listen(addr, transports[transport], s.streamable(transport == "stateless"))
	case "sse":
		return listen(addr, transports[transport], s.sse())
	case "adapter":
		return listen(addr, transports[transport], s.adapter())
	}
	return fmt.Errorf("no transport %q", transport)
}

// listen serves until the process is killed. Its first line on stdout is the URL.
func listen(addr, path string, h http.Handler) error {
	l, err := net.Listen("tcp", addr)
	if err != nil {
		return err
	}
	fmt.Fprintf(os.Stdout, "http://%s%s\n", l.Addr(), path)
	return (&http.Server{Handler: h, ReadHeaderTimeout: time.Minute}).Serve(l)
}
