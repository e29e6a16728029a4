package e2e

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"testing"
)

// The clients in this file never send initialize.

func TestCallWithoutInitializeIsAnsweredUnderBothNames(t *testing.T) {
	t.Parallel()
	for name, args := range map[string][]string{"Demo": nil, "Child": fake(t)} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := openStream(t, startGateway(t, args...).url)
			if got := s.call("1", "echo", `{"message":"first"}`); got != "first" {
				t.Errorf("echo = %q, want first", got)
			}
			again := s.await("the response as mcp-response", answers("mcp-response", "1"))
			if got := parseResponse(t, again.Data).text(t); got != "first" {
				t.Errorf("echo = %q, want first", got)
			}
			// A later answer shows that no third copy was on its way.
			s.call("2", "echo", `{"message":"second"}`)
			if names := namesOf(s, "1"); names != "message mcp-response" {
				t.Errorf("answers to 1 = %s, want message, then mcp-response, once each", names)
			}
		})
	}
}

// namesOf returns the names of the events that answer the request.
func namesOf(s *stream, id string) string {
	var names []string
	for _, e := range s.seen() {
		if answers(e.Name, id)(e) {
			names = append(names, e.Name)
		}
	}
	return strings.Join(names, " ")
}

func TestReaderOfMCPResponsesNeverInitializes(t *testing.T) {
	t.Parallel()
	for name, query := range map[string]string{"Undecided": "", "Chosen": "?event=mcp-response"} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			g := startGateway(t)
			r := openReader(t, g.url+query)
			hello := r.await("the synthetic initialize", isAutoInitialize)
			if hello.Error != nil || hello.Result.ServerInfo.Name == "" {
				t.Errorf("synthetic initialize = %+v (error %v), want a result with serverInfo", hello.Result, hello.Error)
			}
			for id := range 3 {
				id := fmt.Sprint(id)
				r.post(requestJSON(id, "tools/call", callParams("echo", `{"message":"m`+id+`"}`)))
				got := r.await("response to "+id, func(m response) bool { return string(m.ID) == id })
				if text := got.text(t); text != "m"+id {
					t.Errorf("echo = %q, want m%s", text, id)
				}
			}
		})
	}
}

func TestTypeScriptTransportCallsWithoutInitialize(t *testing.T) {
	t.Parallel()
	for _, sdk := range []string{"sdk1", "client2"} {
		t.Run(sdk, func(t *testing.T) {
			t.Parallel()
			d := startDriver(t, sdk, startGateway(t, fake(t)...).url)
			if _, err := d.step(within(t), "start"); err != nil {
				t.Fatalf("start: %v", err)
			}
			r, err := d.step(within(t), "post", json.RawMessage(requestJSON(`"a"`, "tools/call", callParams("echo", `{"message":"m"}`))))
			if err != nil {
				t.Fatalf("call: %v", err)
			}
			if len(r.Answers) != 1 {
				t.Fatalf("answers = %s, want one", r.Answers)
			}
			if got := parseResponse(t, string(r.Answers[0])).text(t); got != "m" {
				t.Errorf("echo = %q, want m", got)
			}
		})
	}
}

func TestWithoutAutoInitializeTheClientMustInitialize(t *testing.T) {
	t.Parallel()
	g := startGateway(t, append([]string{"--no-auto-initialize"}, fake(t)...)...)
	s := openStream(t, g.url)
	hello := s.request("0", "initialize", `{"protocolVersion":"2025-06-18","capabilities":{},"clientInfo":{"name":"e2e","version":"0"}}`)
	if hello.Error != nil || hello.Result.ProtocolVersion != "2025-06-18" {
		t.Fatalf("initialize = %+v (error %v), want protocol version 2025-06-18", hello.Result, hello.Error)
	}
	if status, body := s.post(`{"jsonrpc":"2.0","method":"notifications/initialized"}`); status != http.StatusAccepted {
		t.Fatalf("notifications/initialized = %d %s, want 202", status, body)
	}
	if got := s.call("1", "echo", `{"message":"m"}`); got != "m" {
		t.Errorf("echo = %q, want m", got)
	}
	for _, e := range s.seen() {
		if strings.Contains(e.Data, "auto-initialize") {
			t.Errorf("came: %s, want no synthetic initialize", e.Raw)
		}
	}
}
