package main

import (
	"bytes"
	"context"
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"

	"github.com/mark3labs/mcp-go/mcp"
	"github.com/mark3labs/mcp-go/server"
	"go.uber.org/goleak"

	"github.com/mcp-sse/mcp-sse/tools/internal/load"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// leaktest runs the program against a server that wants the header "Authorization: yes".
// If crossed, it answers each call but the first with the message of the one before.
func leaktest(t *testing.T, crossed bool, args ...string) (code int, stdout, stderr string) {
	t.Helper()
	var mu sync.Mutex
	last := ""
	echo := func(_ context.Context, r mcp.CallToolRequest) (*mcp.CallToolResult, error) {
		message := r.GetString("message", "")
		mu.Lock()
		defer mu.Unlock()
		answer := message
		if crossed && last != "" {
			answer = last
		}
		last = message
		return mcp.NewToolResultText(answer), nil
	}
	s := server.NewMCPServer("echo", "1")
	s.AddTool(mcp.NewTool("echo", mcp.WithString("message")), echo)
	handler := server.NewSSEServer(s)
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get("Authorization") != "yes" {
			http.Error(w, "who are you", http.StatusUnauthorized)
			return
		}
		handler.ServeHTTP(w, r)
	}))
	defer srv.Close()
	var out, errors bytes.Buffer
	all := append([]string{"--clients", "4", "--calls", "80", "--in-flight", "2", srv.URL + "/sse"}, args...)
	code = run(t.Context(), all, &out, &errors)
	return code, out.String(), errors.String()
}

func TestVerdicts(t *testing.T) {
	for _, c := range []struct {
		crossed       bool
		code          int
		verdict, text string
	}{
		{false, exitClean, "clean", "CLEAN: nothing crossed, nothing was lost\n"},
		{true, exitFaulty, "faulty", "FAULTY: clients got what belongs to others\n"},
	} {
		t.Run(c.verdict, func(t *testing.T) {
			t.Parallel()
			code, out, _ := leaktest(t, c.crossed, "-H", "Authorization: yes")
			if code != c.code || !strings.HasPrefix(out, c.text) || !strings.Contains(out, "80 sent, ") || strings.Contains(out, "with the secret of client ") != c.crossed {
				t.Errorf("exit code %d, output:\n%s", code, out)
			}
		})
		t.Run(c.verdict+" in JSON", func(t *testing.T) {
			t.Parallel()
			code, out, _ := leaktest(t, c.crossed, "-H", "Authorization: yes", "--json")
			var report struct {
				Verdict string           `json:"verdict"`
				Calls   int              `json:"calls"`
				Faults  map[string]int64 `json:"faults"`
			}
			err := json.Unmarshal([]byte(out), &report)
			if crossed, ok := report.Faults["crossed"]; err != nil || code != c.code || report.Verdict != c.verdict || report.Calls != 80 || !ok || crossed > 0 != c.crossed {
				t.Errorf("exit code %d, %v, output:\n%s", code, err, out)
			}
		})
	}
}

func TestHeadline(t *testing.T) {
	faults := func(kinds ...load.Fault) (f load.Faults) {
		for _, kind := range kinds {
			f[kind]++
		}
		return f
	}
	for _, c := range []struct {
		report load.Report
		code   int
		want   string
	}{
		{load.Report{Answered: 1}, 0, "CLEAN: nothing crossed, nothing was lost"},
		{load.Report{Answered: 1, Refused: 1}, 2, "UNPROVEN: nothing crossed, but"},
		{load.Report{}, 2, "UNPROVEN: "},
		{load.Report{Answered: 1, Faults: faults(load.Crossed, load.Lost)}, 1, "FAULTY: clients got what belongs to others"},
		{load.Report{Answered: 1, Faults: faults(load.Unknown, load.Lost)}, 1, "FAULTY: clients got what is not theirs"},
		{load.Report{Answered: 1, Refused: 1, Faults: faults(load.Duplicated)}, 1, "FAULTY: nothing crossed, but"},
	} {
		if got, code := headline(&c.report), verdicts[c.report.Verdict()].code; !strings.HasPrefix(got, c.want) || code != c.code {
			t.Errorf("%+v: got %q, %d, want %q, %d", c.report, got, code, c.want, c.code)
		}
	}
	if got := text(&load.Report{Refused: 1, Refusal: "429 slow down"}); !strings.Contains(got, "refusal   429 slow down\n") {
		t.Errorf("text:\n%s", got)
	}
}

func TestCannotRun(t *testing.T) {
	for want, args := range map[string][]string{
		"401":                       {"-H", "Authorization: no"},
		"--header takes NAME:VALUE": {"-H", "password"},
		"there is no tool x":        {"-H", "Authorization: yes", "--tool", "x"},
		"--x":                       {"--x"},
		"unexpected argument":       {"http://127.0.0.1/sse"},
		"at least 1":                {"--clients=-1"},
		"expected duration":         {"--timeout", "5"},
	} {
		code, out, errors := leaktest(t, false, args...)
		if code != exitUnproven || out != "" || !strings.Contains(errors, want) {
			t.Errorf("%q: exit code %d, output %q, error %q, want %d and %q", args, code, out, errors, exitUnproven, want)
		}
	}
	if code, out, _ := leaktest(t, false, "--help"); code != 0 || !strings.Contains(out, "Exit code 0") {
		t.Errorf("--help: exit code %d, output:\n%s", code, out)
	}
}
