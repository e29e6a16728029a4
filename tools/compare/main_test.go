//go:build all

package main

import (
	"bytes"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"go.uber.org/goleak"
)

// bin holds the programs that are measured.
var bin string

func TestMain(m *testing.M) {
	var err error
	if bin, err = os.MkdirTemp("", "compare-"); err != nil {
		panic(err)
	}
	for _, build := range []*exec.Cmd{
		exec.Command("go", "build", "-C", "../..", "-race", "-o", bin, "./cmd/sse-server"),
		exec.Command("go", "build", "-race", "-o", bin, "../echo", "../proxy", "../inprocess"),
	} {
		if out, err := build.CombinedOutput(); err != nil {
			panic(string(out))
		}
	}
	goleak.VerifyTestMain(m, goleak.Cleanup(func(code int) {
		_ = os.RemoveAll(bin) // it is in the temporary directory
		os.Exit(code)
	}))
}

// The child of connect is echo, which takes the script for an argument that it does not
// know, and the proxy of streamable is inprocess, which gets the port as its address: what
// is tested here is the measuring.
func TestCompare(t *testing.T) {
	script := filepath.Join(t.TempDir(), "proxy")
	if err := os.WriteFile(script, []byte(`exec "`+filepath.Join(bin, "inprocess")+`" --addr "$2:$4"`), 0o600); err != nil {
		t.Fatal(err)
	}
	const number = ` +-?\d+(?:\.\d+)?(?:µs)?`
	row := func(name string, numbers int) string { return `\n` + name + strings.Repeat(number, numbers) }
	const openings = `\n +p50[^\n]*\nin process +\S+s +\S+s +0s +-\nNode, --warm 1 +\S+s +\S+s +\S+s +1.00\nNode, cold +\S+s +\S+s +\S+s +1.00\n`
	pairs := `\nover a raw function: [^\n]*\n +bytes[^\n]*` + row("1x1", 12) + row("64x1", 12) + row("1x64", 12) + `\n$`
	for _, test := range []struct{ args, want string }{
		{"--rounds 2 --clients 4 --calls 40", `(?s)^4 clients, 1 call\(s\) in flight each, 2 rounds of 40 calls.*` +
			`\nsse-server --sessions shared +\d+ +\S+s +\S+s +\S+s +\[\d+ \d+\]` +
			`\nmcp-go client \+ SSEServer +\d+ +\S+s +\S+s +\S+s +\[\d+ \d+\]\nratio +\d+\.\d\d +\d+\.\d\d\n$`},
		{"--transport streamable --rounds 1 --clients 2 --calls 20 --node sh --proxy " + script, `(?s)\nnpm mcp-proxy .*\nratio `},
		{"--mode connect --rounds 3 --warm 1 --server x --node " + filepath.Join(bin, "echo"),
			`3 streams of each[^\n]*\n\nsilent[^\n]*` + openings + `\nown initialize` + openings + `\nown initialize with[^\n]*` + openings + `$`},
		{"--mode pairs --transport sse --rounds 1 --round 1ms --payload 32", pairs},
		{"--mode pairs --transport streamable --rounds 1 --round 1ms --payload 32", pairs},
		{"--mode idle --streams 20 --rest 10ms", `20 idle streams\n +resident[^\n]*` + row("raw", 4) + row("mcpgo-sse", 4) + row("bare", 4) + `\n$`},
		{"--mode storm --rounds 1 --round 1ms --rest 10ms", `a storm: [^\n]*\n +streams/s[^\n]*` + row("raw", 11) + row("mcpgo-sse", 11) + `\nraw is left with `},
	} {
		var out, errors bytes.Buffer
		code := run(t.Context(), append([]string{"--bin", bin}, strings.Fields(test.args)...), &out, &errors)
		http.DefaultClient.CloseIdleConnections()
		if code != 0 || !regexp.MustCompile(test.want).MatchString(out.String()) {
			t.Errorf("%s: exit code %d, output:\n%s%s", test.args, code, &out, &errors)
		}
	}
}
