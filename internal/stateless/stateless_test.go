package stateless_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"strconv"
	"strings"
	"testing"

	"go.uber.org/goleak"

	"github.com/mcp-sse/mcp-sse/internal/ssetest"
	"github.com/mcp-sse/mcp-sse/internal/stateless"
	"github.com/mcp-sse/mcp-sse/jsonrpc"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

const metaStart = `"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":`

func metaOf(params string) stateless.Meta { return stateless.MetaOf(json.RawMessage(params)) }

func TestMetaIsAddedAndAllElseKept(t *testing.T) {
	plain := metaOf(`{"capabilities":{}}`)
	full := metaOf(`{"capabilities":{"roots":{}, "tasks":{"list":{}}},"clientInfo":{"name":"c"}}`)
	full.LogLevel = json.RawMessage(`"debug"`)
	for _, tc := range []struct {
		meta         stateless.Meta
		params, want string
	}{
		{stateless.Meta{}, ``, `{"_meta":{` + metaStart + `{}}}`},
		{plain, `null`, `{"_meta":{` + metaStart + `{}}}`},
		{plain, `{"n":1.50,"x" : [9007199254740993]}`, `{"n":1.50,"x" : [9007199254740993],"_meta":{` + metaStart + `{}}}`},
		{plain, `{"_meta":{"progressToken":"p","traceparent":"t"},"a":1}`,
			`{"_meta":{"progressToken":"p","traceparent":"t",` + metaStart + `{}},"a":1}`},
		{plain, `{"_meta":null}`, `{"_meta":{` + metaStart + `{}}}`},
		{full, `{"a":1}`, `{"a":1,"_meta":{` + metaStart +
			`{"roots":{}},"io.modelcontextprotocol/clientInfo":{"name":"c"},"io.modelcontextprotocol/logLevel":"debug"}}`},
		// A client's own claims in _meta do not count.
		{plain, `{"_meta":{"io.modelcontextprotocol/clientCapabilities":{"roots":{}}}}`,
			`{"_meta":{"io.modelcontextprotocol/clientCapabilities":{},"io.modelcontextprotocol/protocolVersion":"2026-07-28"}}`},
	} {
		var params json.RawMessage
		if tc.params != "" {
			params = json.RawMessage(tc.params)
		}
		got, ok := tc.meta.Into(params)
		if !ok || string(got) != tc.want {
			t.Errorf("params %s:\ngot  %s\nwant %s", tc.params, got, tc.want)
		}
	}
	if got, ok := plain.Into(json.RawMessage(`[1]`)); ok {
		t.Errorf("params that are an array became %s", got)
	}
}

func TestHeadersRepeatTheRequest(t *testing.T) {
	for _, tc := range []struct{ method, params, want string }{
		{"tools/list", `{"name":"x"}`, ""},
		{"tools/call", `{"name":"sum"}`, " {Mcp-Name sum}"},
		{"prompts/get", `{"name":"Grüße"}`, " {Mcp-Name Grüße}"},
		{"resources/read", `{"uri":"file:///a b"}`, " {Mcp-Name file:///a b}"},
		{"tools/call", `{"name":1}`, "error"},
		{"resources/read", `{}`, "error"},
	} {
		got, err := stateless.Headers("v", tc.method, json.RawMessage(tc.params))
		want := fmt.Sprintf("[{Mcp-Protocol-Version v} {Mcp-Method %s}%s]", tc.method, tc.want)
		if err == nil && fmt.Sprint(got) != want || (err != nil) != (tc.want == "error") {
			t.Errorf("%s %s: got %v, %v, want %s", tc.method, tc.params, got, err, want)
		}
	}
}

// The examples of MCP 2026-07-28, basic/transports/streamable-http, value encoding.
func TestHeaderValuesAreEncodedWhereTheyMust(t *testing.T) {
	for value, want := range map[string]string{
		"us-west1":            "us-west1",
		"Hello, 世界":           "=?base64?SGVsbG8sIOS4lueVjA==?=",
		" padded ":            "=?base64?IHBhZGRlZCA=?=",
		"line1\nline2":        "=?base64?bGluZTEKbGluZTI=?=",
		"=?base64?literal?=":  "=?base64?PT9iYXNlNjQ/bGl0ZXJhbD89?=",
		"=?base64?open":       "=?base64?open",
		"":                    "=?base64??=",
		"a\x7f":               "=?base64?YX8=?=",
		"in the middle: fine": "in the middle: fine",
	} {
		ssetest.Want(t, value, stateless.Encode(value), want)
	}
}

func TestArgumentsAsHeaderText(t *testing.T) {
	for raw, want := range map[string]string{
		`"a"`: "a", `"\u0061"`: "a", `""`: "", `true`: "true", `false`: "false",
		`1`: "1", `-7`: "-7", `0`: "0", `-0`: "0", `42.0`: "42", `1e3`: "1000",
		`9007199254740991`: "9007199254740991", `-9007199254740991`: "-9007199254740991",
	} {
		if got, ok := stateless.Text(json.RawMessage(raw)); !ok || got != want {
			t.Errorf("%s: got %q, %v, want %q", raw, got, ok, want)
		}
	}
	for _, raw := range []string{`1.5`, `9007199254740992`, `-9007199254740992`, `1e400`, `9223372036854775808`, `1e17`, `null`, `{}`, `[]`} {
		if got, ok := stateless.Text(json.RawMessage(raw)); ok {
			t.Errorf("%s became %q", raw, got)
		}
	}
}

// learn learns a result of tools/list, and returns also the mirrored arguments of a tool.
func learn(result, tool string) (valid string, broken map[string]error, mirrored []stateless.Param) {
	var tools stateless.Tools
	kept, broken := tools.NotePage(nil, json.RawMessage(result))
	mirrored, _ = tools.Mirrored(tool)
	return string(kept), broken, mirrored
}

// A page with the bytes of the last one is not read again, until the list has changed.
func TestKnownPageIsNotReadAgain(t *testing.T) {
	page := json.RawMessage(`{"tools":[{"name":"a","inputSchema":{"properties":{"r":{"type":"string","x-mcp-header":"R"}}}}]}`)
	var tools stateless.Tools
	again := func(forget bool) float64 {
		return testing.AllocsPerRun(10, func() {
			if forget {
				tools.Forget()
			}
			if valid, _ := tools.NotePage(nil, page); string(valid) != string(page) {
				t.Errorf("got %s", valid)
			}
			if mirrored, known := tools.Mirrored("a"); !known || len(mirrored) != 1 {
				t.Errorf("mirrored: %v, %v", mirrored, known)
			}
		})
	}
	if first, known := again(true), again(false); known != 0 || first == 0 {
		t.Errorf("a page that is known costs %v allocations, a new one %v, want 0", known, first)
	}
}

func TestToolsWithInvalidAnnotationsAreLeftOut(t *testing.T) {
	const ok = `{"name":"ok" , "inputSchema":{"type":"object","properties":{"r":{"type":"string","x-mcp-header":"R"},` +
		`"o":{"type":"object","properties":{"n":{"type":["integer","null"],"x-mcp-header":"N"}}}}},"x":1.50}`
	valid, _, headers := learn(`{"tools":[`+ok+`],"ttlMs":5}`, "ok")
	ssetest.Want(t, "a list without invalid tools", valid, `{"tools":[`+ok+`],"ttlMs":5}`)
	got := headers
	if len(got) != 2 || strings.Join(got[0].Path, ".") != "o.n" || got[0].Name != "N" || strings.Join(got[1].Path, ".") != "r" {
		t.Errorf("got headers %v", got)
	}
	var many []string
	for i := range stateless.MaxParams + 1 {
		many = append(many, fmt.Sprintf(`"a%d":{"type":"string","x-mcp-header":"A%d"}`, i, i))
	}
	for why, schema := range map[string]string{
		"too many":         `{"properties":{` + strings.Join(many, ",") + `}}`,
		"number":           `{"properties":{"a":{"type":"number","x-mcp-header":"A"}}}`,
		"two types":        `{"properties":{"a":{"type":["string","integer"],"x-mcp-header":"A"}}}`,
		"empty name":       `{"properties":{"a":{"type":"string","x-mcp-header":""}}}`,
		"name not a token": `{"properties":{"a":{"type":"string","x-mcp-header":"A B"}}}`,
		"twice":            `{"properties":{"a":{"type":"string","x-mcp-header":"A"},"b":{"type":"string","x-mcp-header":"a"}}}`,
		"items":            `{"properties":{"a":{"type":"array","items":{"type":"string","x-mcp-header":"A"}}}}`,
		"behind $defs":     `{"$defs":{"a":{"type":"string","x-mcp-header":"A"}}}`,
		"the root":         `{"type":"string","x-mcp-header":"A"}`,
	} {
		valid, broken, _ := learn(`{"tools":[{"name":"bad","inputSchema":`+schema+`},`+ok+`],"nextCursor":"c"}`, "")
		if got := valid; got != `{"tools":[`+ok+`],"nextCursor":"c"}` || broken["bad"] == nil {
			t.Errorf("%s: got %s, dropped %v", why, got, broken)
		}
	}
	for why, schema := range map[string]string{
		"a property of that name": `{"properties":{"x-mcp-header":{"type":"object"}}}`,
		"in a value":              `{"properties":{"a":{"default":{"x-mcp-header":"A"},"enum":[{"x-mcp-header":1}]}},"required":["x-mcp-header"]}`,
	} {
		list := `{"tools":[{"name":"t","inputSchema":` + schema + `}]}`
		if valid, broken, headers := learn(list, "t"); valid != list || headers != nil {
			t.Errorf("%s: got %s, headers %v, broken %v", why, valid, headers, broken)
		}
	}
	for _, odd := range []string{`{}`, `{"tools":{}}`, `[]`, `1`, `{"tools":[1,null,{}]}`} {
		valid, _, _ := learn(odd, "")
		ssetest.Want(t, "an odd result", valid, odd)
	}
}

func TestInitializeIsAnsweredFromDiscover(t *testing.T) {
	const discovered = `{"supportedVersions":["2026-07-28"],"capabilities":{"tools":{"listChanged":true}, "tasks":{}},"instructions":"be kind",` +
		`"ttlMs":1,"_meta":{"io.modelcontextprotocol/serverInfo":{"name":"s","version":"1"}},"resultType":"complete"}`
	for _, tc := range []struct{ discovered, params, want string }{
		{discovered, `{"protocolVersion":"2024-11-05"}`,
			`{"protocolVersion":"2024-11-05","capabilities":{"tools":{"listChanged":true}},"instructions":"be kind","serverInfo":{"name":"s","version":"1"}}`},
		{`{"capabilities":{}}`, `{"protocolVersion":"2026-07-28"}`,
			`{"protocolVersion":"2025-11-25","capabilities":{},"serverInfo":{"name":"example.com","version":"unknown"}}`},
		{`{}`, `{}`, `{"protocolVersion":"2025-11-25","capabilities":{},"serverInfo":{"name":"example.com","version":"unknown"}}`},
		{`{"capabilities":null,"instructions":1,"_meta":{"io.modelcontextprotocol/serverInfo":1}}`, ``,
			`{"protocolVersion":"2025-11-25","capabilities":{},"serverInfo":{"name":"example.com","version":"unknown"}}`},
	} {
		if got := string(stateless.InitializeResult(json.RawMessage(tc.discovered), json.RawMessage(tc.params), "example.com")); got != tc.want {
			t.Errorf("initialize %s:\ngot  %s\nwant %s", tc.params, got, tc.want)
		}
	}
}

func TestResultTypes(t *testing.T) {
	for raw, want := range map[string]string{
		`{}`: "complete", `{"resultType":"complete"}`: "complete", `{"resultType":"input_required"}`: "input_required",
		`{"resultType":"task"}`: "", `{"resultType":1}`: "", `[]`: "complete", `{"structuredContent":{"resultType":"x"}}`: "complete",
	} {
		if got, ok := stateless.ResultType(json.RawMessage(raw)); ok != (want != "") || ok && got != want {
			t.Errorf("%s: got %q, %v, want %q", raw, got, ok, want)
		}
	}
}

// FuzzMeta: params stay valid JSON, and all members but _meta stay as
// they are, byte for byte.
func FuzzMeta(f *testing.F) {
	for _, seed := range []string{
		`{}`, `{"_meta":{}}`, `{"_meta":{"progressToken":1.50}}`, `{"a":1,"_meta":[],"b":{"_meta":2}}`, `null`, `[]`, `{"_meta":1,"_meta":{"x":2}}`,
		`{"\u005fmeta":{"io.modelcontextprotocol\/logLevel":"x"}}`, ` { "a" : "\ud800" } `,
	} {
		f.Add([]byte(seed))
	}
	meta := metaOf(`{"capabilities":{"roots":{}},"clientInfo":{"name":"fuzz"}}`)
	f.Fuzz(func(t *testing.T, params []byte) {
		m, err := jsonrpc.Parse([]byte(`{"jsonrpc":"2.0","id":1,"method":"a","params":` + string(params) + `}`))
		if err != nil || m.Params() == nil {
			return
		}
		got, ok := meta.Into(m.Params())
		if !ok {
			if m.Params()[0] == '{' {
				t.Fatalf("%s is an object and was refused", params)
			}
			return
		}
		var before, after map[string]json.RawMessage
		if err := json.Unmarshal(got, &after); err != nil || !stateless.IsStateless(got) {
			t.Fatalf("%s became %s: %v", params, got, err)
		}
		if json.Unmarshal(m.Params(), &before) != nil || before == nil {
			return // null
		}
		delete(after, "_meta")
		delete(before, "_meta")
		if !maps.EqualFunc(before, after, func(a, b json.RawMessage) bool { return bytes.Equal(a, b) }) {
			t.Fatalf("got members %q, want %q", after, before)
		}
	})
}

// FuzzTools: a list of tools stays valid JSON, byte for byte if no tool is left out.
func FuzzTools(f *testing.F) {
	for _, seed := range []string{
		`{"resultType":"complete","content":[1.50]}`, `{"resultType":"a","x":1,"resultType":"b"}`, `{}`, `[]`, `1`, `{"r\u0065sultType":1}`,
		`{"tools":[{"name":"a","inputSchema":{"properties":{"b":{"type":"number","x-mcp-header":"B"}}}},{"name":"c"}],"resultType":"complete"}`,
	} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, result []byte) {
		m, err := jsonrpc.Parse([]byte(`{"jsonrpc":"2.0","id":1,"result":` + string(result) + `}`))
		if err != nil {
			return
		}
		if valid, broken, _ := learn(string(m.Result()), ""); !json.Valid([]byte(valid)) || len(broken) == 0 && valid != string(m.Result()) {
			t.Fatalf("tools of %s became %s", result, valid)
		}
	})
}

// A server may acknowledge millions of resources that nobody asked for.
func TestAcknowledgedIsAtMostWhatIsWanted(t *testing.T) {
	honoured, _ := stateless.ReadFilter(json.RawMessage(`{"notifications":{"toolsListChanged":true,"resourceSubscriptions":["x","b","b","y"]}}`))
	got := honoured.And(stateless.Filter{Tools: true, Prompts: true, URIs: []string{"a", "b"}})
	if !got.Tools || got.Prompts || len(got.URIs) != 1 || got.URIs[0] != "b" {
		t.Errorf("got %+v", got)
	}
}

// A list of tools that never ends is not asked for for ever.
func TestToolsWithoutAnEnd(t *testing.T) {
	for cursor, want := range map[string]int{`"more"`: 2, `"more %d"`: 64, `""`: 1} {
		var tools stateless.Tools
		pages := 0
		for range 2 { // the second time comes too soon
			tools.List(func(json.RawMessage) (*jsonrpc.Message, error) {
				pages++
				next := strings.Replace(cursor, "%d", strconv.Itoa(pages), 1)
				return jsonrpc.Parse(jsonrpc.NewResult("1", json.RawMessage(`{"tools":[],"nextCursor":`+next+`}`)))
			})
		}
		if _, known := tools.Mirrored("t"); known && want > 1 || pages != want && cursor != `""` {
			t.Errorf("cursor %s: got %d pages, known %v", cursor, pages, known)
		}
	}
}

// FuzzHeader: what is encoded is plain, and decodes to what it was.
func FuzzHeader(f *testing.F) {
	for _, seed := range []string{"", "a", " a", "=?base64?YQ==?=", "=?base64?=", "\x00", "é", "a\r\nX: y"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, value string) {
		encoded := stateless.Encode(value)
		if got, ok := stateless.Decode(encoded); !ok || got != value || encoded == "" || !stateless.IsPlain(encoded) {
			t.Fatalf("%q became %q, and that %q, %v", value, encoded, got, ok)
		}
		stateless.Decode(value)
	})
}

// go-sdk cannot read a request for input without params, and roots/list needs none.
func TestInputRequestHasParams(t *testing.T) {
	for params, want := range map[string]string{
		"":                                `{"method":"roots/list","params":{}}`,
		`{}`:                              `{"method":"roots/list","params":{}}`,
		`{"_meta":{"progressToken":"p"}}`: `{"method":"roots/list","params":{}}`,
	} {
		var given json.RawMessage
		if params != "" {
			given = json.RawMessage(params)
		}
		if got := stateless.InputRequest("roots/list", given); string(got) != want {
			t.Errorf("with %q: %s, want %s", params, got, want)
		}
	}
}
