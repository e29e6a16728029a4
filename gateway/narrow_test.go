package gateway_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"

	"github.com/mcp-sse/mcp-sse/compose"
	"github.com/mcp-sse/mcp-sse/gateway"
	"github.com/mcp-sse/mcp-sse/internal/asker"
	"github.com/mcp-sse/mcp-sse/internal/ssetest"
	"github.com/mcp-sse/mcp-sse/jsonrpc"
	"github.com/mcp-sse/mcp-sse/upstream"
)

// narrowing is a client over Streamable HTTP of a gateway in front of a server with the tools read_a, read_b and write.
type narrowing struct {
	t *testing.T
	g *gateway.Gateway
}

func newNarrowing(t *testing.T, opts gateway.Options) *narrowing {
	t.Helper()
	u := &server{capabilities: withLists, handle: lists(map[string]string{
		"tools/list": `{"tools":[{"name":"read_a"},{"name":"read_b"},{"name":"write"}]}`,
	})}
	g, err := gateway.New(u, opts)
	must(t, err)
	n := &narrowing{t, g}
	t.Cleanup(func() { equal(t, "Shutdown", g.Shutdown(context.Background()), nil) })
	return n
}

// send sends a request. tools is ?tools=, if it is not "-".
func (n *narrowing) send(method, tools, body string, header ...string) *httptest.ResponseRecorder {
	n.t.Helper()
	target := "/mcp"
	if tools != "-" {
		target += "?tools=" + url.QueryEscape(tools)
	}
	w := httptest.NewRecorder()
	n.g.ServeHTTP(w, ssetest.Request(n.t.Context(), method, target, body, header...))
	return w
}

// list returns the names of the tools that a request lists, or its status.
func (n *narrowing) list(tools string, header ...string) string {
	n.t.Helper()
	w := n.send(http.MethodPost, tools, request("1", "tools/list"), header...)
	if w.Code != http.StatusOK {
		return fmt.Sprint(w.Code)
	}
	m, err := jsonrpc.Parse(w.Body.Bytes())
	must(n.t, err)
	var result struct{ Tools []struct{ Name string } }
	must(n.t, json.Unmarshal(m.Result(), &result))
	var names []string
	for _, tool := range result.Tools {
		names = append(names, tool.Name)
	}
	return strings.Join(names, " ")
}

// A client narrows the tools that it gets, by its URL, a header, or both. It never widens them.
func TestNarrowing(t *testing.T) {
	n := newNarrowing(t, gateway.Options{Select: &compose.Selection{Exclude: []string{"read_b"}}})
	for _, c := range []struct {
		tools  string
		header []string
		want   string
	}{
		{"-", nil, "read_a write"},
		{"read_*", nil, "read_a"},
		{"-", []string{"X-MCP-Tools", "w*, x"}, "write"},
		{"*,read_b", nil, "read_a write"},
		{"read_*,write", []string{"X-MCP-Tools", "write,y"}, "write"},
		{"read_a", []string{"X-MCP-Tools", "write"}, ""},
		{"", nil, "400"},
		{"read_a,", nil, "400"},
		{"a[b]", nil, "400"},
		{strings.Repeat("a,", 5000) + "a", nil, "400"},
		{"-", []string{"X-MCP-Tools", ""}, "400"},
		{"read_a", []string{"X-MCP-Tools", "!a"}, "400"},
	} {
		equal(t, fmt.Sprintf("%.20s %q", c.tools, c.header), n.list(c.tools, c.header...), c.want)
	}
	for tools, code := range map[string]string{"-": "", "read_*": "", "write": `"code":-32602`} {
		w := n.send(http.MethodPost, tools, asking("1", "tools/call", `{"name":"read_a"}`))
		ssetest.WantText(t, "call with "+tools, w.Body.String(), code)
	}
}

// The value at the begin of a session holds. A later request may repeat it or say nothing; another value is refused.
func TestNarrowingHoldsForASession(t *testing.T) {
	n := newNarrowing(t, gateway.Options{IDKey: bytes.Repeat([]byte("k"), 32)})
	first := n.send(http.MethodPost, "read_*", initialize("0", "2025-11-25", "{}"), "X-MCP-Tools", "read_a,write")
	session := []string{"Mcp-Session-Id", first.Header().Get("Mcp-Session-Id")}
	equal(t, "without a value", n.list("-", session...), "read_a")
	equal(t, "with the same", n.list("read_*", append(session, "X-MCP-Tools", "read_a,write")...), "read_a")
	equal(t, "with another in the URL", n.list("*", session...), "400")
	equal(t, "with another header", n.list("-", append(session, "X-MCP-Tools", "read_a")...), "400")
	for _, method := range []string{http.MethodGet, http.MethodDelete} {
		equal(t, method+" with another", n.send(method, "*", "", session...).Code, http.StatusBadRequest)
	}
	plainFirst := n.send(http.MethodPost, "-", initialize("0", "2025-11-25", "{}")).Header().Get("Mcp-Session-Id")
	equal(t, "a value later", n.list("read_*", "Mcp-Session-Id", plainFirst), "400")

	// After a restart the request that opens the session again says it.
	again := newNarrowing(t, gateway.Options{IDKey: bytes.Repeat([]byte("k"), 32)})
	equal(t, "after a restart", again.list("write", session...), "write")
	equal(t, "and later", again.list("-", session...), "write")
	equal(t, "another one later", again.list("read_*", session...), "400")
}

// Clients without sessions share a connection only if they narrow alike.
func TestNarrowingWithoutSessions(t *testing.T) {
	n := newNarrowing(t, gateway.Options{})
	for _, c := range []struct {
		tools       string
		want        string
		connections int
	}{
		{"-", `"read_a"},{"name":"read_b"},{"name":"write"}`, 1}, {"write", `"tools":[{"name":"write"}]`, 2},
		{"-", `"read_a"},{"name":"read_b"},{"name":"write"}`, 2}, {"write", `"tools":[{"name":"write"}]`, 2},
		{"w*", `"tools":[{"name":"write"}]`, 3}, {"[", `"message"`, 3},
	} {
		w := n.send(http.MethodPost, c.tools, asking("1", "tools/list", ofNewClient), "Mcp-Protocol-Version", "2026-07-28", "Mcp-Method", "tools/list")
		ssetest.WantText(t, "with "+c.tools, w.Body.String(), c.want)
		equal(t, "connections after "+c.tools, n.g.Connections(), c.connections)
	}
}

// A cache in front of several clients must not have a list that one has narrowed, whatever the server says of it.
func TestNarrowedListIsPrivate(t *testing.T) {
	g, err := gateway.New(publicServer(t), gateway.Options{})
	must(t, err)
	n := &narrowing{t, g}
	for tools, want := range map[string]string{"-": `{"name":"a"},{"name":"b"}],"ttlMs":1,"cacheScope":"public"`, "a": `[{"name":"a"}],"ttlMs":1,"cacheScope":"private"`} {
		w := n.send(http.MethodPost, tools, asking("1", "tools/list", ofNewClient), "Mcp-Protocol-Version", "2026-07-28", "Mcp-Method", "tools/list")
		ssetest.WantText(t, "with "+tools, w.Body.String(), want)
	}
	equal(t, "Shutdown", g.Shutdown(t.Context()), nil)
}

// ofNewClient are the params of a client of MCP 2026-07-28.
const ofNewClient = `{"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{}}}`

// publicServer is a server of MCP 2026-07-28 that lets caches have its list of tools, which are a and b.
func publicServer(t *testing.T) upstream.Upstream {
	return upstream.HTTPHandler(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		m, err := jsonrpc.Parse(body)
		must(t, err)
		result := `{"resultType":"complete","tools":[{"name":"a"},{"name":"b"}],"ttlMs":1,"cacheScope":"public"}`
		if m.Method == "server/discover" {
			result = `{"supportedVersions":["2026-07-28"],"capabilities":{"tools":{}},"resultType":"complete"}`
		}
		w.Header().Set("Content-Type", "application/json")
		_, _ = w.Write(jsonrpc.NewResult(m.ID, []byte(result)))
	}))
}

// A cache must not have the list of a view either, whatever its servers say of theirs: it depends on the person.
func TestListOfAViewIsPrivate(t *testing.T) {
	var members []compose.Member
	for _, name := range []string{"x", "y"} {
		g, err := gateway.New(publicServer(t), gateway.Options{Name: name})
		must(t, err)
		members = append(members, compose.Member{Name: name, Upstream: g})
	}
	members[0].Allow = func(ctx context.Context) bool { return asker.FromContext(ctx).Principal == "alice" }
	view, err := compose.New(members, compose.Options{Name: "team"})
	must(t, err)
	user := func(r *http.Request) (string, error) { return r.Header.Get("User"), nil }
	front, err := gateway.New(view, gateway.Options{Name: "team", Authenticate: user})
	must(t, err)
	n := &narrowing{t, front}
	for user, want := range map[string]string{
		"alice": `"tools":[{"name":"x__a"},{"name":"x__b"},{"name":"y__a"},{"name":"y__b"}]`, "bob": `"tools":[{"name":"y__a"},{"name":"y__b"}]`,
	} {
		answer := n.send(http.MethodPost, "-", asking("1", "tools/list", ofNewClient), "Mcp-Protocol-Version", "2026-07-28",
			"Mcp-Method", "tools/list", "User", user).Body.String()
		ssetest.WantText(t, "the list of "+user, answer, want, `"cacheScope":"private"`)
		equal(t, "what is public for "+user, strings.Count(answer, "public"), 0)
	}
	must(t, front.Shutdown(t.Context()))
	for _, m := range members {
		must(t, m.Upstream.(*gateway.Gateway).Shutdown(t.Context()))
	}
}

// A header that the server gets is for the server. The URL still narrows.
func TestForwardedHeaderDoesNotNarrow(t *testing.T) {
	for name, opts := range map[string]gateway.Options{
		"forwarded": {ForwardHeaders: []string{"x-mcp-tools"}}, "passed": {PassRequest: &gateway.PassRequest{Headers: []string{"X-MCP-Tools"}}},
	} {
		n := newNarrowing(t, opts)
		equal(t, name+" header", n.list("-", "X-MCP-Tools", "write"), "read_a read_b write")
		equal(t, name+" header and URL", n.list("read_*", "X-MCP-Tools", "["), "read_a read_b")
	}
}

// Over HTTP+SSE the GET says it.
func TestNarrowingOverSSE(t *testing.T) {
	address, client, _ := serve(t, offering(), gateway.Options{})
	c := ssetest.Open(t, client, address+"/sse?tools=dr*", http.Header{"X-Mcp-Tools": {"drop"}})
	defer c.Close()
	c.WantAnswer(t, request("1", "tools/list"), "1", `"tools":[{"name":"drop"}]`)
	c.WantAnswer(t, asking("2", "tools/call", `{"name":"keep"}`), "2", `"code":-32602`)
	c.Sent = http.Header{"X-Mcp-Tools": {"keep"}}
	ssetest.WantText(t, "a message with another value", c.Send(request("3", "ping")), "400")
	res, err := client.Do(ssetest.Request(t.Context(), http.MethodGet, address+"/sse?tools=", ""))
	must(t, err)
	equal(t, "an empty value", res.StatusCode, http.StatusBadRequest)
	must(t, res.Body.Close())
}
