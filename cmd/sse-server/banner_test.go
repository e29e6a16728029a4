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
			const url = "http://localhost:1/sse"
			var out bytes.Buffer
			banner(&out, "http://localhost:1", l)
			text := out.String()
			for _, client := range []string{"Claude Code", "Cursor, Trae", "VS Code", "Inspector"} {
				_, line, _ := strings.Cut(text, "\n"+client)
				line, _, _ = strings.Cut(line, "\n")
				if !strings.Contains(line, url) || strings.Contains(line, "Bearer TOKEN") != (l.Tokens != nil) {
					t.Errorf("got %q, want the URL in it, and a token if there are any", line)
				}
				if _, object, ok := strings.Cut(line, "{"); ok && !json.Valid([]byte("{"+object)) {
					t.Errorf("got %q, want valid JSON", line)
				}
			}
			if strings.Contains(text, "0123456789abcdef") {
				t.Error("the banner shows a token")
			}
		})
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
	if !strings.HasPrefix(out.String(), block) || strings.Count(block, "\n") < 5 {
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
		"    http://localhost:1/everything/sse\n    http://localhost:1/everything/mcp  (Streamable HTTP)\n    http://localhost:1/a/sse\n",
		"claude mcp add --transport sse everything http://localhost:1/everything/sse\n",
	} {
		if !strings.Contains(text, want) {
			t.Errorf("%q is missing in\n%s", want, text)
		}
	}
	if strings.Contains(text, secret) {
		t.Errorf("the secret is in\n%s", text)
	}
}
