package connstate_test

import (
	"bytes"
	"encoding/json"
	"log/slog"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/mcp-sse/mcp-sse/connstate"
	"github.com/mcp-sse/mcp-sse/internal/asker"
	"github.com/mcp-sse/mcp-sse/jsonrpc"
	"github.com/mcp-sse/mcp-sse/metrics"
)

// audited is a line of the audit log.
type audited struct {
	Principal, Tool, Outcome  string
	Member, MemberTool        string
	Seconds                   float64
	RequestBytes, AnswerBytes int
}

// audit returns the lines of the audit log while do runs.
func audit(t *testing.T, opts connstate.Options, client connstate.Client, do func(w *world)) (lines []audited) {
	t.Helper()
	var out bytes.Buffer
	opts.Audit = slog.New(slog.NewJSONHandler(&out, nil))
	w := newWorld(t, opts, client)
	do(w)
	w.c.Close(connstate.ClosedClient)
	if strings.Contains(out.String(), "hunter2") {
		t.Errorf("arguments, or a result, are in %s", out.String())
	}
	for line := range strings.Lines(out.String()) {
		var a audited
		if err := json.Unmarshal([]byte(line), &a); err != nil {
			t.Errorf("%s: %v", line, err)
		}
		lines = append(lines, a)
	}
	return lines
}

func callOf(t *testing.T, id, name string) *jsonrpc.Message {
	t.Helper()
	m, err := jsonrpc.Parse([]byte(`{"jsonrpc":"2.0","id":` + id + `,"method":"tools/call","params":{` + name + `"arguments":{"a":"hunter2"}}}`))
	must(t, err)
	return m
}

// Each call of a tool has one line, also one that is not answered, and other requests none.
func TestEachToolCallIsAudited(t *testing.T) {
	call := callOf(t, "1", `"name":"search",`)
	answer := []byte(`{"jsonrpc":"2.0","id":1,"result":{"content":"hunter2"}}`)
	for name, tc := range map[string]struct {
		do      func(r *connstate.Request)
		outcome string
		bytes   int
	}{
		"answered":        {func(r *connstate.Request) { r.Answer(answer, "") }, "ok", len(answer)},
		"answered twice":  {func(r *connstate.Request) { r.Answer(answer, ""); r.Fail(jsonrpc.Errorf(-1, "late"), "timeout") }, "ok", len(answer)},
		"error of a tool": {func(r *connstate.Request) { r.Answer(answer, metrics.ErrorTool) }, "tool_error", len(answer)},
		"error":           {func(r *connstate.Request) { r.Answer(answer, "-32602") }, "-32602", len(answer)},
		"failed": {func(r *connstate.Request) { r.Fail(jsonrpc.Errorf(-32603, "m"), metrics.ErrorTimeout) }, "timeout",
			len(`{"jsonrpc":"2.0","id":1,"error":{"code":-32603,"message":"m"}}`)},
		"never answered": {func(*connstate.Request) {}, "closed", 0},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				lines := audit(t, connstate.Options{}, connstate.Client{Principal: "alice"}, func(w *world) {
					r, err := w.c.BeginRequest(call)
					must(t, err)
					finish(w.ask("2", "tools/list"), "")
					time.Sleep(1500 * time.Millisecond)
					tc.do(r)
				})
				want := audited{Principal: "alice", Tool: "search", Outcome: tc.outcome, Seconds: 1.5, RequestBytes: len(call.Raw()), AnswerBytes: tc.bytes}
				equal(t, "lines", lines, []audited{want})
			})
		})
	}
}

func TestRefusedToolCallsAreAudited(t *testing.T) {
	lines := audit(t, connstate.Options{MaxPending: 1}, connstate.Client{}, func(w *world) {
		finish(w.ask("0", "tools/list"), "")
		r, err := w.c.BeginRequest(callOf(t, "1", `"name":"a",`))
		must(t, err)
		for _, id := range []string{"1", "2"} {
			if _, err := w.c.BeginRequest(callOf(t, id, `"name":"b",`)); err == nil {
				t.Errorf("call %s was taken", id)
			}
		}
		finish(r, "")
	})
	var got []string
	for _, line := range lines {
		got = append(got, line.Tool+" "+line.Outcome)
	}
	equal(t, "calls", got, []string{"b refused", "b refused", "a ok"})
}

// The tools in the log have short and valid names, and never that of one that does not run. A
// principal is whole: two that begin alike are two.
func TestAuditedNames(t *testing.T) {
	long := strings.Repeat("x", 1000)
	for name, want := range map[string]string{
		``:                                  "",
		`"name":7,`:                         "",
		`"name":"a\n\"}b",`:                 "a\n\"}b",
		`"name":"` + long + `",`:            long[:256],
		`"name":"` + long[:255] + `é",`:     long[:255] + "\uFFFD",
		`"name":"a","name":"b",`:            "(ambiguous)",
		`"name":"a","Name":"b",`:            "(ambiguous)",
		`"name":"a","_meta":{"name":"b"},`:  "a",
		`"name":"a","arguments":{"b":"c"},`: "a",
	} {
		lines := audit(t, connstate.Options{}, connstate.Client{Principal: "p\x00" + long}, func(w *world) {
			r, err := w.c.BeginRequest(callOf(t, "1", name))
			must(t, err)
			finish(r, "")
		})
		if len(lines) != 1 || lines[0].Tool != want || lines[0].Principal != "p\x00"+long {
			t.Errorf("%.40s: got %+v, want the tool %q", name, lines, want)
		}
	}
}

// In front of a view a message has what comes beside it: its credentials, and where the view says that it leads, which
// is in the audit log. In front of any other server it stays as it is.
func TestRequestsOfAView(t *testing.T) {
	for _, isView := range []bool{true, false} {
		call := callOf(t, "1", `"name":"github__search",`)
		lines := audit(t, connstate.Options{IsView: func() bool { return isView }}, connstate.Client{}, func(w *world) {
			w.c.SetCredentials(call, "Bearer x")
			r, err := w.c.BeginRequest(call)
			must(t, err)
			beside := asker.RequestFrom(call.Context)
			equal(t, "the server gets a Request", beside != nil, isView)
			if isView {
				equal(t, "credentials", beside.Credentials(), "Bearer x")
			}
			beside.LeadsTo("github", "search")
			finish(r, "")
		})
		want := audited{Tool: "github__search", Outcome: "ok"}
		if isView {
			want.Member, want.MemberTool = "github", "search"
		}
		lines[0].Seconds, lines[0].RequestBytes, lines[0].AnswerBytes = 0, 0, 0
		equal(t, "lines", lines, []audited{want})
	}
}
