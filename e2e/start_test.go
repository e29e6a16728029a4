package e2e

import (
	"encoding/json"
	"testing"
)

func TestClientWaitsForASlowServer(t *testing.T) {
	forEachClient(t, every, func(t *testing.T, k kind) {
		g := startGateway(t, fake(t, "--start-delay", "1s")...)
		c := connect(t, k, g.url)
		wantEcho(t, c)
	})
}

// A server that ends at once, or never answers, costs a client an error, and no hang.
func TestClientGetsAnErrorWhenTheServerNeverStarts(t *testing.T) {
	t.Parallel()
	for name, flag := range map[string]string{"EndsAtOnce": "--exit", "NeverAnswers": "--silent"} {
		if !all && name != "NeverAnswers" {
			continue
		}
		t.Run(name, func(t *testing.T) {
			forEachClient(t, every, func(t *testing.T, k kind) {
				g := startGateway(t, append([]string{"--initialization-timeout", "1s", "--start-timeout", "1s"}, fake(t, flag)...)...)
				if err := k.open(t, g.url, "").connect(within(t)); asRPCError(err) == nil {
					t.Fatalf("connect = %v, want the server's JSON-RPC error", err)
				}
			})
		})
	}
}

// A transport of an SDK without its client never sends initialize.
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
			if err != nil || len(r.Answers) != 1 {
				t.Fatalf("answers = %s, error %v, want one", r.Answers, err)
			}
			if got := parseResponse(t, string(r.Answers[0])).text(t); got != "m" {
				t.Errorf("echo = %q, want m", got)
			}
		})
	}
}
