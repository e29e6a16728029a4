package e2e

import (
	"context"
	"encoding/json"
	"slices"
	"strings"
	"testing"
	"time"
)

func TestClientWaitsForAServerThatTakesTwoSeconds(t *testing.T) {
	forEachClient(t, every, func(t *testing.T, k kind) {
		g := startGateway(t, fake(t, "--start-delay", "2s")...)
		c := connect(t, k, g.at(k))
		if got := mustCall(t, c, "echo", map[string]any{"message": "m"}); got != "m" {
			t.Errorf("echo = %q, want m", got)
		}
	})
}

func TestReaderWaitsForAServerThatTakesTwoSeconds(t *testing.T) {
	t.Parallel()
	r := openReader(t, startGateway(t, fake(t, "--start-delay", "2s")...).url)
	r.post(requestJSON("1", "tools/call", callParams("echo", `{"message":"m"}`)))
	if got := r.await("response to 1", func(m response) bool { return string(m.ID) == "1" }).text(t); got != "m" {
		t.Errorf("echo = %q, want m", got)
	}
	if hello := r.await("the synthetic initialize", isAutoInitialize); hello.Error != nil {
		t.Errorf("synthetic initialize: %v", hello.Error)
	}
}

// A client's patience ends before the server has started: it gets an error, and
// the same stream works once the server is there.
func TestLateServerIsUsedOnTheSameStream(t *testing.T) {
	t.Parallel()
	s := openStream(t, startGateway(t,
		append([]string{"--initialization-timeout", "300ms"}, fake(t, "--start-delay", "2s")...)...).url)
	early := s.request("1", "tools/call", callParams("echo", `{"message":"early"}`))
	if early.Error == nil || early.Error.Code != -32603 || !early.Error.names("initialization_error") {
		t.Errorf("early call = %+v (error %v), want an initialization_error", early.Result, early.Error)
	}
	s.await("the result of the synthetic initialize", func(e event) bool {
		var m response
		return e.Name == "mcp-response" && json.Unmarshal([]byte(e.Data), &m) == nil && isAutoInitialize(m) && m.Result != nil
	})
	if got := s.call("2", "echo", `{"message":"late"}`); got != "late" {
		t.Errorf("echo = %q, want late", got)
	}
}

// hopeless are servers that never come up.
func hopeless(t *testing.T) map[string][]string {
	t.Helper()
	bounds := []string{"--initialization-timeout", "1s", "--start-timeout", "2s", "--max-handshake-attempts", "2"}
	return map[string][]string{
		"EndsAtOnce":   slices.Concat(bounds, fake(t, "--exit")),
		"NeverAnswers": slices.Concat(bounds, fake(t, "--silent")),
	}
}

// A program that is no MCP server and sends back what it gets, as cat: a client
// that says nothing is told so at once, not after the time for a start.
func TestProgramThatOnlyEchoesIsNamed(t *testing.T) {
	t.Parallel()
	s := openStream(t, startGateway(t, "--", "cat").url)
	hello := parseResponse(t, s.await("the synthetic initialize", func(e event) bool { return e.Name == "mcp-response" }).Data)
	if hello.Error == nil || !strings.Contains(hello.Error.Message, "only sends back what it gets") {
		t.Errorf("the client is told %v, want that the program only sends back what it gets", hello.Error)
	}
}

func TestClientGetsAnErrorWhenTheServerNeverStarts(t *testing.T) {
	t.Parallel()
	for name, args := range hopeless(t) {
		t.Run(name, func(t *testing.T) {
			forEachClient(t, every, func(t *testing.T, k kind) {
				c := k.open(t, startGateway(t, args...).at(k), "")
				start := time.Now()
				// The gateway's bound is two starts of 2 s and a pause of 1 s; the rest is
				// for slow machines.
				ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
				defer cancel()
				err := c.connect(ctx)
				if asRPCError(err) == nil {
					t.Fatalf("connect = %v after %v, want the server's JSON-RPC error", err, time.Since(start))
				}
			})
		})
	}
}

func TestReaderGetsAnErrorWhenTheServerNeverStarts(t *testing.T) {
	t.Parallel()
	for name, args := range hopeless(t) {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := openReader(t, startGateway(t, args...).url)
			r.post(requestJSON("1", "tools/list", "{}"))
			got := r.await("response to 1", func(m response) bool { return string(m.ID) == "1" })
			assertInitializationError(t, "tools/list", got)
			hello := r.await("the synthetic initialize", isAutoInitialize)
			assertInitializationError(t, "synthetic initialize", hello)
		})
	}
}

func assertInitializationError(t *testing.T, what string, m response) {
	t.Helper()
	var data struct {
		Type    string `json:"type"`
		Phase   string `json:"phase"`
		Attempt int    `json:"attempt"`
	}
	if m.Error == nil || json.Unmarshal(m.Error.Data, &data) != nil {
		t.Fatalf("%s = %+v (error %v), want an error with data", what, m.Result, m.Error)
	}
	if m.Error.Code != -32603 || data.Type != "initialization_error" || data.Phase == "" || data.Attempt < 1 {
		t.Errorf("%s: error %v, want code -32603 and data with type initialization_error, phase and attempt", what, m.Error)
	}
}
