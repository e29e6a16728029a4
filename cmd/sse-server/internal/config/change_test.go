package config

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/mcp-sse/mcp-sse/cmd/sse-server/internal/clitest"
)

// reloaded writes files into a directory and loads gw.yaml there.
func reloaded(t *testing.T, dir string, files map[string]string, args ...string) *Config {
	t.Helper()
	for name, content := range files {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(strings.ReplaceAll(content, "DIR", dir)), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return mustLoad(t, map[string]string{"TOKEN": secret}, append(args, "--config", filepath.Join(dir, "gw.yaml"))...)
}

func TestChanges(t *testing.T) {
	const servers = "servers:\n  a: {command: [x], env: {A: b}}\n  b: {url: 'https://u:${TOKEN}@b/mcp', header: {X: '${file:DIR/key}'}}\n"
	for _, tc := range []struct {
		name, before, after, key, refused string
		sameHash                          bool
	}{
		{"nothing but a comment", "warm: 1\n", "# c\nwarm: 1\n", "", "", true},
		{"in place", "warm: 1\nlog-level: info\n", "warm: 2\nlog-level: debug\n", "", "", false},
		{"a command", "command: [x, y]\n", "command: ['x,y']\n", "", "", false},
		{"a proxy", "trusted-proxies: [10.0.0.1]\n", "trusted-proxies: [10.0.0.0/8]\n", "", "", false},
		{"a secret of the environment", "env: {A: b}\ncommand: [x]\n", "env: {A: c}\ncommand: [x]\n", "", "", true},
		{"a secret in a file", servers, servers, "2", "", true},
		{"a server more, and one less", servers, "servers: {b: {}, c: {}}\n", "", "", false},
		{"fixed", "addr: 127.0.0.1:1\nprefix: /a\n", "prefix: /b\nlog-format: json\n", "",
			"DIR/gw.yaml:1:7: addr: cannot, DIR/gw.yaml:1:9: prefix: cannot, DIR/gw.yaml:2:13: log-format: cannot", false},
		{"one and several", "warm: 1\n", "warm: 1\nservers: {a: {}}\n", "", "DIR/gw.yaml: one server or several cannot", false},
	} {
		dir := t.TempDir()
		before := reloaded(t, dir, map[string]string{"gw.yaml": tc.before, "key": "1"})
		after := reloaded(t, dir, map[string]string{"gw.yaml": tc.after, "key": tc.key})
		plain := strings.NewReplacer("DIR", dir)
		var why []string
		if err := before.CheckChange(after); err != nil {
			for line := range strings.Lines(err.Error()) {
				line, ok := strings.CutSuffix(strings.TrimSpace(line), " change while sse-server runs: restart it")
				if why = append(why, line); !ok {
					t.Errorf("%s: %s does not say what to do", tc.name, line)
				}
			}
		}
		if got := strings.Join(why, ", "); got != plain.Replace(tc.refused) {
			t.Errorf("%s: got %s, want %s", tc.name, got, tc.refused)
		}
		if hash := after.Hash(); (hash == before.Hash()) != tc.sameHash || hash < 1 || hash >= 1<<48 {
			t.Errorf("%s: the hash was %f and is %f, want the same: %v", tc.name, before.Hash(), hash, tc.sameHash)
		}
		if again := reloaded(t, dir, nil); !after.IsRead(again) || tc.before != tc.after && before.IsRead(after) {
			t.Errorf("%s: want that only what was read again is read from the same", tc.name)
		}
	}
	dir := t.TempDir()
	c := reloaded(t, dir, map[string]string{"gw.yaml": servers, "key": "1"}, "--watch")
	if want := []string{filepath.Join(dir, "gw.yaml"), filepath.Join(dir, "key")}; !slices.Equal(slices.Sorted(slices.Values(c.Files())), want) {
		t.Errorf("got the files %q, want %q", c.Files(), want)
	}
	wantRefusal(t, nil, "--watch: there is no file to watch", "--watch")
	wantRefusal(t, nil, "--watch: stdio keeps its configuration", "stdio", "--watch")
}

// A reload says what has changed, without values.
func TestChangesAreNamed(t *testing.T) {
	load := func(content string) *Config {
		return mustLoad(t, map[string]string{"KEY": content[:3]}, "-c", clitest.WriteFile(t, "gw.yaml", content))
	}
	before := load("warm: 1\nlog-level: info\nservers:\n  a: {command: [x], env: {A: secret1}}\n  b: {command: [y]}\n  c: {url: https://c, header: {K: \"${KEY}\"}}\n")
	for content, want := range map[string]string{
		"warm: 1\nlog-level: debug\nservers:\n  a: {command: [x], env: {A: secret2}}\n  c: {url: https://c, header: {K: \"${KEY}\"}}\n  d: {command: [z]}\n": "log-level, a.env, new: d, gone: b",
		"# 1\nwarm: 1\nservers:\n  a: {command: [x], env: {A: secret1}}\n  b: {command: [y]}\n  c: {url: https://c, header: {K: \"${KEY}\"}}\n":              "c.header, by what it refers to",
		"warm: 1\nservers:\n  a: {command: [x], env: {A: secret1}}\n  b: {command: [y]}\n  c: {url: https://c, header: {K: \"${KEY}\"}}\n":                   "",
	} {
		if got := strings.Join(before.Changes(load(content)), ", "); got != want {
			t.Errorf("%s: got %q, want %q", content, got, want)
		}
	}
	one := mustLoad(t, nil, "--auth-tokens-file", clitest.WriteFile(t, "tokens", "a:0123456789abcdef\n"))
	other := mustLoad(t, nil, "--auth-tokens-file", clitest.WriteFile(t, "tokens", "b:0123456789abcdef\n"))
	if got := one.Changes(other); !slices.Contains(got, "the tokens") {
		t.Errorf("other tokens: got %q", got)
	}
}
