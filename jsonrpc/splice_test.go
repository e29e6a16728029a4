package jsonrpc_test

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/mcp-sse/mcp-sse/internal/ssetest"
	"github.com/mcp-sse/mcp-sse/jsonrpc"
)

func mustParse(t testing.TB, in string) *jsonrpc.Message {
	t.Helper()
	m, err := jsonrpc.Parse([]byte(in))
	if err != nil {
		t.Fatalf("Parse(%.80q): %v", in, err)
	}
	return m
}

func TestWithIDChangesTheIDAlone(t *testing.T) {
	for _, tc := range []struct{ in, want string }{
		{`{"jsonrpc":"2.0","id":1,"method":"a"}`, `{"jsonrpc":"2.0","id":"new","method":"a"}`},
		{`{"jsonrpc":"2.0","id":"a long one","method":"a"}`, `{"jsonrpc":"2.0","id":"new","method":"a"}`},
		{`{"jsonrpc":"2.0","result":{"id":1}, "id" : 1 }`, `{"jsonrpc":"2.0","result":{"id":1}, "id" : "new" }`},
		{`{"\u0069d":1,"jsonrpc":"2.0","result":0}`, `{"\u0069d":"new","jsonrpc":"2.0","result":0}`},
		{`{"jsonrpc":"2.0","id":null,"error":{}}`, `{"jsonrpc":"2.0","id":"new","error":{}}`},
		{`{"jsonrpc":"2.0","id":1,"method":"a","x":1.50}`, `{"jsonrpc":"2.0","id":"new","method":"a","x":1.50}`},
		// A response that names no request gets a name.
		{`{"jsonrpc":"2.0","result":{}}`, `{"id":"new","jsonrpc":"2.0","result":{}}`},
		{`{ "jsonrpc":"2.0","error":{}}`, `{"id":"new", "jsonrpc":"2.0","error":{}}`},
	} {
		m := mustParse(t, tc.in)
		got := m.WithID(`"new"`)
		ssetest.Want(t, "message", string(got), tc.want)
		ssetest.Want(t, "message itself", string(m.Raw()), tc.in)
		if again := mustParse(t, string(got)); again.ID != `"new"` || again.Kind != m.Kind {
			t.Errorf("got back %v with id %s from %s", again.Kind, again.ID, got)
		}
	}
}

func TestMember(t *testing.T) {
	const obj = ` {"a":{"b":{"c":1.50}},"n":null,"\u0065":5,"a b":[{"c":1}],"d":1,"d":2,"A":0} `
	for _, tc := range []struct {
		obj   string
		names []string
		want  string // "" for none
	}{
		{obj, []string{"a"}, `{"b":{"c":1.50}}`},
		{obj, []string{"a", "b", "c"}, `1.50`},
		{obj, []string{"a", "b", "c", "d"}, ""},
		{obj, []string{"a", "x"}, ""},
		{obj, []string{"n"}, "null"},
		{obj, []string{"n", "x"}, ""},
		{obj, []string{"e"}, "5"},
		{obj, []string{"a b", "c"}, ""},
		{obj, []string{"d"}, "2"},
		{`[1]`, []string{"a"}, ""},
		{`{"a":1`, []string{"a"}, ""},
		{`{"a":1} x`, []string{"a"}, ""},
	} {
		got, ok := jsonrpc.Member(json.RawMessage(tc.obj), tc.names...)
		if string(got) != tc.want || ok != (tc.want != "") {
			t.Errorf("Member(%s, %q): got %s, %v, want %s", tc.obj, tc.names, got, ok, tc.want)
		}
		if ok && cap(got) != len(got) {
			t.Errorf("Member(%s, %q): appending to the value would write into the object", tc.obj, tc.names)
		}
	}
}

// FuzzMember checks which members are there afterwards; here are the bytes around them.
func TestChangesOfMembersLeaveTheRest(t *testing.T) {
	for _, tc := range []struct{ obj, name, replaced, set, removed string }{
		{`{"a":1, "b":2}`, "a", `{"a":"new", "b":2}`, `{"a":"new", "b":2}`, `{"b":2}`},
		{`{"a":1,"a":2}`, "a", `{"a":1,"a":"new"}`, `{"a":1,"a":"new"}`, `{}`},
		{`{"a":{"b":1}}`, "b", `{"a":{"b":1}}`, `{"a":{"b":1},"b":"new"}`, `{"a":{"b":1}}`},
		{` { } `, "b", ` { } `, ` { "b":"new"} `, ` { } `},
		{`{"a":[ 1 ] }`, "a\"/é", `{"a":[ 1 ] }`, `{"a":[ 1 ] ,"a\"/é":"new"}`, `{"a":[ 1 ] }`},
		{`{ "a" : 1 , "b" : 1e3 }`, "a", `{ "a" : "new" , "b" : 1e3 }`, `{ "a" : "new" , "b" : 1e3 }`, `{ "b" : 1e3 }`},
		{`{"b":2 , "a":1,"\u0061":1,"c":3}`, "a", `{"b":2 , "a":1,"\u0061":"new","c":3}`, `{"b":2 , "a":1,"\u0061":"new","c":3}`, `{"b":2,"c":3}`},
		{`{"b":2 , "c": [3] ,"a":1 }`, "a", `{"b":2 , "c": [3] ,"a":"new" }`, `{"b":2 , "c": [3] ,"a":"new" }`, `{"b":2 , "c": [3] }`},
		{`[]`, "a", `[]`, `[]`, `[]`},
	} {
		obj := json.RawMessage(tc.obj)
		for want, got := range map[string]json.RawMessage{
			"replaced " + tc.replaced: jsonrpc.ReplaceMember(obj, json.RawMessage(`"new"`), tc.name),
			"set " + tc.set:           jsonrpc.SetMember(obj, json.RawMessage(`"new"`), tc.name),
			"removed " + tc.removed:   jsonrpc.RemoveMember(obj, tc.name),
		} {
			if _, want, _ := strings.Cut(want, " "); string(got) != want {
				t.Errorf("%q of %s: got %s, want %s", tc.name, tc.obj, got, want)
			}
		}
		ssetest.Want(t, "object itself", string(obj), tc.obj)
	}
}

func TestText(t *testing.T) {
	for raw, want := range map[string]string{`"a"`: "a", `"\u0061\n\"é"`: "a\n\"é", `1`: "", `null`: "", ``: "", `"`: "", `"a`: "", `"a"b`: ""} {
		if got, ok := jsonrpc.Text(json.RawMessage(raw)); got != want || ok != (want != "") {
			t.Errorf("Text(%s): got %q, %v, want %q", raw, got, ok, want)
		}
	}
}
