package jsonrpc_test

import (
	"encoding/json"
	"testing"

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
		if string(got) != tc.want {
			t.Errorf("got %s, want %s", got, tc.want)
		}
		if string(m.Raw()) != tc.in {
			t.Errorf("the message changed to %s", m.Raw())
		}
		if again := mustParse(t, string(got)); again.ID != `"new"` || again.Kind != m.Kind {
			t.Errorf("got back %v with id %s from %s", again.Kind, again.ID, got)
		}
	}
}

func TestMember(t *testing.T) {
	const obj = ` {"a":{"b":{"c":1.50}},"n":null,"s":"x","\u0065":5,"a b":[{"c":1}],"d":1,"d":2,"":0,"z":{}} `
	for _, tc := range []struct {
		obj   string
		names []string
		want  string // "" for none
	}{
		{obj, []string{"a"}, `{"b":{"c":1.50}}`},
		{obj, []string{"a", "b"}, `{"c":1.50}`},
		{obj, []string{"a", "b", "c"}, `1.50`},
		{obj, []string{"a", "b", "c", "d"}, ""},
		{obj, []string{"a", "x"}, ""},
		{obj, []string{"n"}, "null"},
		{obj, []string{"n", "x"}, ""},
		{obj, []string{"s"}, `"x"`},
		{obj, []string{"e"}, "5"},
		{obj, []string{"a b"}, `[{"c":1}]`},
		{obj, []string{"a b", "c"}, ""},
		{obj, []string{"d"}, "2"},
		{obj, []string{""}, "0"},
		{obj, []string{"A"}, ""},
		{obj, []string{"z", "z"}, ""},
		{`[1]`, []string{"a"}, ""},
		{`"a"`, []string{"a"}, ""},
		{`null`, []string{"a"}, ""},
		{``, []string{"a"}, ""},
		{`  `, []string{"a"}, ""},
		{`{"a":1`, []string{"a"}, ""},
		{`{"a":1,"b":}`, []string{"a"}, ""},
		{`{"a":1} x`, []string{"a"}, ""},
		{`{"a":1}}`, []string{"a"}, ""},
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

func TestReplaceMember(t *testing.T) {
	for _, tc := range []struct {
		obj   string
		names []string
		want  string
	}{
		{`{"a":1, "b":2}`, []string{"a"}, `{"a":"new", "b":2}`},
		{`{"a":{"b":[1, 2]},"c":1e3}`, []string{"a", "b"}, `{"a":{"b":"new"},"c":1e3}`},
		{`{"a":1,"a":2}`, []string{"a"}, `{"a":1,"a":"new"}`},
		{`{"a":1}`, []string{"b"}, `{"a":1}`},
		{`{"a":1`, []string{"a"}, `{"a":1`},
		{`[]`, []string{"a"}, `[]`},
		{``, []string{"a"}, ``},
	} {
		obj := json.RawMessage(tc.obj)
		if got := string(jsonrpc.ReplaceMember(obj, json.RawMessage(`"new"`), tc.names...)); got != tc.want {
			t.Errorf("ReplaceMember(%s, %q): got %s, want %s", tc.obj, tc.names, got, tc.want)
		}
		if string(obj) != tc.obj {
			t.Errorf("ReplaceMember changed its argument to %s", obj)
		}
	}
}

func TestSetMember(t *testing.T) {
	for _, tc := range []struct{ obj, name, want string }{
		{`{"a":1, "b":2}`, "a", `{"a":"new", "b":2}`},
		{`{"a":1,"a":2}`, "a", `{"a":1,"a":"new"}`},
		{`{"\u0061":1}`, "a", `{"\u0061":"new"}`},
		{`{"a":1}`, "b", `{"a":1,"b":"new"}`},
		{`{}`, "b", `{"b":"new"}`},
		{` { } `, "b", ` { "b":"new"} `},
		{`{"a":{"b":1}}`, "b", `{"a":{"b":1},"b":"new"}`},
		{`{"a":[ 1 ] }`, "a\"/é", `{"a":[ 1 ] ,"a\"/é":"new"}`},
		{`{"a":1`, "b", `{"a":1`},
		{`{"a":1} x`, "b", `{"a":1} x`},
		{`[]`, "b", `[]`},
		{`null`, "b", `null`},
		{``, "b", ``},
	} {
		obj := json.RawMessage(tc.obj)
		if got := string(jsonrpc.SetMember(obj, json.RawMessage(`"new"`), tc.name)); got != tc.want {
			t.Errorf("SetMember(%s, %q): got %s, want %s", tc.obj, tc.name, got, tc.want)
		}
		if string(obj) != tc.obj {
			t.Errorf("SetMember changed its argument to %s", obj)
		}
	}
}

func TestRemoveMember(t *testing.T) {
	for _, tc := range []struct{ obj, name, want string }{
		{`{"a":1,"b":2,"c":3}`, "a", `{"b":2,"c":3}`},
		{`{"a":1,"b":2,"c":3}`, "b", `{"a":1,"c":3}`},
		{`{"a":1,"b":2,"c":3}`, "c", `{"a":1,"b":2}`},
		{`{ "a" : 1 , "b" : 1e3 }`, "a", `{ "b" : 1e3 }`},
		{`{ "a" : 1 , "b" : 1e3 }`, "b", `{ "a" : 1 }`},
		{`{"a":1,"b":2 , "c":3}`, "a", `{"b":2 , "c":3}`},
		{`{"b":2 , "c":3,"a":1}`, "a", `{"b":2 , "c":3}`},
		{`{"b":2 , "a":1,"a":1,"c":3}`, "a", `{"b":2 , "c":3}`},
		{`{"a":{"a":1}}`, "a", `{}`},
		{`{"a":1,"b":2,"\u0061":3,"a":4}`, "a", `{"b":2}`},
		{`{"b":{"a":1}}`, "a", `{"b":{"a":1}}`},
		{`{"a":1`, "a", `{"a":1`},
		{`[1]`, "a", `[1]`},
		{``, "a", ``},
	} {
		obj := json.RawMessage(tc.obj)
		if got := string(jsonrpc.RemoveMember(obj, tc.name)); got != tc.want {
			t.Errorf("RemoveMember(%s, %q): got %s, want %s", tc.obj, tc.name, got, tc.want)
		}
		if string(obj) != tc.obj {
			t.Errorf("RemoveMember changed its argument to %s", obj)
		}
	}
}

func TestText(t *testing.T) {
	for _, tc := range []struct {
		raw, want string
		ok        bool
	}{
		{`"a"`, "a", true},
		{`""`, "", true},
		{`"\u0061\n\"é"`, "a\n\"é", true},
		{`1`, "", false},
		{`null`, "", false},
		{`{}`, "", false},
		{``, "", false},
		{`"`, "", false},
		{`"a`, "", false},
		{`"a"b`, "", false},
	} {
		got, ok := jsonrpc.Text(json.RawMessage(tc.raw))
		if got != tc.want || ok != tc.ok {
			t.Errorf("Text(%s): got %q, %v, want %q, %v", tc.raw, got, ok, tc.want, tc.ok)
		}
	}
}
