// Package deptest holds the rules about which package may import which, and
// which file of a package may use which. They are a test because the order in
// which a message travels only stays visible while imports follow it.
package deptest

import (
	"bytes"
	"io/fs"
	"os"
	"os/exec"
	"slices"
	"strings"
	"testing"
)

const module = "github.com/mcp-sse/mcp-sse"

// layers are the packages from the lowest to the highest. A package may import
// those of lower layers, not its neighbours.
var layers = [][]string{
	{"internal/atomicfile", "internal/closed", "internal/enum", "internal/hosts", "internal/plainjson", "internal/rawjson", "internal/shellword"},
	{"jsonrpc", "metrics", "auth", "internal/idle", "auth/oauthclient", "internal/caller", "internal/clients", "internal/environ", "internal/private", "internal/clip", "internal/backoff", "internal/buildinfo", "internal/throttle", "internal/subnet", "internal/fair", "internal/workers", "internal/signedid", "internal/unreached", "internal/clusterwords", "internal/asker", "internal/toolsearch"},
	{"internal/wire", "internal/mcp", "internal/pages", "internal/upstream/implementation", "internal/budget", "internal/details"},
	{"internal/stateless", "internal/buffer", "internal/remember", "internal/selection"},
	{"connstate", "internal/login", "internal/multiplex/sharing", "internal/merge"},
	{"internal/upstream/exchange", "internal/upstream/inprocess"},
	{"internal/upstream/standin", "internal/upstream/streamable", "internal/upstream/statelessserver", "internal/upstream/httpsse"},
	{"internal/upstream/remote", "internal/upstream/stdio"},
	{"internal/multiplex", "upstream", "compose", "internal/bridge/internal/life"},
	{"internal/httpanswer", "handshake"},
	{"internal/httpcheck"},
	{"auth/oauth"},
	{"internal/streamable/internal/statelessclient"},
	{"sse", "internal/streamable", "internal/stdio", "cluster", "internal/bridge"},
	{"gateway/internal/statuspage", "internal/page", "internal/forprogram"},
	{"gateway"},
	{"gosdk", "mcpgo"},
	{"cmd/sse-server/internal/tree", "cmd/sse-server/internal/browser", "cmd/sse-server/internal/secretprogram", "cmd/sse-server/internal/envfile", "cmd/sse-server/internal/naming", "cmd/sse-server/internal/exit", "cmd/sse-server/internal/plaintext", "cmd/sse-server/internal/terminal"},
	{"cmd/sse-server/internal/clientfile", "cmd/sse-server/internal/firstprocess"},
	{"cmd/sse-server/internal/config", "cmd/sse-server/internal/demo", "cmd/sse-server/internal/diagnosis", "internal/completions"},
	{"cmd/sse-server/internal/advice", "cmd/sse-server/internal/observe", "cmd/sse-server/internal/listen", "cmd/sse-server/internal/background", "cmd/sse-server/internal/setup", "cmd/sse-server/internal/signin"},
	{"cmd/sse-server/internal/check"},
	{"cmd/sse-server"},
}

// apart are the folders of two sides, of which no package may import one of the other side.
var apart = [2][]string{{"internal/multiplex"}, {"upstream", "internal/upstream"}}

// side returns the number of the side in apart to which a package belongs; -1 for none.
func side(short string) int {
	return slices.IndexFunc(apart[:], func(folders []string) bool {
		return slices.ContainsFunc(folders, func(folder string) bool {
			return short == folder || strings.HasPrefix(short, folder+"/")
		})
	})
}

// outside are packages for tests and for releases, with what they may import of the module. No layer
// imports them. The programs that prove and measure are in a module of their own, tools.
var outside = map[string][]string{
	"e2e":                             {"internal/ssetest"},
	"e2e/agents":                      {"internal/ssetest"},
	"e2e/acceptance":                  {"internal/ssetest", "gateway", "upstream"}, // its rules about the library
	"deploy/deploytest":               {"internal/ssetest"},
	"deploy/installers":               {},
	"internal/ssetest":                {},
	"internal/pipetest":               {},
	"cmd/sse-server/internal/clitest": {},
	"internal/upstream/upstreamtest":  {"jsonrpc", "internal/upstream/remote"},
}

// reserved are imports that only some packages may have, tests aside.
var reserved = map[string][]string{
	module + "/connstate":                    {"internal/multiplex", "internal/httpanswer", "internal/httpcheck", "sse", "internal/streamable", "internal/streamable/internal/statelessclient", "internal/stdio", "cluster", "gateway", "internal/bridge", "internal/bridge/internal/life", "gateway/internal/statuspage"},
	"github.com/r3labs/sse/v2":               {"sse"},
	"github.com/nats-io/nats.go":             {"cluster"},
	"github.com/hashicorp/golang-lru/v2":     {"cluster", "connstate", "internal/remember", "internal/signedid", "auth/oauth"},
	"os/exec":                                {"internal/upstream/stdio", "cmd/sse-server/internal/background", "cmd/sse-server/internal/browser", "cmd/sse-server/internal/secretprogram"},
	"github.com/cenkalti/backoff/v5":         {"internal/backoff"},
	"go.opentelemetry.io/otel":               {"connstate", "gateway", "internal/bridge", "cmd/sse-server/internal/observe"},
	"go.opentelemetry.io/otel/sdk":           {"cmd/sse-server/internal/observe"},
	"go.opentelemetry.io/otel/exporters":     {"cmd/sse-server/internal/observe"},
	"github.com/prometheus/client_golang":    {"metrics", "cluster", "gateway"},
	"github.com/modelcontextprotocol/go-sdk": {"cmd/sse-server/internal/demo", "gosdk"},
	"github.com/mark3labs/mcp-go":            {"mcpgo"},
	"github.com/alecthomas/kong":             {"cmd/sse-server/internal/config"},
	"github.com/fsnotify/fsnotify":           {"cmd/sse-server"},
	"github.com/coreos/go-systemd/v22":       {"cmd/sse-server"},
	"github.com/goccy/go-yaml":               {"cmd/sse-server/internal/config", "cmd/sse-server/internal/clientfile", "cmd/sse-server/internal/tree"},
	"net/http": {
		"auth", "auth/oauth", "auth/oauthclient", "internal/login", "internal/caller", "internal/unreached", "metrics", "upstream", "internal/upstream/remote",
		"internal/upstream/exchange", "internal/upstream/streamable", "internal/upstream/statelessserver",
		"internal/upstream/httpsse", "internal/upstream/inprocess",
		"internal/httpanswer", "internal/httpcheck", "sse", "internal/streamable", "internal/streamable/internal/statelessclient", "cluster", "gateway", "gateway/internal/statuspage", "internal/page", "gosdk", "mcpgo", "cmd/sse-server", "cmd/sse-server/internal/config", "cmd/sse-server/internal/diagnosis", "cmd/sse-server/internal/listen", "cmd/sse-server/internal/background", "cmd/sse-server/internal/signin",
	},
	"golang.org/x/oauth2":                            {"auth/oauthclient", "internal/login"},
	"github.com/coreos/go-oidc/v3":                   {"auth/oauth"},
	"github.com/modelcontextprotocol/go-sdk/auth":    {"auth/oauth", "gosdk"},
	"github.com/modelcontextprotocol/go-sdk/oauthex": {"auth/oauth", "internal/login", "cmd/sse-server/internal/diagnosis"},
}

// imports returns the imports of each package of the module in a folder, by the path below
// the module, with those of its tests only for packages outside of the layers.
func imports(t *testing.T, folder string) map[string][]string {
	t.Helper()
	const format = `{{.ImportPath}} {{join .Imports " "}} {{if not .GoFiles}}{{join .TestImports " "}} {{join .XTestImports " "}}{{end}}`
	out, err := exec.CommandContext(t.Context(), "go", "list", "-C", folder, "-f", format, "./...").Output()
	if err != nil {
		t.Fatalf("go list: %v", err)
	}
	all := make(map[string][]string)
	for line := range strings.Lines(string(out)) {
		words := strings.Fields(line)
		all[strings.TrimPrefix(words[0], module+"/")] = words[1:]
	}
	if len(all) < 5 {
		t.Fatalf("go list found %d packages", len(all))
	}
	return all
}

// layer returns the number of a package's layer, and -1 for one outside of them.
func layer(short string) int {
	return slices.IndexFunc(layers, func(l []string) bool { return slices.Contains(l, short) })
}

func TestImports(t *testing.T) {
	for p, imported := range imports(t, "../..") {
		folder, _, _ := strings.Cut(p, "/")
		if folder == "examples" || p == "internal/deptest" || p == "internal/docstest" || p == "internal/publicapi" {
			continue // they import what users may, or are tests
		}
		allowed, proof := outside[p]
		at := layer(p)
		if at < 0 && !proof {
			t.Errorf("%s has no layer: add it to the layers of this test and to docs/architecture.md", p)
			continue
		}
		for _, path := range imported {
			short, ours := strings.CutPrefix(path, module+"/")
			switch {
			case ours && proof:
				if short != p && !slices.Contains(allowed, short) {
					t.Errorf("%s imports %s: of this module it may import %q", p, short, allowed)
				}
			case ours && (layer(short) >= at || layer(short) < 0):
				t.Errorf("%s imports %s, which is not below it", p, short)
			case ours && side(p) >= 0 && side(short) >= 0 && side(p) != side(short):
				t.Errorf("%s imports %s: they do not know each other", p, short)
			}
			if rule := ruleFor(path); rule != "" && !proof && !slices.Contains(reserved[rule], p) {
				t.Errorf("%s imports %s: only %q may", p, path, reserved[rule])
			}
		}
	}
}

// ruleFor returns the narrowest rule that speaks of an import; "" for none.
func ruleFor(imported string) (rule string) {
	for r := range reserved {
		within := imported == r || strings.Contains(r, ".") && strings.HasPrefix(imported, r+"/")
		if within && len(r) > len(rule) {
			rule = r
		}
	}
	return rule
}

// The tools import the gateway as users do.
func TestToolsImportNothingInternal(t *testing.T) {
	for p, imported := range imports(t, "../../tools") {
		for _, path := range imported {
			short, ours := strings.CutPrefix(path, module+"/")
			if ours && !strings.HasPrefix(short, "tools/") && strings.Contains(short, "internal/") {
				t.Errorf("%s imports %s", p, short)
			}
		}
	}
}

// A file is replaced by internal/atomicfile alone, so that each way to do it syncs, and has tests.
func TestFilesAreReplacedInOnePackage(t *testing.T) {
	var replacing []string
	root := os.DirFS("../..")
	err := fs.WalkDir(root, ".", func(path string, entry fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case entry.IsDir() && slices.Contains([]string{"docsearch", "tools", "e2e", "node_modules"}, path): // other modules, and tests
			return fs.SkipDir
		case !strings.HasSuffix(path, ".go") || strings.HasSuffix(path, "_test.go"):
			return nil
		}
		text, err := fs.ReadFile(root, path)
		if bytes.Contains(text, []byte("os.Rename(")) {
			replacing = append(replacing, path)
		}
		return err
	})
	if want := []string{"internal/atomicfile/atomicfile.go", "internal/atomicfile/existing.go"}; err != nil || !slices.Equal(replacing, want) {
		t.Errorf("these call os.Rename: %q (%v), want %q", replacing, err, want)
	}
}
