package jsonrpc_test

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/mcp-sse/mcp-sse/internal/rawjson"
	"github.com/mcp-sse/mcp-sse/internal/ssetest"
	"github.com/mcp-sse/mcp-sse/jsonrpc"
)

func TestParseFindsTheProgressToken(t *testing.T) {
	for _, tc := range []struct {
		params    string
		want      string
		ambiguous bool
	}{
		{`{"_meta":{"progressToken":"a"}}`, `"a"`, false},
		{`{"x":1,"_meta":{"y":[],"progressToken":1.50}}`, `1.50`, false},
		{`{"_me\u0074a":{"progress\u0054oken":7}}`, `7`, false},
		{`{"_meta":1}`, ``, false},
		{`[{"_meta":{"progressToken":7}}]`, ``, false},
		{`{"progressToken":7,"arguments":{"_meta":{"progressToken":7}}}`, ``, false},
		// Two values, of which another parser may take the other one.
		{`{"_meta":{"progressToken":1,"progressToken":2}}`, `2`, true},
		{`{"_meta":{"progressToken":1},"_meta":{}}`, ``, true},
		{`{"_meta":{"progressToken":1,"PROGRESSTOKEN":2}}`, `1`, true},
		{`{"_meta":{"progressto\u212Aen":2}}`, ``, true},
		{`{"_META":{"progressToken":1}}`, ``, true},
	} {
		m := mustParse(t, `{"jsonrpc":"2.0","id":1,"method":"a","params":`+tc.params+`}`)
		if got := string(m.Token.Value); got != tc.want || m.Token.Ambiguous != tc.ambiguous {
			t.Errorf("%s: got %q, ambiguous %v, want %q, %v", tc.params, got, m.Token.Ambiguous, tc.want, tc.ambiguous)
		}
	}
	for method, want := range map[string][2]string{"notifications/progress": {"1"}, "notifications/cancelled": {"", `"x"`}, "a": {}} {
		m := mustParse(t, `{"jsonrpc":"2.0","method":"`+method+`","params":{"progressToken":1,"requestId":"x","_meta":{"progressToken":2}}}`)
		ssetest.Want(t, method+": token and request", [2]string{string(m.Token.Value), string(m.RequestID.Value)}, want)
		if got, want := string(m.WithValue(m.RequestID, json.RawMessage("42"))), strings.ReplaceAll(string(m.Raw()), `"x"`, "42"); m.RequestID.Value != nil && got != want {
			t.Errorf("with another request: got %s, want %s", got, want)
		}
	}
}

func TestRenumberedChangesTheIDAndTheToken(t *testing.T) {
	for _, tc := range []struct{ in, want, params string }{
		{`{"jsonrpc":"2.0","id":"x","method":"a","params":{"_meta":{"progressToken":1.5},"n":1e2}}`, `{"jsonrpc":"2.0","id":42,"method":"a","params":{"_meta":{"progressToken":42},"n":1e2}}`, `{"_meta":{"progressToken":42},"n":1e2}`},
		{`{ "params" : {"_meta":{ "progressToken":"long"}}, "method":"a","id": 1 ,"jsonrpc":"2.0"}`, `{ "params" : {"_meta":{ "progressToken":42}}, "method":"a","id": 42 ,"jsonrpc":"2.0"}`, `{"_meta":{ "progressToken":42}}`},
		{`{"jsonrpc":"2.0","id":"x","method":"a","params":{"n":1e2}}`, `{"jsonrpc":"2.0","id":42,"method":"a","params":{"n":1e2}}`, `{"n":1e2}`},
		{`{"jsonrpc":"2.0","id":"x","method":"a"}`, `{"jsonrpc":"2.0","id":42,"method":"a"}`, ``},
	} {
		m := mustParse(t, tc.in)
		ssetest.Want(t, "message", string(m.Renumbered("42")), tc.want)
		ssetest.Want(t, "params", string(m.RenumberedParams("42")), tc.params)
		ssetest.Want(t, "message itself", string(m.Raw()), tc.in)
	}
}

func TestCertain(t *testing.T) {
	for in, want := range map[string]bool{
		`{"jsonrpc":"2.0","id":1,"method":"a","params":{"ID":2},"x":1,"ids":1}`: true,
		`{"jsonrpc":"2.0","id":1,"method":"a","ID":2}`:                          false,
		`{"jsonrpc":"2.0","id":1,"method":"a","Param\u0073":{}}`:                false,
		`{"jsonrpc":"2.0","id":1,"method":"a","param\u017f":{}}`:                false,
		`{"jsonrpc":"2.0","id":1,"result":1,"Error":{}}`:                        false,
	} {
		ssetest.Want(t, in, mustParse(t, in).Certain(), want)
	}
}

// FuzzPlace holds Param, Renumbered and Filter against Member and encoding/json.
func FuzzPlace(f *testing.F) {
	for _, seed := range []string{
		`{"_meta":{"progressToken":"a"},"x":[1,{},"y"]}`, `{"x":[]}`, `{"x":[1e2 , [2]]}`, `{"_meta":{"progressToken":1,"progressToken":2}}`,
		`{"_Meta":{},"_meta":{"progressToken":1}}`, `{"_m\u0065ta":{"progressToken":null}}`, `[1,2]`, `{}`, `null`,
	} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, params []byte) {
		m, err := jsonrpc.Parse(append(append([]byte(`{"jsonrpc":"2.0","id":"x","method":"a","params":`), params...), '}'))
		if err != nil || m.Kind != jsonrpc.Request {
			return
		}
		want, found := rawjson.Member(m.Params(), "_meta", "progressToken")
		if string(m.Token.Value) != string(want) {
			t.Fatalf("found %s, Member %s", m.Token.Value, want)
		}
		sent := mustParse(t, string(m.Renumbered("42")))
		token, still := rawjson.Member(sent.Params(), "_meta", "progressToken")
		if sent.ID != "42" || still != found || found && string(token) != "42" {
			t.Fatalf("sent %s", sent.Raw())
		}
		var decoded struct { // it takes names in any case, and the last of several
			Meta struct {
				ProgressToken json.RawMessage `json:"progressToken"`
			} `json:"_meta"`
		}
		if json.Unmarshal(m.Params(), &decoded) == nil && !m.Token.Ambiguous && string(decoded.Meta.ProgressToken) != string(want) {
			t.Fatalf("certain of %s, another parser reads %s", want, decoded.Meta.ProgressToken)
		}
		list, _ := rawjson.Member(m.Params(), "x")
		var before, after []json.RawMessage
		if json.Unmarshal(list, &before) != nil || before == nil {
			return
		}
		kept := rawjson.Filter(list, func(e json.RawMessage) bool { return e[0] != '{' })
		if err := json.Unmarshal(kept, &after); err != nil {
			t.Fatalf("filtered to %s: %v", kept, err)
		}
		for _, e := range before {
			if e[0] == '{' {
				continue
			}
			if len(after) == 0 || string(after[0]) != string(e) {
				t.Fatalf("filtered %s to %s", list, kept)
			}
			after = after[1:]
		}
	})
}
