package handshake_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/goleak"

	"github.com/mcp-sse/mcp-sse/handshake"
	"github.com/mcp-sse/mcp-sse/internal/multiplex"
	"github.com/mcp-sse/mcp-sse/internal/rawjson"
	"github.com/mcp-sse/mcp-sse/internal/ssetest"
	"github.com/mcp-sse/mcp-sse/jsonrpc"
	"github.com/mcp-sse/mcp-sse/metrics"
)

// stored is an InitializeResult as no encoder of ours would write it.
const stored = `{ "protocolVersion" : "2025-06-18","capabilities":{"tools":{"listChanged":true},"big":9007199254740993,"n":1.50},"serverInfo":{"name":"s\u00e9","version":"1"},"protocolversion":"x","_meta":{"protocolVersion":1} }`

func TestRun(t *testing.T) {
	c := &caller{reply: `{"jsonrpc":"2.0","id":1,"result":` + stored + `}`}
	params := handshake.Synthetic(handshake.ClientInfo{Name: "gateway", Version: "1"})
	r, err := handshake.Run(t.Context(), c, params)
	if err != nil {
		t.Fatal(err)
	}
	if string(r.Raw) != stored || r.Version != "2025-06-18" {
		t.Errorf("got %+v", r)
	}
	ssetest.Want(t, "sent", c.sent, []string{"initialize " + string(params), "notifications/initialized"})
}

// Versions are the server's affair: one that we do not know is still a session.
func TestRunTakesAnyVersion(t *testing.T) {
	for _, version := range []string{"2024-11-05", "2030-01-01", "\\u0032025", ""} {
		c := &caller{reply: `{"jsonrpc":"2.0","id":1,"result":{"protocolVersion":"` + version + `"}}`}
		r, err := handshake.Run(t.Context(), c, nil)
		if want := strings.ReplaceAll(version, "\\u0032", "2"); err != nil || r.Version != want {
			t.Errorf("got %v, %v, want version %q", r, err, want)
		}
	}
}

// exit is the end of a program.
type exit struct{}

func (exit) Error() string { return "exit status 3" }
func (exit) Exited()       {}

func TestRunFails(t *testing.T) {
	gone := errors.New("child exited: 1")
	result := func(s string) string { return `{"jsonrpc":"2.0","id":1,"result":` + s + `}` }
	refusal := func(s string) string { return `{"jsonrpc":"2.0","id":1,"error":` + s + `}` }
	for _, tc := range []struct {
		name     string
		c        *caller
		details  string
		cause    error
		notified bool
	}{
		{"refused", &caller{reply: refusal(`{"code":-32602,"message":"Unsupported protocol version","data":{"supported":[]}}`)},
			"the server refused initialize: Unsupported protocol version (code -32602)", nil, false},
		{"refused at length", &caller{reply: refusal(`{"code":1,"message":"` + strings.Repeat("é", 1000) + `"}`)},
			"the server refused initialize: " + strings.Repeat("é", 200) + " (code 1)", nil, false},
		{"refused without reason", &caller{reply: refusal(`"no"`)}, "the server refused initialize", nil, false},
		{"session over", &caller{err: gone}, "the server did not answer initialize", gone, false},
		{"session lost", &caller{err: &multiplex.LostError{Server: "the server", Err: gone}}, "the session was lost before the server answered", gone, false},
		{"program ended", &caller{err: &multiplex.LostError{Server: "the server", Err: fmt.Errorf("%w; stderr: x", exit{})}}, "the program ended before it answered", exit{}, false},
		{"sends back what it gets", &caller{reply: refusal(`{"code":-32600,"message":"` + multiplex.Echo + `"}`)}, multiplex.Echo, nil, false},
		{"canceled", &caller{err: context.Canceled}, "the server did not answer initialize", context.Canceled, false},
		{"no version", &caller{reply: result(`{"capabilities":{}}`)}, "the server's initialize result has no protocolVersion", nil, false},
		{"result of null", &caller{reply: result(`null`)}, "the server's initialize result has no protocolVersion", nil, false},
		{"gone before initialized", &caller{reply: result(stored), notify: io.ErrClosedPipe}, "the server ended during the handshake", io.ErrClosedPipe, true},
	} {
		t.Run(tc.name, func(t *testing.T) {
			r, err := handshake.Run(t.Context(), tc.c, nil)
			checkFailure(t, r, err, tc.details, tc.cause)
			ssetest.Want(t, "both messages were sent", len(tc.c.sent) == 2, tc.notified)
		})
	}
}

// A server that refuses the version is asked for older ones: which, says the table of
// olderVersions.
func TestOlderVersionsAreTried(t *testing.T) {
	const ok = `{"jsonrpc":"2.0","id":1,"result":` + stored + `}`
	refusal := func(s string) string { return `{"jsonrpc":"2.0","id":1,"error":` + s + `}` }
	const newest = "2025-11-25"
	for name, tc := range map[string]struct {
		asked, refusal string
		replies        int // refusals before the answer
		want           []string
	}{
		"names some":             {newest, `{"code":-32000,"message":"unsupported (supported: 2024-11-05, 2025-03-26)"}`, 1, []string{newest, "2025-03-26"}},
		"names some in its data": {newest, `{"code":-32602,"message":"m","data":{"supported":["2024-11-05"],"requested":"2025-11-25"}}`, 1, []string{newest, "2024-11-05"}},
		"names some, and fails":  {newest, `{"code":-32602,"message":"2024-11-05"}`, 9, []string{newest, "2024-11-05"}},
		"names none":             {newest, `{"code":-32602,"message":"m"}`, 3, []string{newest, "2025-06-18", "2025-03-26", "2024-11-05"}},
		"400":                    {newest, `{"code":-32603,"message":"m","data":{"reason":"request_refused","status":400}}`, 2, []string{newest, "2025-06-18", "2025-03-26"}},
		"no more to try":         {"2024-11-05", `{"code":-32602,"message":"m"}`, 9, []string{"2024-11-05"}},
		"newer than any":         {"2099-01-01", `{"code":-32602,"message":"m"}`, 3, []string{"2099-01-01", newest, "2025-06-18", "2025-03-26"}},
		"newest is older":        {"2026-07-28", `{"code":-32000,"message":"use 2025-11-25 or 2025-06-18"}`, 1, []string{"2026-07-28", newest}},
		"older than any":         {"2024-10-07", `{"code":-32602,"message":"m"}`, 1, []string{"2024-10-07", newest}},
		"no date":                {"DRAFT-2025-v2", `{"code":-32602,"message":"m"}`, 1, []string{"DRAFT-2025-v2", newest}},
		"-32000 with a text":     {newest, `{"code":-32000,"message":"Unsupported protocol Version"}`, 1, []string{newest, "2025-06-18"}},
		"-32000 without either":  {newest, `{"code":-32000,"message":"m"}`, 9, []string{newest}},
		"another error":          {newest, `{"code":-32600,"message":"2024-11-05"}`, 9, []string{newest}},
		"401":                    {newest, `{"code":-32603,"message":"m","data":{"reason":"unauthorized","status":401}}`, 9, []string{newest}},
	} {
		c := &caller{reply: ok}
		for range tc.replies {
			c.before = append(c.before, refusal(tc.refusal))
		}
		r, err := handshake.Run(t.Context(), c, json.RawMessage(`{"protocolVersion":"`+tc.asked+`","capabilities":{}}`))
		var got []string
		for _, sent := range c.sent {
			if _, params, ok := strings.Cut(sent, "initialize "); ok {
				version, _ := rawjson.MemberText(json.RawMessage(params), "protocolVersion")
				got = append(got, version)
			}
		}
		ssetest.Want(t, name+": asked for", got, tc.want)
		if last := tc.want[len(tc.want)-1]; err == nil && r.Lowered != last || err == nil != (tc.replies < len(tc.want)) {
			t.Errorf("%s: got %+v, %v", name, r, err)
		}
	}
}

func checkFailure(t *testing.T, r *handshake.Result, err error, details string, cause error) {
	t.Helper()
	f, ok := errors.AsType[*handshake.Failure](err)
	if !ok || r != nil {
		t.Fatalf("got %v, %v, want a Failure", r, err)
	}
	if f.Phase != handshake.PhaseProcessing || f.Details != details || !errors.Is(f, cause) && cause != nil || f.Err == nil != (cause == nil) {
		t.Errorf("got %+v, want %q in phase request_processing because of %v", f, details, cause)
	}
	if f.Attempt != 0 || f.RetryAfter != 0 {
		t.Errorf("got attempt %d and retry after %v: those are for who runs it again", f.Attempt, f.RetryAfter)
	}
}

func TestRunGivesUpWhenItsTimeIsUp(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithTimeout(t.Context(), 3*time.Second)
		defer cancel()
		began := time.Now()
		r, err := handshake.Run(ctx, &caller{}, nil)
		checkFailure(t, r, err, "the server did not answer in time", context.DeadlineExceeded)
		ssetest.Want(t, "wait", time.Since(began), 3*time.Second)
	})
}

// People read of a time that is up, not of a context.
func TestFailureSaysThatTimeIsUp(t *testing.T) {
	f := &handshake.Failure{Details: "the server could not be started", Err: fmt.Errorf("connect: %w", context.DeadlineExceeded)}
	ssetest.Want(t, "text", f.Error(), "the server could not be started: connect: time is up")
}

// A client that may not know more is told no command, no address, and no words
// of the server.
func TestSafeFailureKeepsNothingOfTheServer(t *testing.T) {
	for _, reason := range []string{
		metrics.ReasonTimeout, metrics.ReasonStartFailed, metrics.ReasonRejected, metrics.ReasonBadAnswer,
		metrics.ReasonSendFailed, metrics.ReasonGaveUp, "", "unknown",
	} {
		f := &handshake.Failure{
			Phase: handshake.PhaseProcessing, Reason: reason, Details: "swordfish", Attempt: 2, RetryAfter: time.Second,
			Err: errors.New("swordfish"),
		}
		safe := f.Safe()
		if text := safe.Error() + string(safe.Response("1")); strings.Contains(text, "swordfish") || safe.Unwrap() != nil {
			t.Errorf("%s: got %s", reason, text)
		}
		if safe.Details == "" || safe.Phase != f.Phase || safe.Reason != reason || safe.Attempt != 2 || safe.RetryAfter != time.Second {
			t.Errorf("%s: got %+v, want all but details and cause", reason, safe)
		}
		if f.Err == nil {
			t.Error("the failure itself was changed")
		}
	}
}

// Every byte but the version is as the server sent it.
func TestAnswerKeepsTheResult(t *testing.T) {
	r := &handshake.Result{Raw: json.RawMessage(stored), Version: "2025-06-18"}
	for requested, version := range map[string]string{
		`{"protocolVersion":"2025\u002d03-26"}`: "2025-03-26", `{"protocolVersion":["2025-03-26"]}`: r.Version, `{"x":{"protocolVersion":"2024-11-05"}}`: r.Version, ``: r.Version,
	} {
		got := string(r.Answer(`"\u0061"`, handshake.RequestedVersion(json.RawMessage(requested))))
		want := `{"jsonrpc":"2.0","id":"\u0061","result":` + strings.Replace(stored, r.Version, version, 1) + `}`
		if got != want || string(r.Raw) != stored {
			t.Errorf("params %s: got %s, want %s", requested, got, want)
		}
	}
}

func TestAdvertises(t *testing.T) {
	r := &handshake.Result{Raw: json.RawMessage(`{"capabilities":{"tools":{"listChanged":true},"prompts":{"listChanged":false}},"logging":{}}`)}
	for name, want := range map[string]bool{"tools": true, "tools listChanged": true, "prompts": true, "prompts listChanged": false, "logging": false} {
		ssetest.Want(t, name, r.Advertises(strings.Fields(name)...), want)
	}
}

func TestFailureTellsTheClient(t *testing.T) {
	f := handshake.Failure{Phase: handshake.PhaseProcessing, Reason: metrics.ReasonStartFailed, Details: "the server ended", Attempt: 3, RetryAfter: 1500 * time.Millisecond, Err: io.EOF}
	got := string(f.Response(`"auto-initialize-x"`))
	want := `{"jsonrpc":"2.0","id":"auto-initialize-x","error":{"code":-32603,"message":"initialization failed: the server ended: EOF","data":{"type":"initialization_error","phase":"request_processing","reason":"start_failed","details":"the server ended: EOF","attempt":3,"retryAfterMs":1500}}}`
	if got != want || !errors.Is(&f, io.EOF) {
		t.Errorf("got  %s\nwant %s", got, want)
	}
}

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// caller is a session that follows a script and writes down what it is sent.
type caller struct {
	before []string // responses before reply
	reply  string   // the response message; "" for an error or a hang
	err    error
	notify error
	sent   []string
}

func (c *caller) Call(ctx context.Context, method string, params json.RawMessage) (*jsonrpc.Message, error) {
	c.sent = append(c.sent, method+" "+string(params))
	switch {
	case len(c.before) > 0:
		first := c.before[0]
		c.before = c.before[1:]
		return jsonrpc.Parse([]byte(first))
	case c.err != nil:
		return nil, c.err
	case c.reply == "": // a server that never answers
		<-ctx.Done()
		return nil, ctx.Err()
	}
	return jsonrpc.Parse([]byte(c.reply))
}

func (c *caller) Notify(method string, params json.RawMessage) error {
	c.sent = append(c.sent, strings.TrimSpace(method+" "+string(params)))
	return c.notify
}
