//go:build all

package e2e

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/mcp-sse/mcp-sse/internal/ssetest"
)

// notLogins are the scenarios of the suite for authorization that are left out, with the reason. All are of extensions
// of MCP, and of none of its versions.
var notLogins = map[string]string{
	"auth/client-credentials-basic":         "nobody logs in: the option oauth-client is for that",
	"auth/client-credentials-jwt":           "nobody logs in, and oauth-client has no client that signs JWTs",
	"auth/wif-jwt-bearer":                   "nobody logs in: a workload has its token from its platform",
	"auth/enterprise-managed-authorization": "nobody logs in: the client has the token of a company's issuer already",
	"auth/dpop":                             "tokens are not bound to a key (RFC 9449)",
	"auth/dpop-nonce":                       "tokens are not bound to a key (RFC 9449)",
}

// listedScenario matches a scenario for authorization in the list of the suite, and the versions of MCP that have it.
var listedScenario = regexp.MustCompile(`(?m)^  - (auth/\S+) \[([^\]]+)\]$`)

// All scenarios for authorization of the suite, in each version of MCP that has them: a client of stdio and its person
// reach a server behind an issuer through sse-server stdio --url, or are refused where that is right.
func TestLoginConforms(t *testing.T) {
	t.Parallel()
	script := npm(t, "conformance-2026/dist/index.js")
	listed, err := exec.Command(node(t), script, "list", "--client").Output()
	ssetest.Must(t, err)
	found := listedScenario.FindAllStringSubmatch(string(listed), -1)
	ssetest.Want(t, "scenarios for authorization", len(found), 33)
	self, err := os.Executable()
	ssetest.Must(t, err)
	client := strings.Join([]string{self, conformanceClientArg, built(t, "sse-server")}, " ")
	for _, one := range found {
		if notLogins[one[1]] != "" {
			continue
		}
		for _, version := range strings.Split(one[2], ",") {
			t.Run(one[1]+"/"+version, func(t *testing.T) {
				t.Parallel()
				dir := t.TempDir()
				cmd := exec.CommandContext(within(t), node(t), script, "client", "--command", client, "--scenario", one[1],
					"--spec-version", version, "--timeout", fmt.Sprint(patience.Milliseconds()), "-o", dir)
				browser, pages := newBrowser(t)
				cmd.Env = append(ssetest.WithState(t), "BROWSER="+browser)
				printed, _ := cmd.CombinedOutput() // the checks say more
				wantLoginChecks(t, dir)
				if t.Failed() {
					t.Logf("%s\n%s", printed, pages())
				}
			})
		}
	}
}

// wantLoginChecks demands that each check of a scenario succeeds.
func wantLoginChecks(t *testing.T, dir string) {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(dir, "auth", "*", "checks.json"))
	ssetest.Must(t, err)
	if len(files) != 1 {
		t.Fatalf("results of the suite: %q", files)
	}
	passed := 0
	for _, c := range readChecks(t, files[0]) {
		switch c.Status {
		case "SUCCESS":
			passed++
		case "INFO":
		default:
			t.Errorf("%s: %s: %s", c.ID, c.Status, c.Message)
		}
	}
	if passed == 0 {
		t.Error("no check has passed")
	}
}
