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

// compare runs the program.
func compare(t *testing.T, args ...string) (code int, stdout, stderr string) {
	t.Helper()
	var out, errors bytes.Buffer
	code = run(t.Context(), append([]string{"--bin", bin}, args...), &out, &errors)
	http.DefaultClient.CloseIdleConnections()
	return code, out.String(), errors.String()
}

func TestCompareCalls(t *testing.T) {
	code, out, errors := compare(t, "--rounds", "2", "--clients", "4", "--calls", "40")
	want := regexp.MustCompile(`(?s)^4 clients, 1 call\(s\) in flight each, 2 rounds of 40 calls.*` +
		`\nsse-server --sessions shared +\d+ +\S+s +\S+s +\S+s +\[\d+ \d+\]` +
		`\nmcp-go client \+ SSEServer +\d+ +\S+s +\S+s +\S+s +\[\d+ \d+\]\nratio +\d+\.\d\d +\d+\.\d\d\n$`)
	if code != 0 || !want.MatchString(out) {
		t.Errorf("exit code %d, output:\n%s%s", code, out, errors)
	}
}

// The child is echo, which takes the script for an argument that it does not
// know: what is tested here is the measuring.
func TestCompareOpenings(t *testing.T) {
	code, out, errors := compare(t, "--mode", "connect", "--rounds", "3", "--warm", "1", "--node", filepath.Join(bin, "echo"), "--server", "x")
	const rows = `\n +p50[^\n]*\nin process +\S+s +\S+s +0s +-\nNode, --warm 1 +\S+s +\S+s +\S+s +1.00\nNode, cold +\S+s +\S+s +\S+s +1.00\n`
	want := regexp.MustCompile(`3 streams of each[^\n]*\n\nsilent[^\n]*` + rows + `\nown initialize` + rows + `\nown initialize with[^\n]*` + rows + `$`)
	if code != 0 || !want.MatchString(out) {
		t.Errorf("exit code %d, output:\n%s%s", code, out, errors)
	}
}

func TestComparePairs(t *testing.T) {
	const number = ` +\d+(?:\.\d+)?(?:µs)?`
	row := func(shape string) string { return `\n` + shape + strings.Repeat(number, 12) }
	want := regexp.MustCompile(`\nover a raw function: [^\n]*\n +bytes[^\n]*` + row("1x1") + row("64x1") + row("1x64") + `\n$`)
	for _, transport := range []string{"sse", "streamable"} {
		code, out, errors := compare(t, "--mode", "pairs", "--transport", transport, "--rounds", "1", "--round", "1ms", "--payload", "32")
		if code != 0 || !want.MatchString(out) {
			t.Errorf("exit code %d, output:\n%s%s", code, out, errors)
		}
	}
}

// The proxy is inprocess, which gets the port as its address: what is tested here is
// the measuring.
func TestCompareStreamableCalls(t *testing.T) {
	script := filepath.Join(t.TempDir(), "proxy")
	if err := os.WriteFile(script, []byte(`exec "`+filepath.Join(bin, "inprocess")+`" --addr "$2:$4"`), 0o600); err != nil {
		t.Fatal(err)
	}
	code, out, errors := compare(t, "--transport", "streamable", "--rounds", "1", "--clients", "2", "--calls", "20", "--node", "sh", "--proxy", script)
	if code != 0 || !strings.Contains(out, "\nnpm mcp-proxy ") || !strings.Contains(out, "\nratio ") {
		t.Errorf("exit code %d, output:\n%s%s", code, out, errors)
	}
}

func TestCompareIdle(t *testing.T) {
	code, out, errors := compare(t, "--mode", "idle", "--streams", "20", "--rest", "10ms")
	const row = ` +-?\d+\.\d +-?\d+\.\d +\d\.\d +-?\d+`
	want := regexp.MustCompile(`20 idle streams\n +resident[^\n]*\nraw` + row + `\nmcpgo-sse` + row + `\nbare` + row + `\n$`)
	if code != 0 || !want.MatchString(out) {
		t.Errorf("exit code %d, output:\n%s%s", code, out, errors)
	}
}

func TestCompareStorm(t *testing.T) {
	code, out, errors := compare(t, "--mode", "storm", "--rounds", "1", "--round", "1ms", "--rest", "10ms")
	const number = ` +\d+(?:\.\d+)?(?:µs)?`
	want := regexp.MustCompile(`a storm: [^\n]*\n +streams/s[^\n]*\nraw` + strings.Repeat(number, 11) + `\nmcpgo-sse` + strings.Repeat(number, 11) + `\nraw is left with `)
	if code != 0 || !want.MatchString(out) {
		t.Errorf("exit code %d, output:\n%s%s", code, out, errors)
	}
}
