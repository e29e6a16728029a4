package jsonrpc_test

import (
	"encoding/json"
	"testing"

	"github.com/mcp-sse/mcp-sse/jsonrpc"
)

func TestParam(t *testing.T) {
	for _, tc := range []struct {
		params  string
		want    string
		certain bool
	}{
		{`{"_meta":{"progressToken":"a"}}`, `"a"`, true},
		{`{"x":1,"_meta":{"y":[],"progressToken":1.50}}`, `1.50`, true},
		{`{"_me\u0074a":{"progress\u0054oken":7}}`, `7`, true},
		{`{}`, ``, true},
		{`{"_meta":1}`, ``, true},
		{`{"_meta":{}}`, ``, true},
		{`[{"_meta":{"progressToken":7}}]`, ``, true},
		{`{"arguments":{"_meta":{"progressToken":7}}}`, ``, true},
		// Two values, of which another parser may take the other one.
		{`{"_meta":{"progressToken":1,"progressToken":2}}`, `2`, false},
		{`{"_meta":{"progressToken":1},"_meta":{}}`, ``, false},
		{`{"_meta":{"progressToken":1,"PROGRESSTOKEN":2}}`, `1`, false},
		{`{"_meta":{"progressto\u212Aen":2}}`, ``, false},
		{`{"_META":{"progressToken":1}}`, ``, false},
	} {
		m := mustParse(t, `{"jsonrpc":"2.0","id":1,"method":"a","params":`+tc.params+`}`)
		p, certain := m.Param("_meta", "progressToken")
		if got := string(m.At(p)); got != tc.want || certain != tc.certain || p.Found() != (tc.want != "") {
			t.Errorf("%s: got %q, certain %v, want %q, %v", tc.params, got, certain, tc.want, tc.certain)
		}
	}
	m := mustParse(t, `{"jsonrpc":"2.0","id":1,"method":"a"}`)
	if p, certain := m.Param("x"); p.Found() || !certain {
		t.Errorf("without params: found %s, certain %v", m.At(p), certain)
	}
}

func TestWithNumberChangesTheIDAndOneValue(t *testing.T) {
	for _, tc := range []struct{ in, want string }{
		{`{"jsonrpc":"2.0","id":"x","method":"a","params":{"t":1.5,"n":1e2}}`, `{"jsonrpc":"2.0","id":42,"method":"a","params":{"t":42,"n":1e2}}`},
		{`{ "params" : {"t":"long"}, "method":"a","id": 1 ,"jsonrpc":"2.0"}`, `{ "params" : {"t":42}, "method":"a","id": 42 ,"jsonrpc":"2.0"}`},
		{`{"jsonrpc":"2.0","id":"x","method":"a","params":{"n":1e2}}`, `{"jsonrpc":"2.0","id":42,"method":"a","params":{"n":1e2}}`},
	} {
		m := mustParse(t, tc.in)
		p, _ := m.Param("t")
		if got := string(m.WithNumber(42, p)); got != tc.want {
			t.Errorf("got %s, want %s", got, tc.want)
		}
		if got := string(m.WithIDAt("42", p)); got != tc.want {
			t.Errorf("WithIDAt: got %s, want %s", got, tc.want)
		}
	}
	m := mustParse(t, `{"jsonrpc":"2.0","method":"a","params":{"t":1, "u":2}}`)
	p, _ := m.Param("t")
	if got, want := string(m.WithValue(p, json.RawMessage(`"new"`))), `{"jsonrpc":"2.0","method":"a","params":{"t":"new", "u":2}}`; got != want {
		t.Errorf("got %s, want %s", got, want)
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
		if got := mustParse(t, in).Certain(); got != want {
			t.Errorf("%s: got %v, want %v", in, got, want)
		}
	}
}

func TestFilter(t *testing.T) {
	short := func(element json.RawMessage) bool { return len(element) < 4 }
	for in, want := range map[string]string{
		`[1, 2.50 ,"x",[1,2,3],{}]`: `[1,"x",{}]`,
		`[]`:                        `[]`,
		` [ ] `:                     `[]`,
		`["long"]`:                  `[]`,
		`{"a":1}`:                   `{"a":1}`,
		`null`:                      `null`,
		``:                          ``,
	} {
		if got := string(jsonrpc.Filter(json.RawMessage(in), short)); got != want {
			t.Errorf("Filter(%s) = %s, want %s", in, got, want)
		}
	}
}

func TestInteger(t *testing.T) {
	for in, want := range map[string]int64{
		"1": 1, "42": 42, "999999999999999": 999999999999999,
		"0": 0, "-1": 0, "01": 0, "1.0": 0, "1e3": 0, `"1"`: 0, "": 0, "null": 0, "1000000000000000": 0,
	} {
		if got, ok := jsonrpc.Integer(json.RawMessage(in)); got != want || ok != (want > 0) {
			t.Errorf("Integer(%s) = %d, %v, want %d", in, got, ok, want)
		}
	}
}

// FuzzPlace holds Param, WithNumber and Filter against Member and encoding/json.
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
		p, certain := m.Param("_meta", "progressToken")
		want, found := jsonrpc.Member(m.Params(), "_meta", "progressToken")
		if p.Found() != found || string(m.At(p)) != string(want) {
			t.Fatalf("found %s, Member %s", m.At(p), want)
		}
		sent := mustParse(t, string(m.WithNumber(42, p)))
		token, still := jsonrpc.Member(sent.Params(), "_meta", "progressToken")
		if sent.ID != "42" || still != found || found && string(token) != "42" {
			t.Fatalf("sent %s", sent.Raw())
		}
		var decoded struct { // it takes names in any case, and the last of several
			Meta struct {
				ProgressToken json.RawMessage `json:"progressToken"`
			} `json:"_meta"`
		}
		if json.Unmarshal(m.Params(), &decoded) == nil && certain && string(decoded.Meta.ProgressToken) != string(want) {
			t.Fatalf("certain of %s, another parser reads %s", want, decoded.Meta.ProgressToken)
		}
		list, _ := jsonrpc.Member(m.Params(), "x")
		var before, after []json.RawMessage
		if json.Unmarshal(list, &before) != nil || before == nil {
			return
		}
		kept := jsonrpc.Filter(list, func(e json.RawMessage) bool { return e[0] != '{' })
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
