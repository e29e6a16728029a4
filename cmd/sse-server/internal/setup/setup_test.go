package setup

import (
	"encoding/json"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/mcp-sse/mcp-sse/cmd/sse-server/internal/clitest"
	"github.com/mcp-sse/mcp-sse/cmd/sse-server/internal/config"
	"github.com/mcp-sse/mcp-sse/cmd/sse-server/internal/exit"
	"github.com/mcp-sse/mcp-sse/internal/ssetest"
	"github.com/mcp-sse/mcp-sse/internal/upstream/stdio"
)

// init writes a file that is taken, of what clients have or of a command.
func TestInit(t *testing.T) {
	home := t.TempDir()
	t.Chdir(t.TempDir())
	env := map[string]string{"HOME": home, "KEY": secret}
	p := runWith(t, env, "init")
	p.wantExit(exit.Failure)
	if !strings.Contains(p.log.String(), "give a command, as in: sse-server init -- npx -y") {
		t.Errorf("got %s", p.log.String())
	}
	ssetest.Must(t, os.MkdirAll(home+"/.cursor", 0o700))
	ssetest.Must(t, os.WriteFile(home+"/.cursor/mcp.json", []byte(`{"mcpServers": {
		"My Files": {"command": "npx", "args": ["-y", "@x/server-files", "/data: a"], "env": {"A": "yes"}, "cwd": "/"},
		"files": {"command": "other"}, "my-files": {"command": "npx", "args": ["other"]}, "status": {"command": "x"},
		"web": {"url": "https://web.example.com/mcp", "headers": {"Authorization": "Bearer ${input:key}"}}}}`), 0o600))
	p = runWith(t, env, "init")
	p.wantExit(exit.OK)
	if out := p.out.String(); !strings.HasPrefix(out, "servers.yaml has 5 servers: my-files, files, my-files-2, status-server, web\nSet these variables first: KEY\n") ||
		!strings.HasSuffix(out, "\n    sse-server --config servers.yaml\n\n") {
		t.Errorf("got %s", out)
	}
	c := mustLoad(t, env, "check", "-c", "servers.yaml")
	first := c.Servers[0]
	if strings.Join(argsOf(first), " ") != "-y @x/server-files /data: a" || !slices.Contains(first.Upstream().(stdio.Command).Env, "A=yes") || first.Dir != "/" || c.Servers[4].Remote().Header.Get("Authorization") != "Bearer "+secret {
		t.Errorf("got %q %q %q %v", argsOf(first), first.Env, first.Dir, c.Servers[4].Remote())
	}
	data, _ := os.ReadFile("servers.yaml")
	if !strings.Contains(string(data), "# from "+home+"/.cursor/mcp.json\n") {
		t.Errorf("got\n%s", data)
	}
	p = runWith(t, env, "init")
	p.wantExit(exit.Failure)
	if !strings.Contains(p.log.String(), "servers.yaml is there already") {
		t.Errorf("got %s", p.log.String())
	}
	p = runWith(t, env, "init", "one.yaml", "--", "npx", "-y", "@modelcontextprotocol/server-everything")
	p.wantExit(exit.OK)
	if c := mustLoad(t, env, "check", "-c", "one.yaml"); c.Servers[0].Name != "everything" {
		t.Errorf("got %q", c.Servers[0].Name)
	}
}

// The command check reads the secrets and variables that init has written, with the same meaning. The output of init
// names the secrets that it cannot write.
func TestInitKeepsSecrets(t *testing.T) {
	home := t.TempDir()
	t.Chdir(t.TempDir())
	env := map[string]string{"HOME": home}
	for file, content := range map[string]string{
		home + "/.codex/config.toml": "[mcp_servers.c]\nurl = \"https://c/mcp\"\nbearer_token_env_var = \"C_TOKEN\"\nhttp_headers = {A = \"1\"}\nenv_http_headers = {B = \"B_KEY\"}\ntool_timeout_sec = 5\n",
		".vscode/mcp.json": `{"inputs": [{"type": "promptString", "id": "api-key", "description": "Key of the API"}], "servers": {
			"a": {"command": "x", "args": ["#", "a: b"], "envFile": "${workspaceFolder}/.env", "env": {"KEY": "${input:api-key}", "T": "a\nb"}},
			"b": {"command": "x", "args": ["#", "a: b"], "env": {"KEY": "other"}}}}`,
		".env": "FROM_FILE=1\n",
	} {
		ssetest.Must(t, os.MkdirAll(filepath.Dir(file), 0o700))
		ssetest.Must(t, os.WriteFile(file, []byte(content), 0o600))
	}
	p := runWith(t, env, "init")
	p.wantExit(exit.OK)
	if !strings.Contains(p.out.String(), "servers.yaml has 3 servers: a, b, c\nSet these variables first: API_KEY (Key of the API), C_TOKEN, B_KEY\n") ||
		!strings.Contains(p.log.String(), "config.toml: ignored, as they are the client's own: tool_timeout_sec\n") {
		t.Errorf("got %s%s", p.out.String(), p.log.String())
	}
	c := mustLoad(t, map[string]string{"C_TOKEN": secret, "B_KEY": "2", "API_KEY": "k"}, "check", "-c", "servers.yaml")
	if header := c.Servers[2].Remote().Header; header.Get("Authorization") != "Bearer "+secret || header.Get("A") != "1" || header.Get("B") != "2" {
		t.Errorf("got %v", header)
	}
	if a := c.Servers[0]; strings.Join(argsOf(a), "|") != "#|a: b" || !slices.Contains(envOf(a), "T=a\nb") || !slices.Contains(envOf(a), "FROM_FILE=1") || !slices.Contains(envOf(a), "KEY=k") || len(a.EnvFile) != 2 || !slices.Contains(envOf(c.Servers[1]), "KEY=other") {
		t.Errorf("got %q %q %s", argsOf(a), a.Env, a.EnvFile)
	}
	ssetest.Must(t, os.Remove(".env"))
	p = runWith(t, env, "init", "again.yaml")
	p.wantExit(exit.OK)
	if !strings.Contains(p.log.String(), "sse-server: correct this before you start it: again.yaml:") || !strings.Contains(p.log.String(), "env-file: there is no file ") {
		t.Errorf("got %s", p.log.String())
	}
}

// argsOf returns the arguments of the process of a server.
func argsOf(s *config.Server) []string { return s.Upstream().(stdio.Command).Args }

// envOf returns the environment of the process of a server.
func envOf(s *config.Server) []string { return s.Upstream().(stdio.Command).Env }

// Nothing that may be secret is in the file that init writes into a folder, and the file where it is is for this user
// alone.
func TestInitPutsSecretsIntoTheStateDirectory(t *testing.T) {
	home := t.TempDir()
	t.Chdir(t.TempDir())
	ssetest.Must(t, os.WriteFile(".mcp.json", []byte(`{"mcpServers": {
		"gh": {"command": "true", "args": ["--token", "`+secret+`"], "env": {"GITHUB_TOKEN": "`+secret+`", "MODE": "${MODE:-fast}"}},
		"web": {"url": "https://web.example/mcp", "headers": {"Authorization": "Bearer `+secret+`", "X": "${AWS_SECRET}", "Y": "${file:/etc/hostname}"}}}}`), 0o600))
	env := map[string]string{"HOME": home, "AWS_SECRET": "of the user"}
	p := runWith(t, env, "init")
	p.wantExit(exit.OK)
	data, err := os.ReadFile("servers.yaml")
	ssetest.Must(t, err)
	if strings.Contains(string(data), secret) || !strings.Contains(string(data), "${MODE:-fast}") {
		t.Errorf("got\n%s", data)
	}
	ssetest.WantText(t, "what it says", p.log.String(), "web: the variable AWS_SECRET would be sent to web.example because .mcp.json says so")
	files, err := filepath.Glob(filepath.Join(home, ".local", "state", "sse-server", "env", "*.env"))
	ssetest.Must(t, err)
	ssetest.Want(t, "env-files", len(files), 2)
	for _, file := range files {
		info, err := os.Stat(file)
		ssetest.Must(t, err)
		ssetest.Want(t, "the mode of an env-file", info.Mode().Perm(), os.FileMode(0o600))
	}
	c := mustLoad(t, env, "check", "-c", "servers.yaml")
	if all := envOf(c.Servers[0]); !slices.Contains(all, "GITHUB_TOKEN="+secret) || !slices.Contains(all, "MODE=fast") || argsOf(c.Servers[0])[1] != secret {
		t.Errorf("got %q", c.Servers[0].Upstream())
	}
	if header := c.Servers[1].Remote().Header; header.Get("Authorization") != "Bearer "+secret || header.Get("X") != "${AWS_SECRET}" || header.Get("Y") != "${file:/etc/hostname}" {
		t.Errorf("got %v", header)
	}
	// A file that somebody else makes meanwhile is not replaced.
	_, err = os.Stat("servers.yaml")
	ssetest.Must(t, err)
	err = writeMade("servers.yaml", config.File{Data: []byte("x")})
	if again, _ := os.ReadFile("servers.yaml"); err == nil || string(again) != string(data) {
		t.Errorf("got %v\n%s", err, again)
	}
	// With the name, it is sent.
	runWith(t, env, "init", "named.yaml", "--expand", "AWS_SECRET").wantExit(exit.OK)
	if header := mustLoad(t, env, "check", "-c", "named.yaml").Servers[1].Remote().Header; header.Get("X") != "of the user" {
		t.Errorf("with --expand: got %v", header)
	}
}

// A file that init has written keeps its values wherever it is moved, also when init writes another one of that name.
func TestInitLeavesTheValuesOfAnEarlierFile(t *testing.T) {
	home := t.TempDir()
	t.Chdir(t.TempDir())
	for _, value := range []string{"first", "second"} {
		p := runWith(t, map[string]string{"HOME": home}, "init", "--env", "TOKEN="+value, "--", "true")
		p.wantExit(exit.OK)
		ssetest.Must(t, os.Rename("servers.yaml", value+".yaml"))
	}
	for _, value := range []string{"first", "second"} {
		if c := mustLoad(t, nil, "check", "--config", value+".yaml"); !slices.Contains(envOf(c.Servers[0]), "TOKEN="+value) {
			t.Errorf("%s.yaml has another value", value)
		}
	}
}

// init names each program that is not there, as check does.
func TestInitNamesProgramsThatAreMissing(t *testing.T) {
	t.Chdir(t.TempDir())
	ssetest.Must(t, os.WriteFile(".mcp.json", []byte(`{"mcpServers": {"a": {"command": "no-such-server-xyz"}, "b": {"command": "true"}, "c": {"command": "C:\\x\\srv.exe"}}}`), 0o600))
	p := runWith(t, map[string]string{"HOME": t.TempDir()}, "init")
	p.wantExit(exit.OK)
	for _, want := range []string{
		`sse-server: correct this before you start it: servers.yaml:5:7: command: start "no-such-server-xyz": there is no such program in PATH`,
		`sse-server: correct this before you start it: servers.yaml:13:7: command: it is a path of Windows`,
	} {
		if !strings.Contains(p.log.String(), want) {
			t.Errorf("got %s, want %s", p.log.String(), want)
		}
	}
	if strings.Count(p.log.String(), "correct this") != 2 {
		t.Errorf("got %s", p.log.String())
	}
}

// init leaves out what leads to the sse-server that it writes the file for, such as what connect has written,
// and says so. Of a program sse-server stdio it takes the server behind it.
func TestInitLeavesItselfOut(t *testing.T) {
	home, project := t.TempDir(), t.TempDir()
	t.Chdir(project)
	env := map[string]string{"HOME": home}
	for _, client := range []string{"cursor", "claude-desktop", "codex"} {
		runWith(t, env, "connect", client, "--write", "--name", "of-"+client, "--", "npx", "-y", "x").wantExit(exit.OK)
	}
	p := runWith(t, env, "init")
	p.wantExit(exit.Failure)
	runWith(t, env, "connect", "cursor", "--file", home+"/.cursor/mcp.json", "--name", "of-desk").wantExit(exit.OK)
	t.Chdir(home) // where the file of the project is that of the user
	if at := runWith(t, env, "init"); strings.Count(at.out.String(), "of-desk of ") != 1 {
		t.Errorf("got %s", at.out.String())
	}
	t.Chdir(project)
	if !strings.Contains(p.out.String(), "Left out, as they lead to sse-server itself (with another --addr what is at this one is taken): of-cursor of .cursor/mcp.json, of-claude-desktop of ") ||
		!strings.Contains(p.out.String(), "of-codex of ") || !strings.Contains(p.log.String(), "has a server that can be served") {
		t.Errorf("got %s%s", p.out.String(), p.log.String())
	}
	ssetest.Must(t, os.WriteFile(".mcp.json", []byte(`{"mcpServers": {
		"path": {"url": "http://localhost:8080/docs/mcp"}, "any": {"url": "http://0.0.0.0:8080/sse"}, "shared": {"command": "sse-server", "args": ["stdio", "--connect", "http://127.0.0.1:9/mcp", "--", "x"]},
		"bare": {"command": "/opt/sse-server.exe"}, "file": {"command": "sse-server", "args": ["stdio", "-c", "gw.yaml"]}, "remote": {"command": "npx", "args": ["-y", "mcp-remote", "http://127.0.0.1:8080/mcp"]},
		"other": {"url": "http://127.0.0.1:9000/mcp"},
		"docs": {"command": "sse-server", "args": ["stdio", "--env", "B=2", "--", "npx", "-y", "docs"], "env": {"A": "1"}},
		"far": {"command": "sse-server", "args": ["stdio", "--url", "https://far.example.com/mcp", "--header", "Authorization: Bearer ${TOKEN}"], "env": {"TOKEN": "`+secret+`"}}}}`), 0o600))
	p = runWith(t, env, "init")
	p.wantExit(exit.OK)
	out := p.out.String()
	for _, name := range []string{"path", "any", "bare", "file", "remote"} {
		if !strings.Contains(out, name+" of .mcp.json") {
			t.Errorf("%s is not named in %s", name, out)
		}
	}
	if !strings.Contains(out, "servers.yaml has 4 servers: docs, far, other, shared\n") {
		t.Errorf("got %s", out)
	}
	p = runWith(t, env, "init", "elsewhere.yaml", "--addr", "127.0.0.1:9000")
	p.wantExit(exit.OK)
	if out := p.out.String(); !strings.Contains(out, "other of .mcp.json") || strings.Contains(out, "path of .mcp.json") || !strings.Contains(out, "    sse-server --addr 127.0.0.1:9000 --config elsewhere.yaml\n") {
		t.Errorf("for another address: got %s", out)
	}
	c := mustLoad(t, env, "check", "-c", "servers.yaml")
	if docs := c.Servers[0]; strings.Join(docs.Command, " ") != "npx -y docs" || !slices.Contains(envOf(docs), "A=1") || !slices.Contains(envOf(docs), "B=2") {
		t.Errorf("got %q %q", docs.Command, envOf(docs))
	}
	if far := c.Servers[1].Remote(); far.Address != "https://far.example.com/mcp" || far.Header.Get("Authorization") != "Bearer "+secret {
		t.Errorf("got %v", far)
	}
}

// A program with a window starts sse-server by its path.
func TestEntriesHaveThePathOfTheProgram(t *testing.T) {
	for self, want := range map[string]string{"/opt/my tools/sse-server": "/opt/my tools/sse-server", "/tmp/go-build42/b001/exe/sse-server": "sse-server"} {
		if got := ourselves(self, nil); got != want {
			t.Errorf("%s: got %s, want %s", self, got, want)
		}
	}
	if got := ourselves("", os.ErrNotExist); got != "sse-server" {
		t.Errorf("without a path: got %s", got)
	}
}

// The command in the documentation makes the entry below it.
func TestDocsOfConnectAreTrue(t *testing.T) {
	docs := clitest.Must(os.ReadFile("../../../../docs/clients.md"))
	found := regexp.MustCompile("(?m)^    sse-server (connect .*) --write\n\n```json\n(.*)\n").FindSubmatch(docs)
	if found == nil {
		t.Fatal("docs/clients.md has no command")
	}
	p := runWith(t, nil, strings.Fields(string(found[1]))...)
	p.wantExit(exit.OK)
	var want, got struct{ MCPServers map[string]any }
	ssetest.Must(t, json.Unmarshal(found[2], &want))
	ssetest.Must(t, json.Unmarshal(p.out.Bytes(), &got))
	if !slices.Equal(slices.Collect(maps.Keys(got.MCPServers)), slices.Collect(maps.Keys(want.MCPServers))) {
		t.Errorf("got %s, documented as %s", p.out.String(), found[2])
	}
}

// connect prints the entry of a client, or writes it.
func TestConnectAClient(t *testing.T) {
	home := t.TempDir()
	t.Chdir(t.TempDir())
	env := map[string]string{"HOME": home}
	file := filepath.Join(home, "mcp.json")
	several := clitest.WriteFile(t, "gw.yaml", "servers: {docs: {}, files: {}}\nviews: {}\n")
	more := clitest.WriteFile(t, "gw.yaml", "servers: {docs: {}, files: {}, web: {}}\nviews: {}\n")
	together := clitest.WriteFile(t, "gw.yaml", "servers: {docs: {}, files: {}, web: {}}\n")
	for _, test := range []struct {
		args     []string
		code     int
		out, log string
	}{
		{[]string{"connect", "cursor", "--", "npx", "-y", "server-docs"}, exit.OK, `"url": "http://127.0.0.1:8080/mcp"`, "--write adds it to"},
		{[]string{"connect", "Claude Code", "--name", "mine", "--addr", "0.0.0.0:9", "--insecure"}, exit.OK, "claude mcp add --scope user --transport http mine http://localhost:9/mcp\n", ""},
		{[]string{"connect", "vscode", "--url", "https://gw.example.com/docs/mcp"}, exit.OK, `"url": "https://gw.example.com/docs/mcp"`, ""},
		{[]string{"connect", "cursor", "--file", file}, exit.OK, "Added demo to " + file + ". Restart Cursor.\n", ""},
		{[]string{"connect", "cursor", "--file", file}, exit.OK, "Already in " + file + ": demo.\n", ""},
		{[]string{"connect", "cursor", "--file", file, "-c", several}, exit.OK, "Added docs, files to " + file + ". Restart Cursor.\n", ""},
		{[]string{"connect", "cursor", "--file", file, "-c", more}, exit.OK, "Already in " + file + ": docs, files.\nAdded web to " + file + ". Restart Cursor.\n", ""},
		{[]string{"connect", "cursor", "--file", file, "-c", together}, exit.OK, "Added mcp to " + file + ". Restart Cursor.\n", ""},
		{[]string{"connect", "cursor", "--file", file, "--replace", "-c", together}, exit.OK, "Already in " + file + ": docs, files, web.\n", ""},
		{[]string{"connect", "claude-code", "--write"}, exit.OK, "Added demo to .mcp.json. Restart Claude Code, and approve the server there.\n", ""},
		{[]string{"connect", "claude-code", "--file", filepath.Join(home, ".claude.json")}, exit.OK, "Added demo to " + filepath.Join(home, ".claude.json") + ". Restart Claude Code.\n", ""},
		{[]string{"connect", "continue", "--write"}, exit.OK, "Added demo to " + filepath.Join(home, ".continue", "config.yaml") + ". Restart Continue.\n", ""},
		{[]string{"connect", "continue"}, exit.OK, "mcpServers:\n  - name: \"demo\"\n", "--write adds it to " + filepath.Join(home, ".continue", "config.yaml")},
		{[]string{"init"}, exit.Failure, "", "no client of this user or folder has a server that can be served"}, // YAML is not read, nor are entries of ourselves
		{[]string{"connect", "inspector", "--write"}, exit.Config, "", "nothing is written for Inspector: put what sse-server connect inspector prints into a terminal"},
		{[]string{"connect", "cursor", "--url", "http://gw.example.com/docs/mcp"}, exit.OK, "\"docs\": {\n      \"url\": \"http://gw.example.com/docs/mcp\"\n", "or open cursor://anysphere.cursor-deeplink/mcp/install?name=docs&config="},
		{[]string{"connect", "cursor", "--url", "http://127.0.0.1:8080/mcp"}, exit.OK, `"mcp-8080": {`, ""},
		{[]string{"connect", "cursor", "--url", "http://127.0.0.1:8080"}, exit.OK, `"url": "http://127.0.0.1:8080"`, "the URL has no path: that of an sse-server ends with /mcp, as in: --url http://127.0.0.1:8080/mcp\n"},
		{[]string{"connect", "cursor", "--url", "http://127.0.0.1:8080/docs/sse", "--name", "mine"}, exit.OK, `"mine": {`, ""},
		{[]string{"connect", "cursor", "--url", "http://ada:pw@127.0.0.1:8080/mcp?k=1", "--header", "X-Key: 1"}, exit.OK, `"url": "http://127.0.0.1:8080/mcp"`,
			"left out, as it may be secret: user and password, the query, headers (X-Key)"},
		{[]string{"connect", "cursor", "--write", "--url", "https://mcp.example.com/0123456789abcdef0123456789abcdef0123456789abcdef/mcp"}, exit.Config, "", "the URL has a part that may be secret, which is not written"},
		{[]string{"connect", "curl", "--no-auto-initialize"}, exit.Failure, "", "demo: A request of curl would need a session"},
		{[]string{"connect", "cursor", "--name", "x", "--url", "http://h/TOKEN/mcp"}, exit.OK, "/TOKEN/mcp", "sse-server: --write adds it"},
		{[]string{"connect", "curl"}, exit.OK, "curl http://127.0.0.1:8080/mcp -H", ""},
		{[]string{"connect", "codex"}, exit.OK, "[mcp_servers.demo]\n", "sse-server: this is the entry of the demo server: give the options with which your sse-server serves, such as --config FILE\n"},
		{[]string{"connect", "codex", "-c", together}, exit.OK, "[mcp_servers.mcp]\nurl = \"http://127.0.0.1:8080/mcp\"\n", ""},
		{[]string{"connect"}, exit.Config, "", "connect: name a client: claude-code, "},
		{[]string{"connect", "netscape"}, exit.Config, "", `no entry is known of "netscape": want one of claude-code, `},
		{[]string{"connect", "claude"}, exit.Config, "", `no entry is known of "claude", did you mean "claude-code"? want one of `},
		{[]string{"connect", "cursor", "nope"}, exit.Config, "", `there is no server "nope": want one of demo`},
		{[]string{"connect", "cursor", "--addr", "127.0.0.1:0"}, exit.Config, "", "port 0 is another one each time"},
	} {
		p := runWith(t, env, test.args...)
		p.wantExit(test.code)
		if !strings.Contains(p.out.String(), test.out) || !strings.Contains(p.log.String(), test.log) {
			t.Errorf("%q: got %s%s", test.args, p.out.String(), p.log.String())
		}
	}
	if data, err := os.ReadFile(filepath.Join(home, ".continue", "config.yaml")); err != nil || !strings.Contains(string(data), `url: "http://127.0.0.1:8080/mcp"`) {
		t.Errorf("Continue's file has %s (%v)", data, err)
	}
	ssetest.Must(t, os.Link(file, file+".bak"))
	p := runWith(t, env, "connect", "cursor", "--file", file, "--addr", "127.0.0.1:9")
	p.wantExit(exit.OK)
	if out := p.out.String(); !strings.Contains(out, "Replaced demo in "+file+", as it had another URL. Restart Cursor.\n") || !strings.Contains(out, file+" had more names (hard links). They keep what it had") {
		t.Errorf("got %s", out)
	}
	if data, err := os.ReadFile(file); err != nil || !strings.Contains(string(data), `"demo"`) {
		t.Errorf("the file has %s (%v)", data, err)
	}
}

// A name after the client chooses one of several servers.
func TestConnectChoosesAServer(t *testing.T) {
	t.Chdir(t.TempDir())
	several := clitest.WriteFile(t, "gw.yaml", "servers: {docs: {}, files: {}}\n")
	for name, other := range map[string]string{"docs": "files", "files": "docs"} {
		p := runWith(t, map[string]string{"HOME": t.TempDir()}, "connect", "cursor", name, "-c", several)
		p.wantExit(exit.OK)
		if out := p.out.String(); !strings.Contains(out, `"url": "http://127.0.0.1:8080/`+name+`/mcp"`) || strings.Contains(out, other) {
			t.Errorf("connect cursor %s: got %s", name, out)
		}
	}
	p := runWith(t, map[string]string{"HOME": t.TempDir()}, "connect", "cursor", "web", "-c", several)
	p.wantExit(exit.Config)
	if !strings.Contains(p.log.String(), `there is no server "web": want one of mcp, docs, files`) {
		t.Errorf("got %s", p.log.String())
	}
}

// The way that everyone walks: what a client has is served, and the client gets it from there. It goes back, too.
func TestInitThenConnectThenUndo(t *testing.T) {
	home := t.TempDir()
	t.Chdir(t.TempDir())
	env := map[string]string{"HOME": home}
	const before = `{"mcpServers": {"everything": {"command": "npx", "args": ["-y", "everything"], "env": {"A": "1"}}}}`
	ssetest.Must(t, os.MkdirAll(".cursor", 0o700))
	ssetest.Must(t, os.WriteFile(".cursor/mcp.json", []byte(before), 0o600))
	for _, step := range []struct {
		args     []string
		code     int
		out, log string
	}{
		{[]string{"init"}, exit.OK, "servers.yaml has 1 server: everything", ""},
		{[]string{"connect", "cursor", "--write", "-c", "servers.yaml"}, exit.Failure, "", "it has a server everything with args, command, env: --replace takes it over, or give another --name"},
		{[]string{"connect", "cursor", "--replace", "-c", "servers.yaml"}, exit.Config, "", "--replace: has no effect without --write"},
		{[]string{"connect", "cursor", "--undo", "--write", "-c", "servers.yaml"}, exit.Config, "", "--undo: not with --write"},
		{[]string{"connect", "cursor", "--write", "--replace", "-c", "servers.yaml"}, exit.OK, "Took over everything in .cursor/mcp.json. Restart Cursor. sse-server connect cursor --undo restores", ""},
		{[]string{"connect", "cursor", "nope", "--undo"}, exit.Failure, "", "sse-server has changed nothing in it that could be restored"},
		{[]string{"connect", "cursor", "--undo"}, exit.OK, "Restored everything in .cursor/mcp.json. Restart Cursor.", ""},
		{[]string{"connect", "cursor", "--undo"}, exit.Failure, "", "changed nothing in it"},
	} {
		p := runWith(t, env, step.args...)
		p.wantExit(step.code)
		if !strings.Contains(p.out.String(), step.out) || !strings.Contains(p.log.String(), step.log) {
			t.Errorf("%q: got %s%s", step.args, p.out.String(), p.log.String())
		}
	}
	data, err := os.ReadFile(".cursor/mcp.json")
	ssetest.Must(t, err)
	ssetest.Want(t, "the file", string(data), before)
	p := runWith(t, nil, "connect", "cursor", "--file", "mcp.json")
	p.wantExit(exit.Config)
	ssetest.WantText(t, "without a state directory", p.log.String(), "there is no place for what the file has now")
}

// npx starts the program that is in its cache, which may go away. Before there is a package of npm, nothing says npx.
func TestEntriesHaveNPXForItsCache(t *testing.T) {
	const inCache = "/home/me/.npm/_npx/0a1b/node_modules/@mcp-sse/linux-x64/bin/sse-server"
	const installed = "/usr/lib/node_modules/mcp-sse/node_modules/@mcp-sse/linux-x64/bin/sse-server"
	for _, test := range []struct{ path, npmPackage, want string }{
		{"/usr/bin/sse-server", "mcp-sse", "/usr/bin/sse-server"},
		{installed, "mcp-sse", installed},
		{inCache, "", inCache},
		{inCache, "mcp-sse", "npx -y mcp-sse"},
	} {
		program, args := startedBy(test.path, test.npmPackage)
		ssetest.Want(t, test.path, strings.Join(append([]string{program}, args...), " "), test.want)
	}
}
