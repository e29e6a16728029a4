package statelessclient_test

import (
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/mcp-sse/mcp-sse/internal/streamable/internal/statelessclient"
)

const (
	metaVersion = `"io.modelcontextprotocol/protocolVersion":"2026-07-28"`
	metaCaps    = `"io.modelcontextprotocol/clientCapabilities":{}`
)

// Each rule of the specification for requests that are refused, with status and code.
func TestRefusedRequests(t *testing.T) {
	list := func(meta string) string {
		return `{"jsonrpc":"2.0","id":7,"method":"tools/list","params":{"_meta":{` + meta + `}}}`
	}
	for name, tc := range map[string]struct {
		ask    ask
		status int
		code   string
	}{
		"no params":            {ask{method: "tools/list", body: `{"jsonrpc":"2.0","id":7,"method":"tools/list"}`}, 400, "-32602"},
		"no _meta":             {ask{method: "tools/list", body: `{"jsonrpc":"2.0","id":7,"method":"tools/list","params":{}}`}, 400, "-32602"},
		"_meta no object":      {ask{method: "tools/list", body: `{"jsonrpc":"2.0","id":7,"method":"tools/list","params":{"_meta":[]}}`}, 400, "-32602"},
		"no version":           {ask{method: "tools/list", body: list(metaCaps)}, 400, "-32602"},
		"no capabilities":      {ask{method: "tools/list", body: list(metaVersion)}, 400, "-32602"},
		"client info a text":   {ask{method: "tools/list", id: "7", info: `"x"`}, 400, "-32602"},
		"client info too long": {ask{method: "tools/list", id: "7", info: `{"name":"` + strings.Repeat("x", 5000) + `"}`}, 400, "-32602"},
		"unknown log level":    {ask{method: "tools/list", id: "7", meta: `,"io.modelcontextprotocol/logLevel":"loud"`}, 400, "-32602"},
		"an input a number":    {ask{method: "tools/call", id: "7", params: `{"name":"t","inputResponses":{"a":1}}`}, 400, "-32602"},
		"foreign state":        {ask{method: "tools/call", id: "7", params: `{"name":"t","requestState":"x"}`}, 400, "-32602"},
		"nothing to listen to": {ask{method: "subscriptions/listen", id: "7", params: `{}`}, 400, "-32602"},

		"two names":            {ask{method: "tools/call", id: "7", params: `{"name":"u","name":"t"}`}, 400, "-32600"},
		"two spellings":        {ask{method: "tools/call", id: "7", params: `{"name":"t","Name":"u"}`}, 400, "-32600"},
		"two resources":        {ask{method: "resources/read", id: "7", params: `{"uri":"a:x","URI":"a:y"}`}, 400, "-32020"},
		"no version header":    {ask{method: "tools/list", id: "7", header: map[string]string{"MCP-Protocol-Version": ""}}, 400, "-32020"},
		"other version header": {ask{method: "tools/list", id: "7", header: map[string]string{"MCP-Protocol-Version": "2025-11-25"}}, 400, "-32020"},
		"no method header":     {ask{method: "tools/list", id: "7", header: map[string]string{"Mcp-Method": ""}}, 400, "-32020"},
		"other method header":  {ask{method: "tools/list", id: "7", header: map[string]string{"Mcp-Method": "tools/call"}}, 400, "-32020"},
		"no name header":       {ask{method: "tools/call", id: "7", params: `{"name":"t"}`, header: map[string]string{"Mcp-Name": ""}}, 400, "-32020"},
		"other name header":    {ask{method: "tools/call", id: "7", params: `{"name":"t"}`, header: map[string]string{"Mcp-Name": "T"}}, 400, "-32020"},
		"broken name header":   {ask{method: "tools/call", id: "7", params: `{"name":"t"}`, header: map[string]string{"Mcp-Name": "=?base64?dA?="}}, 400, "-32020"},

		"later version": {ask{method: "tools/list", body: list(`"io.modelcontextprotocol/protocolVersion":"2099-01-01",` + metaCaps),
			header: map[string]string{"MCP-Protocol-Version": "2099-01-01"}}, 400, "-32022"},

		"initialize": {ask{method: "initialize", id: "7"}, 404, "-32601"},
		"ping":       {ask{method: "ping", id: "7"}, 404, "-32601"},
		"subscribe":  {ask{method: "resources/subscribe", id: "7"}, 404, "-32601"},
		"tasks/get":  {ask{method: "tasks/get", id: "7"}, 404, "-32601"},
	} {
		t.Run(name, func(t *testing.T) {
			f := newFixture(t, statelessclient.Options{})
			r := f.do(t, tc.ask)
			want(t, "status", r.Code, tc.status)
			want(t, "code", r.member("error", "code"), tc.code)
			want(t, "id", r.member("id"), 7)
			if tc.code == "-32022" {
				want(t, "data", r.member("error", "data"), `{"supported":["2026-07-28","2025-03-26","2025-06-18","2025-11-25"],"requested":"2099-01-01"}`)
			}
			for _, c := range f.server.connections() {
				if got := c.received("tools/list", "tools/call"); len(got) > 0 {
					t.Errorf("the server got %q", got)
				}
			}
		})
	}
}

func TestOtherMessages(t *testing.T) {
	f := newFixture(t, quiet)
	for body, status := range map[string]int{
		`{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":1}}`: 202,
		`{"jsonrpc":"2.0","id":1,"result":{}}`:                                          400,
		`[{"jsonrpc":"2.0","id":1,"method":"ping"}]`:                                    400,
		`{"jsonrpc":"2.0","id":1`:                                                       400,
	} {
		want(t, body, f.do(t, ask{body: body}).Code, status)
	}
	want(t, "connections", len(f.server.connections()), 0)
}

// A proxy between client and server may read another one of two headers.
func TestHeadersThatAreThereTwice(t *testing.T) {
	for _, name := range []string{"Mcp-Protocol-Version", "Mcp-Method", "Mcp-Name"} {
		f := newFixture(t, quiet)
		r := ask{method: "prompts/get", params: `{"name":"p"}`}.request(t.Context())
		r.Header.Add(name, r.Header.Get(name))
		w := newResponse()
		f.post(w, r, "")
		want(t, name, w.member("error", "code"), "-32020")
	}
}

// Arguments that a tool has mirrored must be in headers, and no others.
func TestMirroredArguments(t *testing.T) {
	const tools = `{"tools":[{"name":"t","inputSchema":{"properties":{"s":{"type":"string","x-mcp-header":"S"},` +
		`"o":{"type":"object","properties":{"n":{"type":"integer","x-mcp-header":"N"}}},"b":{"type":"boolean","x-mcp-header":"B"}}}},{"name":"plain"}]}`
	for _, tc := range []struct {
		arguments string
		header    map[string]string
		ok        bool
	}{
		{`{}`, nil, true},
		{`{"other":1}`, nil, true},
		{`{"s":"a"}`, map[string]string{"Mcp-Param-S": "a"}, true},
		{`{"s":"a"}`, map[string]string{"Mcp-Param-S": "=?base64?YQ==?="}, true},
		{`{"s":"a"}`, map[string]string{"Mcp-Param-S": "=?base64?YQ?="}, false},
		{`{"s":"a"}`, map[string]string{"Mcp-Param-S": "b"}, false},
		{`{"s":"a"}`, nil, false},
		{`{"s":null}`, nil, true},
		{`{}`, map[string]string{"Mcp-Param-S": "a"}, false},
		{`{"s":"5"}`, map[string]string{"Mcp-Param-S": "5"}, true},
		{`{"s":"5"}`, map[string]string{"Mcp-Param-S": "5.0"}, false},
		{`{"o":{"n":5}}`, map[string]string{"Mcp-Param-N": "5"}, true},
		{`{"o":{"n":5}}`, map[string]string{"Mcp-Param-N": "5.0"}, true},
		{`{"o":{"n":5}}`, map[string]string{"Mcp-Param-N": `"5"`}, false},
		{`{"o":{"n":5.5}}`, map[string]string{"Mcp-Param-N": `5.5`}, false},
		{`{"s":"b","s":"a"}`, map[string]string{"Mcp-Param-S": "a"}, false},
		{`{"s":"a","S":"b"}`, map[string]string{"Mcp-Param-S": "a"}, false},
		{`{"b":true}`, map[string]string{"Mcp-Param-B": "true"}, true},
	} {
		f := newFixture(t, quiet)
		f.server.tools = tools
		r := f.do(t, ask{method: "tools/call", params: `{"name":"t","arguments":` + tc.arguments + `}`, header: tc.header})
		if ok := r.Code == 200; ok != tc.ok || !ok && r.member("error", "code") != "-32020" {
			t.Errorf("%s, %v: status %d: %s", tc.arguments, tc.header, r.Code, r.last())
		}
		// Known tools are not listed again.
		f.do(t, ask{method: "tools/call", params: `{"name":"plain"}`})
		want(t, "lists of the tools", len(f.server.connections()[0].received("tools/list")), 1)
	}
}

// A client that lists the tools has all that is needed for their headers; a changed list
// is listed again.
func TestToolsAreLearnedFromTheClientsOwnList(t *testing.T) {
	f := newFixture(t, quiet)
	f.do(t, ask{method: "tools/list"})
	f.do(t, ask{method: "tools/call", params: `{"name":"t"}`})
	c := f.server.connections()[0]
	want(t, "lists", len(c.received("tools/list")), 1)
	c.send(nil, `{"jsonrpc":"2.0","method":"notifications/tools/list_changed"}`)
	f.do(t, ask{method: "tools/call", params: `{"name":"t"}`})
	want(t, "lists after a change", len(c.received("tools/list")), 2)
}

// A method may be over its limit once it is quoted anew for the server.
func TestMethodThatGrows(t *testing.T) {
	bubble(t, quiet, func(t *testing.T, f *fixture) {
		a := ask{method: strings.Repeat("<", 400)}
		r := f.begin(t, ask{method: a.method, body: strings.ReplaceAll(a.message(), `\u003c`, "<")})
		pause(time.Hour)
		want(t, "answer", r.member("error", "code"), -32600)
		want(t, "open ones", f.registry.Len(), 0)
	})
}

// listed returns how often the server was asked for its tools, over all connections.
func (f *fixture) listed() (n int) {
	for _, c := range f.server.connections() {
		n += len(c.received("tools/list"))
	}
	return n
}

// A server that does not list its tools delays the first calls a little, and no others.
func TestSilentServerDelaysFewCalls(t *testing.T) {
	bubble(t, quiet, func(t *testing.T, f *fixture) {
		f.server.silent = []string{"tools/list"}
		began := time.Now()
		var first []*response
		for i := range 5 { // on connections of their own
			first = append(first, f.begin(t, ask{method: "tools/call", params: toolCall, capabilities: askAll, id: fmt.Sprint(i)}))
		}
		synctest.Wait()
		want(t, "connections", len(f.server.connections()), 5)
		want(t, "lists", f.listed(), 1)
		for _, r := range first {
			<-r.done
			want(t, "status", r.Code, 200)
		}
		want(t, "delay of the first", time.Since(began), 5*time.Second)
		f.do(t, ask{method: "tools/call", params: toolCall, capabilities: askAll})
		want(t, "delay of the next", time.Since(began), 5*time.Second)
		want(t, "lists", f.listed(), 1)
	})
}
