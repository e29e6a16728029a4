package config

import (
	"fmt"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/mcp-sse/mcp-sse/cmd/sse-server/internal/clitest"
)

// awkward are texts that YAML would take for something else.
var awkward = []string{
	"yes", "no", "on", "y", "null", "~", "true", "1.0", "1.10", "0x1f", "0o17", "017", "1e3", ".5", "+1", "1_000", ".inf", ".nan", "12:30:45", "2026-11-28", "=", "<<",
	"@scope/x", "`x`", "%x", "&a", "*a", "!t", "|", ">", "|-", "-", "- x", "--", "?", "? x", ":", ": ", "a: b", "a:", "a:b", "#", "# c", "a #b", "a#b", "[", "]", "[a]", "{", "}", "{a: b}", ",", "a,b",
	"'", "\"", "'a'", "\"a\"", "it's", "say \"x\"", `C:\dir\new`, `\n`, " a", "a ", "  ", "\t", "a\tb", "\ta", "---", "...", "--- a", "http://localhost:8080/a/mcp", "--url=http://localhost:8080/mcp",
	"a\nb", "a\nb\n", "a\n\nb", "\na", "a\n b\n  c", " a\nb", "a \nb ", "a\n# b", "a\r\nb", "a: b\nc: d", "-----BEGIN KEY-----\nMII=\n-----END KEY-----\n", "ü€😀", "\u00a0", "\u2028", "\u0085", "\ufeff", "\x01", "\x7f", "\x1b[0m",
	"${NOT", "$HOME", "$$", strings.Repeat("long ", 60),
}

// Every text is what it was, once the file is read: as an argument, as a variable and as a header.
func TestFileKeepsTexts(t *testing.T) {
	env, args := map[string]string{}, []string{"npx"}
	for i, text := range awkward {
		env[fmt.Sprintf("V%03d", i)] = text
		args = append(args, text)
	}
	args = append(args, "")
	env["EMPTY"] = ""
	env["yes"], env["1.0"], env["null"], env["a b"], env["-x"] = "1", "2", "3", "4", "5"
	delete(env, fmt.Sprintf("V%03d", slices.Index(awkward, "${NOT")))
	f := FileOf([]Entry{{Name: "yes", Command: args, Env: env, Dir: "/"}, {Name: "1", Command: []string{"@scope/x"}}})
	c := mustLoad(t, nil, "check", "-c", clitest.WriteFile(t, "gw.yaml", string(f.Data)))
	if got := c.Servers[0].Command; !reflect.DeepEqual(got, args) {
		for i := range args {
			if i >= len(got) || got[i] != args[i] {
				t.Errorf("an argument was %q and is %q", args[i], got[min(i, len(got)-1)])
			}
		}
	}
	got := pairsOf(c.Servers[0].Env, "=")
	for name, value := range env {
		if got[name] != value {
			t.Errorf("the variable %s was %q and is %q", name, value, got[name])
		}
	}
	if len(got) != len(env) || c.Servers[0].Name != "yes" || c.Servers[1].Name != "1" {
		t.Errorf("got %d variables of %d, and the servers %s and %s\n%s", len(got), len(env), c.Servers[0].Name, c.Servers[1].Name, f.Data)
	}
	for _, text := range awkward {
		f := FileOf([]Entry{{Name: "a", URL: "https://a/mcp", Header: map[string]string{"X-A": text}}})
		if strings.ContainsAny(text, "\x01\x7f\x1b\r\n") || text == "${NOT" { // no value of a header
			continue
		}
		c := mustLoad(t, nil, "check", "-c", clitest.WriteFile(t, "gw.yaml", string(f.Data)))
		if got := c.Servers[0].Remote().Header.Get("X-A"); got != strings.TrimSpace(text) {
			t.Errorf("the header was %q and is %q", text, got)
		}
	}
}

// The same command with another environment is another server; what is the same twice is there once.
func TestFileHasEachServerOnce(t *testing.T) {
	prod, test := map[string]string{"DB": "prod"}, map[string]string{"DB": "test"}
	f := FileOf([]Entry{
		{Name: "db", Command: []string{"db"}, Env: prod}, {Name: "db-test", Command: []string{"db"}, Env: test}, {Name: "db", Command: []string{"db"}, Env: test},
		{Name: "DB", Command: []string{"db"}, Env: prod}, {Name: "db", Command: []string{"db"}, Env: test}, {Name: "db", URL: "https://db/mcp"},
		{Name: "db", URL: "https://db/mcp", Header: map[string]string{"K": "1"}},
	})
	if want := []string{"db", "db-test", "db-2", "db-3", "db-4"}; !slices.Equal(f.Names, want) {
		t.Errorf("got %q, want %q", f.Names, want)
	}
	c := mustLoad(t, nil, "check", "-c", clitest.WriteFile(t, "gw.yaml", string(f.Data)))
	for i, want := range []string{"DB=prod", "DB=test", "DB=test"} {
		if got := strings.Join(c.Servers[i].Env, " "); got != want {
			t.Errorf("%s has %q, want %q", c.Servers[i].Name, got, want)
		}
	}
}

// What a client replaces becomes a variable of the environment, or a warning.
func TestFileOfReferences(t *testing.T) {
	f := FileOf([]Entry{
		{Name: "web", URL: "https://web/mcp", Inputs: map[string]string{"api-key": "Key of the web"},
			Header: map[string]string{"A": "Bearer ${input:api-key}", "B": "${env:B}", "C": "${C}", "D": "${D:-four}", "Content-Type": "application/json"}},
		{Name: "cmd", Command: []string{"x", "${workspaceRoot}/y"}, Inputs: map[string]string{"key": "Key of cmd"},
			Env: map[string]string{"PLAIN": "1", "SAME": "${env:SAME}", "KEY": "${input:key}", "OTHER": "${ANOTHER}", "C": "${C}", "PART": "a-${B}"}},
	})
	want := []Variable{{"API_KEY", "Key of the web"}, {"B", ""}, {"C", ""}, {"KEY", "Key of cmd"}, {"OTHER", "for cmd, ${ANOTHER} there"}, {"PART", "for cmd, with ${B} in it there"}, {"SAME", ""}}
	if !slices.Equal(f.Variables, want) {
		t.Errorf("got %q, want %q", f.Variables, want)
	}
	c := mustLoad(t, map[string]string{"API_KEY": "1", "B": "2", "C": "3"}, "check", "-c", clitest.WriteFile(t, "gw.yaml", string(f.Data)))
	header := c.Servers[0].Remote().Header
	if header.Get("A") != "Bearer 1" || header.Get("B") != "2" || header.Get("C") != "3" || header.Get("D") != "four" || len(header) != 4 {
		t.Errorf("got %v", header)
	}
	if env := strings.Join(c.Servers[1].Env, " "); env != "PLAIN=1" {
		t.Errorf("got %q", env)
	}
	for i, want := range []string{"web: the header Content-Type is left out: the transport sets", "web: ${D:-…} has become its default", "cmd: ${workspaceRoot} in its command is not replaced", "cmd: the process does not get C, which is a secret of a URL or a header: add it to env"} {
		if i >= len(f.Warnings) || !strings.HasPrefix(f.Warnings[i], want) {
			t.Errorf("got the warnings %q, want %q", f.Warnings, want)
		}
	}
}
