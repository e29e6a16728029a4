//go:build agents

package agents

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/mcp-sse/mcp-sse/internal/ssetest"
)

// newBrowser returns a program that opens an address as a browser does whose person agrees to all, and how many it has
// opened.
func newBrowser(t *testing.T) (script string, pages func() int) {
	t.Helper()
	dir := t.TempDir()
	opened, script := filepath.Join(dir, "opened"), filepath.Join(dir, "browser")
	follow, err := filepath.Abs("../clients/follow.mjs")
	ssetest.Must(t, err)
	ssetest.Must(t, os.WriteFile(script, fmt.Appendf(nil, "#!/bin/sh\necho x >> %s\nexec %s %s \"$1\"\n", opened,
		modules(t, "node/bin/node"), follow), 0o700))
	return script, func() int { return strings.Count(contentOf(opened), "x\n") }
}

// added has how agents get an entry for a program by a command of their own: what comes before and after the name of the
// program, the file that has the entry then, and what a person adds to that.
var added = map[string]struct {
	before, after []string
	file, more    string
}{
	"Claude Code": {[]string{"mcp", "add", "--scope", "user", "demo", "--"}, nil, ".claude.json", ""},
	// It gives a program few of its own variables: docs/clients.md.
	"Codex":      {[]string{"mcp", "add", "demo", "--"}, nil, ".codex/config.toml", "env_vars = [\"BROWSER\"]\n"},
	"Gemini CLI": {[]string{"mcp", "add", "--scope", "user", "demo"}, []string{"--"}, ".gemini/settings.json", ""},
}

// A newcomer adds sse-server stdio with a URL to a client, by the command of that, for a server that wants a login. The
// client opens the browser, once, and its model has the result of the server's tool, at the next start at the latest.
func TestNewcomerWithALogin(t *testing.T) {
	for name, add := range added {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			turns <- struct{}{}
			defer func() { <-turns }()
			a := agents[slices.IndexFunc(agents, func(a agent) bool { return a.name == name })]
			command, _ := serverCommand(t)
			server, _ := startIssuer(t, startGateway(t, ssetest.PrivateDir(t), command).url(""))
			script, pages := newBrowser(t)
			p := &played{t: t, a: a, home: t.TempDir()}
			p.m = startModel(t, nil, calls(loginTool, hello)(p)...)
			env, entry := a.env, a.entry
			p.a.env = func(model string) []string { return append(env(model), "BROWSER="+script) }
			p.a.entry = func(t *testing.T, s target) (string, string) { // without the server
				file, content := entry(t, s)
				if content, _, _ = strings.Cut(content, "[mcp_servers.demo]"); file != add.file {
					content = "{}"
				}
				return add.file, strings.Replace(content, `"mcpServers":{"demo":{"command":"none","args":[]}}`, `"mcpServers":{}`, 1)
			}
			p.a.furnish(t, p.home, target{over: stdio, command: []string{"none"}}, p.m.URL)
			var line []string
			for _, file := range a.program {
				line = append(line, modules(t, file))
			}
			line = slices.Concat(line, add.before, []string{sseServer(t)}, add.after, []string{"stdio", "--url", server})
			cmd := exec.Command(line[0], line[1:]...)
			cmd.Dir = filepath.Join(p.home, "work")
			cmd.Env = append([]string{"HOME=" + p.home, "PATH=" + os.Getenv("PATH")}, p.a.env(p.m.URL)...)
			if said, err := cmd.CombinedOutput(); err != nil {
				t.Fatalf("%q: %v\n%s", line, err, said)
			}
			entryNow := contentOf(filepath.Join(p.home, add.file)) + add.more
			p.a.entry = func(*testing.T, target) (string, string) { return add.file, entryNow }
			p.printed, p.ended = p.a.run(t, p.home, target{over: stdio}, p.m, 3*time.Minute)
			first := p.m.journal()
			if !p.echoed(1) { // it keeps the list with which it began, or reads it late
				p.m = startModel(t, p.m, calls(hello)(p)...)
				p.printed, p.ended = p.a.run(t, p.home, target{over: stdio}, p.m, 3*time.Minute)
				ssetest.Want(t, "it has the result after its next start", p.echoed(0), true)
			}
			ssetest.Want(t, "pages that were opened", pages(), 1)
			if t.Failed() {
				t.Logf("%s\n%s\n%s\n%s", entryNow, first, p.m.journal(), p.printed)
			}
		})
	}
}

// With one login of a person, a gateway serves Claude Code and Codex, and a program its client over stdio.
func TestOneLoginServesAllClients(t *testing.T) {
	command, _ := serverCommand(t)
	server, _ := startIssuer(t, startGateway(t, ssetest.PrivateDir(t), command).url(""))
	script, pages := newBrowser(t)
	state := ssetest.PrivateDir(t)
	env := append(os.Environ(), "XDG_STATE_HOME="+state, "BROWSER="+script)
	login := exec.Command(sseServer(t), "login", server)
	login.Env = env
	if out, err := login.CombinedOutput(); err != nil || !strings.Contains(string(out), "Logged in at "+server) {
		t.Fatalf("login: %v\n%s", err, out)
	}
	g := startGateway(t, state, nil, "--url", server)
	for _, name := range []string{"Claude Code", "Codex"} {
		a := agents[slices.IndexFunc(agents, func(a agent) bool { return a.name == name })]
		p := &played{t: t, a: a, home: t.TempDir(), g: g}
		p.runAgain(calls(hello)(p))
		if !p.echoed(0) {
			t.Errorf("%s has no result\n%s\n%s", name, p.printed, p.m.journal())
		}
	}
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	client := exec.Command(sseServer(t), "stdio", "--url", server)
	client.Env = env
	session, err := mcp.NewClient(&mcp.Implementation{Name: "agents", Version: "1"}, nil).
		Connect(ctx, &mcp.CommandTransport{Command: client}, nil)
	ssetest.Must(t, err)
	defer session.Close()
	result, err := session.CallTool(ctx, &mcp.CallToolParams{Name: "echo", Arguments: map[string]any{"message": "hello"}})
	ssetest.Must(t, err)
	ssetest.WantText(t, "the result over stdio", result.Content[0].(*mcp.TextContent).Text, "called with ", "hello")
	ssetest.Want(t, "pages that were opened", pages(), 1)
}
