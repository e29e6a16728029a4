package load_test

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/mcp-sse/mcp-sse/tools/internal/load"
)

// quick are options of a run that takes no longer than it must.
func quick() load.Options {
	return load.Options{Clients: 8, Calls: 160, InFlight: 2, Timeout: 20 * time.Second, Settle: time.Millisecond}
}

func mustRun(t *testing.T, url string, opts load.Options) *load.Report {
	t.Helper()
	r, err := load.Run(t.Context(), url, opts)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

func TestRightServerIsClean(t *testing.T) {
	for name, c := range map[string]struct {
		both   bool
		call   func(s *fakeServer, from *link, r request)
		starts int64
		change func(*load.Options)
	}{
		"Starting": {starts: 80, call: func(s *fakeServer, from *link, r request) {
			if r.Params.Name == "progress" {
				from.start(r.Params.Meta.Token, "")
			}
			s.echo(from, r)
		}, change: func(o *load.Options) { o.ProgressTool, o.ProgressArgument = "progress", "message" }},
		"Plain":       {change: func(*load.Options) {}},
		"FreeRunning": {change: func(o *load.Options) { o.FreeRunning = true }},
		"OneClient":   {change: func(o *load.Options) { o.Clients, o.InFlight = 1, 1 }},
		"Progress":    {change: func(o *load.Options) { o.ProgressTool, o.ProgressArgument = "progress", "message" }},
		"ToolNamed":   {change: func(o *load.Options) { o.Tool, o.Argument = "echo", "message" }},
		"BothNames":   {both: true, change: func(o *load.Options) { o.NoInitialize = true }},
		"OneName":     {change: func(o *load.Options) { o.NoInitialize = true }},
		"Paced":       {change: func(o *load.Options) { o.Rate = 1e6 }},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := (&fakeServer{both: c.both, call: c.call}).serve(t)
			opts := quick()
			c.change(&opts)
			r := mustRun(t, s.url, opts)
			if r.Verdict() != load.Clean || r.Calls != 160 || r.Answered != 160 || r.Refused != 0 {
				t.Errorf("report = %+v, want 160 right answers", r)
			}
			if r.Seconds <= 0 || r.PerSecond <= 0 || r.P50 <= 0 || r.P99 < r.P50 {
				t.Errorf("report = %+v, want times", r)
			}
			if r.Starting != c.starts {
				t.Errorf("%d progress of a start, want %d", r.Starting, c.starts)
			}
			if r.Tool != "echo" || opts.ProgressTool != "" && r.Progress != 80 || c.both && r.Announcements != 8 {
				t.Errorf("report = %+v, want the tool echo, 80 progress with it, and 8 announcements", r)
			}
		})
	}
}

// In lock step all clients use an id before any of them uses the next one.
func TestIDsAreTheSameInLockStep(t *testing.T) {
	var ids, tokens []string
	s := (&fakeServer{call: func(s *fakeServer, from *link, r request) {
		ids, tokens = append(ids, string(r.ID)), append(tokens, string(r.Params.Meta.Token))
		s.echo(from, r)
	}}).serve(t)
	opts := quick()
	opts.InFlight, opts.Calls = 1, 153 // rounded up to 160
	mustRun(t, s.url, opts)
	for i, id := range ids {
		if want := fmt.Sprint(i/8 + 1); id != want || tokens[i] != want {
			t.Fatalf("call %d has id %s and token %s, want %s: %q", i, id, tokens[i], want, ids)
		}
	}
	if len(ids) != 160 {
		t.Errorf("%d calls, want 160", len(ids))
	}
}

// Calls go where Host says, and all else to the server of call 0.
func TestCallsGoToOtherReplicas(t *testing.T) {
	s := (&fakeServer{}).serve(t)
	var calls atomic.Int64
	other := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		calls.Add(1)
		s.ServeHTTP(w, r)
	}))
	t.Cleanup(other.Close)
	opts := quick()
	opts.Host = func(_ int, call int64) string {
		url := other.URL
		if call%2 == 0 {
			url = strings.TrimSuffix(s.url, "/sse")
		}
		return strings.TrimPrefix(url, "http://")
	}
	if r := mustRun(t, s.url, opts); r.Verdict() != load.Clean || r.Answered != 160 || calls.Load() != 80 {
		t.Errorf("report = %+v, %d requests elsewhere, want 160 right answers, and 80 elsewhere", r, calls.Load())
	}
}

// The server answers a call when its own requests have been answered.
func TestRequestsOfTheServerAreAnswered(t *testing.T) {
	s := (&fakeServer{
		call: func(s *fakeServer, from *link, r request) {
			if s.calls != 20 {
				s.echo(from, r)
				return
			}
			s.held = []heldCall{{from, r}}
			from.event("message", `{"jsonrpc":"2.0","id":"p","method":"ping"}`)
			from.event("message", `{"jsonrpc":"2.0","id":"r","method":"roots/list"}`)
		},
		reply: func(s *fakeServer) {
			if slices.Contains(s.replies, `"p" {}`) && slices.Contains(s.replies, `"r" {"code":-32601,"message":"method not found"}`) {
				s.echo(s.held[0].from, s.held[0].request)
			}
		},
	}).serve(t)
	if r := mustRun(t, s.url, quick()); r.Requests != 2 || r.Verdict() != load.Clean {
		t.Errorf("report = %+v, want 2 requests and nothing wrong", r)
	}
}

func TestRefusalsProveNothing(t *testing.T) {
	refusal := func(body string) func(*fakeServer, *link, request) {
		return once(func(_ *fakeServer, from *link, r request) {
			from.event("message", fmt.Sprintf(`{"jsonrpc":"2.0","id":%s,%s}`, r.ID, body))
		})
	}
	for name, c := range map[string]struct {
		server  *fakeServer
		refused int64
		text    string
	}{
		"Error":     {&fakeServer{call: refusal(`"error":{"code":-1,"message":"busy"}`)}, 1, "busy"},
		"ToolError": {&fakeServer{call: refusal(`"result":{"isError":true,"content":[{"type":"text","text":"broken"}]}`)}, 1, "broken"},
		"Status":    {&fakeServer{refuse: http.StatusTooManyRequests}, 160, "429"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := mustRun(t, c.server.serve(t).url, quick())
			if r.Verdict() != load.Unproven || r.Refused != c.refused || !strings.Contains(r.Refusal, c.text) {
				t.Errorf("report = %+v, want %d refused with %s", r, c.refused, c.text)
			}
		})
	}
}
