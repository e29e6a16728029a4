package jsonrpc_test

import (
	"bytes"
	"encoding/json"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/mcp-sse/mcp-sse/internal/rawjson"
	"github.com/mcp-sse/mcp-sse/jsonrpc"
)

// depth returns how deeply valid JSON nests.
func depth(data []byte) int {
	deepest, now, inString := 0, 0, false
	for i := 0; i < len(data); i++ {
		switch c := data[i]; {
		case inString && c == '\\':
			i++
		case c == '"':
			inString = !inString
		case inString:
		case c == '{' || c == '[':
			now++
			deepest = max(deepest, now)
		case c == '}' || c == ']':
			now--
		}
	}
	return deepest
}

// acceptable reports whether data is what Parse and Member take for JSON.
func acceptable(data []byte) bool {
	return json.Valid(data) && utf8.Valid(data) && depth(data) <= jsonrpc.MaxDepth
}

func membersOf(t *testing.T, obj []byte) map[string]json.RawMessage {
	t.Helper()
	var members map[string]json.RawMessage
	if err := json.Unmarshal(obj, &members); err != nil {
		t.Fatalf("%.200q is no object: %v", obj, err)
	}
	return members
}

// FuzzParse holds Parse against encoding/json.
func FuzzParse(f *testing.F) {
	for _, valid := range []string{
		`{"jsonrpc":"2.0","id":42,"result":{"content":[{"type":"text","text":"hello"}]}}`,
		`{"jsonrpc":"2.0","id":9007199254740993,"method":"a","params":[1.50,"\u0061",null]}`,
		`{"jsonrpc":"2.0","\u0069d":"x","result":{"id":1}}`,
		"{\r\n\"jsonrpc\":\"2.0\",\n\"id\":null,\"error\":{\"code\":-1}}\r\n",
		`{"jsonrpc":"2.0","id":1,"method":"a"}`,
		`{"jsonrpc":"2.0","id":1,"method":"a","params":{"x": 1.0}}`,
		`{"jsonrpc":"2.0","id":1,"method":"a","params":[ 1 ]}`,
		`{"jsonrpc":"2.0","id":1,"method":"a","params":null}`,
		`{"params":{},"method":"a","id":1,"jsonrpc":"2.0"}`,
		`{ "jsonrpc" : "2.0" , "id" : 1 , "method" : "a" }`,
		`{"\u006asonrpc":"2.0","\u0069d":1,"m\u0065thod":"a","p\u0061rams":{}}`,
		`{"jsonrpc":"2.0","id":1,"method":"\u00e9\n\"x\""}`,
		`{"jsonrpc":"2.0","id":1,"method":""}`,
		`{"jsonrpc":"2.0","id":1,"method":"a","unknown":{"id":2,"method":"b"},"ID":3}`,
		`{"jsonrpc":"2.0","id":1,"method":"a","params":{"a":1,"a":2},"x":1,"x":2}`, // what duplicates mean is for the two ends to say
		`{"jsonrpc":"2.0","method":"a"}`,
		`{"jsonrpc":"2.0","method":"a","params":{"é":"\u2028"}}`,
		`{"jsonrpc":"2.0","id":1,"result":{}}`,
		`{"jsonrpc":"2.0","id":1,"result":null}`,
		`{"jsonrpc":"2.0","id":1,"result":false}`,
		`{"jsonrpc":"2.0","id":1,"result":0}`,
		`{"jsonrpc":"2.0","id":1,"result":""}`,
		`{"jsonrpc":"2.0","id":1,"error":{"code":-1,"message":"m"}}`,
		`{"jsonrpc":"2.0","id":null,"error":{"code":-1}}`,
		`{"jsonrpc":"2.0","error":{"code":-1}}`,
		`{"jsonrpc":"2.0","result":{}}`,
		`{"jsonrpc":"2.0","id":1,"result":[1e400,-0,1E+2,0.1e-7]}`,
		`{"jsonrpc":"2.0","method":"a","params":{"a":"\u0000\ud83d\ude00\ud800"}}`,
		"{\"jsonrpc\":\"2.0\",\"method\":\"a\",\"params\":{\"a\":\"\x7f\u2028\U0001F600\"}}",
		" \t\r\n{\n  \"jsonrpc\": \"2.0\",\r\n\t\"id\": 1.0,\"method\":\"a\",\"params\":{\"a\":[\r1,\"b\\r\\n  c\"],\"d\":1E3}\n}\r\n\n ",
	} {
		mustParse(f, valid)
		f.Add([]byte(valid))
	}
	for _, seed := range []string{
		`{"jsonrpc":"2.0","id":1,"id":2,"method":"a"}`,
		`{"jsonrpc":"2.0","method":"a","params":"x"}`,
		`[{"jsonrpc":"2.0","id":1,"method":"a"}]`, `null`, `"x"`, `-0.1e+2`, `{}`, "", "{\"a\":\"\xff\"}", "\ufeff{}", "\v{}", "{\x00}",
		strings.Repeat("[", 600), `{"a":` + strings.Repeat("[", 511) + strings.Repeat("]", 511) + `}`,
	} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		m, err := jsonrpc.Parse(bytes.Clone(data))
		switch code(t, err) {
		case jsonrpc.CodeParseError:
			if acceptable(data) {
				t.Fatalf("refused as JSON: %v", err)
			}
		case jsonrpc.CodeInvalidRequest:
			// A duplicate member ends the walk: the rest is not judged.
			if !acceptable(data) && !strings.Contains(err.Error(), "duplicate member") {
				t.Fatalf("taken for JSON: %v", err)
			}
		case 0:
			if !acceptable(data) {
				t.Fatal("taken for JSON")
			}
			checkAgainstEncodingJSON(t, data, m)
		default:
			t.Fatalf("unexpected code: %v", err)
		}
	})
}

func checkAgainstEncodingJSON(t *testing.T, data []byte, m *jsonrpc.Message) {
	t.Helper()
	var before, after bytes.Buffer
	if json.Compact(&before, data) != nil || json.Compact(&after, m.Raw()) != nil || !bytes.Equal(before.Bytes(), after.Bytes()) {
		t.Fatalf("raw is another message: %q", m.Raw())
	}
	if bytes.ContainsAny(m.Raw(), "\r\n") || !bytes.ContainsAny(data, "\r\n") && !bytes.Equal(m.Raw(), bytes.Trim(data, " \t")) {
		t.Fatalf("raw has a line break, or was changed without one: %q", m.Raw())
	}
	members := membersOf(t, m.Raw())
	for name, got := range map[string]json.RawMessage{"params": m.Params(), "result": m.Result(), "error": m.Error()} {
		if !bytes.Equal(got, members[name]) {
			t.Fatalf("%s: got %q, want %q", name, got, members[name])
		}
	}
	id, hasID := members["id"]
	kind := jsonrpc.Response
	if _, isCall := members["method"]; isCall && hasID {
		kind = jsonrpc.Request
	} else if isCall {
		kind = jsonrpc.Notification
	}
	if m.Kind != kind {
		t.Fatalf("got kind %v, want %v", m.Kind, kind)
	}
	if !hasID && m.Kind == jsonrpc.Response {
		id = json.RawMessage(jsonrpc.Null)
	}
	if string(m.ID) != string(id) {
		t.Fatalf("got id %q, want %q", m.ID, id)
	}
	if hasID && !bytes.Equal(m.WithID(m.ID), m.Raw()) {
		t.Fatalf("with its own id it is another message: %q", m.WithID(m.ID))
	}
	var method string
	if raw, ok := members["method"]; ok {
		if err := json.Unmarshal(raw, &method); err != nil {
			t.Fatalf("method %s: %v", raw, err)
		}
	}
	again, err := jsonrpc.Parse(m.Raw())
	if err != nil || again.Kind != m.Kind || again.ID != m.ID || again.Method != m.Method || !bytes.Equal(again.Raw(), m.Raw()) {
		t.Fatalf("parsed again: got %v, %v, want %v", again, err, m)
	}
	if m.Method != method {
		t.Fatalf("got method %q, want %q", m.Method, method)
	}
}

// FuzzID puts any bytes in the place of an id. Bytes that are taken for an id
// travel unchanged through WithID and encoding/json.
func FuzzID(f *testing.F) {
	for _, seed := range []string{
		"1", "-1", "0", "-0", "9007199254740993", "1.5", "1e3", "1E+400", `"x"`, `""`, `"\u0061"`, `"\ud800"`, `"\"\\"`, "null", "true", "{}", "[1]", "01", "1,\"x\":2",
		strings.Repeat("9", jsonrpc.MaxIDBytes), strings.Repeat("9", jsonrpc.MaxIDBytes+1), `"` + strings.Repeat("é", 600) + `"`, "\"\xff\"", "\"\x00\"", " 1 ", "",
	} {
		f.Add(seed)
	}
	others := []string{
		`{"jsonrpc":"2.0","id":"other","method":"a","params":{"id":1.0}}`,
		`{"jsonrpc":"2.0","error":{"code":1},"i\u0064":null, "x":1E3}`,
		`{"jsonrpc":"2.0","result":[ "id" ]}`,
	}
	f.Fuzz(func(t *testing.T, id string) {
		m, err := jsonrpc.Parse([]byte(`{"jsonrpc":"2.0","id":` + id + `,"method":"a"}`))
		trimmed := strings.Trim(id, " \t\r\n")
		isID := acceptable([]byte(id)) && strings.Trim(trimmed[:1], `-0123456789"`) == ""
		switch {
		case isID && len(trimmed) <= jsonrpc.MaxIDBytes && err != nil:
			t.Fatalf("refused: %v", err)
		case isID && len(trimmed) > jsonrpc.MaxIDBytes && err == nil:
			t.Fatalf("accepted an id of %d bytes", len(trimmed))
		case isID && err == nil && string(m.ID) != trimmed:
			t.Fatalf("got id %q, want %q", m.ID, trimmed)
		case err != nil || m.Kind != jsonrpc.Request:
			return
		}
		for _, other := range others {
			o := mustParse(t, other)
			want, got := membersOf(t, o.Raw()), membersOf(t, o.WithID(m.ID))
			want["id"] = json.RawMessage(m.ID)
			checkSameMembers(t, got, want)
			if back := mustParse(t, string(o.WithID(m.ID))); back.ID != m.ID || back.Kind != o.Kind {
				t.Fatalf("got back a %v with id %q, want a %v with %q", back.Kind, back.ID, o.Kind, m.ID)
			}
		}
	})
}

func checkSameMembers(t *testing.T, got, want map[string]json.RawMessage) {
	t.Helper()
	if len(got) != len(want) {
		t.Fatalf("got members %q, want %q", got, want)
	}
	for name, value := range want {
		if !bytes.Equal(got[name], value) {
			t.Fatalf("member %q: got %q, want %q", name, got[name], value)
		}
	}
}

// FuzzMember holds Member, ReplaceMember, SetMember and RemoveMember against
// encoding/json.
func FuzzMember(f *testing.F) {
	for _, seed := range []struct{ obj, name string }{
		{`{"a":1}`, "a"}, {` {"a":{"a":2} , "b":[]} `, "b"}, {`{"\u0061":1,"a":2}`, "a"}, {`{"é":"\ud800"}`, "é"}, {`{"\ud800":1}`, "\ufffd"},
		{`{"":0}`, ""}, {`{"a":1}x`, "a"}, {`[1]`, "a"}, {`null`, ""}, {`{"a":}`, "a"}, {`{"a":1,}`, "a"}, {"", ""}, {"{\"\xff\":1}", "\xff"},
	} {
		f.Add([]byte(seed.obj), seed.name)
	}
	f.Fuzz(func(t *testing.T, obj []byte, name string) {
		got, ok := rawjson.Member(obj, name)
		replaced := rawjson.ReplaceMember(obj, json.RawMessage(`{"new":1}`), name)
		set := rawjson.SetMember(obj, json.RawMessage(`{"new":1}`), name)
		removed := rawjson.RemoveMember(obj, name)
		if !utf8.Valid(obj) {
			return // Parse let nothing like it pass; it must not panic
		}
		if !acceptable(obj) || bytes.TrimLeft(obj, " \t\r\n")[0] != '{' {
			if ok || !bytes.Equal(replaced, obj) || !bytes.Equal(set, obj) || !bytes.Equal(removed, obj) {
				t.Fatalf("found %q in what is no object", got)
			}
			return
		}
		members := membersOf(t, obj)
		want, has := members[name]
		if ok != has || !bytes.Equal(got, want) {
			t.Fatalf("got %q, %v, want %q, %v", got, ok, want, has)
		}
		delete(members, name)
		checkSameMembers(t, membersOf(t, removed), members)
		members[name] = json.RawMessage(`{"new":1}`)
		if utf8.ValidString(name) {
			checkSameMembers(t, membersOf(t, set), members)
		}
		if has {
			checkSameMembers(t, membersOf(t, replaced), members)
		}
	})
}
