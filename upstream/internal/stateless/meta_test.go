package stateless

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/mcp-sse/mcp-sse/internal/mcp"
	"github.com/mcp-sse/mcp-sse/internal/mirror"
	"github.com/mcp-sse/mcp-sse/jsonrpc"
	"github.com/mcp-sse/mcp-sse/upstream/internal/exchange"
)

const metaStart = `"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":`

func TestMetaIsAddedAndAllElseKept(t *testing.T) {
	plain := newRequestMeta(json.RawMessage(`{"capabilities":{}}`))
	full := newRequestMeta(json.RawMessage(`{"capabilities":{"roots":{}, "tasks":{"list":{}}},"clientInfo":{"name":"c"}}`))
	full.logLevel = json.RawMessage(`"debug"`)
	for _, tc := range []struct {
		meta         requestMeta
		params, want string
	}{
		{requestMeta{}, ``, `{"_meta":{` + metaStart + `{}}}`},
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
		got, ok := tc.meta.into(params)
		if !ok || string(got) != tc.want {
			t.Errorf("params %s:\ngot  %s\nwant %s", tc.params, got, tc.want)
		}
	}
	if got, ok := plain.into(json.RawMessage(`[1]`)); ok {
		t.Errorf("params that are an array became %s", got)
	}
}

func TestHeadersMirrorTheRequest(t *testing.T) {
	region := []mirror.Param{{Path: []string{"where", "region"}, Name: "Region"}}
	for _, tc := range []struct {
		method, params string
		mirrored       []mirror.Param
		want           map[string]string
		code           int
	}{
		{"tools/list", `{"name":"x"}`, nil, map[string]string{}, 0},
		{"tools/call", `{"name":"sum"}`, nil, map[string]string{mirror.HeaderName: "sum"}, 0},
		{"prompts/get", `{"name":"Grüße"}`, nil, map[string]string{mirror.HeaderName: "=?base64?R3LDvMOfZQ==?="}, 0},
		{"resources/read", `{"uri":"file:///a b"}`, nil, map[string]string{mirror.HeaderName: "file:///a b"}, 0},
		{"tools/call", `{"name":"sum","arguments":{"where":{"region":"eu"}}}`, region, map[string]string{mirror.HeaderName: "sum", "Mcp-Param-Region": "eu"}, 0},
		{"tools/call", `{"name":"sum","arguments":{"where":{"region":null}}}`, region, map[string]string{mirror.HeaderName: "sum"}, 0},
		{"tools/call", `{"name":"sum","arguments":{}}`, region, map[string]string{mirror.HeaderName: "sum"}, 0},
		{"tools/call", `{"name":"sum","arguments":{"where":{"region":{}}}}`, region, nil, jsonrpc.CodeInvalidParams},
		{"tools/call", `{"name":1}`, nil, nil, jsonrpc.CodeInvalidParams},
		{"resources/read", `{}`, nil, nil, jsonrpc.CodeInvalidParams},
		{"näh", `{}`, nil, nil, jsonrpc.CodeMethodNotFound},
	} {
		got, err := requestHeader(tc.method, json.RawMessage(tc.params), tc.mirrored)
		if tc.code != 0 {
			if err == nil || err.Code != tc.code {
				t.Errorf("%s %s: got error %v, want code %d", tc.method, tc.params, err, tc.code)
			}
			continue
		}
		tc.want[exchange.HeaderVersion], tc.want[mirror.HeaderMethod] = "2026-07-28", tc.method
		if err != nil || len(got) != len(tc.want) {
			t.Errorf("%s %s: got %v, %v, want %v", tc.method, tc.params, got, err, tc.want)
			continue
		}
		for name, want := range tc.want {
			if got.Get(name) != want {
				t.Errorf("%s %s: header %s is %q, want %q", tc.method, tc.params, name, got.Get(name), want)
			}
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
		if got := mirror.Encode(value); got != want {
			t.Errorf("%q: got %s, want %s", value, got, want)
		}
	}
}

func TestArgumentsAsHeaderText(t *testing.T) {
	for raw, want := range map[string]string{
		`"a"`: "a", `"\u0061"`: "a", `""`: "", `true`: "true", `false`: "false",
		`1`: "1", `-7`: "-7", `0`: "0", `-0`: "0", `42.0`: "42", `1e3`: "1000",
		`9007199254740991`: "9007199254740991", `-9007199254740991`: "-9007199254740991",
	} {
		if got, ok := mirror.Text(json.RawMessage(raw)); !ok || got != want {
			t.Errorf("%s: got %q, %v, want %q", raw, got, ok, want)
		}
	}
	for _, raw := range []string{`1.5`, `9007199254740992`, `-9007199254740992`, `1e400`, `9223372036854775808`, `1e17`, `null`, `{}`, `[]`} {
		if got, ok := mirror.Text(json.RawMessage(raw)); ok {
			t.Errorf("%s became %q", raw, got)
		}
	}
}

func TestToolsWithInvalidAnnotationsAreLeftOut(t *testing.T) {
	const ok = `{"name":"ok" , "inputSchema":{"type":"object","properties":{"r":{"type":"string","x-mcp-header":"R"},` +
		`"o":{"type":"object","properties":{"n":{"type":["integer","null"],"x-mcp-header":"N"}}}}},"x":1.50}`
	page := readTools(json.RawMessage(`{"tools":[` + ok + `],"ttlMs":5}`))
	if got := string(page.result); got != `{"tools":[`+ok+`],"ttlMs":5}` {
		t.Errorf("a list without invalid tools changed to %s", got)
	}
	got := page.headers["ok"]
	if len(got) != 2 || strings.Join(got[0].Path, ".") != "o.n" || got[0].Name != "N" || strings.Join(got[1].Path, ".") != "r" {
		t.Errorf("got headers %v", got)
	}
	for why, schema := range map[string]string{
		"number":           `{"properties":{"a":{"type":"number","x-mcp-header":"A"}}}`,
		"no type":          `{"properties":{"a":{"x-mcp-header":"A"}}}`,
		"two types":        `{"properties":{"a":{"type":["string","integer"],"x-mcp-header":"A"}}}`,
		"object":           `{"properties":{"a":{"type":"object","x-mcp-header":"A"}}}`,
		"empty name":       `{"properties":{"a":{"type":"string","x-mcp-header":""}}}`,
		"name not a token": `{"properties":{"a":{"type":"string","x-mcp-header":"A B"}}}`,
		"line break":       `{"properties":{"a":{"type":"string","x-mcp-header":"A\r\nB"}}}`,
		"no string":        `{"properties":{"a":{"type":"string","x-mcp-header":1}}}`,
		"twice":            `{"properties":{"a":{"type":"string","x-mcp-header":"A"},"b":{"type":"string","x-mcp-header":"a"}}}`,
		"items":            `{"properties":{"a":{"type":"array","items":{"type":"string","x-mcp-header":"A"}}}}`,
		"oneOf":            `{"oneOf":[{"properties":{"a":{"type":"string","x-mcp-header":"A"}}}]}`,
		"behind $defs":     `{"$defs":{"a":{"type":"string","x-mcp-header":"A"}}}`,
		"the root":         `{"type":"string","x-mcp-header":"A"}`,
	} {
		page := readTools(json.RawMessage(`{"tools":[{"name":"bad","inputSchema":` + schema + `},` + ok + `],"nextCursor":"c"}`))
		if got := string(page.result); got != `{"tools":[`+ok+`],"nextCursor":"c"}` || page.dropped["bad"] == nil {
			t.Errorf("%s: got %s, dropped %v", why, got, page.dropped)
		}
	}
	for why, schema := range map[string]string{
		"a property of that name": `{"properties":{"x-mcp-header":{"type":"object"}}}`,
		"in a value":              `{"properties":{"a":{"default":{"x-mcp-header":"A"},"enum":[{"x-mcp-header":1}]}},"required":["x-mcp-header"]}`,
	} {
		list := `{"tools":[{"name":"t","inputSchema":` + schema + `}]}`
		if page := readTools(json.RawMessage(list)); string(page.result) != list || page.headers["t"] != nil {
			t.Errorf("%s: got %s, headers %v, dropped %v", why, page.result, page.headers, page.dropped)
		}
	}
	for _, odd := range []string{`{}`, `{"tools":{}}`, `[]`, `1`, `{"tools":[1,null,{}]}`} {
		if page := readTools(json.RawMessage(odd)); string(page.result) != odd {
			t.Errorf("%s became %s", odd, page.result)
		}
	}
}

func TestInitializeIsAnsweredFromDiscover(t *testing.T) {
	const discovered = `{"supportedVersions":["2026-07-28"],"capabilities":{"tools":{"listChanged":true}, "tasks":{}},"instructions":"be kind",` +
		`"ttlMs":1,"_meta":{"io.modelcontextprotocol/serverInfo":{"name":"s","version":"1"}},"resultType":"complete"}`
	for _, tc := range []struct{ discovered, params, want string }{
		{discovered, `{"protocolVersion":"2024-11-05"}`,
			`{"protocolVersion":"2024-11-05","capabilities":{"tools":{"listChanged":true}},"serverInfo":{"name":"s","version":"1"},"instructions":"be kind"}`},
		{`{"capabilities":{}}`, `{"protocolVersion":"2026-07-28"}`,
			`{"protocolVersion":"2025-11-25","capabilities":{},"serverInfo":{"name":"example.com","version":"unknown"}}`},
		{`{}`, `{}`, `{"protocolVersion":"2025-11-25","capabilities":{},"serverInfo":{"name":"example.com","version":"unknown"}}`},
		{`{"capabilities":null,"instructions":1,"_meta":{"io.modelcontextprotocol/serverInfo":1}}`, ``,
			`{"protocolVersion":"2025-11-25","capabilities":{},"serverInfo":{"name":"example.com","version":"unknown"}}`},
	} {
		if got := string(initializeResult(json.RawMessage(tc.discovered), json.RawMessage(tc.params), "example.com")); got != tc.want {
			t.Errorf("initialize %s:\ngot  %s\nwant %s", tc.params, got, tc.want)
		}
	}
}

func TestErrorsOfTheNewVersionAreTranslated(t *testing.T) {
	for raw, want := range map[string]string{
		`{"code":-32601,"message":"x","data":1.50}`: `{"code":-32601,"message":"x","data":1.50}`,
		`{"code":-32020,"message":"Mcp-Name"}`: `{"code":-32603,"message":"the server refused the headers of the request: Mcp-Name",` +
			`"data":{"reason":"header_mismatch","retryable":false}}`,
		`{"code":-32021,"message":"m","data":{"requiredCapabilities":{"sampling":{},"elicitation":{}}}}`: `{"code":-32603,` +
			`"message":"the server needs capabilities that the client has not declared: elicitation, sampling",` +
			`"data":{"reason":"missing_capability","retryable":false,"requiredCapabilities":{"sampling":{},"elicitation":{}}}}`,
		`{"code":-32021,"message":"needs roots"}`: `{"code":-32603,"message":"the server needs capabilities that the client has not declared: needs roots",` +
			`"data":{"reason":"missing_capability","retryable":false}}`,
		`{"code":-32022,"message":"m"}`: `{"code":-32603,"message":"the server no longer speaks MCP 2026-07-28","data":{"reason":"unsupported_version","retryable":true}}`,
	} {
		m, err := jsonrpc.Parse([]byte(`{"jsonrpc":"2.0","id":1,"error":` + raw + `}`))
		if err != nil {
			t.Fatal(err)
		}
		got := raw
		if e := translateError(m); e != nil {
			got = string(jsonrpc.NewError("1", e))
			want = `{"jsonrpc":"2.0","id":1,"error":` + want + `}`
		}
		if got != want {
			t.Errorf("%s:\ngot  %s\nwant %s", raw, got, want)
		}
	}
}

func TestResultTypes(t *testing.T) {
	for raw, want := range map[string]string{
		`{}`: "complete", `{"resultType":"complete"}`: "complete", `{"resultType":"input_required"}`: "input_required",
		`{"resultType":"task"}`: "", `{"resultType":1}`: "", `[]`: "complete", `{"structuredContent":{"resultType":"x"}}`: "complete",
	} {
		if got, ok := resultType(json.RawMessage(raw)); ok != (want != "") || ok && got != want {
			t.Errorf("%s: got %q, %v, want %q", raw, got, ok, want)
		}
	}
}

func TestOnlyWhatIsDeclaredIsServed(t *testing.T) {
	for _, tc := range []struct {
		capabilities, method, params string
		want                         bool
	}{
		{`{}`, mcp.MethodElicit, `{}`, false},
		{`{"elicitation":{}}`, mcp.MethodElicit, `{"mode":"form"}`, true},
		{`{"elicitation":{}}`, mcp.MethodElicit, `{"mode":"url"}`, false},
		{`{"elicitation":null}`, mcp.MethodElicit, `{}`, false},
		{`{"elicitation":{"url":{}}}`, mcp.MethodElicit, `{"mode":"url"}`, true},
		{`{"elicitation":{"url":{}}}`, mcp.MethodElicit, `{}`, false},
		{`{"elicitation":{"url":{},"form":{}}}`, mcp.MethodElicit, `{}`, true},
		{`{"sampling":{}}`, mcp.MethodSample, `{"messages":[]}`, true},
		{`{"sampling":{}}`, mcp.MethodSample, `{"tools":[]}`, false},
		{`{"sampling":{"tools":{}}}`, mcp.MethodSample, `{"tools":[]}`, true},
		{`{"roots":{}}`, mcp.MethodListRoots, ``, true},
		{`{"sampling":{}}`, mcp.MethodListRoots, ``, false},
		{`{"roots":{},"ping":{}}`, "ping", ``, false},
	} {
		m := newRequestMeta(json.RawMessage(`{"capabilities":` + tc.capabilities + `}`))
		if got := mcp.Answers(m.capabilities, tc.method, json.RawMessage(tc.params)); got != tc.want {
			t.Errorf("%s, %s %s: got %v, want %v", tc.capabilities, tc.method, tc.params, got, tc.want)
		}
	}
}

// FuzzModernParams: params stay valid JSON, and all members but _meta stay as
// they are, byte for byte.
func FuzzModernParams(f *testing.F) {
	for _, seed := range []string{
		`{}`, `{"_meta":{}}`, `{"_meta":{"progressToken":1.50}}`, `{"a":1,"_meta":[],"b":{"_meta":2}}`, `null`, `[]`, `{"_meta":1,"_meta":{"x":2}}`,
		`{"\u005fmeta":{"io.modelcontextprotocol\/logLevel":"x"}}`, ` { "a" : "\ud800" } `,
	} {
		f.Add([]byte(seed))
	}
	meta := newRequestMeta(json.RawMessage(`{"capabilities":{"roots":{}},"clientInfo":{"name":"fuzz"}}`))
	f.Fuzz(func(t *testing.T, params []byte) {
		m, err := jsonrpc.Parse([]byte(`{"jsonrpc":"2.0","id":1,"method":"a","params":` + string(params) + `}`))
		if err != nil || m.Params() == nil {
			return
		}
		got, ok := meta.into(m.Params())
		if !ok {
			if m.Params()[0] == '{' {
				t.Fatalf("%s is an object and was refused", params)
			}
			return
		}
		after := objectOf(t, got)
		version, _ := jsonrpc.Member(got, "_meta", mcp.MetaVersion)
		if string(version) != `"2026-07-28"` {
			t.Fatalf("no version in %s", got)
		}
		if m.Params()[0] != '{' {
			return
		}
		before := objectOf(t, m.Params())
		delete(after, "_meta")
		delete(before, "_meta")
		sameObject(t, before, after)
	})
}

// FuzzModernResult: a result stays valid JSON without a resultType, and all other
// members stay as they are, byte for byte.
func FuzzModernResult(f *testing.F) {
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
		got := plainResult(m.Result())
		if page := readTools(m.Result()); !json.Valid(page.result) || len(page.dropped) == 0 && !bytes.Equal(page.result, m.Result()) {
			t.Fatalf("tools of %s became %s", result, page.result)
		}
		if m.Result()[0] != '{' {
			if !bytes.Equal(got, m.Result()) {
				t.Fatalf("%s became %s", result, got)
			}
			return
		}
		before, after := objectOf(t, m.Result()), objectOf(t, got)
		if after["resultType"] != nil {
			t.Fatalf("resultType is left in %s", got)
		}
		delete(before, "resultType")
		sameObject(t, before, after)
	})
}

func objectOf(t *testing.T, raw []byte) map[string]json.RawMessage {
	t.Helper()
	var o map[string]json.RawMessage
	if err := json.Unmarshal(raw, &o); err != nil || !utf8.Valid(raw) {
		t.Fatalf("%q is no object: %v", raw, err)
	}
	return o
}

func sameObject(t *testing.T, before, after map[string]json.RawMessage) {
	t.Helper()
	if len(before) != len(after) {
		t.Fatalf("got members %q, want %q", after, before)
	}
	for name, value := range before {
		if !bytes.Equal(after[name], value) {
			t.Fatalf("member %q became %q, was %q", name, after[name], value)
		}
	}
}

// FuzzModernHeader: whatever an argument is, its header is plain, and says the
// same once it is decoded.
func FuzzModernHeader(f *testing.F) {
	for _, seed := range []string{"", "a", " a", "=?base64?YQ==?=", "=?base64?=", "\x00", "é", "a\r\nX: y", strings.Repeat("x", 1000)} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, value string) {
		raw, err := json.Marshal(value)
		if err != nil {
			t.Fatal(err)
		}
		value, _ = jsonrpc.Text(raw) // what is no UTF-8 has become so
		params := json.RawMessage(`{"name":` + string(raw) + `,"arguments":{"a":` + string(raw) + `}}`)
		h, e := requestHeader(mcp.MethodCallTool, params, []mirror.Param{{Path: []string{"a"}, Name: "A"}})
		if e != nil {
			t.Fatal(e)
		}
		for _, name := range []string{mirror.HeaderName, mirror.HeaderParam + "A"} {
			got := h.Get(name)
			if got == "" || !mirror.IsPlain(got) {
				t.Fatalf("header %s is %q", name, got)
			}
			if got, ok := mirror.Decode(got); !ok || got != value {
				t.Fatalf("header %s says %q, want %q", name, got, value)
			}
		}
	})
}

func TestToolWithTooManyMirroredArgumentsIsLeftOut(t *testing.T) {
	for n, kept := range map[int]bool{mirror.MaxParams: true, mirror.MaxParams + 1: false} {
		var all []string
		for i := range n {
			all = append(all, fmt.Sprintf(`"a%d":{"type":"string","x-mcp-header":"A%d"}`, i, i))
		}
		page := readTools(json.RawMessage(`{"tools":[{"name":"t","inputSchema":{"properties":{` + strings.Join(all, ",") + `}}}]}`))
		if got := page.dropped["t"] == nil; got != kept {
			t.Errorf("%d mirrored arguments: kept %v, %v", n, got, page.dropped["t"])
		}
	}
}

// A server may acknowledge millions of resources that nobody asked for.
func TestAcknowledgedIsAtMostWhatIsWanted(t *testing.T) {
	got := acknowledged(json.RawMessage(`{"notifications":{"toolsListChanged":true,"resourceSubscriptions":["x","b","b","y"]}}`), changeFilter{URIs: []string{"a", "b"}})
	if !got.Tools || len(got.URIs) != 1 || got.URIs[0] != "b" {
		t.Errorf("got %+v", got)
	}
}

// A client may ask for the server's keys of input requests; the server does not see that.
func TestKeysOfInputRequests(t *testing.T) {
	for _, tc := range []struct{ capabilities, sent, params string }{
		{`{"roots":{},"elicitation":{}}`, `{"roots":{},"elicitation":{}}`, `{"message":"m"}`},
		{`{"roots":{},"elicitation":{},"experimental":{"io.github.mcp-sse/inputKey":{}}}`, `{"roots":{},"elicitation":{}}`,
			`{"message":"m","_meta":{"io.github.mcp-sse/inputKey":"a \"key\""}}`},
		{`{"experimental":{"x":{},"io.github.mcp-sse/inputKey":{}},"roots":{},"elicitation":{}}`, `{"experimental":{"x":{}},"roots":{},"elicitation":{}}`,
			`{"message":"m","_meta":{"io.github.mcp-sse/inputKey":"a \"key\""}}`},
	} {
		c := &Conn{meta: newRequestMeta(json.RawMessage(`{"capabilities":` + tc.capabilities + `}`))}
		if got := string(c.meta.capabilities); got != tc.sent {
			t.Errorf("%s: the server gets %s, want %s", tc.capabilities, got, tc.sent)
		}
		asks, err := c.plan(json.RawMessage(`{"a \"key\"":{"method":"elicitation/create","params":{"message":"m"}},"b":{"method":"roots/list"}}`))
		if err != nil || len(asks) != 2 || string(asks[0].params) != tc.params {
			t.Fatalf("%s: %v, %+v", tc.capabilities, err, asks)
		}
		if got, want := string(asks[1].params), `{"_meta":{"io.github.mcp-sse/inputKey":"b"}}`; c.meta.keys && got != want {
			t.Errorf("got %s, want %s", got, want)
		}
	}
}
