package e2e

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
)

// The clients in this file never send initialize.

func TestReaderOfMCPResponsesNeverInitializes(t *testing.T) {
	t.Parallel()
	for name, query := range map[string]string{"Undecided": "", "Chosen": "?event=mcp-response"} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			g := startGateway(t)
			s := openStream(t, g.url+query)
			hello := parseResponse(t, s.await("the synthetic initialize", isAutoInitialize).Data)
			if hello.Error != nil || hello.Result.ServerInfo.Name == "" {
				t.Errorf("synthetic initialize = %+v (error %v), want a result with serverInfo", hello.Result, hello.Error)
			}
			for id := range 3 {
				id := fmt.Sprint(id)
				s.accepted(requestJSON(id, "tools/call", callParams("echo", `{"message":"m`+id+`"}`)))
				got := s.await("response to "+id, answers("mcp-response", id))
				if text := parseResponse(t, got.Data).text(t); text != "m"+id {
					t.Errorf("echo = %q, want m%s", text, id)
				}
			}
		})
	}
}

func isAutoInitialize(e event) bool {
	return e.Name == "mcp-response" && strings.Contains(e.Data, `"id":"auto-initialize-`)
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
