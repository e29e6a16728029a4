package main

import (
	"bytes"
	"encoding/json"
	"os"
	"strings"
	"testing"

	"github.com/mcp-sse/mcp-sse/cmd/sse-server/internal/clitest"
)

func TestBanner(t *testing.T) {
	tokens := clitest.WriteFile(t, "tokens", "alice:0123456789abcdef\n")
	for name, args := range map[string][]string{
		"demo":   nil,
		"child":  {"--", "npx", "-y", "server"},
		"tokens": {"--addr", ":0", "--auth-tokens-file", tokens},
	} {
		t.Run(name, func(t *testing.T) {
			l := mustLoad(t, nil, args...)
			const url = "http://localhost:1/mcp"
			var out bytes.Buffer
			banner(&out, "http://localhost:1", l)
			text := out.String()
			for _, client := range []string{"curl", "Claude Code", "Cursor, Trae", "VS Code", "Inspector"} {
				_, line, _ := strings.Cut(text, "\n"+client)
				line, _, _ = strings.Cut(line, "\n")
				if !strings.Contains(line, url) || strings.Contains(line, "Bearer TOKEN") != (l.Tokens != nil) {
					t.Errorf("got %q, want the URL in it, and a token if there are any", line)
				}
				if _, object, ok := strings.Cut(strings.TrimSuffix(line, "'"), "{"); ok && !json.Valid([]byte("{"+object)) {
					t.Errorf("got %q, want valid JSON", line)
				}
			}
			if strings.Contains(text, "0123456789abcdef") {
				t.Error("the banner shows a token")
			}
		})
	}
}

// With OAuth the address is that which tokens are for. Clients that cannot get one themselves
// need one in their command.
func TestBannerOfOAuth(t *testing.T) {
	l := mustLoad(t, nil, "-c", clitest.WriteFile(t, "gw.yaml", "public-url: https://gw.example.com/\nprefix: /x\noauth: {issuer: https://login.example.com}\n"))
	var out bytes.Buffer
	banner(&out, "http://localhost:1", l)
	text := out.String()
	for client, token := range map[string]bool{"curl": true, "Claude Code": false, "Cursor, Trae": false, "VS Code": false, "Inspector": true} {
		_, line, _ := strings.Cut(text, "\n"+client)
		line, _, _ = strings.Cut(line, "\n")
		if !strings.Contains(line, "https://gw.example.com/x/mcp") || strings.Contains(line, "Bearer TOKEN") != token {
			t.Errorf("%s: got %q", client, line)
		}
	}
	if strings.Contains(text, "localhost") {
		t.Errorf("got\n%s", text)
	}
}

// Without a session, a POST is answered only over Streamable HTTP with auto-initialize.
func TestBannerWithoutACommand(t *testing.T) {
	for _, flag := range []string{"--transports=sse", "--no-auto-initialize"} {
		var out bytes.Buffer
		banner(&out, "http://localhost:1", mustLoad(t, nil, flag))
		if strings.Contains(out.String(), "curl") || !strings.Contains(out.String(), "http://localhost:1/mcp") {
			t.Errorf("%s: got\n%s", flag, out.String())
		}
	}
}

// TestReadmeShowsTheBanner compares the first output in README.md with what the
// demo prints.
func TestReadmeShowsTheBanner(t *testing.T) {
	readme, err := os.ReadFile("../../README.md")
	if err != nil {
		t.Fatal(err)
	}
	var out bytes.Buffer
	banner(&out, "http://127.0.0.1:8080", mustLoad(t, nil))
	_, block, _ := strings.Cut(string(readme), "\n```text\nsse-server serves")
	block, _, _ = strings.Cut("sse-server serves"+block, "```")
	if !strings.HasPrefix(out.String(), block) || strings.Count(block, "\n") < 6 {
		t.Errorf("README.md shows\n%s\nwant the beginning of\n%s", block, out.String())
	}
}

func TestBannerOfServers(t *testing.T) {
	l := mustLoad(t, map[string]string{"KEY": secret}, "-c", clitest.WriteFile(t, "gw.yaml",
		"servers:\n  everything: {command: [npx, -y, x]}\n  a: {url: \"https://a/mcp?k=${KEY}\"}\n  d: {}\n"))
	var out bytes.Buffer
	banner(&out, "http://localhost:1", l)
	text := out.String()
	for _, want := range []string{
		"sse-server serves 3 servers at\n\n",
		"    http://localhost:1/everything/mcp\n    http://localhost:1/a/mcp\n    http://localhost:1/d/mcp\n\n",
		"claude mcp add --transport http everything http://localhost:1/everything/mcp\n",
		`"method":"tools/list"}`,
	} {
		if !strings.Contains(text, want) {
			t.Errorf("%q is missing in\n%s", want, text)
		}
	}
	if strings.Contains(text, secret) {
		t.Errorf("the secret is in\n%s", text)
	}
}
