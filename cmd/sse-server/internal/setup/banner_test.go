package setup

import (
	"bytes"
	"encoding/json"
	"os"
	"regexp"
	"strings"
	"testing"

	"github.com/mcp-sse/mcp-sse/cmd/sse-server/internal/clitest"
	"github.com/mcp-sse/mcp-sse/internal/ssetest"
)

// bannerAt returns the banner of a configuration at an address.
func bannerAt(t *testing.T, base string, args ...string) string {
	t.Helper()
	var out bytes.Buffer
	Banner(&out, base, "", mustLoad(t, map[string]string{"KEY": secret}, args...))
	if strings.Contains(out.String(), tokenOfAlice) || strings.Contains(out.String(), secret) {
		t.Errorf("the banner shows a secret:\n%s", &out)
	}
	return out.String()
}

// Each client gets the URL, and a token if it needs one in its command. The address is the
// public one, if there is one. With OAuth tokens are for that, and some clients get one themselves.
func TestBanner(t *testing.T) {
	tokens := clitest.WriteFile(t, "tokens", "alice:"+tokenOfAlice+"\n")
	oauth := clitest.WriteFile(t, "gw.yaml", "public-url: https://gw.example.com/\nprefix: /x\noauth: {issuer: https://login.example.com}\n")
	public := clitest.WriteFile(t, "gw.yaml", "public-url: https://gw.example.com/\nauth-tokens-file: "+tokens+"\n")
	const local = "http://localhost:1/mcp"
	clients := []string{"curl", "Inspector", "Trae", "Claude Code", "Cursor", "VS Code"}
	token := regexp.MustCompile(`Bearer (TOKEN|\$\{env:TOKEN\}|\$\{input:token\})"`)
	for name, tc := range map[string]struct {
		args   []string
		url    string
		tokens int // so many of the clients need one
	}{
		"demo":   {nil, local, 0},
		"child":  {[]string{"--", "npx", "-y", "server"}, local, 0},
		"tokens": {[]string{"--addr", ":0", "--auth-tokens-file", tokens}, local, 6},
		"OAuth":  {[]string{"-c", oauth}, "https://gw.example.com/x/mcp", 3},
		"public": {[]string{"-c", public}, "https://gw.example.com/mcp", 6},
	} {
		text := bannerAt(t, "http://localhost:1", tc.args...)
		for i, client := range clients {
			line := regexp.MustCompile(`(?m)^(?:\w+, )?` + client + `.*`).FindString(text)
			if !strings.Contains(line, tc.url) || token.MatchString(line) != (i < tc.tokens) {
				t.Errorf("%s: got %s %q, want the URL in it, and a token if it needs one", name, client, line)
			}
			if _, object, ok := strings.Cut(strings.TrimSuffix(line, "'"), "{"); ok && !json.Valid([]byte("{"+object)) {
				t.Errorf("%s: got %q, want valid JSON", name, line)
			}
		}
		if tc.url != local && strings.Contains(text, "localhost") {
			t.Errorf("%s: got\n%s", name, text)
		}
	}
}

// Without a session, a POST is answered only over Streamable HTTP with auto-initialize.
func TestBannerWithoutACommand(t *testing.T) {
	for _, flag := range []string{"--transports=sse", "--no-auto-initialize"} {
		text := bannerAt(t, "http://localhost:1", flag)
		if strings.Contains(text, "curl") || !strings.Contains(text, "http://localhost:1/mcp") {
			t.Errorf("%s: got\n%s", flag, text)
		}
	}
}

// TestReadmeShowsTheBanner compares the first output in README.md with what the
// demo prints.
func TestReadmeShowsTheBanner(t *testing.T) {
	readme := clitest.Must(os.ReadFile("../../../../README.md"))
	_, block, _ := strings.Cut(string(readme), "\n```text\nsse-server serves")
	block, _, _ = strings.Cut("sse-server serves"+block, "```")
	if text := bannerAt(t, "http://127.0.0.1:8080"); !strings.HasPrefix(text, block) || strings.Count(block, "\n") < 6 {
		t.Errorf("README.md shows\n%s\nwant the beginning of\n%s", block, text)
	}
}

func TestBannerOfServers(t *testing.T) {
	text := bannerAt(t, "http://localhost:1", "-c", clitest.WriteFile(t, "gw.yaml",
		"views: {}\nservers:\n  everything: {command: [npx, -y, x]}\n  a: {url: \"https://a/mcp?k=${KEY}\"}\n  d: {}\n"))
	for _, want := range []string{
		"sse-server serves 3 servers at\n\n",
		"    http://localhost:1/everything/mcp\n    http://localhost:1/a/mcp\n    http://localhost:1/d/mcp\n\nOpen http://localhost:1/ in a browser to try them.\n\n",
		"\nClaude Code   claude mcp add --scope user --transport http everything http://localhost:1/everything/mcp\n" +
			"              claude mcp add --scope user --transport http a http://localhost:1/a/mcp\n" +
			"              claude mcp add --scope user --transport http d http://localhost:1/d/mcp\n" +
			`Cursor, Trae  {"mcpServers":{"everything":{"url":"http://localhost:1/everything/mcp"},"a":{"url":"http://localhost:1/a/mcp"},"d":{"url":"http://localhost:1/d/mcp"}}}` + "\n",
		`VS Code       {"servers":{"everything":{"type":"http","url":`,
		`"method":"tools/list"}`,
	} {
		if !strings.Contains(text, want) {
			t.Errorf("%q is missing in\n%s", want, text)
		}
	}
}

// A view comes before the servers, with what it has. Clients get the views, and the servers that no view has.
func TestBannerOfViews(t *testing.T) {
	const servers = "servers: {a: {}, b: {}, c: {}, d: {}, e: {}, f: {}, g: {}}\n"
	for views, want := range map[string][]string{
		"": {"sse-server serves 7 servers at\n\n    http://localhost:1/mcp   all of them\n    http://localhost:1/a/mcp\n",
			"\ncurl http://localhost:1/mcp ", `{"mcpServers":{"mcp":{"url":"http://localhost:1/mcp"}}}`},
		"views: {one: {servers: {b: {}}}, most: {servers: {a: {}, b: {}, c: {}, d: {}, e: {}, f: {}}}}\n": {
			"    http://localhost:1/one/mcp    b\n    http://localhost:1/most/mcp   a, b, c, d, e and 1 more\n    http://localhost:1/a/mcp\n",
			`{"mcpServers":{"one":{"url":"http://localhost:1/one/mcp"},"most":{"url":"http://localhost:1/most/mcp"},"g":{"url":"http://localhost:1/g/mcp"}}}`},
	} {
		ssetest.WantText(t, views, bannerAt(t, "http://localhost:1", "-c", clitest.WriteFile(t, "gw.yaml", servers+views)), want...)
	}
}

// The name is that of the package, of --name, or of the entry; one server is not "1 servers".
func TestBannerNamesTheServer(t *testing.T) {
	one := clitest.WriteFile(t, "gw.yaml", "servers: {docs: {command: [npx, -y, x]}}\n")
	for name, args := range map[string][]string{
		"everything": {"--", "npx", "-y", "@modelcontextprotocol/server-everything"},
		"mine":       {"--name", "mine", "--", "npx", "-y", "x"},
		"docs":       {"-c", one},
	} {
		text := bannerAt(t, "http://localhost:1", args...)
		for _, want := range []string{"sse-server serves " + name + " at\n", "--transport http " + name + " http", `{"mcpServers":{"` + name + `":`} {
			if !strings.Contains(text, want) {
				t.Errorf("%q is missing in\n%s", want, text)
			}
		}
	}
}

// On all addresses the banner has one that other machines use.
func TestBannerForOtherMachines(t *testing.T) {
	var out bytes.Buffer
	Banner(&out, "http://localhost:1", "http://192.0.2.7:1", mustLoad(t, nil, "--insecure", "--addr", "0.0.0.0:1"))
	ssetest.WantText(t, "the banner", out.String(), "\nand, for other machines, at\n\n    http://192.0.2.7:1/mcp\n",
		"\nOpen http://localhost:1/mcp in a browser to try it.\nBrowsers on other machines get no page without --auth-tokens-file, oauth or --page.\n")
	for _, args := range [][]string{{"--insecure", "--page"}, {"--insecure", "--no-page"}, {"--auth-tokens-file", clitest.WriteFile(t, "tokens", "alice:"+tokenOfAlice+"\n")}} {
		out.Reset()
		Banner(&out, "http://localhost:1", "http://192.0.2.7:1", mustLoad(t, nil, append(args, "--addr", "0.0.0.0:1")...))
		if strings.Contains(out.String(), "get no page") {
			t.Errorf("%q: got\n%s", args, &out)
		}
	}
}

// The banner sends nobody to a page that is not served.
func TestBannerWithoutThePage(t *testing.T) {
	several := clitest.WriteFile(t, "gw.yaml", "servers: {a: {}, b: {}}\n")
	for _, args := range [][]string{nil, {"-c", several}} {
		if text := bannerAt(t, "http://localhost:1", args...); !strings.Contains(text, "\nOpen http://localhost:1/") {
			t.Errorf("%q: got\n%s", args, text)
		}
		if text := bannerAt(t, "http://localhost:1", append(args, "--no-page")...); strings.Contains(text, "Open ") || strings.Contains(text, "browser") {
			t.Errorf("%q with --no-page: got\n%s", args, text)
		}
	}
}

// The last line is the command that prints what another client needs, which makes the same entry as the lines above.
func TestBannerNamesTheCommandForOtherClients(t *testing.T) {
	tokens := clitest.WriteFile(t, "tokens", "alice:"+tokenOfAlice+"\n")
	file := clitest.WriteFile(t, "gw.yaml", "servers: {a: {}, b: {}}\n")
	guarded := clitest.WriteFile(t, "gw.yaml", "auth-tokens-file: "+tokens+"\nservers: {a: {}, b: {}}\n")
	for name, test := range map[string]struct {
		args []string
		want string
	}{
		"demo":                       {nil, " --name demo --url http://127.0.0.1:8080/mcp"},
		"command":                    {[]string{"--", "npx", "-y", "x"}, " --name x --url http://127.0.0.1:8080/mcp"},
		"file":                       {[]string{"-c", file}, " --config " + file},
		"file, and an address":       {[]string{"-c", file, "--addr", "127.0.0.1:9"}, " --name mcp --url http://127.0.0.1:9/mcp"},
		"file, and an open address":  {[]string{"-c", file, "--addr", "127.0.0.1:9", "--insecure"}, " --name mcp --url http://127.0.0.1:9/mcp"},
		"file with tokens":           {[]string{"-c", guarded}, " --config " + guarded},
		"tokens":                     {[]string{"--auth-tokens-file", tokens}, ""},
		"file, and tokens of a flag": {[]string{"-c", file, "--auth-tokens-file", tokens}, ""},
		"HTTP+SSE":                   {[]string{"--transports", "sse"}, ""},
	} {
		base := "http://127.0.0.1:8080"
		if strings.Contains(test.want, ":9/") {
			base = "http://127.0.0.1:9"
		}
		banner := bannerAt(t, base, test.args...)
		_, command, _ := strings.Cut(banner, "\nOthers        sse-server connect CLIENT")
		command, _, _ = strings.Cut(command, "\n")
		ssetest.Want(t, name, command, test.want)
		if command == "" {
			continue
		}
		p := runWith(t, map[string]string{"HOME": t.TempDir()}, append([]string{"connect", "claude-code"}, strings.Fields(command)...)...)
		for line := range strings.Lines(p.out.String()) {
			ssetest.WantText(t, name, banner, "   "+line)
		}
	}
}
