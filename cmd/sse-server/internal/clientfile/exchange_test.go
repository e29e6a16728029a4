package clientfile

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/mcp-sse/mcp-sse/internal/clients"
	"github.com/mcp-sse/mcp-sse/internal/ssetest"
)

// gatewayEntry is what takes the place of the entries of a client.
var gatewayEntry = clients.Server{
	Name: "gateway", Program: "/bin/sse-server", Args: []string{"stdio", "--connect", "--config", "/srv/servers.yaml"},
}

// Entries are exchanged for one that starts a program, in each format, and come back. The others stay, with comments.
func TestExchangeAndUndo(t *testing.T) {
	for name, test := range map[string]struct{ before, after, restored string }{
		"cursor": {
			`{"mcpServers": {"a/b~c": {"command": "x"}, /* mine */ "stays": {"command": "./y"}, "git\"hub": {"url": "https://x/mcp"}}, "theme": 1}`,
			`{"mcpServers": { /* mine */ "stays": {"command": "./y"},"gateway":{"command":"/bin/sse-server","args":["stdio","--connect","--config","/srv/servers.yaml"]}}, "theme": 1}`,
			`{"mcpServers": { /* mine */ "stays": {"command": "./y"},"a/b~c":{"command": "x"},"git\"hub":{"url": "https://x/mcp"}}, "theme": 1}`,
		},
		"opencode": {
			`{"mcp":{"a/b~c":{"type":"local","command":["x"]},"git\"hub":{"type":"remote","url":"https://x/mcp"}}}`,
			`{"mcp":{"gateway":{"type":"local","command":["/bin/sse-server","stdio","--connect","--config","/srv/servers.yaml"]}}}`,
			`{"mcp":{"a/b~c":{"type":"local","command":["x"]},"git\"hub":{"type":"remote","url":"https://x/mcp"}}}`,
		},
	} {
		c, file := named(t, name), filepath.Join(t.TempDir(), "mcp.json")
		ssetest.Must(t, os.WriteFile(file, []byte(test.before), 0o600))
		e := NewEditor(t.TempDir())
		_, isKnown := e.RunOf(file, "")
		ssetest.Want(t, name+": something to restore", isKnown, false)
		_, err := e.Exchange(c, file, []string{"a/b~c", `git"hub`}, gatewayEntry)
		ssetest.Must(t, err)
		ssetest.Want(t, name+": the file", contentOf(t, file), test.after)
		_, isKnown = e.RunOf(file, "")
		ssetest.Want(t, name+": something to restore", isKnown, true)
		undone, err := e.Undo(c, file, "")
		ssetest.Must(t, err)
		ssetest.Want(t, name+": restored", undone, Undone{Restored: []string{"a/b~c", `git"hub`}, Removed: []string{"gateway"}})
		ssetest.Want(t, name+": the file", contentOf(t, file), test.restored)
	}
}

// The file of Codex has tables.
func TestExchangeInTOML(t *testing.T) {
	const before = "model = \"x\" # mine\n\n[mcp_servers.github]\ncommand = \"x\"\n\n[mcp_servers.github.env]\nKEY = \"1\"\n\n[mcp_servers.web]\nurl = \"https://x/mcp\"\n"
	const after = "model = \"x\" # mine\n\n[mcp_servers.gateway]\ncommand = \"/bin/sse-server\"\nargs = [\"stdio\",\"--connect\",\"--config\",\"/srv/servers.yaml\"]\n"
	c, file := named(t, "codex"), filepath.Join(t.TempDir(), "config.toml")
	ssetest.Must(t, os.WriteFile(file, []byte(before), 0o600))
	e := NewEditor(t.TempDir())
	_, err := e.Exchange(c, file, []string{"github", "web"}, gatewayEntry)
	ssetest.Must(t, err)
	ssetest.Want(t, "the file", contentOf(t, file), after)
	_, err = e.Undo(c, file, "")
	ssetest.Must(t, err)
	ssetest.Want(t, "the file", contentOf(t, file), before)
}

// An entry that somebody has written since, in the place of one that went, stays.
func TestUndoLeavesAnEntryThatIsThereAgain(t *testing.T) {
	c, file := named(t, "cursor"), filepath.Join(t.TempDir(), "mcp.json")
	ssetest.Must(t, os.WriteFile(file, []byte(`{"mcpServers":{"a":{"command":"x"}}}`), 0o600))
	e := NewEditor(t.TempDir())
	_, err := e.Exchange(c, file, []string{"a"}, gatewayEntry)
	ssetest.Must(t, err)
	ssetest.Must(t, os.WriteFile(file, []byte(strings.Replace(contentOf(t, file), `{"gateway"`, `{"a":{"command":"new"},"gateway"`, 1)), 0o600))
	undone, err := e.Undo(c, file, "")
	ssetest.Must(t, err)
	ssetest.Want(t, "undone", undone, Undone{Removed: []string{"gateway"}, Changed: []string{"a"}})
	ssetest.Want(t, "the file", contentOf(t, file), `{"mcpServers":{"a":{"command":"new"}}}`)
}

// Undo takes back one run, the last one, and then the one before. An entry that somebody has changed since does not keep
// the earlier runs from going back.
func TestUndoTakesBackOneRun(t *testing.T) {
	const before = `{"mcpServers":{"a":{"command":"x"}}}`
	for name, test := range map[string]struct {
		byHand bool
		undone []Undone
	}{
		"as they were left": {false, []Undone{{Removed: []string{"new"}}, {Restored: []string{"a"}, Removed: []string{"gateway"}}}},
		"changed by hand":   {true, []Undone{{Changed: []string{"new"}}, {Restored: []string{"a"}, Removed: []string{"gateway"}}, {Changed: []string{"new"}}}},
	} {
		c, file, dir := named(t, "cursor"), filepath.Join(t.TempDir(), "mcp.json"), t.TempDir()
		ssetest.Must(t, os.WriteFile(file, []byte(before), 0o600))
		monday, tuesday := NewEditor(dir), NewEditor(dir)
		monday.run, tuesday.run = "1", "2"
		_, err := monday.Exchange(c, file, []string{"a"}, gatewayEntry)
		ssetest.Must(t, err)
		_, err = tuesday.Write(c, file, []clients.Server{{Name: "new", URL: address}}, false)
		ssetest.Must(t, err)
		if test.byHand {
			ssetest.Must(t, os.WriteFile(file, []byte(strings.Replace(contentOf(t, file), address, address+"?by=hand", 1)), 0o600))
		}
		for i, want := range test.undone {
			run, _ := monday.RunOf(file, "")
			ssetest.Want(t, name+": the run", run, []string{"2", "1", ""}[i])
			undone, err := NewEditor(dir).Undo(c, file, "")
			ssetest.Must(t, err)
			ssetest.Want(t, name+": undone", undone, want)
		}
		if !test.byHand {
			ssetest.Want(t, name+": the file", contentOf(t, file), before)
		}
	}
}

// An entry of the same name that is not ours is not taken, and nothing changes.
func TestExchangeLeavesTheEntryOfSomebodyElse(t *testing.T) {
	const before = `{"mcpServers":{"a":{"command":"x"},"gateway":{"command":"y"}}}`
	c, file := named(t, "cursor"), filepath.Join(t.TempDir(), "mcp.json")
	ssetest.Must(t, os.WriteFile(file, []byte(before), 0o600))
	_, err := NewEditor(t.TempDir()).Exchange(c, file, []string{"a"}, gatewayEntry)
	if err == nil {
		t.Error("no error")
	}
	ssetest.Want(t, "the file", contentOf(t, file), before)
}
