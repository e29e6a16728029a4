package handshake_test

import (
	"encoding/json"
	"fmt"
	"testing"

	"github.com/mcp-sse/mcp-sse/handshake"
	"github.com/mcp-sse/mcp-sse/internal/ssetest"
	"github.com/mcp-sse/mcp-sse/jsonrpc"
)

func TestSyntheticDeclaresNothing(t *testing.T) {
	got := string(handshake.Synthetic(handshake.ClientInfo{Name: "gate <\"way\">", Version: "1.2"}))
	if want := `{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"gate \u003c\"way\"\u003e","version":"1.2"}}`; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
}

func TestExceeds(t *testing.T) {
	for _, tc := range []struct {
		client, session string // capabilities; "" for none
		want            bool
	}{
		{"", `{}`, false},
		{`{}`, `{}`, false},
		{`null`, `{}`, false},
		{`[]`, `{}`, false},
		{`{"roots":{}}`, `{}`, true},
		{`{"roots":{}}`, `{"roots":{}}`, false},
		{`{"roots":{}}`, `{"roots":{},"sampling":{}}`, false},
		{`{"roots":{ "listChanged" : true }}`, `{"roots":{"listChanged":true}}`, false},
		{`{"roots":{"listChanged":true}}`, `{"roots":{}}`, true},
		{`{"roots":{"listChanged":true}}`, `{"roots":{"listChanged":false}}`, true},
		{`{"roots":{},"sampling":{}}`, `{"roots":{}}`, true},
		{`{"experimental":{}}`, `{}`, false},
		{`{"experimental":{ }}`, `{}`, false},
		{`{"experimental":{"x":{}}}`, `{}`, true},
		{`{"sampling":null}`, `{}`, false},
		{`{"sampling":false}`, `{}`, false},
		{`{"\u0072oots":{}}`, `{"roots":{}}`, false},
	} {
		params := func(capabilities string) json.RawMessage {
			if capabilities == "" {
				return json.RawMessage(`{"protocolVersion":"2025-06-18"}`)
			}
			return json.RawMessage(`{"protocolVersion":"2025-06-18","capabilities":` + capabilities + `}`)
		}
		ssetest.Want(t, fmt.Sprintf("client %s, session %s", tc.client, tc.session), handshake.Exceeds(params(tc.client), params(tc.session)), tc.want)
	}
}

func TestClientsAreToldTheOlderVersion(t *testing.T) {
	for _, tc := range []struct{ requested, answered, want string }{
		{"2024-11-05", "2025-11-25", "2024-11-05"},
		{"2025-06-18", "2025-06-18", "2025-06-18"},
		{"2025-11-25", "2024-11-05", "2024-11-05"}, // the client is not told more than the server speaks
		{"", "2025-03-26", "2025-03-26"},
		{"2026-07-28", "2025-11-25", "2025-11-25"}, // has no initialize
		{"2025-6-18", "2025-11-25", "2025-11-25"},
		{"2025-06-18", "2024-10-07", "2024-10-07"}, // an unknown version of the server passes as it is
		{"2025-06-18", "DRAFT-2027", "DRAFT-2027"},
		{"x", "y", "y"},
	} {
		r := &handshake.Result{Raw: json.RawMessage(`{"protocolVersion":"` + tc.answered + `"}`), Version: tc.answered}
		request, err := jsonrpc.Parse(jsonrpc.NewRequest("1", "initialize", json.RawMessage(`{"protocolVersion":"`+tc.requested+`"}`)))
		if err != nil {
			t.Fatal(err)
		}
		want := `{"jsonrpc":"2.0","id":1,"result":{"protocolVersion":"` + tc.want + `"}}`
		if got := string(r.Answer(request.ID, handshake.RequestedVersion(request.Params()))); got != want {
			t.Errorf("a client of %q, a server of %q: got %s, want %s", tc.requested, tc.answered, got, want)
		}
	}
}
