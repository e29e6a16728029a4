package config

import (
	"testing"

	"github.com/mcp-sse/mcp-sse/cmd/sse-server/internal/clitest"
	"github.com/mcp-sse/mcp-sse/internal/ssetest"
)

func TestLoginNamesAServer(t *testing.T) {
	file := clitest.WriteFile(t, "gw.yaml", "servers: {docs: {url: \"https://docs.example.com/mcp\"}, own: {command: [x]}}\n")
	for name, c := range map[string]struct {
		args   []string
		server string // the URL that it means
		fails  string
	}{
		"a URL":               {args: []string{"login", "https://mcp.example.com/mcp"}, server: "https://mcp.example.com/mcp"},
		"a URL beside files":  {args: []string{"logout", "https://mcp.example.com/mcp", "-c", file}, server: "https://mcp.example.com/mcp"},
		"a name":              {args: []string{"login", "docs", "-c", file}, server: "https://docs.example.com/mcp"},
		"the only one":        {args: []string{"login", "-c", file}, server: "https://docs.example.com/mcp"},
		"--url":               {args: []string{"login", "--url", "https://mcp.example.com/mcp"}, server: "https://mcp.example.com/mcp"},
		"nothing":             {args: []string{"login"}, fails: "login: name the URL of the server, as in: sse-server login https://"},
		"a name without file": {args: []string{"logout", "docs"}, fails: "logout: want the URL of the server"},
		"no https":            {args: []string{"login", "http://mcp.example.com/mcp"}, fails: "a login needs https"},
		"a command":           {args: []string{"login", "own", "-c", file}, fails: "there is no remote server"},
		"an unknown name":     {args: []string{"login", "dogs", "-c", file}, fails: `no server or view is called "dogs"`},
		"client-id alone":     {args: []string{"login", "https://mcp.example.com/mcp", "--client-id", "x"}, fails: "--client-id: also needs --issuer"},
	} {
		t.Run(name, func(t *testing.T) {
			loaded, err := Load(c.args, clitest.Environment(clitest.State(t)), new(Config))
			var s *Server
			if err == nil {
				s, err = loaded.LoginServer()
			}
			if c.fails != "" {
				ssetest.WantText(t, "error", err, c.fails)
				return
			}
			ssetest.Must(t, err)
			ssetest.Want(t, "server", s.Remote().Address, c.server)
		})
	}
}
