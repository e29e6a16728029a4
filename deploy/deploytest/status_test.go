//go:build deploy

package deploytest

import (
	"fmt"
	"net/http"
	"os/exec"
	"path/filepath"
	"testing"
)

// In a real browser, with a token: the status page shows the failing server, follows
// connections, stays quick with 1,000 of them, and keeps hostile names text.
func TestStatusPage(t *testing.T) {
	t.Parallel()
	browser, node := installed(t, "chromium"), installed(t, "node")
	ci := exec.CommandContext(t.Context(), installed(t, "npm"), "ci")
	ci.Dir = "browser"
	if out, err := ci.CombinedOutput(); err != nil {
		t.Fatalf("npm ci: %v\n%s", err, out)
	}
	hostile, err := filepath.Abs("browser/hostile.mjs")
	if err != nil {
		t.Fatal(err)
	}
	const token = "token-of-the-browser"
	dir, main, admin := t.TempDir(), freeAddr(t), freeAddr(t)
	tokens, config := filepath.Join(dir, "tokens"), filepath.Join(dir, "servers.yaml")
	writeFile(t, tokens, token+"\n")
	writeFile(t, config, fmt.Sprintf(`
addr: %q
admin-addr: %q
auth-tokens-file: %q
servers:
  healthy: {}
  hostile: {command: [%q, %q]}
  broken: {command: [sh, -c, "echo no database >&2; exit 3"]}
`, main, admin, tokens, node, hostile))
	p := start(t, []string{"XDG_STATE_HOME=" + dir}, sseServer(t), "--config", config)
	p.listens(admin)
	// A probe of its readiness starts the server that cannot start.
	client := http.Client{Transport: &http.Transport{DisableKeepAlives: true}}
	if resp, err := client.Get("http://" + admin + "/readyz?server=broken"); err != nil {
		t.Fatal(err)
	} else if resp.Body.Close(); resp.StatusCode != http.StatusServiceUnavailable {
		t.Fatalf("the broken server: got %s", resp.Status)
	}
	run(t, node, "browser/status.mjs", browser, "http://"+main+"/healthy/mcp", "http://"+admin, token)
}
