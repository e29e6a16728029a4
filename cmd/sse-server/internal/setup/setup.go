package setup

import (
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/mcp-sse/mcp-sse/cmd/sse-server/internal/config"
	"github.com/mcp-sse/mcp-sse/gateway"
	"github.com/mcp-sse/mcp-sse/internal/buildinfo"
	"github.com/mcp-sse/mcp-sse/internal/clients"
)

// Command is what the commands init and connect take from the program.
type Command struct {
	Stdout, Stderr io.Writer
	LookupEnv      func(string) (string, bool)

	// Answers are read when somebody is asked; nil: nobody can be.
	Answers io.Reader
	// Try runs check with these arguments as the shared sse-server of a file would run a server. It returns what check
	// says of the server, and its exit code. nil: nothing is started.
	Try func(file string, args ...string) (said string, code int)
}

// home returns the home directory, "" if there is none.
func (cmd *Command) home() string { return config.HomeOf(cmd.LookupEnv) }

// serversOf returns these servers and views of c as clients are told of them, below a URL.
func serversOf(c *config.Config, base string, which []*config.Server) (servers []clients.Server) {
	program, args := startedBy(ourselves(os.Executable()), buildinfo.NPMPackage)
	for _, s := range which {
		isSSE := !slices.Contains(s.Transports, gateway.TransportStreamable.String())
		servers = append(servers, clients.Server{
			Name: c.Title(s), URL: base + c.PathOf(s), SSE: isSSE, NeedsSession: isSSE || !s.AutoInitialize,
			Token: c.Tokens != nil || len(c.OAuth) > 0, Issuer: len(c.OAuth) > 0, Program: program,
			ProgramArgs: args,
		})
	}
	return servers
}

// ourselves returns how a client starts this program: by its path, because a program with a window has no PATH
// of a shell. go run removes the file when it ends, so that has the name alone.
func ourselves(self string, err error) string {
	if err != nil || strings.Contains(filepath.ToSlash(self), "/go-build") {
		return "sse-server"
	}
	return self
}

// startedBy returns what starts a program of this path, with its first arguments. npx removes the file with its cache,
// so npx starts it there, once there is a package of npm; npmPackage is empty before.
func startedBy(path, npmPackage string) (program string, args []string) {
	if npmPackage != "" && strings.Contains(filepath.ToSlash(path), "/_npx/") {
		return "npx", []string{"-y", npmPackage}
	}
	return path, nil
}
