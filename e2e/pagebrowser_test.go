//go:build all

package e2e

import (
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/mcp-sse/mcp-sse/internal/ssetest"
)

var images = flag.Bool("images", false, "write the screenshots of the page to docs/images")

// In a real browser: people use the page of each server, also of one that is hostile, fails or is slow,
// and nothing goes wrong in the console. A machine without Chromium fails the test.
func TestPageInABrowser(t *testing.T) {
	t.Parallel()
	browser, err := exec.LookPath("chromium")
	if err != nil {
		t.Fatal("a program is missing: apt-get install chromium")
	}
	npm(t, "playwright-core/package.json")
	const token = "sesame-token-of-the-browser"
	dir, addr, shots := t.TempDir(), "127.0.0.1:0", ""
	if *images {
		addr = "127.0.0.1:8080" // as on all pages of the documentation
		shots, err = filepath.Abs("../docs/images")
		ssetest.Must(t, err)
	}
	tokens, config, began := filepath.Join(dir, "tokens"), filepath.Join(dir, "servers.yaml"), filepath.Join(dir, "slow-begins")
	server, err := filepath.Abs(filepath.Join(clientsDir, "pageserver.mjs"))
	ssetest.Must(t, err)
	ssetest.Must(t, os.WriteFile(tokens, []byte(token+"\n"), 0o600))
	ssetest.Must(t, os.WriteFile(config, fmt.Appendf(nil, `
servers:
  bookshop: {command: [%[1]q, %[2]q]}
  hostile: {command: [%[1]q, %[2]q, hostile]}
  deep: {command: [%[1]q, %[2]q, deep]}
  broken: {command: [sh, -c, "echo connecting >&2; echo the database is down >&2; exit 3"]}
  slow: {command: [sh, -c, "while [ ! -e %[3]s ]; do sleep 0.1; done; exec %[1]s %[2]s"]}
  demo: {}
`, node(t), server, began), 0o600))
	open := startGateway(t, "--addr", addr, "--config", config)
	locked := startGateway(t, "--auth-tokens-file", tokens)
	_, protected := startProtected(t, startIssuer(t))
	use := exec.CommandContext(t.Context(), node(t), "browser.mjs", browser, strings.TrimSuffix(open.url, "/bookshop/mcp"), open.admin,
		strings.TrimSuffix(locked.url, "/mcp"), token, began, protected+"/jwt/mcp", shots)
	use.Dir = clientsDir
	if out, err := use.CombinedOutput(); err != nil {
		t.Errorf("%v\n%s", err, out)
	}
}
