package handshake_test

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/mcp-sse/mcp-sse/handshake"
	"github.com/mcp-sse/mcp-sse/jsonrpc"
	"github.com/mcp-sse/mcp-sse/metrics"
)

// stored is an InitializeResult as no encoder of ours would write it.
const stored = `{ "protocolVersion" : "2025-06-18","capabilities":{"tools":{"listChanged":true},"big":9007199254740993,"n":1.50},"serverInfo":{"name":"s\u00e9","version":"1"},"protocolversion":"x","_meta":{"protocolVersion":1} }`

func TestRun(t *testing.T) {
	c := &caller{reply: `{"jsonrpc":"2.0","id":1,"result":` + stored + `}`}
	params := handshake.Synthetic(handshake.ClientInfo{Name: "gateway", Version: "1"}, nil)
	r, err := handshake.Run(t.Context(), c, params)
	if err != nil {
		t.Fatal(err)
	}
	if string(r.Raw) != stored || string(r.Params) != string(params) || r.Version != "2025-06-18" {
		t.Errorf("got %+v", r)
	}
	if want := []string{"initialize " + string(params), "notifications/initialized"}; !slices.Equal(c.sent, want) {
		t.Errorf("sent %q, want %q", c.sent, want)
	}
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
		{"refused on lines", &caller{reply: refusal(`{"code":1,"message":"a\r\nb"}`)}, "the server refused initialize: a\r\nb (code 1)", nil, false},
		{"refused without reason", &caller{reply: refusal(`"no"`)}, "the server refused initialize", nil, false},
		{"refused with null", &caller{reply: refusal(`null`)}, "the server refused initialize:  (code 0)", nil, false},
		{"session over", &caller{err: gone}, "the server did not answer initialize", gone, false},
		{"canceled", &caller{err: context.Canceled}, "the server did not answer initialize", context.Canceled, false},
		{"no version", &caller{reply: result(`{"capabilities":{}}`)}, "the server's initialize result has no protocolVersion", nil, false},
		{"a version that is none", &caller{reply: result(`{"protocolVersion":2025}`)}, "the server's initialize result has no protocolVersion", nil, false},
		{"a version of null", &caller{reply: result(`{"protocolVersion":null}`)}, "the server's initialize result has no protocolVersion", nil, false},
		{"result of null", &caller{reply: result(`null`)}, "the server's initialize result has no protocolVersion", nil, false},
		{"result of a list", &caller{reply: result(`["protocolVersion"]`)}, "the server's initialize result has no protocolVersion", nil, false},
		{"gone before initialized", &caller{reply: result(stored), notify: io.ErrClosedPipe}, "the server ended during the handshake", io.ErrClosedPipe, true},
	} {
		t.Run(tc.name, func(t *testing.T) {
			r, err := handshake.Run(t.Context(), tc.c, nil)
			checkFailure(t, r, err, tc.details, tc.cause)
			if got := len(tc.c.sent) == 2; got != tc.notified {
				t.Errorf("sent %q", tc.c.sent)
			}
		})
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
		checkFailure(t, r, err, "the server did not answer initialize in time", context.DeadlineExceeded)
		if waited := time.Since(began); waited != 3*time.Second {
			t.Errorf("waited %v", waited)
		}
	})
}

func TestResponseKeepsTheResult(t *testing.T) {
	r := &handshake.Result{Raw: json.RawMessage(stored)}
	got := string(r.Response(`"auto-initialize-7"`))
	if want := `{"jsonrpc":"2.0","id":"auto-initialize-7","result":` + stored + `}`; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
}

// answered is the protocol version in stored.
const answered = "2025-06-18"

// A client's own initialize: its id, the older one of its version and the server's
// if both are known, and every other byte as the server sent it.
func TestAnswer(t *testing.T) {
	for _, id := range []string{"1", "0", "9007199254740993", "1.5", "1e3", `"x"`, `"\u0061"`} {
		for requested, want := range map[string]string{
			`"2024-11-05"`: "2024-11-05", `"2025-03-26"`: "2025-03-26", `"2025-06-18"`: answered, `"2025-11-25"`: answered,
			`"2025\u002d03-26"`: "2025-03-26",
			`"2026-07-28"`:      answered, `"1.0"`: answered, `""`: answered, `" 2025-03-26"`: answered,
			`null`: answered, `20250326`: answered, `["2025-03-26"]`: answered,
		} {
			checkAnswer(t, id, `,"params":{"protocolVersion":`+requested+`,"capabilities":{}}`, want)
		}
		for _, params := range []string{"", `,"params":null`, `,"params":[]`, `,"params":{}`, `,"params":{"x":{"protocolVersion":"2024-11-05"}}`} {
			checkAnswer(t, id, params, answered)
		}
	}
}

func checkAnswer(t *testing.T, id, params, version string) {
	t.Helper()
	r := &handshake.Result{Raw: json.RawMessage(stored), Version: answered}
	request := parse(t, `{"jsonrpc":"2.0","id":`+id+`,"method":"initialize"`+params+`}`)
	got := string(r.Answer(request.ID, handshake.RequestedVersion(request.Params())))
	want := `{"jsonrpc":"2.0","id":` + id + `,"result":` + strings.Replace(stored, `"2025-06-18"`, `"`+version+`"`, 1) + `}`
	if got != want {
		t.Errorf("id %s, params %s: got %s, want %s", id, params, got, want)
	}
	if string(r.Raw) != stored {
		t.Fatalf("the stored result changed to %s", r.Raw)
	}
}

func TestAdvertises(t *testing.T) {
	r := &handshake.Result{Raw: json.RawMessage(`{"capabilities":{
		"tools":{"listChanged":true},"prompts":{"listChanged":false},"resources":{"subscribe":null},"logging":{},"tasks":true,"none":null,"off":false}}`)}
	for _, tc := range []struct {
		names []string
		want  bool
	}{
		{[]string{"tools"}, true}, {[]string{"tools", "listChanged"}, true}, {[]string{"tools", "subscribe"}, false},
		{[]string{"prompts"}, true}, {[]string{"prompts", "listChanged"}, false},
		{[]string{"resources", "subscribe"}, false}, {[]string{"logging"}, true}, {[]string{"logging", "x"}, false},
		{[]string{"tasks"}, true}, {[]string{"none"}, false}, {[]string{"off"}, false}, {[]string{"completions"}, false},
	} {
		if got := r.Advertises(tc.names...); got != tc.want {
			t.Errorf("Advertises(%q): got %v, want %v", tc.names, got, tc.want)
		}
	}
	for _, raw := range []string{``, `{}`, `null`, `{"capabilities":null}`, `{"capabilities":[]}`, `{"tools":{}}`} {
		if (&handshake.Result{Raw: json.RawMessage(raw)}).Advertises("tools") {
			t.Errorf("%s advertises tools", raw)
		}
	}
}

func TestFailureTellsTheClient(t *testing.T) {
	for _, tc := range []struct {
		failure handshake.Failure
		id      jsonrpc.ID
		want    string
	}{
		{
			handshake.Failure{Phase: handshake.PhaseCreation, Reason: metrics.ReasonStartFailed, Details: "no handler", Attempt: 1}, "1",
			`{"jsonrpc":"2.0","id":1,"error":{"code":-32603,"message":"initialization failed: no handler","data":{"type":"initialization_error","phase":"request_creation","reason":"start_failed","details":"no handler","attempt":1,"retryAfterMs":0}}}`,
		},
		{
			handshake.Failure{Phase: handshake.PhaseProcessing, Reason: metrics.ReasonStartFailed, Details: "the server ended", Attempt: 3, RetryAfter: 1500 * time.Millisecond, Err: errors.New("exit \"1\"\n")}, `"auto-initialize-x"`,
			`{"jsonrpc":"2.0","id":"auto-initialize-x","error":{"code":-32603,"message":"initialization failed: the server ended: exit \"1\"\n","data":{"type":"initialization_error","phase":"request_processing","reason":"start_failed","details":"the server ended: exit \"1\"\n","attempt":3,"retryAfterMs":1500}}}`,
		},
		{
			handshake.Failure{Phase: handshake.PhaseSending, Reason: metrics.ReasonStartFailed, Details: "100% lost"}, "9007199254740993",
			`{"jsonrpc":"2.0","id":9007199254740993,"error":{"code":-32603,"message":"initialization failed: 100% lost","data":{"type":"initialization_error","phase":"response_sending","reason":"start_failed","details":"100% lost","attempt":0,"retryAfterMs":0}}}`,
		},
	} {
		got := tc.failure.Response(tc.id)
		if string(got) != tc.want {
			t.Errorf("got  %s\nwant %s", got, tc.want)
		}
		if m := parse(t, string(got)); m.Kind != jsonrpc.Response {
			t.Errorf("%s is a %v", got, m.Kind)
		}
	}
}

func TestFailureIsAnError(t *testing.T) {
	f := &handshake.Failure{Phase: handshake.PhaseProcessing, Details: "no answer", Err: io.EOF}
	var err error = f
	if got, want := err.Error(), "initialization failed: no answer: EOF"; got != want || !errors.Is(err, io.EOF) {
		t.Errorf("got %q, want %q and io.EOF in it", got, want)
	}
}

// What a client that may not know more is told: no command, no address, no words
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
