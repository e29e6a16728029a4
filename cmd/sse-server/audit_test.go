package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/mcp-sse/mcp-sse/cmd/sse-server/internal/clitest"
	"github.com/mcp-sse/mcp-sse/cmd/sse-server/internal/exit"
	"github.com/mcp-sse/mcp-sse/internal/ssetest"
)

// askServer serves tools that echo, fail, and ask their client.
func askServer(t *testing.T) *httptest.Server {
	t.Helper()
	server := mcp.NewServer(&mcp.Implementation{Name: "ask", Version: "1"}, nil)
	answer := func(text string) *mcp.CallToolResult {
		return &mcp.CallToolResult{Content: []mcp.Content{&mcp.TextContent{Text: text}}}
	}
	type in struct {
		Message string `json:"message,omitempty"`
	}
	mcp.AddTool(server, &mcp.Tool{Name: "echo"}, func(_ context.Context, _ *mcp.CallToolRequest, in in) (*mcp.CallToolResult, any, error) {
		return answer(in.Message), nil, nil
	})
	mcp.AddTool(server, &mcp.Tool{Name: "fail"}, func(context.Context, *mcp.CallToolRequest, in) (*mcp.CallToolResult, any, error) {
		return nil, nil, errors.New(secret)
	})
	mcp.AddTool(server, &mcp.Tool{Name: "ask"}, func(ctx context.Context, r *mcp.CallToolRequest, _ in) (*mcp.CallToolResult, any, error) {
		got, err := r.Session.Elicit(ctx, &mcp.ElicitParams{Message: "sure?"})
		if err != nil {
			return nil, nil, err
		}
		return answer(got.Action), nil, nil
	})
	s := httptest.NewServer(mcp.NewStreamableHTTPHandler(func(*http.Request) *mcp.Server { return server }, nil))
	t.Cleanup(s.Close)
	return s
}

// auditLines returns the lines of an audit log as "principal server tool outcome".
func auditLines(t *testing.T, text string) (lines []string) {
	t.Helper()
	if strings.Contains(text, secret) {
		t.Errorf("arguments or results are in the audit log:\n%s", text)
	}
	for line := range strings.Lines(text) {
		var a struct {
			Time, Msg, Principal, Server, Tool, Outcome string
			Seconds                                     float64
			RequestBytes, AnswerBytes                   int
		}
		if err := json.Unmarshal([]byte(line), &a); err != nil || !strings.HasSuffix(a.Time, "Z") || a.Msg != "tool call" ||
			a.RequestBytes < 50 || a.Outcome != "notification" && (a.Seconds <= 0 || a.AnswerBytes < 50) {
			t.Errorf("%s: %v", line, err)
		}
		lines = append(lines, fmt.Sprintf("%s %s %s %s", a.Principal, a.Server, a.Tool, a.Outcome))
	}
	slices.Sort(lines)
	return lines
}

func readFile(t *testing.T, path string) string {
	t.Helper()
	data, err := os.ReadFile(path)
	ssetest.Must(t, err)
	return string(data)
}

// callTools calls the tools as a client with sessions.
func callTools(t *testing.T, transport mcp.Transport, tools ...string) {
	t.Helper()
	s, err := mcp.NewClient(&mcp.Implementation{Name: "test", Version: "1"}, nil).Connect(t.Context(), transport, nil)
	ssetest.Must(t, err)
	defer s.Close()
	for _, tool := range tools {
		_, _ = s.CallTool(t.Context(), &mcp.CallToolParams{Name: tool, Arguments: map[string]any{"message": secret}})
	}
}

// callModern calls a tool as a client of MCP 2026-07-28 does, with more members of params, and
// returns the result.
func callModern(t *testing.T, client *http.Client, url, tool, more string) (result map[string]json.RawMessage) {
	t.Helper()
	body := `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"` + tool + `","arguments":{"message":"` + secret + `"},` + more +
		`"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientInfo":{"name":"c","version":"1"},"io.modelcontextprotocol/clientCapabilities":{"elicitation":{}}}}}`
	res, err := client.Do(ssetest.Request(t.Context(), http.MethodPost, url, body,
		"MCP-Protocol-Version", "2026-07-28", "Mcp-Method", "tools/call", "Mcp-Name", tool, "Authorization", "Bearer "+token))
	ssetest.Must(t, err)
	defer res.Body.Close()
	data, _ := io.ReadAll(res.Body)
	_, data, _ = bytes.Cut(data, []byte(`{"jsonrpc"`))
	var answer struct{ Result map[string]json.RawMessage }
	if err := json.Unmarshal(append([]byte(`{"jsonrpc"`), bytes.TrimSpace(data)...), &answer); err != nil || answer.Result == nil {
		t.Fatalf("got %d %s: %v", res.StatusCode, data, err)
	}
	return answer.Result
}

const token = "0123456789abcdef0123"

// Each call of a tool has one line, whatever the transport, in the file that has the name at
// that time.
func TestAuditLog(t *testing.T) {
	server := askServer(t)
	path, tokens := filepath.Join(t.TempDir(), "audit.log"), clitest.WriteFile(t, "tokens", "alice:"+token+"\n")
	l := startLive(t, "audit-log: "+path+"\nauth-tokens-file: "+tokens+"\nservers: {docs: {url: "+server.URL+"}}\n")
	client := newClient(t, &http.Transport{})
	own := &http.Client{Transport: withHeader{client.Transport, "Authorization", "Bearer " + token}}
	url := l.server("docs")
	callTools(t, &mcp.StreamableClientTransport{Endpoint: url, HTTPClient: own}, "echo", "fail", "missing")
	callTools(t, &mcp.SSEClientTransport{Endpoint: strings.TrimSuffix(url, "/mcp") + "/sse", HTTPClient: own}, "echo")
	callModern(t, client, url, "echo", "")
	asked := callModern(t, client, url, "ask", "")
	callModern(t, client, url, "ask", `"requestState":`+string(asked["requestState"])+`,"inputResponses":{"elicitation-1":{"action":"accept"}},`)

	if err := os.Rename(path, path+".1"); err != nil { // logrotate
		t.Fatal(err)
	}
	l.hangup <- nil
	l.log.await(t, 1, "configuration reloaded")
	callModern(t, client, url, "echo", "")
	l.stop()
	want := []string{"alice docs ask ok", "alice docs echo ok", "alice docs echo ok", "alice docs echo ok", "alice docs fail tool_error", "alice docs missing -32602"}
	if got := auditLines(t, readFile(t, path+".1")+readFile(t, path)); !slices.Equal(got, slices.Sorted(slices.Values(append(want, "alice docs echo ok")))) {
		t.Errorf("got %q, want %q", got, want)
	}
	if got := auditLines(t, readFile(t, path)); !slices.Contains(got, "alice docs echo ok") {
		t.Errorf("after the reload: got %q", got)
	}
	if info, err := os.Stat(path); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("the file has %v, %v", info.Mode(), err)
	}
}

// On stdout there is nothing but the audit log.
func TestAuditLogOnStdout(t *testing.T) {
	l := startLive(t, "audit-log: '-'\nurl: "+askServer(t).URL+"\n")
	callTools(t, &mcp.StreamableClientTransport{Endpoint: l.url, HTTPClient: newClient(t, &http.Transport{})}, "echo")
	l.stop()
	if got := auditLines(t, l.out.String()); !slices.Equal(got, []string{"  echo ok"}) {
		t.Errorf("got %q", got)
	}
}

// With the flag, too, a line says which program called and from where, and of a view also which server got the call.
func TestAuditLogNamesTheClientAndTheView(t *testing.T) {
	path := filepath.Join(t.TempDir(), "audit.log")
	file := clitest.WriteFile(t, "gw.yaml", "servers: {docs: {url: "+askServer(t).URL+"}, demo: {}}\nviews: {team: {servers: {docs: {}, demo: {}}}}\n")
	p := start(t, "--config", file, "--addr", "127.0.0.1:0", "--no-start-check", "--audit-log", path)
	callTools(t, &mcp.StreamableClientTransport{Endpoint: p.server("team"), HTTPClient: newClient(t, &http.Transport{})}, "docs__echo")
	p.stop()
	var line struct{ Client, Address, Server, View, Member, Tool, MemberTool, Outcome string }
	ssetest.Must(t, json.Unmarshal([]byte(readFile(t, path)), &line))
	want := line
	want.Client, want.Address, want.View, want.Member, want.Tool, want.MemberTool, want.Outcome = "test", "127.0.0.1", "team", "docs", "docs__echo", "echo", "ok"
	ssetest.Want(t, "the line", line, want)
}

// The page for browsers is an ordinary client: its calls are in the audit log as those of any other.
func TestAuditLogHasCallsOfThePage(t *testing.T) {
	page := regexp.MustCompile(`clientInfo: \{ name: '([\w-]+)'`).FindStringSubmatch(readFile(t, "../../internal/page/web/session.js"))
	if page == nil {
		t.Fatal("the page has no clientInfo")
	}
	l := startLive(t, "audit-log: '-'\nurl: "+askServer(t).URL+"\n")
	browser := &http.Client{Transport: withHeader{newClient(t, &http.Transport{}).Transport, "Origin", l.base()}}
	s, err := mcp.NewClient(&mcp.Implementation{Name: page[1], Version: "1"}, nil).Connect(t.Context(),
		&mcp.StreamableClientTransport{Endpoint: l.url, HTTPClient: browser}, nil)
	ssetest.Must(t, err)
	_, err = s.CallTool(t.Context(), &mcp.CallToolParams{Name: "echo", Arguments: map[string]any{"message": secret}})
	ssetest.Must(t, err)
	_ = s.Close()
	l.stop()
	if got := auditLines(t, l.out.String()); !slices.Equal(got, []string{"  echo ok"}) {
		t.Errorf("got %q", got)
	}
}

// A call without an id has a line too: no answer tells that the server has run it.
func TestAuditLogOfStdio(t *testing.T) {
	path, call := filepath.Join(t.TempDir(), "audit.log"), `"method":"tools/call","params":{"name":"echo","arguments":{"message":"x"}}}`+"\n"
	p := launchMain(t, &Main{
		Args: []string{"stdio", "--config", clitest.WriteFile(t, "gw.yaml", "audit-log: "+path+"\n")}, LookupEnv: clitest.Environment(nil),
		Stdin: strings.NewReader(`{"jsonrpc":"2.0","id":1,` + call + `{"jsonrpc":"2.0",` + call + `{"jsonrpc":"2.0","method":"notifications/progress"}`),
	})
	<-p.ended
	got := auditLines(t, readFile(t, path))
	if slices.Sort(got); !slices.Equal(got, []string{"  echo notification", "  echo ok"}) {
		t.Errorf("got %q, and the log\n%s", got, p.log.String())
	}
}

// check says that the audit log cannot be written, and makes no file.
func TestCheckOfTheAuditLog(t *testing.T) {
	dir := t.TempDir()
	for path, want := range map[string]string{"audit.log": "", "missing/audit.log": "no such file", ".": "is a directory"} {
		p := launch(t, "check", "--config", clitest.WriteFile(t, "gw.yaml", "audit-log: "+filepath.Join(dir, path)+"\n"))
		code, log := <-p.code, p.log.String()
		if (code == exit.OK) != (want == "") || want != "" && !strings.Contains(log, "gw.yaml:1:12: audit-log: ") || !strings.Contains(log, want) {
			t.Errorf("%s: got %d\n%s%s", path, code, p.out.String(), log)
		}
	}
	if files, _ := os.ReadDir(dir); len(files) > 0 {
		t.Errorf("check has left %v", files)
	}
}

// A file that cannot be written, or whose reader stalls, stops no call: what is lost is
// counted, and logged.
func TestAuditLogThatFails(t *testing.T) {
	l := startLive(t, "audit-log: /dev/full\nurl: "+askServer(t).URL+"\n")
	callTools(t, &mcp.StreamableClientTransport{Endpoint: l.url, HTTPClient: newClient(t, &http.Transport{})}, "echo", "echo")
	if line := l.log.await(t, 2, "audit log not written"); !strings.Contains(line, "no space left") {
		t.Error(line)
	}
	ssetest.Want(t, "lines that are lost", l.metric(t, "mcp_sse_audit_lines_lost_total"), "2")
}
