package config

import (
	"strings"
	"testing"

	"github.com/mcp-sse/mcp-sse/cmd/sse-server/internal/clitest"
)

func TestFileFaults(t *testing.T) {
	for _, tc := range []struct {
		name, content string
		want          []string // of each fault, after the path
	}{
		{"unknown keys", "addr: 127.0.0.1:0\nadr: x\nmaxConnections: 1\nmax_pending: 1\n", []string{
			`:2: unknown key "adr"`, `:3: unknown key "maxConnections", did you mean "max-connections"?`,
			`:4: unknown key "max_pending", did you mean "max-pending"?`}},
		{"flags that are no keys", "config: x\nversion: true\nhelp: true\ncheck-config: true\nwarmth: 1\n", []string{
			`:1: unknown key "config"`, `:2: unknown key "version"`, `:3: unknown key "help"`,
			`:4: unknown key "check-config"`, `:5: unknown key "warmth"`}},
		{"servers as others write them", "mcpServers:\n  a: {command: npx, args: [-y, server]}\n", []string{
			`:1: unknown key "mcpServers": want servers, a mapping of names to options, such as {docs: {command: [npx, -y, server]}}`}},
		{"one letter less", "server: {a: {demo: true}}\n", []string{`:1: unknown key "server": want servers, a mapping`}},
		{"in the order of the lines", "gate-queue: 0\nnope: 1\ntls-cert: c\ncommand: x\nlog-level: loud\n", []string{
			":1: gate-queue", `:2: unknown key "nope"`, ":3: tls-cert", ":4: command", ":5: log-level"}},
		{"syntax", "a: [\n", []string{":1:4: "}},
		{"a tab before an entry", "command:\n\t- a\n", []string{":2:1: a tab in the indentation: indent with spaces"}},
		{"a tab after spaces", "env:\n  A: x\n  \tB: y\n", []string{":3:3: a tab in the indentation: indent with spaces"}},
		{"a tab before a key", "\taddr: 127.0.0.1:0\n", []string{":1:5: a tab in the indentation: indent with spaces"}},
		{"the same key twice", "addr: 127.0.0.1:0\naddr: 127.0.0.1:1\n", []string{":2:1: mapping key"}},
		{"a list", "- addr\n", []string{": want a mapping"}},
		{"a text", "addr\n", []string{": want a mapping"}},
		{"two documents", "cors: false\n---\ncors: false\n", []string{": want one YAML document"}},
		{"a tag", "addr: !!str x\n", []string{":1: addr: a YAML tag is not supported here"}},
		{"an anchor", "addr: &a x\n", []string{":1: addr: a YAML anchor is not supported here"}},
		{"an alias", "addr: *a\n", []string{":1: addr: a YAML alias is not supported here"}},
		{"a merge", "<<: {addr: x}\n", []string{`:1: unknown key "<<"`}},
		{"a list for one value", "gate-queue: [1, 2]\n", []string{`:1: gate-queue "[1,2]": want one value`}},
		{"a mapping for one value", "gate-queue: {a: 1}\n", []string{`:1: gate-queue "{\"a\":1}": want one value`}},
		{"a mapping for a list", "allowed-hosts: {a: 1}\n", []string{`:1: allowed-hosts "{\"a\":1}": want a list`}},
		{"a list for an object", "capabilities: [1]\n", []string{`:1: capabilities "[1]": want a JSON object`}},
		{"a text for the command", "command: npx -y server\n", []string{`:1: command "npx -y server": want a list`}},
		{"an empty command", "command: []\n", []string{`:1: command "[]": want a list`}},
		{"an empty program", "command: ['']\n", []string{`:1: command "[\"\"]": want a program`}},
		{"lists in the command", "command: [a, [b]]\n", []string{`:1: command "[\"a\",[\"b\"]]": want a list`}},
		{"mappings in env", "command: [a]\nenv: {A: {B: c}}\n", []string{":2: env: want a mapping of names to plain values"}},
		{"a list for env", "command: [a]\nenv: [A=s3cret]\n", []string{":2: env: want a mapping of names to plain values"}},
		{"a text for env", "command: [a]\nenv: A=s3cret\n", []string{":2: env: want a mapping of names to plain values"}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			path := clitest.WriteFile(t, "gw.yaml", tc.content)
			_, faults := loadWith(t, nil, "--config", path)
			if len(faults) != len(tc.want) {
				t.Fatalf("got %q, want %d faults", faults, len(tc.want))
			}
			for i, want := range tc.want {
				if !strings.HasPrefix(faults[i], path+want) {
					t.Errorf("got %q, want it to start with %q", faults[i], path+want)
				}
			}
		})
	}
}

func TestFilesThatSayNothing(t *testing.T) {
	for _, content := range []string{"", "\n", "# comment\n", "---\n", "null\n", "addr:\nprefix: ~\nallowed-hosts: null\n"} {
		path := clitest.WriteFile(t, "gw.yaml", content)
		l := mustLoad(t, nil, "--config", path)
		if got, want := l.Addr, "127.0.0.1:8080"; got != want {
			t.Errorf("%q: got addr %s, want %s", content, got, want)
		}
	}
}

func TestFileThatCannotBeRead(t *testing.T) {
	for name, path := range map[string]string{
		"missing":   "/does/not/exist.yaml",
		"directory": t.TempDir(),
		"large":     clitest.WriteFile(t, "gw.yaml", strings.Repeat("#", maxFileBytes+1)),
	} {
		_, faults := loadWith(t, nil, "--config", path)
		if len(faults) != 1 || !strings.HasPrefix(faults[0], "config: ") || !strings.Contains(faults[0], path) {
			t.Errorf("%s: got %q, want one fault that names the path", name, faults)
		}
	}
}

func TestSyntaxFaultShowsNoExcerpt(t *testing.T) {
	path := clitest.WriteFile(t, "gw.yaml", "env:\n  TOKEN: s3cret\n bad: [\n")
	_, faults := loadWith(t, nil, "--config", path)
	if len(faults) != 1 || strings.Contains(faults[0], "s3cret") || strings.Contains(faults[0], "\n") {
		t.Errorf("got %q, want one line without the text of the file", faults)
	}
}

func TestCapabilitiesOfFile(t *testing.T) {
	for _, content := range []string{
		"capabilities: {roots: {listChanged: true}, x: [1, 2.5, null, \"1\"]}\n",
		"capabilities:\n  roots:\n    listChanged: true\n  x: [1, 2.5, null, \"1\"]\n",
		"capabilities: '{\"roots\": {\"listChanged\": true}, \"x\": [1, 2.5, null, \"1\"]}'\n",
		"capabilities: >-\n  {\"roots\": {\"listChanged\": true},\n  \"x\": [1, 2.5, null, \"1\"]}\n",
	} {
		l := mustLoad(t, nil, "--config", clitest.WriteFile(t, "gw.yaml", content))
		if got, want := string(l.Options.Capabilities), `{"roots":{"listChanged":true},"x":[1,2.5,null,"1"]}`; got != want {
			t.Errorf("%q: got %s, want %s", content, got, want)
		}
	}
}

// TestEffectiveEnvIsAComment keeps *** from becoming the value of a variable.
func TestEffectiveEnvIsAComment(t *testing.T) {
	text := mustLoad(t, nil, "--env", "A=s3cret", "--env", "B=x=y", "--", "server").Effective()
	if want := "\n# env: {A: \"***\", B: \"***\"}  # --env\n"; !strings.Contains(text, want) || strings.Contains(text, "s3cret") {
		t.Errorf("got\n%s\nwant%sin it, and no value", text, want)
	}
	if l := mustLoad(t, nil, "--config", clitest.WriteFile(t, "gw.yaml", text)); len(l.env) != 0 {
		t.Errorf("the file sets %q, want nothing", l.env)
	}
}

// TestEffectiveSettingsOfTheDemo checks that no option of a child is in them.
func TestEffectiveSettingsOfTheDemo(t *testing.T) {
	for _, args := range [][]string{nil, {"--demo"}} {
		mustLoad(t, nil, "--config", clitest.WriteFile(t, "gw.yaml", mustLoad(t, nil, args...).Effective()))
	}
}

// TestEffectiveSettingsAreAFile feeds what --check-config prints back in.
func TestEffectiveSettingsAreAFile(t *testing.T) {
	first := mustLoad(t, map[string]string{"SSE_SERVER_START_TIMEOUT": "90s"},
		"--addr", "[::1]:0", "--allowed-origins", "*,https://a.example", "--heartbeat-interval", "0", "--no-announce",
		"--prefix", "/a", "--capabilities", `{"roots":{"listChanged":true}}`, "--trusted-proxies", "::1",
		"--", "npx", "-y", "a b", "#c", "null", "~", "", "k: v", "'q\"", "tab\t", "x:", "é")
	path := clitest.WriteFile(t, "gw.yaml", first.Effective())
	second := mustLoad(t, nil, "--config", path)
	strip := func(l *Config) string {
		for name := range l.origin {
			delete(l.origin, name)
		}
		return l.Effective()
	}
	if got, want := strip(second), strip(first); got != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
}
