package clientfile_test

import (
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/goccy/go-yaml"
	"github.com/pelletier/go-toml/v2"
	"github.com/tailscale/hujson"

	"github.com/mcp-sse/mcp-sse/cmd/sse-server/internal/clientfile"
	"github.com/mcp-sse/mcp-sse/internal/clients"
)

const url = "http://127.0.0.1:8080/mcp"

// All else in a file stays, comments too.
func TestWrite(t *testing.T) {
	servers := []clients.Server{{Name: "docs", URL: url}, {Name: "b", URL: url + "2"}}
	for _, c := range clients.WithEntry() {
		files := clientfile.Files(c.Entry, "/home/ada")
		file := filepath.Join(t.TempDir(), "new", "file")
		if _, err := clientfile.NewEditor(t.TempDir()).Write(c, file, servers, false); (err == nil) != (c.Entry.Key != "") {
			t.Errorf("%s, with the files %q: got %v", c.Name, files, err)
		}
		if len(files) == 0 {
			continue
		}
		data, err := os.ReadFile(file)
		var any map[string]any
		switch c.Name {
		case "codex":
			err = toml.Unmarshal(data, &any)
		case "continue":
			err = yaml.Unmarshal(data, &any)
		default:
			err = errors.Join(err, json.Unmarshal(data, &any))
		}
		if err != nil || len(any) != 1 || !strings.Contains(string(data), url+"2") {
			t.Errorf("%s: got %v\n%s", c.Name, err, data)
		}
	}
	cursor, _ := clients.Named("cursor")
	file := filepath.Join(t.TempDir(), "mcp.json")
	before := "{\n  // mine\n  \"mcpServers\": {\"a\": {\"command\": \"x\"}, \"docs\": {\"url\": \"old\"}},\n  \"theme\": 1,\n}\n"
	write(t, file, before)
	if err := os.Chmod(file, 0o644); err != nil {
		t.Fatal(err)
	}
	all := append([]clients.Server{{Name: "c", URL: url}}, servers...)
	if err := os.WriteFile(file, []byte(strings.Replace(before, `"a":`, `"c": {"url": "`+url+`"}, "a":`, 1)), 0o644); err != nil {
		t.Fatal(err)
	}
	written, err := clientfile.NewEditor(t.TempDir()).Write(cursor, file, all, false)
	if want := (clientfile.Result{Added: []string{"b"}, Same: []string{"c"}, Replaced: []string{"docs"}}); err != nil || !reflect.DeepEqual(written, want) {
		t.Fatalf("got %+v (%v), want %+v", written, err, want)
	}
	data := read(t, file)
	plain, _ := hujson.Standardize([]byte(data))
	var got struct {
		MCPServers map[string]map[string]string
		Theme      int
	}
	if err := json.Unmarshal(plain, &got); err != nil || len(got.MCPServers) != 4 || got.MCPServers["docs"]["url"] != url || got.MCPServers["a"]["command"] != "x" || got.Theme != 1 || !strings.Contains(data, "// mine") {
		t.Errorf("got %v\n%s", err, data)
	}
	if info, _ := os.Stat(file); info.Mode().Perm() != 0o644 {
		t.Errorf("the mode is %v", info.Mode())
	}
	write(t, file, "no JSON")
	if _, err := clientfile.NewEditor(t.TempDir()).Write(cursor, file, servers, false); err == nil || read(t, file) != "no JSON" {
		t.Errorf("what is no JSON: got %v\n%s", err, read(t, file))
	}
	codex, _ := clients.Named("codex")
	file = filepath.Join(t.TempDir(), "config.toml")
	write(t, file, "model = \"x\"\n[mcp_servers.docs]\nurl = \"y\"\n")
	if _, err := clientfile.NewEditor(t.TempDir()).Write(codex, file, servers, false); err == nil || !strings.Contains(err.Error(), "it has a server docs already") {
		t.Errorf("got %v", err)
	}
	for range 2 { // the same again is no fault
		if _, err := clientfile.NewEditor(t.TempDir()).Write(codex, file, servers[1:], false); err != nil {
			t.Errorf("got %v", err)
		}
	}
	if _, err := clientfile.NewEditor(t.TempDir()).Write(codex, file, []clients.Server{{Name: "b", URL: url + "2", Token: true}}, false); err == nil || !strings.Contains(err.Error(), "with another bearer_token_env_var") {
		t.Errorf("with a token: got %v", err)
	}
	if _, err := clientfile.NewEditor(t.TempDir()).Write(codex, file, []clients.Server{{Name: "b", URL: url + "2"}, {Name: "c", URL: url}}, false); err != nil || strings.Count(read(t, file), "[mcp_servers.b]") != 1 || !strings.HasSuffix(read(t, file), "\n\n[mcp_servers.c]\nurl = \""+url+"\"\n") {
		t.Errorf("got %v\n%s", err, read(t, file))
	}
	write(t, file, "model = \"x\"\n")
	if _, err := clientfile.NewEditor(t.TempDir()).Write(codex, file, servers[1:], false); err != nil || !strings.HasPrefix(read(t, file), "model = \"x\"\n") || !strings.HasSuffix(read(t, file), "\n\n[mcp_servers.b]\nurl = \""+url+"2\"\n") {
		t.Errorf("got %v\n%s", err, read(t, file))
	}
}

// The servers of each client are found, but for those that are off.
func TestFind(t *testing.T) {
	home := t.TempDir()
	t.Chdir(t.TempDir())
	write(t, ".mcp.json", `{"mcpServers": {"a": {"command": "npx", "args": ["-y", "a"]}, "off": {"command": "x", "disabled": true}, "empty": {"command": "", "args": [], "url": ""}}}`)
	write(t, ".vscode/mcp.json", `{"inputs": [], "servers": {"b": {"type": "http", "url": "https://b", "headers": {"K": "${input:key}"}}}}`)
	write(t, home+"/.claude.json", `{"numStartups": 3, "mcpServers": {"c": {"type": "stdio", "command": "c", "env": {"A": "1"}}}}`)
	write(t, home+"/.config/zed/settings.json", "// Zed\n{\"ui_font_size\": 16, \"context_servers\": {\"d\": {\"source\": \"custom\", \"command\": \"d\", \"args\": []}, \"odd\": {\"command\": {}}, \"old\": {\"command\": {\"path\": \"d\", \"args\": [\"--x\"], \"env\": {\"K\": \"1\"}}, \"settings\": {}}},}")
	write(t, home+"/.codex/config.toml", "model = \"x\"\n[mcp_servers.e]\ncommand = \"e\"\nargs = [\"1\"]\n[mcp_servers.e.env]\nB = \"2\"\n")
	write(t, "opencode.json", `{"mcp": {"o": {"type": "local", "command": ["npx", "o"], "environment": {"K": "{env:KEY}"}, "enabled": true}}}`)
	write(t, home+"/.gemini/settings.json", `{"mcpServers": {"f": {"httpUrl": "https://f"}}}`)
	write(t, home+"/.cursor/mcp.json", `{`)
	all, err := clientfile.Find(home)
	var names []string
	for _, f := range all {
		names = append(names, f.Name+" "+strings.Join(f.Command, " ")+f.URL)
	}
	if want := []string{"a npx -y a", "o npx o", "b https://b", "c c", "e e 1", "f https://f", "d d", "old d --x"}; !slices.Equal(names, want) {
		t.Errorf("got %q, want %q", names, want)
	}
	if i := slices.IndexFunc(all, func(f clientfile.Found) bool { return f.Name == "o" }); i < 0 || all[i].Env["K"] != "${KEY}" {
		t.Errorf("of opencode: got %+v", all)
	}
	if want := ".mcp.json: off: it is disabled in the file\n" + home + "/.cursor/mcp.json: it is not valid JSON"; err == nil || err.Error() != want {
		t.Errorf("got the error %v, want %s", err, want)
	}
}

// Of the servers that Claude Code has for single projects, those of this folder are found. The servers of other
// projects are named with their folder.
func TestFindInProjects(t *testing.T) {
	home, folder, link := t.TempDir(), t.TempDir(), filepath.Join(t.TempDir(), "link")
	if err := os.Symlink(folder, link); err != nil {
		t.Fatal(err)
	}
	t.Chdir(folder)
	content, err := json.Marshal(map[string]any{
		"mcpServers": map[string]any{"user": map[string]any{"command": "u"}},
		"projects": map[string]any{
			link:          map[string]any{"history": []string{"x"}, "mcpServers": map[string]any{"local": map[string]any{"type": "stdio", "command": "l"}, "odd": map[string]any{"command": 1.5, "args": "x"}}},
			"/elsewhere":  map[string]any{"mcpServers": map[string]any{"a": map[string]any{"command": "a"}, "b": map[string]any{"url": "http://b"}}},
			"/no/servers": map[string]any{"mcpServers": map[string]any{}, "allowedTools": []string{}},
			"/no/object":  1,
			".":           map[string]any{"mcpServers": map[string]any{"relative": map[string]any{"command": "r"}}},
		},
	})
	if err != nil {
		t.Fatal(err)
	}
	write(t, home+"/.claude.json", string(content))
	write(t, ".mcp.json", `{"mcpServers": {"shared": {"command": "s"}}}`)
	all, err := clientfile.Find(home)
	var names []string
	for _, f := range all {
		names = append(names, f.Name+" "+strings.Join(f.Command, " "))
	}
	if want := []string{"local l", "shared s", "user u"}; !slices.Equal(names, want) {
		t.Errorf("got %q, want %q", names, want)
	}
	for _, want := range []string{"/.claude.json: odd: ", "/.claude.json: what belongs to another project, for which you run init in /elsewhere: a, b\n"} {
		if err == nil || !strings.Contains(err.Error()+"\n", want) {
			t.Errorf("got the error %v, want %q in it", err, want)
		}
	}
	if strings.Contains(err.Error(), "/no/") {
		t.Errorf("got the error %v", err)
	}
	write(t, home+"/.claude.json", "{")
	if _, err := clientfile.Find(home); err == nil || strings.Count(err.Error(), "it is not valid JSON") != 1 {
		t.Errorf("got the error %v", err)
	}
}

// For a folder in a git repository Claude Code has called the project by the folder and by the root of the repository.
// A project of a folder above that is another one, and so is any above a folder that is in no repository.
func TestFindInARepository(t *testing.T) {
	home, root := t.TempDir(), t.TempDir()
	repository := filepath.Join(root, "repository")
	inside, alone := filepath.Join(repository, "a", "b"), filepath.Join(root, "alone", "b")
	write(t, filepath.Join(repository, ".git"), "gitdir: elsewhere") // as in a worktree
	for _, folder := range []string{inside, alone} {
		if err := os.MkdirAll(folder, 0o700); err != nil {
			t.Fatal(err)
		}
	}
	project := func(name string) map[string]any {
		return map[string]any{"mcpServers": map[string]any{name: map[string]any{"command": "x"}}}
	}
	for _, test := range []struct {
		in       string
		projects map[string]any
		want     string // what is found
		other    string // what is not
	}{
		{inside, map[string]any{repository: project("of-root"), inside: map[string]any{"mcpServers": map[string]any{}}}, "of-root", ""},
		{inside, map[string]any{repository: project("of-root"), inside: project("of-folder")}, "of-folder", repository + ": of-root"},
		{inside, map[string]any{root: project("above")}, "", root + ": above"},
		{alone, map[string]any{filepath.Dir(alone): project("above"), alone: project("of-folder")}, "of-folder", filepath.Dir(alone) + ": above"},
		{alone, map[string]any{filepath.Dir(alone): project("above"), alone: map[string]any{"mcpServers": map[string]any{}}}, "", filepath.Dir(alone) + ": above"},
	} {
		t.Chdir(test.in)
		content, err := json.Marshal(map[string]any{"projects": test.projects})
		if err != nil {
			t.Fatal(err)
		}
		write(t, home+"/.claude.json", string(content))
		all, err := clientfile.Find(home)
		if got := names(all); got != test.want {
			t.Errorf("in %s: got %q, want %q", test.in, got, test.want)
		}
		if test.other == "" && err != nil || test.other != "" && (err == nil || !strings.HasSuffix(err.Error(), "for which you run init in "+test.other)) {
			t.Errorf("in %s: got the error %v, want one about %q", test.in, err, test.other)
		}
	}
}

func names(all []clientfile.Found) string {
	var names []string
	for _, f := range all {
		names = append(names, f.Name)
	}
	return strings.Join(names, " ")
}

// A server that its client has switched off elsewhere than in its entry is named with the place, and left out.
func TestFindLeavesOutWhatIsSwitchedOff(t *testing.T) {
	home, folder := t.TempDir(), t.TempDir()
	t.Chdir(folder)
	folder, _ = os.Getwd()
	servers := func(names ...string) string {
		var all []string
		for _, name := range names {
			all = append(all, `"`+name+`": {"command": "x"}`)
		}
		return `"mcpServers": {` + strings.Join(all, ", ") + `}`
	}
	write(t, home+"/.claude.json", `{`+servers("user", "user-off", "answered-no")+`, "projects": {
		"`+folder+`": {`+servers("local", "local-off")+`, "disabledMcpServers": ["user-off", "local-off", "shared-off", "plugin:x:y"], "disabledMcpjsonServers": ["answered-no"], "enabledMcpjsonServers": ["shared"]},
		"/elsewhere": {"disabledMcpServers": ["user", "local", "shared"]},
		"/odd": 1}}`)
	write(t, ".mcp.json", `{`+servers("shared", "not-asked", "shared-off", "answered-no", "in-settings", "in-local", "in-users")+`}`)
	write(t, ".claude/settings.json", `{"disabledMcpjsonServers": ["in-settings", "user"]}`)
	write(t, ".claude/settings.local.json", `{"disabledMcpjsonServers": ["in-local"], "enabledMcpjsonServers": ["in-local"]}`)
	write(t, home+"/.claude/settings.json", `{"disabledMcpjsonServers": ["in-users"]}`)
	write(t, ".cursor/mcp.json", `{`+servers("shared-off-in-claude", "cursor")+`}`)
	write(t, home+"/.gemini/settings.json", `{"mcp": {"excluded": ["Excluded "], "allowed": ["Gemini", "excluded", "commanded"]}, `+servers("gemini", "excluded", "Commanded", "not-allowed")+`}`)
	write(t, home+"/.gemini/mcp-server-enablement.json", `{"commanded": {"enabled": false}, "gemini": {"enabled": true}}`)
	all, err := clientfile.Find(home)
	if got, want := names(all), "local not-asked shared cursor shared-off-in-claude answered-no user gemini"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
	ofProject := home + "/.claude.json (disabledMcpServers)"
	want := []string{
		home + "/.claude.json: local-off: it is disabled in " + ofProject,
		".mcp.json: answered-no: it is disabled in " + home + "/.claude.json (disabledMcpjsonServers)",
		".mcp.json: in-local: it is disabled in " + folder + "/.claude/settings.local.json (disabledMcpjsonServers)",
		".mcp.json: in-settings: it is disabled in " + folder + "/.claude/settings.json (disabledMcpjsonServers)",
		".mcp.json: in-users: it is disabled in " + home + "/.claude/settings.json (disabledMcpjsonServers)",
		".mcp.json: shared-off: it is disabled in " + ofProject,
		home + "/.claude.json: user-off: it is disabled in " + ofProject,
		home + "/.gemini/settings.json: Commanded: it is disabled in " + home + "/.gemini/mcp-server-enablement.json",
		home + "/.gemini/settings.json: excluded: it is disabled in the file (mcp.excluded)",
		home + "/.gemini/settings.json: not-allowed: it is not among those that the file allows (mcp.allowed)",
	}
	if err == nil || err.Error() != strings.Join(want, "\n") {
		t.Errorf("got the error\n%v\nwant\n%s", err, strings.Join(want, "\n"))
	}
	// An empty list of Gemini CLI allows all.
	write(t, home+"/.gemini/settings.json", `{"mcp": {"allowed": []}, `+servers("gemini", "not-allowed")+`}`)
	if all, _ := clientfile.Find(home); !strings.HasSuffix(names(all), " gemini not-allowed") {
		t.Errorf("with an empty list got %q", names(all))
	}
}

// Editors on Windows put a byte order mark before UTF-8.
func TestFindTakesAByteOrderMark(t *testing.T) {
	t.Chdir(t.TempDir())
	write(t, ".mcp.json", "\ufeff"+`{"mcpServers": {"a": {"command": "x"}}}`)
	if all, err := clientfile.Find(t.TempDir()); len(all) != 1 || err != nil {
		t.Errorf("got %v and %v, want the server", all, err)
	}
}

// A part of a file that cannot be read is told with its reason, and takes little memory.
func TestFindRefuses(t *testing.T) {
	t.Chdir(t.TempDir())
	for content, want := range map[string]string{
		`{"mcpServers": {"a": {"command": "x"}, "a": {"command": "y"}}}`:                                            `.mcp.json: mcpServers: mapping key "a" already defined`,
		`{"mcpServers": {"a": {"command": "x", "b": ` + strings.Repeat("[", 100) + strings.Repeat("]", 100) + `}}}`: ".mcp.json: mcpServers: it is nested over 64 levels deep",
		`{"mcpServers": {"a": {"command": "` + strings.Repeat("x", 1<<20) + `"}}}`:                                  ".mcp.json: mcpServers: it has over 1 MiB",
		`{"mcpServers": {"a": {"url": ["x"]}}}`:                                                                     ".mcp.json: a: url: a YAML sequence is not supported here",
	} {
		write(t, ".mcp.json", content)
		if all, err := clientfile.Find(t.TempDir()); len(all) > 0 || err == nil || err.Error() != want {
			t.Errorf("got %d and %v, want %s", len(all), err, want)
		}
	}
	write(t, ".mcp.json", `{"large": "`+strings.Repeat("x", 2<<20)+`", "mcpServers": {"a": {"command": "x"}}}`)
	if all, err := clientfile.Find(t.TempDir()); len(all) != 1 || err != nil {
		t.Errorf("of a large file: got %v and %v", all, err)
	}
}

// Secrets and variables of entries are kept.
func TestFindKeepsSecrets(t *testing.T) {
	home := t.TempDir()
	t.Chdir(t.TempDir())
	folder, _ := os.Getwd()
	write(t, ".mcp.json", `{"mcpServers": {"numbers": {"command": "x", "args": ["-p", 80], "env": {"PORT": 80, "ON": true, "NONE": null}, "alwaysAllow": []}, "wrong": {"command": "x", "args": "y"}, "odd": {"command": "x", "env": {"A": []}}}}`)
	write(t, ".vscode/mcp.json", `{"inputs": [{"id": "key", "description": "Key of b"}, {"id": "lost"}], "servers": {
		"a": {"type": "stdio", "command": "${workspaceFolder}/run", "args": ["${userHome}"], "envFile": "${workspaceFolder}/.env", "cwd": "${workspaceFolder}", "dev": {}},
		"b": {"type": "http", "url": "https://b", "headers": {"K": "${input:key}"}}}}`)
	write(t, home+"/.gemini/settings.json", `{"mcpServers": {"g": {"httpUrl": "https://g", "headers": {"K": "$KEY and ${KEY}"}}}}`)
	write(t, home+"/.codex/config.toml", "[mcp_servers.c]\nurl = \"https://c\"\nbearer_token_env_var = \"C_TOKEN\"\nstartup_timeout_sec = 5\n"+
		"http_headers = {A = \"1\"}\nenv_http_headers = {B = \"B_KEY\"}\n[mcp_servers.off]\ncommand = \"x\"\nenabled = false\n")
	all, err := clientfile.Find(home)
	got := map[string]clientfile.Found{}
	for _, f := range all {
		f.File = ""
		got[f.Name] = f
	}
	inputs := map[string]string{"key": "Key of b", "lost": ""}
	none := map[string]string{}
	want := map[string]clientfile.Found{
		"numbers": {Name: "numbers", Command: []string{"x", "-p", "80"}, Env: map[string]string{"PORT": "80", "ON": "true", "NONE": ""}, Header: none, Inputs: none, Ignored: []string{"alwaysAllow"}},
		"a":       {Name: "a", Command: []string{folder + "/run", home}, Env: none, EnvFile: folder + "/.env", Dir: folder, Header: none, Inputs: inputs, Ignored: []string{"dev", "the input lost"}},
		"b":       {Name: "b", Env: none, URL: "https://b", Header: map[string]string{"K": "${input:key}"}, Inputs: inputs},
		"g":       {Name: "g", Env: none, URL: "https://g", Header: map[string]string{"K": "${KEY} and ${KEY}"}, Inputs: none},
		"c":       {Name: "c", Env: none, URL: "https://c", Header: map[string]string{"A": "1", "B": "${B_KEY}", "Authorization": "Bearer ${C_TOKEN}"}, Inputs: none, Ignored: []string{"startup_timeout_sec"}},
	}
	for name := range want {
		one := got[name]
		if one.Client.Name == "" || (one.Stays != "") != (name != "g" && name != "c") {
			t.Errorf("%s: it is of %q, and stays: %q", name, one.Client.Name, one.Stays)
		}
		one.Client, one.Stays = clients.Client{}, ""
		if !reflect.DeepEqual(one, want[name]) {
			t.Errorf("got %+v\nwant %+v", one, want[name])
		}
	}
	if len(got) != len(want) {
		t.Errorf("got %d servers, want %d", len(got), len(want))
	}
	if err == nil || !strings.Contains(err.Error(), ".mcp.json: odd: want texts in args, env and headers\n") || !strings.Contains(err.Error(), ".mcp.json: wrong: ") {
		t.Errorf("got the error %v", err)
	}
}

func write(t *testing.T, file, content string) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(file), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(file, []byte(content), 0o600); err != nil {
		t.Fatal(err)
	}
}

func read(t *testing.T, file string) string {
	t.Helper()
	data, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	return string(data)
}

// A file that Write would spoil stays as it is, and the error says why.
func TestWriteRefuses(t *testing.T) {
	servers := []clients.Server{{Name: "docs", URL: url}}
	cursor, _ := clients.Named("cursor")
	codex, _ := clients.Named("codex")
	for name, test := range map[string]struct {
		client       clients.Client
		before, want string
	}{
		"a command":        {cursor, `{"mcpServers": {"docs": {"command": "x", "env": {"KEY": "1"}}}}`, "it has a server docs with command, env: --replace takes it over, or give another --name"},
		"headers":          {cursor, `{"mcpServers": {"docs": {"url": "x", "headers": {"Authorization": "Bearer mine"}}}}`, "with headers"},
		"no object":        {cursor, `{"mcpServers": {"docs": 1}}`, "docs"},
		"twice":            {cursor, `{"mcpServers": {}, "mcpServers": {"a": {"url": "x"}}}`, "it has mcpServers twice"},
		"a name twice":     {cursor, `{"mcpServers": {"docs": {"url": "a"}, "docs": {"url": "b"}}}`, "it has docs twice"},
		"an inline table":  {codex, `mcp_servers = {a = {url = "x"}}` + "\n", "mcp_servers"},
		"an inline server": {codex, "[mcp_servers]\ndocs = {url = \"x\"}\n", "it has a server docs already"},
	} {
		file := filepath.Join(t.TempDir(), "file")
		write(t, file, test.before)
		if _, err := clientfile.NewEditor(t.TempDir()).Write(test.client, file, servers, false); err == nil || !strings.Contains(err.Error(), test.want) || read(t, file) != test.before {
			t.Errorf("%s: got %v, want %q\n%s", name, err, test.want, read(t, file))
		}
	}
	dir := t.TempDir()
	file := filepath.Join(dir, "readonly")
	write(t, file, "{}")
	if err := os.Chmod(file, 0o400); err != nil {
		t.Fatal(err)
	}
	dangling := filepath.Join(dir, "dangling")
	if err := os.Symlink(filepath.Join(dir, "nothing"), dangling); err != nil {
		t.Fatal(err)
	}
	for file, want := range map[string]string{dir: "is not a regular file", file: "is read-only", dangling: "is a link to a file that is not there"} {
		before, _ := os.Lstat(file)
		_, err := clientfile.NewEditor(t.TempDir()).Write(cursor, file, servers, false)
		after, _ := os.Lstat(file)
		if err == nil || !strings.Contains(err.Error(), want) || after == nil || before.Mode() != after.Mode() {
			t.Errorf("%s: got %v, want %q", file, err, want)
		}
	}
}

// An entry that had only a URL is replaced, which the caller learns.
func TestWriteReplaces(t *testing.T) {
	servers := []clients.Server{{Name: "docs", URL: url}}
	for _, c := range clients.WithEntry() {
		if c.Name == "codex" || len(clientfile.Files(c.Entry, "/home/ada")) == 0 {
			continue
		}
		file := filepath.Join(t.TempDir(), "file")
		for _, test := range []struct {
			url      string
			replaced []string
		}{{"http://127.0.0.1:9/old", nil}, {url, []string{"docs"}}, {url, nil}} {
			servers[0].URL = test.url
			written, err := clientfile.NewEditor(t.TempDir()).Write(c, file, servers, false)
			if err != nil || !slices.Equal(written.Replaced, test.replaced) || !strings.Contains(read(t, file), test.url) {
				t.Errorf("%s: got %+v, %v, want %q\n%s", c.Name, written, err, test.replaced, read(t, file))
			}
		}
	}
}

// An entry of sse-server at another path is replaced, and one of another program stays.
func TestWriteReplacesThePath(t *testing.T) {
	desktop, _ := clients.Named("claude-desktop")
	file := filepath.Join(t.TempDir(), "file")
	for _, test := range []struct {
		program string
		ok      bool
	}{{"sse-server", true}, {"/opt/sse-server", true}, {"/opt/other", false}} {
		written, err := clientfile.NewEditor(t.TempDir()).Write(desktop, file, []clients.Server{{Name: "docs", URL: url, Program: test.program}}, false)
		if (err == nil) != test.ok || test.ok && !strings.Contains(read(t, file), `"`+test.program+`"`) {
			t.Errorf("%s: got %+v, %v\n%s", test.program, written, err, read(t, file))
		}
	}
}

// VS Code asks for the token: the input is added once, and beside others. Another one with its id stays.
func TestWriteAddsInputs(t *testing.T) {
	servers := []clients.Server{{Name: "docs", URL: url, Token: true}}
	code, _ := clients.Named("vs-code")
	file := filepath.Join(t.TempDir(), "mcp.json")
	write(t, file, `{"inputs": [{"id": "key", "type": "promptString"}], "servers": {}}`)
	for range 2 {
		if _, err := clientfile.NewEditor(t.TempDir()).Write(code, file, servers, false); err != nil {
			t.Fatal(err)
		}
		var got struct {
			Inputs  []struct{ ID string }
			Servers map[string]struct{ Headers map[string]string }
		}
		if err := json.Unmarshal([]byte(read(t, file)), &got); err != nil || len(got.Inputs) != 2 || got.Inputs[1].ID != "token" || got.Servers["docs"].Headers["Authorization"] != "Bearer ${input:token}" {
			t.Errorf("got %v\n%s", err, read(t, file))
		}
	}
	for before, want := range map[string]string{
		`{"inputs": [{"id": "token", "type": "pickString"}]}`: "it has another input token",
		`{"inputs": {}}`: "its inputs are not a list",
	} {
		write(t, file, before)
		if _, err := clientfile.NewEditor(t.TempDir()).Write(code, file, servers, false); err == nil || !strings.Contains(err.Error(), want) || read(t, file) != before {
			t.Errorf("got %v, want %q", err, want)
		}
	}
}

// Of an entry that is replaced, what differs alone is another: comments and the order of its members stay, and an
// entry that is the same is left as it is written.
func TestWriteKeepsCommentsInEntries(t *testing.T) {
	for _, test := range []struct {
		client, before, after string
	}{
		{"cursor", `{"mcpServers": {"docs": {
  // the desk
  "url": "http://old", // moved twice
  /* the end */
}}}`, `{"mcpServers": {"docs": {
  // the desk
  "url": "` + url + `", // moved twice
  /* the end */
}}}`},
		{"cline", `{"mcpServers": {"docs": {
  "url": "http://old", // moved
  // a kind
  "type": /* old */ "sse",
}}}`, `{"mcpServers": {"docs": {
  "url": "` + url + `", // moved
  // a kind
  "type": /* old */ "streamableHttp",
}}}`},
		{"qwen-code", `{"mcpServers": {"docs": {
  // the desk
  "url": "http://old", // moved
}}}`, `{"mcpServers": {"docs": {
  // the desk
  "httpUrl": "` + url + `", // moved
}}}`},
		{"cursor", `{"mcpServers": {"docs": {
  // a kind
  "type": "sse", // old
  "url": "http://old"
}}}`, `{"mcpServers": {"docs": {
  // a kind
   // old
  "url": "` + url + `"
}}}`},
		{"claude-desktop", `{"mcpServers": {"docs": {"command": "/old/sse-server", "args": ["stdio", "--url", /* desk */ "http://old"]}}}`,
			`{"mcpServers": {"docs": {"command": "/opt/sse-server", "args": ["stdio", "--url", /* desk */ "` + url + `"]}}}`},
		{"cursor", "{\"mcpServers\": {\"docs\": {\"url\": \"http:\\/\\/127.0.0.1:8080/mcp\" /* mine */ , }}} // end\n",
			"{\"mcpServers\": {\"docs\": {\"url\": \"http:\\/\\/127.0.0.1:8080/mcp\" /* mine */ , }}} // end\n"},
	} {
		c, _ := clients.Named(test.client)
		file := filepath.Join(t.TempDir(), "file")
		write(t, file, test.before)
		_, err := clientfile.NewEditor(t.TempDir()).Write(c, file, []clients.Server{{Name: "docs", URL: url, Program: "/opt/sse-server"}}, false)
		if got := read(t, file); err != nil || got != test.after {
			t.Errorf("%s: got %v\n%s\nwant\n%s", test.client, err, got, test.after)
		}
	}
}

// A byte order mark, as editors on Windows write it, stays.
func TestWriteKeepsAByteOrderMark(t *testing.T) {
	const mark = "\ufeff"
	for client, before := range map[string]string{"cursor": `{"theme": 1}`, "codex": "model = \"x\"\n", "continue": "name: x\n"} {
		c, _ := clients.Named(client)
		for _, before := range []string{before, ""} {
			file := filepath.Join(t.TempDir(), "file")
			write(t, file, mark+before)
			for range 2 {
				_, err := clientfile.NewEditor(t.TempDir()).Write(c, file, []clients.Server{{Name: "docs", URL: url}}, false)
				if got := read(t, file); err != nil || !strings.HasPrefix(got, mark) || strings.Count(got, mark) != 1 || strings.Count(got, url) != 1 {
					t.Errorf("%s: got %v\n%q", client, err, got)
				}
			}
		}
	}
}

// Of a file with more names, the others keep what it had: they may be those of a backup. The caller learns it,
// unless nothing is written.
func TestWriteOfAFileWithMoreNames(t *testing.T) {
	cursor, _ := clients.Named("cursor")
	dir := t.TempDir()
	file, backup := filepath.Join(dir, "mcp.json"), filepath.Join(dir, "backup")
	write(t, file, "{}")
	if err := os.Link(file, backup); err != nil {
		t.Fatal(err)
	}
	for _, want := range []bool{true, false} {
		written, err := clientfile.NewEditor(t.TempDir()).Write(cursor, file, []clients.Server{{Name: "docs", URL: url}}, false)
		if err != nil || written.Unlinked != want || read(t, backup) != "{}" || !strings.Contains(read(t, file), url) {
			t.Errorf("got %+v, %v, want %v\n%s", written, err, want, read(t, backup))
		}
	}
}
