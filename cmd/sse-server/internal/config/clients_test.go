package config

import (
	"fmt"
	"reflect"
	"strings"
	"testing"

	"github.com/mcp-sse/mcp-sse/cmd/sse-server/internal/clitest"
	"github.com/mcp-sse/mcp-sse/upstream"
)

// The file of a client is taken as the client has it.
func TestFilesOfClients(t *testing.T) {
	path := clitest.WriteFile(t, "claude_desktop_config.json", "\ufeff"+`{
	"globalShortcut": "",
	"mcpServers": {
		"File System": {"command": "npx", "args": ["-y", "files", 1.10], "env": {"DEBUG": true, "KEY": "${env:KEY}"}, "cwd": "/",
			"disabled": false, "autoApprove": [], "timeout": 60},
		"GitHub.com": {"type": "streamable-http", "url": "https://a/mcp", "headers": {"Authorization": "Bearer ${TOKEN}"}, "args": null,
			"env": {"A": "b"}, "alwaysAllow": ["x"]},
		"cursor": {"url": "https://b/sse", "headers": {"Authorization": "${env:TOKEN}"}},
		"off": {"command": "x", "disabled": true},
		"`+strings.Repeat("a", 80)+`": {"command": "x", "sessions": "shared"}
	}
}`)
	c := mustLoad(t, map[string]string{"TOKEN": secret}, "--config", path)
	var got []string
	for _, s := range c.Each() {
		got = append(got, fmt.Sprintf("%s %s %q %q %s %s", s.Name, s.Kind(), s.Command, s.Env, s.Dir, s.Sessions))
	}
	want := []string{
		`file-system command ["npx" "-y" "files" "1.10"] ["DEBUG=true" "KEY=${env:KEY}"] / per-connection`,
		`github-com url [] []  per-connection`,
		`cursor url [] []  per-connection`,
		strings.Repeat("a", 64) + ` command ["x"] []  shared`,
	}
	if !reflect.DeepEqual(got, want) {
		t.Errorf("got %q\nwant %q", got, want)
	}
	for i, header := range map[int]string{1: "Bearer " + secret, 2: secret} {
		if remote := c.Servers[i].Upstream().(upstream.URL); remote.Header.Get("Authorization") != header {
			t.Errorf("%s: the header is %q", c.Servers[i].Name, remote.Header)
		}
	}
	wanted := []string{
		path + ":4:3: mcpServers.File System: ${…} is replaced only in url and headers",
		path + ": ignored, as they are the client's own: alwaysAllow, autoApprove, env, globalShortcut, timeout",
	}
	if !reflect.DeepEqual(c.Warnings, wanted) {
		t.Errorf("got the warnings %q\nwant %q", c.Warnings, wanted)
	}
	path = clitest.WriteFile(t, "gw.yaml", "addr: 127.0.0.1:0\nservers: {demo: {}}\nmcpServers:\n  docs: {command: x}\n")
	if c = mustLoad(t, nil, "-c", path); len(c.Servers) != 2 || c.Servers[1].Name != "docs" {
		t.Errorf("in YAML: got %+v", c.Servers)
	}
	mustLoad(t, nil, "stdio", "-c", clitest.WriteFile(t, "one.json", `{"mcpServers": {"a": {"command": "x"}}}`))
	wantRefusal(t, nil, "stdio serves one server", "stdio", "-c", path)
	wantRefusal(t, nil, `unknown key "oath"`, "-c", clitest.WriteFile(t, "typo.yaml", "oath: {}\nmcpServers: {docs: {command: x}}\n"))
}

// The files of other programs are taken too, with comments and commas after the last member.
func TestFilesOfOtherPrograms(t *testing.T) {
	for name, test := range map[string]struct {
		file, content string
		want          string // of all servers
		warning       string // a part of the only one; empty: there is none
	}{
		"VS Code": {"mcp.json", `{
	// from the docs
	"inputs": [{"id": "token"}],
	"servers": {
		"docs": {"type": "stdio", "command": "npx", "args": ["-y", "pkg"], "dev": {}},
		"web": {"type": "http", "url": "https://a/mcp"},
	}
}`, `docs ["npx" "-y" "pkg"] ; web [] https://a/mcp`, "ignored, as they are the client's own: dev, inputs"},
		"Zed": {"settings.json", `{"theme": "x", "context_servers": {"docs": {"source": "custom", "command": "npx", "args": ["pkg"], "env": {}}}}`,
			`docs ["npx" "pkg"] `, "ignored, as they are the client's own: source, theme"},
		"older Zed": {"settings.json", `{"context_servers": {"docs": {"command": {"path": "npx", "args": ["pkg"], "env": {}}, "settings": {}}}}`,
			`docs ["npx" "pkg"] `, "ignored, as they are the client's own: settings"},
		"arguments apart":          {"gw.yaml", "command: npx\nargs: [-y, pkg]\n", ` ["npx" "-y" "pkg"] `, ""},
		"switched off":             {"mcp.json", `{"mcpServers": {"off": {"command": "x", "enabled": false}, "on": {"command": "x", "enabled": true}}}`, `on ["x"] `, ""},
		"Windsurf":                 {"mcp_config.json", `{"mcpServers": {"web": {"serverUrl": "https://a/mcp", "headers": {"A": "b"}}}}`, `web [] https://a/mcp`, ""},
		"Gemini CLI":               {"settings.json", `{"mcpServers": {"web": {"httpUrl": "https://a/mcp"}}}`, `web [] https://a/mcp`, ""},
		"two URLs":                 {"settings.json", `{"mcpServers": {"web": {"httpUrl": "https://a/mcp", "url": "https://a/sse"}}}`, `web [] https://a/sse`, ""},
		"a wrong type":             {"mcp.json", `{"mcpServers": {"docs": {"type": "http", "command": "x"}}}`, `docs ["x"] `, `mcp.json:1:34: type: http is ignored, as there is a command`},
		"a wrong type of an entry": {"gw.yaml", "servers:\n  a: {type: http, command: [x]}\n", `a ["x"] `, `gw.yaml:2:13: type: http is ignored, as there is a command`},
		"a wrong type of a URL":    {"gw.yaml", "type: stdio\nurl: https://a/mcp\n", ` [] https://a/mcp`, `gw.yaml:1:7: type: stdio is ignored, as there is a url`},
		"an entry": {"gw.yaml", "servers:\n  a: {command: npx, args: [pkg], cwd: /, type: stdio}\n  b: {type: http, url: https://a/mcp, headers: {A: b}}\n",
			`a ["npx" "pkg"] ; b [] https://a/mcp`, ""},
	} {
		t.Run(name, func(t *testing.T) {
			c := mustLoad(t, nil, "-c", clitest.WriteFile(t, test.file, test.content))
			var got []string
			for _, s := range c.Each() {
				got = append(got, fmt.Sprintf("%s %q %s", s.Name, s.Command, s.URL))
			}
			if strings.Join(got, "; ") != test.want {
				t.Errorf("got %q, want %s", got, test.want)
			}
			if len(c.Warnings) > 1 || test.warning == "" && len(c.Warnings) > 0 || !strings.Contains(strings.Join(c.Warnings, ""), test.warning) {
				t.Errorf("got the warnings %q, want %q", c.Warnings, test.warning)
			}
		})
	}
}

// A file that is told apart by sight but not taken leads to init, which reads it.
func TestFilesThatInitReads(t *testing.T) {
	for name, content := range map[string]string{
		"opencode.json": `{"$schema": "https://opencode.ai/config.json", "mcp": {"docs": {"type": "local", "command": ["x"], "enabled": true}}}`,
		"config.toml":   "model = \"x\"\n\n[mcp_servers.docs]\ncommand = \"x\"\n",
	} {
		wantRefusal(t, nil, "sse-server init reads those of opencode and Codex", "-c", clitest.WriteFile(t, name, content))
	}
}
