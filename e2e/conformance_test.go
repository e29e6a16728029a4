package e2e

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/mcp-sse/mcp-sse/internal/ssetest"
)

// suite is one way to run the MCP conformance suite, and how many checks it has.
type suite struct {
	name   string
	pkg    string // the npm package; each version of the suite has one
	args   []string
	checks int
}

// The suites. required2026 has more scenarios than active2026: those that look at the
// headers, at input_required and at subscriptions too.
var (
	active2025   = suite{"2025", "conformance-2025", nil, 40}
	active2026   = suite{"2026", "conformance-2026", []string{"--spec-version", "2026-07-28"}, 42}
	required2026 = suite{"2026Required", "conformance-2026", []string{"--requirements", "2026-07-28"}, 153}
)

// check is what the suite writes about one requirement.
type check struct {
	scenario string
	ID       string `json:"id"`
	Status   string `json:"status"`
	Message  string `json:"errorMessage"`
}

// without returns the suite with so many checks less.
func (s suite) without(checks int) suite {
	s.checks -= checks
	return s
}

// conforms runs the suite against the URL and demands that every check succeeds, but
// that the scenarios in refused fail, and the single checks in it do not succeed.
func (s suite) conforms(t *testing.T, url string, refused ...string) {
	t.Helper()
	dir := t.TempDir()
	args := append([]string{npm(t, s.pkg+"/dist/index.js"), "server", "--url", url, "-o", dir}, s.args...)
	// A scenario that fails is in the results; the exit code says no more.
	printed, runErr := exec.CommandContext(within(t), node(t), args...).CombinedOutput()
	if _, summary, found := bytes.Cut(printed, []byte("=== SUMMARY ===")); found {
		printed = summary
	}
	passed := 0
	for _, c := range s.results(t, dir) {
		if slices.Contains(refused, c.scenario) {
			if c.Status != "FAILURE" {
				t.Errorf("%s: %s: %s, want a failure", c.scenario, c.ID, c.Status)
			}
			continue
		}
		if slices.Contains(refused, c.ID) {
			if c.Status == "SUCCESS" {
				t.Errorf("%s: %s: it succeeds: remove it from those that do not", c.scenario, c.ID)
			}
			continue
		}
		if c.Status == "SUCCESS" {
			passed++
			continue
		}
		t.Errorf("%s: %s: %s: %s", c.scenario, c.ID, c.Status, c.Message)
	}
	if passed != s.checks {
		t.Errorf("checks passed = %d, want %d; the suite ended with %v and printed\n%s", passed, s.checks, runErr, printed)
	}
}

// resultsDir is the directory of one scenario's results: its name and the time.
var resultsDir = regexp.MustCompile(`^server-(.+)-\d{4}-\d\d-\d\dT[\d-]+Z$`)

// results reads the checks that the suite has written. It leaves out the extension for
// tasks, which the conformance server does not have.
func (s suite) results(t *testing.T, dir string) []check {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(dir, "*", "checks.json"))
	ssetest.Must(t, err)
	var all []check
	for _, file := range files {
		name := resultsDir.FindStringSubmatch(filepath.Base(filepath.Dir(file)))
		if name == nil {
			t.Fatalf("the suite wrote %s: its names have changed", file)
		}
		if strings.HasPrefix(name[1], "tasks-") {
			continue
		}
		for _, c := range readChecks(t, file) {
			c.scenario = name[1]
			all = append(all, c)
		}
	}
	return all
}

func readChecks(t *testing.T, file string) []check {
	t.Helper()
	raw, err := os.ReadFile(file)
	ssetest.Must(t, err)
	var all []check
	if err := json.Unmarshal(raw, &all); err != nil {
		t.Fatalf("%s: %v", file, err)
	}
	return all
}

// The conformance server must conform itself: otherwise a check that fails behind the
// gateway says nothing of the gateway.
func TestConformanceServerConforms(t *testing.T) {
	t.Parallel()
	for s, stateless := range map[*suite]bool{&active2025: false, &active2026: true, &required2026: true} {
		if !all && s != &active2026 {
			continue // the others cost as much as all else
		}
		t.Run(s.name, func(t *testing.T) {
			t.Parallel()
			s.conforms(t, startConformance(t, stateless).url)
		})
	}
}

// startConformance starts the conformance server with Streamable HTTP.
func startConformance(t *testing.T, stateless bool) *program {
	t.Helper()
	return startProgram(t, nil, built(t, "conformance"), "-http", "127.0.0.1:0", fmt.Sprintf("-stateless=%t", stateless))
}

// The suite speaks Streamable HTTP only, so it also tests each way to reach a server
// behind that.
func TestGatewayConforms(t *testing.T) {
	t.Parallel()
	child := func(t *testing.T) []string { return []string{"--", built(t, "conformance")} }
	for name, test := range map[string]struct {
		server  func(t *testing.T) []string
		flags   []string
		suite   suite
		refused []string
	}{
		"Child":       {server: child, suite: active2025},
		"SharedChild": {server: child, suite: active2025.without(13), flags: []string{"--sessions", "shared"}, refused: unaddressed},
		"URL":         {server: func(t *testing.T) []string { return at(startConformance(t, false)) }, suite: active2025},
		// Clients of 2026-07-28 get all of it also from a server that only knows initialize.
		"LegacyChild":     {server: func(t *testing.T) []string { return []string{"--", built(t, "conformance"), "-legacy"} }, suite: active2026},
		"Stateless":       {server: func(t *testing.T) []string { return at(startConformance(t, true)) }, suite: active2026},
		"StatelessInFull": {server: func(t *testing.T) []string { return at(startConformance(t, true)) }, suite: required2026},
	} {
		if !all && name != "Child" && name != "LegacyChild" && name != "StatelessInFull" {
			continue
		}
		t.Run(test.suite.name+"/"+name, func(t *testing.T) {
			t.Parallel()
			g := startGateway(t, append(test.flags, test.server(t)...)...)
			test.suite.conforms(t, g.url, test.refused...)
		})
	}
}

// translated are the checks that a server of 2026-07-28 passes without a view alone: a view translates between it and a
// client of the same revision, as for all others. They want the keys of inputRequests that the server has given, where
// the gateway gives its own; a further check is left out when the first fails.
var translated = []string{"sep-2322-elicitation-incomplete", "sep-2322-ignore-unexpected-params"}

// A view of one conforms as its member does, but for what translated says. In a view of three the names of the first
// member stay as they are, so that the suite finds them, and the others have tools and resources beside them.
func TestViewConforms(t *testing.T) {
	t.Parallel()
	child := func(t *testing.T) []string { return []string{"--", built(t, "conformance")} }
	stateless := func(t *testing.T) []string { return at(startConformance(t, true)) }
	sessions := func(t *testing.T) []string { return at(startConformance(t, false)) }
	alone := map[string]any{"conformance": map[string]any{}}
	ofThree := map[string]any{"conformance": map[string]any{"prefix": ""}, "filesystem": map[string]any{}, "memory": map[string]any{}}
	for name, test := range map[string]struct {
		server  func(t *testing.T) []string
		members map[string]any
		suite   suite
		refused []string
	}{
		"OfOneChild":           {server: child, members: alone, suite: active2025},
		"OfOneForNewClients":   {server: child, members: alone, suite: active2026},
		"OfOneStateless":       {server: stateless, members: alone, suite: active2026},
		"OfThreeChild":         {server: child, members: ofThree, suite: active2025},
		"OfThreeForNewClients": {server: child, members: ofThree, suite: active2026},
		"OfThreeStateless":     {server: stateless, members: ofThree, suite: active2026},
		"OfOneURL":             {server: sessions, members: alone, suite: active2025},
		"OfThreeURL":           {server: sessions, members: ofThree, suite: active2025},
		"OfOneInFull":          {server: stateless, members: alone, suite: required2026.without(3), refused: translated},
		"OfThreeInFull":        {server: stateless, members: ofThree, suite: required2026.without(3), refused: translated},
	} {
		if !all && name != "OfThreeForNewClients" {
			continue
		}
		t.Run(test.suite.name+"/"+name, func(t *testing.T) {
			t.Parallel()
			_, url := startView(t, map[string]any{
				"conformance": entryOf(test.server(t)), "filesystem": entryOf(filesystem(t)), "memory": entryOf(memory(t)),
			}, test.members)
			test.suite.awaitView(t, url, test.members)
			test.suite.conforms(t, url, test.refused...)
		})
	}
}

// awaitView waits until all members of a view are known to clients such as the suite is: a view waits 5 s for a server
// that boots, and the suite waits for no list_changed. A first call with capabilities that no client has had opens a
// session at each member, which may take longer than the 600 ms that the suite reads a stream.
func (s suite) awaitView(t *testing.T, url string, members map[string]any) {
	t.Helper()
	c := openGoSDK("")(t, url, streamable, "")
	defer c.close()
	ssetest.Must(t, c.connect(within(t)))
	tools := map[string]bool{"test_simple_text": true}
	if len(members) > 1 {
		tools["filesystem__read_text_file"], tools["memory__read_graph"] = true, true
	}
	awaitTools(t, c, tools)
	ctx := within(t)
	if s.pkg == required2026.pkg {
		answer, err := http.DefaultClient.Do(ssetest.Request(ctx, http.MethodPost, url, `{"jsonrpc":"2.0","id":1,
			"method":"tools/call","params":{"name":"test_streaming_elicitation","arguments":{},"_meta":{
			"io.modelcontextprotocol/protocolVersion":"2026-07-28",
			"io.modelcontextprotocol/clientInfo":{"name":"conformance-client","version":"1.0.0"},
			"io.modelcontextprotocol/clientCapabilities":{"elicitation":{}}}}}`,
			"Accept", "application/json, text/event-stream", "MCP-Protocol-Version", "2026-07-28",
			"Mcp-Method", "tools/call", "Mcp-Name", "test_streaming_elicitation"))
		ssetest.Must(t, err)
		body, err := io.ReadAll(answer.Body)
		answer.Body.Close()
		ssetest.Must(t, err)
		ssetest.WantText(t, "first call", string(body), "nothing was asked")
	}
	for { // ends with ctx
		args := []string{npm(t, s.pkg+"/dist/index.js"), "server", "--url", url, "--scenario", "completion-complete"}
		if s.pkg == active2026.pkg {
			args = append(args, "--spec-version", "2026-07-28")
		}
		printed, err := exec.CommandContext(ctx, node(t), args...).CombinedOutput()
		if err == nil {
			return
		}
		if ctx.Err() != nil {
			t.Fatalf("the view does not complete: %v\n%s", err, printed)
		}
	}
}

// A server in this process conforms behind the gateway too.
func TestGatewayInProcessConforms(t *testing.T) {
	t.Parallel()
	for _, s := range []suite{active2025, active2026} {
		if !all && s.name != active2026.name {
			continue
		}
		t.Run(s.name, func(t *testing.T) {
			t.Parallel()
			s.conforms(t, startProgram(t, nil, built(t, "conformance"), "-http", "127.0.0.1:0", "-gateway").url)
		})
	}
}

// unaddressed are the scenarios in which a child process asks or tells its client
// something without saying to which request that belongs. On a shared session it
// reaches nobody. They have 13 checks.
var unaddressed = []string{
	"tools-call-with-logging",
	"tools-call-sampling", "tools-call-elicitation", "elicitation-sep1034-defaults", "elicitation-sep1330-enums",
}
