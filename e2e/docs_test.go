//go:build all

package e2e

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/mcp-sse/mcp-sse/internal/ssetest"
)

// TestTypeScriptClientsOfTheDocs runs what docs/clients.md shows for the TypeScript SDKs, as printed,
// against a gateway that asks for a token. The program prints the tools, and ends.
func TestTypeScriptClientsOfTheDocs(t *testing.T) {
	page, err := os.ReadFile("../docs/clients.md")
	ssetest.Must(t, err)
	blocks := regexp.MustCompile("(?s)\n```js\n(.*?)```\n").FindAllStringSubmatch(string(page), -1)
	if len(blocks) == 0 {
		t.Fatal("docs/clients.md has no block of js")
	}
	const token = "token-of-anna-0123456789"
	tokens := filepath.Join(t.TempDir(), "tokens")
	ssetest.Must(t, os.WriteFile(tokens, []byte("anna:"+token+"\n"), 0o600))
	g := startGateway(t, "--auth-tokens-file", tokens)
	program := node(t)
	for _, block := range blocks {
		code := strings.NewReplacer(`"URL"`, `"`+g.url+`"`, "TOKEN", token).Replace(block[1])
		for _, sdk := range []string{code, strings.NewReplacer(
			"@modelcontextprotocol/sdk/client/index.js", "@modelcontextprotocol/client",
			"@modelcontextprotocol/sdk/client/streamableHttp.js", "@modelcontextprotocol/client").Replace(code)} {
			cmd := exec.CommandContext(within(t), program, "--input-type=module", "--eval", sdk)
			cmd.Dir = clientsDir
			out, err := cmd.CombinedOutput()
			var names []string
			for _, m := range regexp.MustCompile(`(?m)^ +name: '(\w+)',`).FindAllStringSubmatch(string(out), -1) {
				names = append(names, m[1])
			}
			slices.Sort(names)
			if got, want := strings.Join(names, ","), "echo,sleep"; err != nil || got != want {
				t.Errorf("got %v, %s\nwant the tools %s of\n%s", err, out, want, sdk)
			}
		}
	}
}
