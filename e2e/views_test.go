package e2e

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/mcp-sse/mcp-sse/internal/ssetest"
)

// viewURLs is the attribute of the log line that tells where all views are.
var viewURLs = regexp.MustCompile(`"views":({[^}]*})`)

// startViews starts a gateway with servers and views of them. It returns the gateway and the URLs of the views. The order
// of members is that of their names, as JSON has it.
func startViews(t *testing.T, servers, views map[string]any, flags ...string) (*gateway, map[string]string) {
	t.Helper()
	return startViewsOf(t, writeViews(t, servers, views), flags...)
}

// writeViews writes a file with servers and views, and returns its path.
func writeViews(t *testing.T, servers, views map[string]any) (file string) {
	t.Helper()
	file = filepath.Join(t.TempDir(), "servers.json") // YAML too
	body, err := json.Marshal(map[string]any{"servers": servers, "views": views})
	ssetest.Must(t, err)
	ssetest.Must(t, os.WriteFile(file, body, 0o600))
	return file
}

// startViewsOf is startViews for a file.
func startViewsOf(t *testing.T, file string, flags ...string) (*gateway, map[string]string) {
	t.Helper()
	g := launch(t, append([]string{"--config", file}, flags...)...)
	g.admin = g.awaitMatch("the admin URL", &g.log, adminURL)
	var urls map[string]string
	ssetest.Must(t, json.Unmarshal([]byte(g.awaitMatch("the URLs of the views", &g.log, viewURLs)), &urls))
	return g, urls
}

// startView starts a gateway with servers and one view of them, whose URL it returns.
func startView(t *testing.T, servers, members map[string]any, flags ...string) (*gateway, string) {
	t.Helper()
	g, urls := startViews(t, servers, map[string]any{"team": map[string]any{"servers": members}}, flags...)
	return g, urls["team"]
}

// entryOf returns the entry of a file for the arguments that lead to a server.
func entryOf(args []string) map[string]any {
	if args[0] == "--url" {
		return map[string]any{"url": args[1]}
	}
	return map[string]any{"command": args[1:]}
}

// Each client has the tools of two real servers at one URL, under names that say whose they are, and calls both. At
// another URL it finds and calls them with three tools.
func TestViewOfRealServers(t *testing.T) {
	t.Parallel()
	_, urls := startViews(t, map[string]any{
		"everything": map[string]any{"command": everything(t)[1:]},
		"memory":     map[string]any{"command": memory(t)[1:]},
	}, map[string]any{
		"team": map[string]any{"servers": map[string]any{
			"everything": map[string]any{"include": []string{"echo", "get-*"}},
			"memory":     map[string]any{"prefix": "", "rename": map[string]any{"create_entities": "remember"}},
		}},
		"found": map[string]any{"search": true, "servers": map[string]any{"everything": nil, "memory": nil}},
	})
	for _, k := range kinds() {
		t.Run(k.name, func(t *testing.T) {
			c := k.open(t, urls["team"], "")
			defer c.close()
			ssetest.Must(t, c.connect(within(t)))
			awaitTools(t, c, map[string]bool{"everything__echo": true, "remember": true, "read_graph": true,
				"echo": false, "create_entities": false, "everything__trigger-sampling-request": false})
			text, err := c.callTool(within(t), "everything__echo", message("hello"))
			ssetest.Must(t, err)
			ssetest.WantText(t, "everything", text, "hello")
			text, err = c.callTool(within(t), "remember", map[string]any{"entities": []any{map[string]any{"name": k.name, "entityType": "e2e", "observations": []string{}}}})
			ssetest.Must(t, err)
			ssetest.WantText(t, "memory", text, k.name)
		})
		t.Run(k.name+" finds", func(t *testing.T) {
			c := k.open(t, urls["found"], "")
			defer c.close()
			ssetest.Must(t, c.connect(within(t)))
			tools, err := c.listTools(within(t))
			ssetest.Must(t, err)
			slices.Sort(tools)
			ssetest.Want(t, "tools", strings.Join(tools, " "), "call_tool find_tools read_tool")
			awaitFound(t, c, "add two numbers", "everything__get-sum")
			text, err := c.callTool(within(t), "call_tool", map[string]any{
				"name": "everything__get-sum", "arguments": map[string]any{"a": 40, "b": 2},
			})
			ssetest.Must(t, err)
			ssetest.WantText(t, "call_tool", text, "42")
			text, err = c.callTool(within(t), "read_tool", map[string]any{"name": "memory__read_graph"})
			ssetest.Must(t, err)
			ssetest.WantText(t, "read_tool", text, "entities")
			_, err = c.callTool(within(t), "read_tool", map[string]any{"name": "memory__delete_entities"})
			ssetest.WantText(t, "a tool that does not only read", fmt.Sprint(err), "call_tool")
		})
	}
}

// awaitFound asks until a tool is found: its server may boot slowly.
func awaitFound(t *testing.T, c client, question, tool string) {
	t.Helper()
	ctx := within(t)
	for {
		text, err := c.callTool(ctx, "find_tools", map[string]any{"query": question})
		ssetest.Must(t, err)
		if strings.Contains(text, `"`+tool+`"`) {
			return
		}
	}
}

// awaitTools lists until each tool of which want says true is there: a client is told of a server that boots slowly. The
// others may not be there.
func awaitTools(t *testing.T, c client, want map[string]bool) {
	t.Helper()
	ctx := within(t)
	for {
		tools, err := c.listTools(ctx)
		ssetest.Must(t, err)
		missing := 0
		for name, is := range want {
			switch has := slices.Contains(tools, name); {
			case has && !is:
				t.Fatalf("%s is in the list %q", name, tools)
			case !has && is:
				missing++
			}
		}
		if missing == 0 {
			return
		}
	}
}
