package e2e

import (
	"bytes"
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"testing"
)

// leakReport is what the leak test prints with --json.
type leakReport struct {
	Verdict       string           `json:"verdict"`
	Calls         int              `json:"calls"`
	Answered      int              `json:"answered"`
	Refused       int              `json:"refused"`
	Progress      int              `json:"progress"`
	Requests      int              `json:"requests"`
	Announcements int              `json:"announcements"`
	Faults        map[string]int64 `json:"faults"`
	PerSecond     float64          `json:"callsPerSecond"`
}

// startQuietGateway starts sse-server without debug logs, which are all that it
// would do with so many calls.
func startQuietGateway(t *testing.T, args ...string) *gateway {
	t.Helper()
	g := launch(t, append([]string{"--log-level", "error"}, args...)...)
	g.url = g.awaitMatch("the URL of the stream", &g.out, streamURL)
	return g
}

// The leak test against each way of sharing sessions, with a child that answers in
// random order and reports progress with the secret of the call; it may also ask the
// client with it. And over one session with a server at a URL.
func TestLeakTest(t *testing.T) {
	t.Parallel()
	child := []string{"--", built(t, "echo"), "--shuffle"}
	asking := append(child, "--ask")
	progress := []string{"--progress-tool", "progress", "--progress-argument", "message"}
	one, two := "anna-0123456789abcdef0123", "ben-0123456789abcdef01234"
	tokens := filepath.Join(t.TempDir(), "tokens")
	if err := os.WriteFile(tokens, []byte("anna:"+one+"\nben:"+two+"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	twoPrincipals := append([]string{"--token", one, "--token", two}, progress...)
	withTokens := func(more ...string) []string { return append([]string{"--auth-tokens-file", tokens}, more...) }
	for name, c := range map[string]struct {
		gateway, leaktest []string
		over              string // transport; empty: HTTP+SSE
		calls             int
		asks              bool   // with each progress, in one call at a time
		remote            string // transport of a server at a URL
	}{
		"StreamableForEach": {over: "streamable", gateway: asking, asks: true, calls: 64 * 48,
			leaktest: append([]string{"--in-flight", "1", "--capabilities", `{"elicitation":{}}`}, progress...)},
		"StreamableTwoPrincipals":     {over: "streamable", gateway: append(withTokens("--sessions", "shared"), child...), leaktest: append([]string{"--clients", "2"}, twoPrincipals...), calls: 2_000},
		"StreamableWithoutInitialize": {over: "streamable", gateway: append([]string{"--sessions", "shared"}, child...), leaktest: append([]string{"--no-initialize"}, progress...), calls: 3_000},
		"StatelessTwoPrincipals":      {over: "stateless", gateway: append(withTokens(), child...), leaktest: twoPrincipals, calls: 2_000},
		"OneSessionForAllAndNoInitialize": {gateway: append([]string{"--sessions", "shared"}, child...),
			leaktest: append([]string{"--no-initialize"}, progress...), calls: 5_000},
		"OneForEach":       {gateway: child, leaktest: progress, calls: 5_000},
		"WarmForEach":      {gateway: append([]string{"--warm", "4"}, child...), leaktest: progress, calls: 5_000},
		"OneAtATime":       {gateway: append([]string{"--sessions", "shared", "--max-in-flight", "1"}, child...), leaktest: progress, calls: 5_000},
		"RemoteStreamable": {remote: "streamable", calls: 1_000},
		"RemoteStateless":  {remote: "stateless", calls: 1_000},
		"RemoteSSE":        {remote: "sse", calls: 1_000},
	} {
		if !all && name != "OneSessionForAllAndNoInitialize" && name != "StatelessTwoPrincipals" && name != "RemoteStreamable" {
			continue
		}
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if c.remote != "" {
				c.gateway = append([]string{"--sessions", "shared"}, at(startProgram(t, nil, built(t, "everything"), "-transport", c.remote))...)
			}
			g := startQuietGateway(t, c.gateway...)
			if c.over != "" {
				c.leaktest = append([]string{"--transport", c.over}, c.leaktest...)
			}
			if !all {
				c.calls = 1024
			}
			r := leaktest(t, append(c.leaktest, "--calls", strconv.Itoa(c.calls), g.url)...)
			if r.Verdict != "clean" || r.Calls < c.calls || r.Answered != r.Calls {
				t.Errorf("report = %+v, want %d right answers", r, c.calls)
			}
			if c.remote == "" && r.Progress != r.Calls { // two for every other call
				t.Errorf("%d progress for %d calls, want as many", r.Progress, r.Calls)
			}
			if c.asks != (r.Requests > 0) || c.asks && r.Requests != r.Progress/2 {
				t.Errorf("%d requests came with %d progress, want half as many if the server asks", r.Requests, r.Progress)
			}
			t.Logf("%.0f calls/s", r.PerSecond)
		})
	}
}

// The child dies in the middle of what it is asked, again and again. Nothing crosses
// between its sessions either. The calls of progress, which is safe to repeat, are all
// answered; those of echo get an error.
func TestLeakTestWhileTheServerDies(t *testing.T) {
	t.Parallel()
	g := startQuietGateway(t, "--sessions", "shared", "--", built(t, "echo"), "--shuffle", "--die-at", "500")
	r := leaktest(t, "--progress-tool", "progress", "--progress-argument", "message", "--calls", "5120", g.url)
	if r.Verdict != "unproven" || r.Answered < r.Calls/2 || r.Refused < 10 || r.Answered+r.Refused != r.Calls {
		t.Errorf("report = %+v, want all calls answered or refused", r)
	}
	if r.Progress != r.Calls { // two for every other call: the server dies before it reports what it does not answer
		t.Errorf("%d progress for %d calls, want as many", r.Progress, r.Calls)
	}
	t.Logf("%d answered, %d refused", r.Answered, r.Refused)
}

// leaktest runs the leak test to its end and returns its report.
func leaktest(t *testing.T, args ...string) leakReport {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), built(t, "leaktest"), append([]string{"--json"}, args...)...)
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	out, err := cmd.Output() // the exit code says what the report does
	var r leakReport
	if json.Unmarshal(out, &r) != nil || r.Verdict == "faulty" {
		t.Fatalf("leaktest: %v\n%s%s", err, out, &stderr)
	}
	return r
}
