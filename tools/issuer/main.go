// Command issuer puts an OAuth issuer whose person agrees to all before an MCP server, for tests. It prints the URL of
// the server that wants tokens then. Each line on its stdin ends all logins, and the end of stdin the program.
package main

import (
	"bufio"
	"fmt"
	"net/http/httputil"
	"net/url"
	"os"

	"github.com/alecthomas/kong"

	"github.com/mcp-sse/mcp-sse/tools/internal/issuer"
)

func main() {
	var a struct {
		Server *url.URL `arg:"" help:"Where the server is, without the path /mcp."`
	}
	kong.Parse(&a, kong.Name("issuer"))
	i, err := issuer.Start(&httputil.ReverseProxy{Rewrite: func(r *httputil.ProxyRequest) {
		r.SetURL(a.Server)
		r.Out.Header.Del("Authorization") // it is for the server that wants tokens
	}})
	if err != nil {
		fmt.Fprintln(os.Stderr, "issuer:", err)
		os.Exit(1)
	}
	defer i.Close()
	fmt.Println(i.URL + "/mcp")
	for lines := bufio.NewScanner(os.Stdin); lines.Scan(); {
		i.EndLogins()
		fmt.Println("all logins have ended")
	}
}
