package e2e

import (
	"bytes"
	"encoding/json"
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
	Progress      int              `json:"progress"`
	Announcements int              `json:"announcements"`
	Faults        map[string]int64 `json:"faults"`
	PerSecond     float64          `json:"callsPerSecond"`
}

// The leak test against each way of sharing sessions, with a child that answers in
// random order and reports progress with the secret of the call.
func TestLeakTest(t *testing.T) {
	bin := t.TempDir()
	build := exec.Command("go", "build", "-o", bin, "./leaktest", "../bench/echo")
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("build leaktest and echo: %v\n%s", err, out)
	}
	child := []string{"--", filepath.Join(bin, "echo"), "--shuffle"}
	progress := []string{"--progress-tool", "progress", "--progress-argument", "message"}
	for name, c := range map[string]struct {
		gateway, leaktest []string
		calls             int
		silent            bool // it has no tool that reports progress
	}{
		"OneSessionForAll": {gateway: append([]string{"--sessions", "shared"}, child...), leaktest: progress, calls: 100_000},
		"ThreeSessionsForAllAndNoInitialize": {gateway: append([]string{"--sessions", "shared", "--sessions-size", "3"}, child...),
			leaktest: append([]string{"--no-initialize"}, progress...), calls: 10_000},
		"OneForEach":   {gateway: child, leaktest: progress, calls: 10_000},
		"DemoForAll":   {gateway: []string{"--sessions", "shared"}, calls: 5_000, silent: true},
		"WarmForEach":  {gateway: append([]string{"--warm", "4"}, child...), leaktest: progress, calls: 5_000},
		"OneAtATime":   {gateway: append([]string{"--sessions", "shared", "--max-in-flight", "1"}, child...), leaktest: progress, calls: 5_000},
		"SmallestPool": {gateway: append([]string{"--sessions", "shared", "--warm", "1"}, child...), leaktest: progress, calls: 5_000},
	} {
		t.Run(name, func(t *testing.T) {
			// Debug logs of so many calls would be all that it does.
			g := launch(t, append([]string{"--log-level", "warn"}, c.gateway...)...)
			g.url = g.awaitMatch("the URL of the stream", &g.out, streamURL)
			r := leaktest(t, bin, append(c.leaktest, "--calls", strconv.Itoa(c.calls), g.url)...)
			if r.Verdict != "clean" || r.Calls < c.calls || r.Answered != r.Calls {
				t.Errorf("report = %+v, want %d right answers", r, c.calls)
			}
			if !c.silent && r.Progress != r.Calls { // two for every other call
				t.Errorf("%d progress for %d calls, want as many", r.Progress, r.Calls)
			}
			t.Logf("%.0f calls/s", r.PerSecond)
		})
	}
}

// leaktest runs the leak test to its end and returns its report.
func leaktest(t *testing.T, bin string, args ...string) leakReport {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), filepath.Join(bin, "leaktest"), append([]string{"--json"}, args...)...)
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if err != nil {
		t.Errorf("leaktest: %v\n%s%s", err, out, &stderr)
	}
	var r leakReport
	if err := json.Unmarshal(out, &r); err != nil {
		t.Fatalf("report of leaktest: %v\n%s", err, out)
	}
	return r
}
