package rawjson_test

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/mcp-sse/mcp-sse/internal/rawjson"
	"github.com/mcp-sse/mcp-sse/internal/ssetest"
)

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
		got, ok := rawjson.Member(json.RawMessage(tc.obj), tc.names...)
		if string(got) != tc.want || ok != (tc.want != "") {
			t.Errorf("Member(%s, %q): got %s, %v, want %s", tc.obj, tc.names, got, ok, tc.want)
		}
		if ok && cap(got) != len(got) {
			t.Errorf("Member(%s, %q): appending to the value would write into the object", tc.obj, tc.names)
		}
	}
}

// FuzzMember of package jsonrpc checks which members are there afterwards; this test has the bytes around them.
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
			"replaced " + tc.replaced: rawjson.ReplaceMember(obj, json.RawMessage(`"new"`), tc.name),
			"set " + tc.set:           rawjson.SetMember(obj, json.RawMessage(`"new"`), tc.name),
			"edited " + tc.set: rawjson.EditMembers(obj, []string{tc.name}, func(string, json.RawMessage) json.RawMessage {
				return json.RawMessage(`"new"`)
			}),
			"removed " + tc.removed: rawjson.RemoveMember(obj, tc.name),
		} {
			if _, want, _ := strings.Cut(want, " "); string(got) != want {
				t.Errorf("%q of %s: got %s, want %s", tc.name, tc.obj, got, want)
			}
		}
		ssetest.Want(t, "object itself", string(obj), tc.obj)
	}
}

func TestEditMembersAtOnce(t *testing.T) {
	for obj, want := range map[string]string{
		`{}`:                               `{"a":"+a","b":"+b"}`,
		` {"x": [1] , "b":2,"a" : {} } `:   ` {"x": [1] , "b":2+b,"a" : {}+a } `,
		`{"b":1,"c":[{"a":1}],"\u0062":2}`: `{"b":1,"c":[{"a":1}],"\u0062":2+b,"a":"+a"}`,
		`{"a":1} x`:                        `{"a":1} x`,
		``:                                 ``,
	} {
		got := rawjson.EditMembers(json.RawMessage(obj), []string{"a", "b"}, func(name string, value json.RawMessage) json.RawMessage {
			if value == nil {
				return rawjson.Quote("+" + name)
			}
			if cap(value) != len(value) {
				t.Errorf("%s: appending to %s would write into the object", obj, name)
			}
			return append(value, "+"+name...)
		})
		ssetest.Want(t, obj, string(got), want)
	}
}

// BenchmarkSetMember sets a member that is there, and one that is not, in an object like the params of a call, and in
// one of 64 KiB.
func BenchmarkSetMember(b *testing.B) {
	for size, pad := range map[string]int{"small": 100, "large": 64 << 10} {
		obj := json.RawMessage(`{"name":"tool","arguments":{"text":"` + strings.Repeat("x", pad) + `"},"_meta":{"progressToken":7}}`)
		for _, name := range []string{"_meta", "other"} {
			b.Run(size+" "+name, func(b *testing.B) {
				b.ReportAllocs()
				for b.Loop() {
					rawjson.SetMember(obj, json.RawMessage(`{"progressToken":8}`), name)
				}
			})
		}
	}
}

func TestText(t *testing.T) {
	for raw, want := range map[string]string{`"a"`: "a", `"\u0061\n\"é"`: "a\n\"é", `1`: "", `null`: "", ``: "", `"`: "", `"a`: "", `"a"b`: ""} {
		if got, ok := rawjson.Text(json.RawMessage(raw)); got != want || ok != (want != "") {
			t.Errorf("Text(%s): got %q, %v, want %q", raw, got, ok, want)
		}
	}
}

func TestInteger(t *testing.T) {
	for in, want := range map[string]int64{
		"1": 1, "42": 42, "999999999999999": 999999999999999,
		"0": 0, "-1": 0, "01": 0, "1.0": 0, "1e3": 0, `"1"`: 0, "": 0, "null": 0, "1000000000000000": 0,
	} {
		if got, ok := rawjson.Integer(json.RawMessage(in)); got != want || ok != (want > 0) {
			t.Errorf("Integer(%s) = %d, %v, want %d", in, got, ok, want)
		}
	}
}
