package main

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/mcp-sse/mcp-sse/cmd/sse-server/internal/clitest"
	"github.com/mcp-sse/mcp-sse/cmd/sse-server/internal/exit"
	"github.com/mcp-sse/mcp-sse/internal/ssetest"
)

// printedTools is what tools --json prints.
type printedTools struct {
	Offers []struct {
		Name, Kind string
		Servers    []struct {
			Name       string
			FromMemory bool
			Error      string
		}
		Tools []struct{ Name, Server, Own string }
	}
}

// toolsPrinted runs the command tools --json, and returns what it printed.
func toolsPrinted(t *testing.T, env map[string]string, code int, args ...string) (got printedTools) {
	t.Helper()
	p := launchWith(t, env, append([]string{"tools", "--json"}, args...)...)
	p.wantExit(code)
	if err := json.Unmarshal([]byte(p.out.String()), &got); err != nil {
		t.Fatalf("%q: %v in %s\n%s", args, err, p.out.String(), p.log.String())
	}
	return got
}

// The command tools prints the list that clients get at each URL, in their order. A dead server is named and costs its
// own tools. A server that memory knows is not started again.
func TestToolsAreThoseThatClientsGet(t *testing.T) {
	t.Parallel()
	file := clitest.WriteFile(t, "gw.yaml", "servers:\n  one: "+childConfig(t, "")+"\n  two: {exclude: [sleep]}\n  gone: {command: [no-such-program-at-all]}\n"+
		"views:\n  team: {servers: {one: {prefix: \"\", rename: {echo: repeat}}, two: {}, gone: {}}}\n")
	env := clitest.State(t)
	first := toolsPrinted(t, env, exit.Failure, "-c", file)
	again := toolsPrinted(t, env, exit.OK, "-c", file, "one")
	ssetest.Want(t, "what is read again", []bool{first.Offers[1].Servers[0].FromMemory, again.Offers[0].Servers[0].FromMemory}, []bool{false, true})
	ssetest.WantText(t, "the dead server", first.Offers[0].Servers[2].Error, "no-such-program-at-all")
	p := start(t, "-c", file, "--addr", "127.0.0.1:0", "--no-start-check")
	for _, offer := range first.Offers {
		if offer.Name == "gone" {
			continue
		}
		var names []string
		for _, tool := range offer.Tools {
			names = append(names, tool.Name)
		}
		session := connectTo(t, strings.TrimSuffix(p.url, "/one/mcp")+"/"+offer.Name+"/mcp")
		awaitTools(t, session, strings.Join(names, " "))
	}
}

// One server needs no file, and a view is listed or tried alone by its name.
func TestToolsOfOne(t *testing.T) {
	t.Parallel()
	one := toolsPrinted(t, nil, exit.OK, "--include", "e*", "--name", "mine")
	ssetest.Want(t, "servers", len(one.Offers), 1)
	ssetest.Want(t, "its tools", one.Offers[0].Name+" "+one.Offers[0].Tools[0].Name, "mine echo")
	remote := start(t, "--addr", "127.0.0.1:0")
	got := toolsPrinted(t, nil, exit.OK, "--url", remote.url, "--exclude", "e*")
	ssetest.Want(t, "tools of a remote server", got.Offers[0].Tools[0].Name, "sleep")

	file := clitest.WriteFile(t, "gw.yaml", "servers: {a: {}, b: {}, other: {command: [no-such-program-at-all]}}\nviews: {both: {servers: {a: {}, b: {include: [zzz]}}}}\n")
	view := toolsPrinted(t, nil, exit.OK, "-c", file, "both")
	ssetest.Want(t, "tools of a view", len(view.Offers), 1)
	ssetest.Want(t, "a tool of it", view.Offers[0].Tools[0], struct{ Name, Server, Own string }{"a__echo", "a", "echo"})
	p := launch(t, "check", "-c", file, "both", "--for", "vs-code")
	p.wantExit(exit.OK)
	ssetest.WantText(t, "the check of a view", p.out.String(), "\nboth: 2 of 4 tools of a, b\n  WARNING: b: include \"zzz\" meets nothing that the server lists\n  vs-code: nothing is lost that is known of\n")
	if strings.Contains(p.out.String(), "other") {
		t.Errorf("a server that is in no view that was named was tried:\n%s", p.out.String())
	}
	offline := launch(t, "check", "-c", file, "both", "--for", "trae", "--offline")
	offline.wantExit(exit.Config) // other
	ssetest.WantText(t, "the configuration", offline.log.String(), "no-such-program-at-all")
	for _, command := range []string{"tools", "check"} {
		wrong := launch(t, command, "-c", file, "boht")
		wrong.wantExit(exit.Config)
		ssetest.WantText(t, "a wrong name", wrong.log.String(), command+`: no server or view is called "boht"; want one of both, a, b, other`)
	}
	near := launch(t, "tools", "-c", file, "othr")
	near.wantExit(exit.Config)
	ssetest.WantText(t, "a name that is near", near.log.String(), `"othr", did you mean "other"? want one of both, a, b, other`)
}
