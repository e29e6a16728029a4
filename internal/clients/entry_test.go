package clients_test

import (
	"encoding/base64"
	"encoding/json"
	"net/url"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/pelletier/go-toml/v2"

	"github.com/mcp-sse/mcp-sse/internal/clients"
)

const awkward = `https://gw.example.com/a'b/mcp?x=1&y=%22;$z`

// variants are a server in each way in which clients are told of one.
func variants() (all []clients.Server) {
	for _, token := range []bool{false, true} {
		for _, sse := range []bool{false, true} {
			all = append(all, clients.Server{Name: "docs", URL: awkward, SSE: sse, Token: token, Program: "sse-server"})
		}
	}
	return all
}

func decode(t *testing.T, data string) (value map[string]any) {
	t.Helper()
	if err := json.Unmarshal([]byte(data), &value); err != nil {
		t.Fatalf("%v: %s", err, data)
	}
	return value
}

// Each client gets the URL, and a place for the token if it needs one, with a line that says what to put there.
func TestTextsHaveURLAndToken(t *testing.T) {
	for _, c := range clients.WithEntry() {
		for _, s := range variants() {
			text := c.Entry.Text([]clients.Server{s})
			quoted := `'https://gw.example.com/a'\''b/mcp?x=1&y=%22;$z'`
			if strings.Contains(text, awkward) == strings.Contains(text, quoted) {
				t.Errorf("%s: the URL is not in %s", c.Name, text)
			}
			isCommand := c.Entry.Where == "a terminal"
			if strings.Contains(text, quoted) != isCommand {
				t.Errorf("%s: a URL is quoted for a shell in commands alone, but got %s", c.Name, text)
			}
			if about := c.Entry.AboutToken([]clients.Server{s}); (about != "") != s.Token || strings.Contains(text, "TOKEN") && !s.Token {
				t.Errorf("%s, with a token %t: got %q about the token, and %s", c.Name, s.Token, about, text)
			}
			if s.Issuer = true; (c.Entry.AboutToken([]clients.Server{s}) != "") != (s.Token && !c.Entry.LogsIn) {
				t.Errorf("%s, behind an issuer: got %s", c.Name, c.Entry.Text([]clients.Server{s}))
			}
			s.Issuer = false
			other := s
			other.Name = "other"
			if both := c.Entry.Text([]clients.Server{s, other}); !strings.Contains(both, text[:20]) || strings.Count(both, "other") == 0 && strings.Count(both, "gw.example.com") != 2 {
				t.Errorf("%s, with two servers: got %s", c.Name, both)
			}
		}
	}
}

// The program for the Python SDK uses what versions 1.24 to 1.29 and 2.x of it have: streamablehttp_client and
// its headers are gone in 2.x, where it yields two streams, and headers belong to the HTTP client.
func TestPythonIsThatOfBothVersions(t *testing.T) {
	python := textOf(t, "python-sdk")
	const url = "http://gw/mcp"
	for _, test := range []struct {
		server     clients.Server
		has, lacks []string
	}{
		{clients.Server{Name: "s", URL: url}, []string{
			"from mcp.client.streamable_http import streamable_http_client\n",
			`streamable_http_client("http://gw/mcp") as streams:`, "ClientSession(*streams[:2])",
		}, []string{"httpx", "headers="}},
		{clients.Server{Name: "s", URL: url, Token: true}, []string{
			"import httpx2 as httpx", "    import httpx  # ",
			`headers = {"Authorization": "Bearer TOKEN"}`, "httpx.AsyncClient(headers=headers, timeout=httpx.Timeout(30, read=300)",
			`streamable_http_client("http://gw/mcp", http_client=http) as streams:`, "ClientSession(*streams[:2])",
		}, nil},
		{clients.Server{Name: "s", URL: url, SSE: true}, []string{
			"from mcp.client.sse import sse_client\n", `sse_client("http://gw/mcp") as streams:`, "ClientSession(*streams[:2])",
		}, []string{"httpx", "headers="}},
		{clients.Server{Name: "s", URL: url, SSE: true, Token: true}, []string{
			`sse_client("http://gw/mcp", headers={"Authorization": "Bearer TOKEN"}) as streams:`,
		}, []string{"httpx"}},
	} {
		got := python(test.server)
		for _, part := range test.has {
			if !strings.Contains(got, part) {
				t.Errorf("%+v: no %q in\n%s", test.server, part, got)
			}
		}
		for _, part := range append(test.lacks, "streamablehttp_client") {
			if strings.Contains(got, part) {
				t.Errorf("%+v: %q is in\n%s", test.server, part, got)
			}
		}
	}
}

// textOf returns what people paste into a client for a server.
func textOf(t *testing.T, client string) func(clients.Server) string {
	c, known := clients.Named(client)
	if !known || c.Entry == nil {
		t.Fatalf("%s has no entry", client)
	}
	return func(s clients.Server) string { return c.Entry.Text([]clients.Server{s}) }
}

// Where a text goes ends the sentence "Paste into": a file, a terminal, or what a button of the client opens.
func TestWhereIsAPlace(t *testing.T) {
	for _, c := range clients.WithEntry() {
		if first := c.Entry.Where[0]; first >= 'A' && first <= 'Z' {
			t.Errorf("%s: Paste into %s", c.Name, c.Entry.Where)
		}
	}
}

// Each client's file is one that the client can read.
func TestFormats(t *testing.T) {
	for _, s := range variants() {
		headers := func(entry map[string]any, token string) map[string]any {
			if s.Token {
				entry["headers"] = map[string]any{"Authorization": "Bearer " + token}
			}
			return entry
		}
		either := func(streamable, sse string) string {
			if s.SSE {
				return sse
			}
			return streamable
		}
		kind := either("http", "sse")
		desktop := map[string]any{"command": "sse-server", "args": []any{"stdio", "--url", awkward}}
		if s.Token {
			desktop = map[string]any{"command": "sse-server", "args": []any{"stdio", "--url", awkward, "--header", "Authorization: Bearer ${TOKEN}"}, "env": map[string]any{"TOKEN": "TOKEN"}}
		}
		for name, want := range map[string]map[string]any{
			"claude-code":    headers(map[string]any{"type": kind, "url": awkward}, "${TOKEN}"),
			"claude-desktop": desktop,
			"cline":          headers(map[string]any{"type": either("streamableHttp", "sse"), "url": awkward}, "TOKEN"),
			"copilot-cli":    headers(map[string]any{"type": kind, "url": awkward, "tools": []any{"*"}}, "${TOKEN}"),
			"cursor":         headers(map[string]any{"url": awkward}, "${env:TOKEN}"),
			"gemini-cli":     headers(map[string]any{"url": awkward}, "${TOKEN}"),
			"opencode":       headers(map[string]any{"type": "remote", "url": awkward}, "{env:TOKEN}"),
			"qwen-code":      headers(map[string]any{either("httpUrl", "url"): awkward}, "${TOKEN}"),
			"roo":            headers(map[string]any{"type": either("streamable-http", "sse"), "url": awkward}, "TOKEN"),
			"trae":           headers(map[string]any{"url": awkward}, "TOKEN"),
			"vs-code":        headers(map[string]any{"type": kind, "url": awkward}, "${input:token}"),
			"windsurf":       headers(map[string]any{"serverUrl": awkward}, "${env:TOKEN}"),
			"zed":            headers(map[string]any{"url": awkward}, "TOKEN"),
		} {
			c, known := clients.Named(name)
			if !known {
				t.Fatalf("no client is called %s", name)
			}
			document := decode(t, string(c.Entry.Document([]clients.Server{s})))
			if got := document[c.Entry.Key].(map[string]any)["docs"]; !reflect.DeepEqual(got, want) {
				t.Errorf("%s: got %v, want %v", name, got, want)
			}
			if _, has := document["inputs"]; has != (s.Token && name == "vs-code") {
				t.Errorf("%s: got %v", name, document)
			}
		}
		var codex map[string]map[string]map[string]any
		c, _ := clients.Named("codex")
		if err := toml.Unmarshal([]byte(c.Entry.Text([]clients.Server{s})), &codex); err != nil || codex["mcp_servers"]["docs"]["url"] != awkward || (codex["mcp_servers"]["docs"]["bearer_token_env_var"] == "TOKEN") != s.Token {
			t.Errorf("codex: got %v (%v)", codex, err)
		}
	}
}

// The line about the token says what its place in the text wants, whatever the URL has.
func TestAboutToken(t *testing.T) {
	const put, set, asks = "Put a token of the gateway in the place of TOKEN.", "Set the environment variable TOKEN to a token of the gateway.", "The client asks for a token of the gateway."
	for _, c := range clients.WithEntry() {
		s := clients.Server{Name: "docs", URL: "http://h/TOKEN/mcp"}
		if about := c.Entry.AboutToken([]clients.Server{s}) + c.Entry.AboutTokenInFile([]clients.Server{s}); about != "" {
			t.Errorf("%s, without a token: got %q", c.Name, about)
		}
		s = clients.Server{Name: "docs", URL: "http://h/mcp", Token: true}
		for text, about := range map[string]string{c.Entry.Text([]clients.Server{s}): c.Entry.AboutToken([]clients.Server{s}), string(c.Entry.Document([]clients.Server{s})): c.Entry.AboutTokenInFile([]clients.Server{s})} {
			want := set
			switch plain := strings.ReplaceAll(text, " ", ""); {
			case text == "": // no file in JSON
				continue
			case strings.Contains(text, "${input:token}"):
				want = asks
			case strings.Contains(text, "Bearer TOKEN"), strings.Contains(plain, `"TOKEN":"TOKEN"`):
				want = put
			}
			if about != want {
				t.Errorf("%s: got %q about %s", c.Name, about, text)
			}
		}
	}
}

// Where the path of sse-server is not known, the entry has a place for it, and people are told of that.
func TestProgramIsPutIn(t *testing.T) {
	for _, c := range clients.WithEntry() {
		for _, s := range variants() {
			if about := c.Entry.AboutProgram(s); about != "" {
				t.Errorf("%s: got %q", c.Name, about)
			}
			s.Program = ""
			text, about := c.Entry.Text([]clients.Server{s}), c.Entry.AboutProgram(s)
			if strings.Contains(text, "/PATH/TO/sse-server") != strings.Contains(about, "in the place of /PATH/TO/sse-server") || (about == "") != (c.Name != "claude-desktop") {
				t.Errorf("%s: got %q about %s", c.Name, about, text)
			}
		}
	}
}

// A program that starts sse-server has its own arguments first.
func TestProgramArgsComeFirst(t *testing.T) {
	desktop, _ := clients.Named("claude-desktop")
	s := clients.Server{Name: "docs", URL: "http://docs/mcp", Program: "npx", ProgramArgs: []string{"-y", "package"}}
	text := desktop.Entry.Text([]clients.Server{s})
	text = strings.Join(strings.Fields(text), "")
	if !strings.Contains(text, `"command":"npx","args":["-y","package","stdio","--url","http://docs/mcp"]`) {
		t.Errorf("got %s", text)
	}
}

// A single request needs a server that takes one.
func TestSingleRequestNeedsNoSession(t *testing.T) {
	for _, c := range clients.WithEntry() {
		for _, s := range variants() {
			s.NeedsSession = true
			if lacks := c.Name == "curl" && !s.SSE; (c.Entry.Text([]clients.Server{s}) == "") != lacks || (c.Entry.Lack(s) != "") != lacks {
				t.Errorf("%s: got %q, and %q", c.Name, c.Entry.Text([]clients.Server{s}), c.Entry.Lack(s))
			}
		}
	}
}

// The links that install decode to the configuration.
func TestInstallLinks(t *testing.T) {
	var have []string
	for _, c := range clients.WithEntry() {
		for _, s := range variants() {
			install, has := c.Entry.InstallOf(s)
			if !has {
				continue
			}
			have = append(have, c.Name)
			scheme, query, _ := strings.Cut(install.String(), "?")
			want := decode(t, string(c.Entry.JSON(s)))
			switch scheme {
			case "cursor://anysphere.cursor-deeplink/mcp/install":
				values, err := url.ParseQuery(query)
				data, noBase64 := base64.StdEncoding.DecodeString(values.Get("config"))
				if err != nil || noBase64 != nil || values.Get("name") != "docs" || !reflect.DeepEqual(decode(t, string(data)), want) {
					t.Errorf("%s: got %s, of %s", c.Name, data, install)
				}
			case "trae://trae.ai-ide/mcp-import":
				values, err := url.ParseQuery(query)
				data, noBase64 := base64.StdEncoding.DecodeString(values.Get("config"))
				if err != nil || noBase64 != nil || values.Get("name") != "docs" || values.Get("type") != "http" || !reflect.DeepEqual(decode(t, string(data)), want) {
					t.Errorf("%s: got %s, of %s", c.Name, data, install)
				}
			case "vscode:mcp/install":
				data, err := url.PathUnescape(query)
				want["name"] = "docs"
				if s.Token {
					want["inputs"] = []any{decode(t, string(c.Entry.Inputs([]clients.Server{s})[1:len(c.Entry.Inputs([]clients.Server{s}))-1]))}
				}
				if err != nil || !reflect.DeepEqual(decode(t, data), want) {
					t.Errorf("%s: got %s, want %v", c.Name, data, want)
				}
			default:
				t.Errorf("%s: got the link %s", c.Name, install)
			}
		}
	}
	if have = slices.Compact(have); !slices.Equal(have, []string{"cursor", "trae", "vs-code"}) {
		t.Errorf("%q have links that install", have)
	}
}

// Each client that people are promised is offered, under this title.
func TestPromisedClientsAreOffered(t *testing.T) {
	var offered []string
	for _, c := range clients.WithEntry() {
		offered = append(offered, c.Title)
	}
	for _, title := range []string{
		"Claude Code", "Claude Desktop", "Cursor", "VS Code", "Trae", "Codex", "Gemini CLI", "Windsurf", "Cline",
		"Inspector", "curl", "Python SDK", "TypeScript SDK",
	} {
		if !slices.Contains(offered, title) {
			t.Errorf("%s is not among %q", title, offered)
		}
	}
}
