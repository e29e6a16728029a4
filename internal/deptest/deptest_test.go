// Package deptest holds the rules about which package may import which. They
// are a test because the order in which a message travels only stays visible
// while imports follow it.
package deptest

import (
	"encoding/json"
	"io"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

const module = "github.com/mcp-sse/mcp-sse"

// layers are the packages from the lowest to the highest. A package may import
// those of lower layers, not its neighbours.
var layers = [][]string{
	{"jsonrpc", "metrics", "peer", "internal/backoff", "internal/buildinfo", "internal/throttle", "internal/subnet", "internal/fair"},
	{"internal/mcp", "internal/budget"},
	{"internal/stateless"},
	{"connstate", "multiplex/sharing"},
	{"upstream/internal/buffer", "upstream/internal/inprocess"},
	{"upstream/stdio", "upstream/internal/exchange"},
	{"upstream/internal/streamable", "upstream/internal/statelessserver", "upstream/internal/httpsse"},
	{"upstream/remote"},
	{"handshake", "multiplex", "upstream", "upstream/internal/upstreamtest"},
	{"front"},
	{"internal/eventstream"},
	{"streamable/internal/statelessclient"},
	{"sse", "streamable", "stdio", "gateway/internal/sessions"},
	{"gateway/internal/bridge"},
	{"gateway"},
	{"gosdk", "mcpgo"},
	{"cmd/sse-server/internal/config", "cmd/sse-server/internal/demo"},
	{"cmd/sse-server"},
}

// apart are folders whose packages may not import those of one another.
var apart = []string{"handshake", "multiplex", "upstream"}

// outside are packages for tests, with what they may import of the module: no layer
// imports them, and they import no gateway. The programs that prove and measure are in
// a module of their own, tools.
var outside = map[string][]string{
	"e2e":                             {"internal/ssetest"},
	"internal/ssetest":                {},
	"internal/pipetest":               {},
	"cmd/sse-server/internal/clitest": {},
}

// reserved are imports that only some packages may have, tests aside.
var reserved = map[string][]string{
	module + "/connstate":                    {"multiplex", "front", "sse", "streamable", "streamable/internal/statelessclient", "stdio", "gateway", "gateway/internal/bridge"},
	"github.com/r3labs/sse/v2":               {"sse"},
	"os/exec":                                {"upstream/stdio"},
	"github.com/cenkalti/backoff/v5":         {"internal/backoff"},
	"github.com/prometheus/client_golang":    {"metrics", "gateway"},
	"github.com/modelcontextprotocol/go-sdk": {"cmd/sse-server/internal/demo", "gosdk"},
	"github.com/mark3labs/mcp-go":            {"mcpgo"},
	"github.com/alecthomas/kong":             {"cmd/sse-server/internal/config"},
	"github.com/goccy/go-yaml":               {"cmd/sse-server/internal/config"},
	"net/http": {
		"peer", "metrics", "upstream", "upstream/remote",
		"upstream/internal/exchange", "upstream/internal/streamable", "upstream/internal/statelessserver",
		"upstream/internal/httpsse", "upstream/internal/inprocess", "upstream/internal/upstreamtest",
		"internal/pipetest", "front", "internal/eventstream", "sse", "streamable", "streamable/internal/statelessclient", "gateway", "gosdk", "mcpgo", "cmd/sse-server", "cmd/sse-server/internal/config",
	},
}

type goPackage struct {
	ImportPath   string
	Dir          string
	GoFiles      []string
	Imports      []string
	TestImports  []string
	XTestImports []string
}

// short is the path below the module; "." for its root.
func (p goPackage) short() string {
	if p.ImportPath == module {
		return "."
	}
	return strings.TrimPrefix(p.ImportPath, module+"/")
}

// load lists the packages of the module.
func load(t *testing.T) []goPackage {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), "go", "list", "-json=ImportPath,Dir,GoFiles,Imports,TestImports,XTestImports", module+"/...")
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("go list: %v", err)
	}
	var all []goPackage
	for dec := json.NewDecoder(strings.NewReader(string(out))); ; {
		var p goPackage
		if err := dec.Decode(&p); err == io.EOF {
			break
		} else if err != nil {
			t.Fatalf("go list: %v", err)
		}
		all = append(all, p)
	}
	if len(all) == 0 {
		t.Fatal("go list found no packages")
	}
	return all
}

// layer returns the number of a package's layer, and -1 for one outside of them.
func layer(short string) int {
	return slices.IndexFunc(layers, func(l []string) bool { return slices.Contains(l, short) })
}

// isExample reports whether a package is a program as users write them: it imports what
// they may.
func isExample(short string) bool {
	return short == "examples" || strings.HasPrefix(short, "examples/")
}

func TestImportsPointDownwards(t *testing.T) {
	for _, p := range load(t) {
		if _, ok := outside[p.short()]; ok || isExample(p.short()) || len(p.GoFiles) == 0 {
			continue // has its own rule, or holds tests only
		}
		at := layer(p.short())
		if at < 0 {
			t.Errorf("%s stands in no layer: give it a place in the layers of this test and of docs/architecture.md", p.short())
			continue
		}
		for _, imported := range p.Imports {
			short, ours := strings.CutPrefix(imported, module+"/")
			if ours && layer(short) >= at {
				t.Errorf("%s imports %s, which is not below it", p.short(), short)
			}
		}
	}
}

// Handshake, multiplex and upstream do not know each other.
func TestNeighboursStayApart(t *testing.T) {
	folder := func(short string) string {
		first, _, _ := strings.Cut(short, "/")
		return first
	}
	for _, p := range load(t) {
		mine := folder(p.short())
		if !slices.Contains(apart, mine) {
			continue
		}
		for _, imported := range p.Imports {
			short, ours := strings.CutPrefix(imported, module+"/")
			if other := folder(short); ours && other != mine && slices.Contains(apart, other) {
				t.Errorf("%s imports %s", p.short(), short)
			}
		}
	}
}

// What is for tests only stays out of the program.
func TestTestHelpersAreImportedByTestsOnly(t *testing.T) {
	for _, p := range load(t) {
		for _, helper := range []string{"upstream/internal/upstreamtest", "internal/ssetest", "cmd/sse-server/internal/clitest"} {
			if slices.Contains(p.Imports, module+"/"+helper) {
				t.Errorf("%s imports %s", p.short(), helper)
			}
		}
	}
}

// The tools import the gateway as users do.
func TestToolsImportNothingInternal(t *testing.T) {
	cmd := exec.CommandContext(t.Context(), "go", "list", "-C", "../../tools", "-f", `{{join .Imports "\n"}}`, "./...")
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("go list: %v", err)
	}
	for imported := range strings.Lines(string(out)) {
		short, ours := strings.CutPrefix(strings.TrimSpace(imported), module+"/")
		if ours && !strings.HasPrefix(short, "tools/") && strings.Contains(short, "internal/") {
			t.Errorf("tools import %s", short)
		}
	}
}

func TestProofsImportNoGateway(t *testing.T) {
	for _, p := range load(t) {
		allowed, ok := outside[p.short()]
		if !ok {
			continue
		}
		for _, imported := range slices.Concat(p.Imports, p.TestImports, p.XTestImports) {
			short, ours := strings.CutPrefix(imported, module+"/")
			if ours && short != p.short() && !slices.Contains(allowed, short) {
				t.Errorf("%s imports %s: of this module it may import %q", p.short(), short, allowed)
			}
		}
	}
}

// The lowest packages are of use to others by themselves.
func TestLowestLayerImportsNothingOfTheModule(t *testing.T) {
	for _, p := range load(t) {
		if layer(p.short()) != 0 {
			continue
		}
		for _, imported := range slices.Concat(p.Imports, p.TestImports) {
			if imported != p.ImportPath && strings.HasPrefix(imported, module) {
				t.Errorf("%s imports %s", p.short(), imported)
			}
		}
	}
}

func TestReservedImports(t *testing.T) {
	for _, p := range load(t) {
		if _, ok := outside[p.short()]; ok || isExample(p.short()) {
			continue
		}
		for _, imported := range p.Imports {
			if rule, ok := ruleFor(imported); ok && !slices.Contains(reserved[rule], p.short()) {
				t.Errorf("%s imports %s: only %q may", p.short(), imported, reserved[rule])
			}
		}
	}
}

// ruleFor returns the narrowest rule that speaks of an import.
func ruleFor(imported string) (string, bool) {
	var rule string
	for r := range reserved {
		within := imported == r || strings.Contains(r, ".") && strings.HasPrefix(imported, r+"/")
		if within && len(r) > len(rule) {
			rule = r
		}
	}
	return rule, rule != ""
}

func TestNoGoFilesInTheRoot(t *testing.T) {
	files, err := filepath.Glob("../../*.go")
	if err != nil {
		t.Fatal(err)
	}
	if len(files) > 0 {
		t.Errorf("Go files in the module's root: %q", files)
	}
}
