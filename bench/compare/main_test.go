package main

import (
	"bytes"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"
)

// bin holds the programs that are measured.
var bin string

func TestMain(m *testing.M) {
	var err error
	if bin, err = os.MkdirTemp("", "compare-"); err != nil {
		panic(err)
	}
	build := exec.Command("go", "build", "-o", bin, "../../cmd/sse-server", "../echo", "../proxy", "../inprocess")
	if out, err := build.CombinedOutput(); err != nil {
		panic(string(out))
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

// The child is bench/echo, which takes the script for an argument that it does not
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
	code, out, errors := compare(t, "--mode", "pairs", "--rounds", "1", "--round", "1ms", "--payload", "32", "--over", "raw")
	const number = ` +\d+(?:\.\d+)?(?:µs)?`
	row := func(shape string) string { return `\n` + shape + strings.Repeat(number, 12) }
	want := regexp.MustCompile(`^\nover a raw function: [^\n]*\n +bytes[^\n]*` + row("1x1") + row("64x1") + row("1x64") + `\n$`)
	if code != 0 || !want.MatchString(out) {
		t.Errorf("exit code %d, output:\n%s%s", code, out, errors)
	}
}

func TestCompareStreamablePairs(t *testing.T) {
	code, out, errors := compare(t, "--mode", "pairs", "--transport", "streamable", "--rounds", "1", "--round", "1ms", "--payload", "32", "--over", "raw")
	if code != 0 || !strings.Contains(out, "a bare net/http echo of JSON") || !strings.Contains(out, "\n64x1 ") {
		t.Errorf("exit code %d, output:\n%s%s", code, out, errors)
	}
}

// The proxy is bench/inprocess, which gets the port as its address: what is tested here is
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

func TestNoResult(t *testing.T) {
	for name, c := range map[string]struct {
		args []string
		want string
	}{
		"NoPrograms":  {[]string{"--bin", filepath.Join(bin, "none")}, "no such file"},
		"NoRounds":    {[]string{"--rounds", "0"}, "--rounds"},
		"NoServer":    {[]string{"--mode", "connect"}, "--server"},
		"NoProxy":     {[]string{"--transport", "streamable"}, "--proxy"},
		"ProxyEnds":   {[]string{"--transport", "streamable", "--proxy", "x", "--node", "false"}, "has ended"},
		"NoSuchMode":  {[]string{"--mode", "x"}, "--mode"},
		"ServerFails": {[]string{"--mode", "connect", "--timeout", "5s", "--node", filepath.Join(bin, "none"), "--server", "x"}, ""},
	} {
		t.Run(name, func(t *testing.T) {
			code, out, errors := compare(t, c.args...)
			if code != 1 || out != "" || !strings.Contains(errors, c.want) {
				t.Errorf("exit code %d, output %q, error %q, want 1 and an error with %q", code, out, errors, c.want)
			}
		})
	}
}

func TestRoundWithRefusalsIsNoResult(t *testing.T) {
	srv := httptest.NewServer(http.NotFoundHandler())
	defer srv.Close()
	a := arguments{Clients: 1, Calls: 1, InFlight: 1, Timeout: 5 * time.Second}
	if r, err := a.callRound(t.Context(), &process{url: srv.URL}); err == nil {
		t.Errorf("round = %+v, want an error", r)
	}
}

func TestServerThatEndsAtOnce(t *testing.T) {
	_, err := start("gone", []string{filepath.Join(bin, "sse-server"), "--no-such-flag"}, time.Minute)
	if err == nil || !strings.Contains(err.Error(), "did not say where it is") || !strings.Contains(err.Error(), "no-such-flag") {
		t.Errorf("start = %v, want the reason that it gave", err)
	}
}

func TestMedian(t *testing.T) {
	for want, values := range map[float64][]float64{1: {1}, 2: {3, 1, 2}, 3: {4, 3, 9, 1}} {
		if got := median(values); got != want {
			t.Errorf("median(%v) = %v, want %v", values, got, want)
		}
	}
}
