package entry_test

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
	"github.com/mcp-sse/mcp-sse/internal/entry"
)

const awkward = `https://gw.example.com/a'b/mcp?x=1&y=%22;$z`

// variants are a server in each way in which clients are told of one.
func variants() (all []entry.Server) {
	for _, token := range []bool{false, true} {
		for _, sse := range []bool{false, true} {
			all = append(all, entry.Server{Name: "docs", URL: awkward, SSE: sse, Token: token, Program: "sse-server"})
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

// Each client gets the URL, and a place for the token if it needs one. What to do about that is said.
func TestTextsHaveURLAndToken(t *testing.T) {
	for _, c := range entry.All {
		for _, s := range variants() {
			text := c.Text([]entry.Server{s})
			quoted := `'https://gw.example.com/a'\''b/mcp?x=1&y=%22;$z'`
			if strings.Contains(text, awkward) == strings.Contains(text, quoted) {
				t.Errorf("%s: the URL is not in %s", c.Name, text)
			}
			isCommand := c.Where == "a terminal"
			if strings.Contains(text, quoted) != isCommand {
				t.Errorf("%s: a URL is quoted for a shell in commands alone, but got %s", c.Name, text)
			}
			if about := c.AboutToken([]entry.Server{s}); (about != "") != s.Token || strings.Contains(text, "TOKEN") && !s.Token {
				t.Errorf("%s, with a token %t: got %q about the token, and %s", c.Name, s.Token, about, text)
			}
			if s.Issuer = true; (c.AboutToken([]entry.Server{s}) != "") != (s.Token && !c.LogsIn) {
				t.Errorf("%s, behind an issuer: got %s", c.Name, c.Text([]entry.Server{s}))
			}
			s.Issuer = false
			other := s
			other.Name = "other"
			if both := c.Text([]entry.Server{s, other}); !strings.Contains(both, text[:20]) || strings.Count(both, "other") == 0 && strings.Count(both, "gw.example.com") != 2 {
				t.Errorf("%s, with two servers: got %s", c.Name, both)
			}
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
			c, known := entry.Named(name)
			if !known {
				t.Fatalf("no client is called %s", name)
			}
			document := decode(t, string(c.Document([]entry.Server{s})))
			if got := document[c.Key].(map[string]any)["docs"]; !reflect.DeepEqual(got, want) {
				t.Errorf("%s: got %v, want %v", name, got, want)
			}
			if _, has := document["inputs"]; has != (s.Token && name == "vs-code") {
				t.Errorf("%s: got %v", name, document)
			}
		}
		var codex map[string]map[string]map[string]any
		c, _ := entry.Named("codex")
		if err := toml.Unmarshal([]byte(c.Text([]entry.Server{s})), &codex); err != nil || codex["mcp_servers"]["docs"]["url"] != awkward || (codex["mcp_servers"]["docs"]["bearer_token_env_var"] == "TOKEN") != s.Token {
			t.Errorf("codex: got %v (%v)", codex, err)
		}
	}
}

// What is said about the token is what its place in the text wants, whatever the URL has.
func TestAboutToken(t *testing.T) {
	const put, set, asks = "Put a token of the gateway in the place of TOKEN.", "Set the environment variable TOKEN to a token of the gateway.", "The client asks for a token of the gateway."
	for _, c := range entry.All {
		s := entry.Server{Name: "docs", URL: "http://h/TOKEN/mcp"}
		if about := c.AboutToken([]entry.Server{s}) + c.AboutTokenInFile([]entry.Server{s}); about != "" {
			t.Errorf("%s, without a token: got %q", c.Name, about)
		}
		s = entry.Server{Name: "docs", URL: "http://h/mcp", Token: true}
		for text, about := range map[string]string{c.Text([]entry.Server{s}): c.AboutToken([]entry.Server{s}), string(c.Document([]entry.Server{s})): c.AboutTokenInFile([]entry.Server{s})} {
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
	for _, c := range entry.All {
		for _, s := range variants() {
			if about := c.AboutProgram(s); about != "" {
				t.Errorf("%s: got %q", c.Name, about)
			}
			s.Program = ""
			text, about := c.Text([]entry.Server{s}), c.AboutProgram(s)
			if strings.Contains(text, "/PATH/TO/sse-server") != strings.Contains(about, "in the place of /PATH/TO/sse-server") || (about == "") != (c.Name != "claude-desktop") {
				t.Errorf("%s: got %q about %s", c.Name, about, text)
			}
		}
	}
}

// A single request needs a server that takes one.
func TestSingleRequestNeedsNoSession(t *testing.T) {
	for _, c := range entry.All {
		for _, s := range variants() {
			s.NeedsSession = true
			if lacks := c.Name == "curl" && !s.SSE; (c.Text([]entry.Server{s}) == "") != lacks || (c.Lack(s) != "") != lacks {
				t.Errorf("%s: got %q, and %q", c.Name, c.Text([]entry.Server{s}), c.Lack(s))
			}
		}
	}
}

// The links that install decode to the configuration.
func TestInstallLinks(t *testing.T) {
	var have []string
	for _, c := range entry.All {
		for _, s := range variants() {
			install, has := c.InstallOf(s)
			if !has {
				continue
			}
			have = append(have, c.Name)
			scheme, query, _ := strings.Cut(install.String(), "?")
			want := decode(t, string(c.Entry(s)))
			switch scheme {
			case "cursor://anysphere.cursor-deeplink/mcp/install":
				values, err := url.ParseQuery(query)
				data, noBase64 := base64.StdEncoding.DecodeString(values.Get("config"))
				if err != nil || noBase64 != nil || values.Get("name") != "docs" || !reflect.DeepEqual(decode(t, string(data)), want) {
					t.Errorf("%s: got %s, of %s", c.Name, data, install)
				}
			case "vscode:mcp/install":
				data, err := url.PathUnescape(query)
				want["name"] = "docs"
				if s.Token {
					want["inputs"] = []any{decode(t, string(c.Inputs([]entry.Server{s})[1:len(c.Inputs([]entry.Server{s}))-1]))}
				}
				if err != nil || !reflect.DeepEqual(decode(t, data), want) {
					t.Errorf("%s: got %s, want %v", c.Name, data, want)
				}
			default:
				t.Errorf("%s: got the link %s", c.Name, install)
			}
		}
	}
	if have = slices.Compact(have); !slices.Equal(have, []string{"cursor", "vs-code"}) {
		t.Errorf("%q have links that install", have)
	}
}

// Clients are found by the names that people write, and are called as in the table of what clients do.
func TestNames(t *testing.T) {
	for text, want := range map[string]string{"Claude Code": "claude-code", "vscode": "vs-code", "VS_Code": "vs-code", "Copilot": "copilot-cli", "gemini": "gemini-cli", "netscape": ""} {
		if c, _ := entry.Named(text); c.Name != want {
			t.Errorf("%s: got %q, want %q", text, c.Name, want)
		}
	}
	if !slices.IsSorted(entry.Names()) {
		t.Errorf("%q are not in order", entry.Names())
	}
	for _, c := range entry.All {
		if other, known := clients.Named(c.Name); known && other.Title != c.Title {
			t.Errorf("%s is called %s here, and %s there", c.Name, c.Title, other.Title)
		}
	}
}
