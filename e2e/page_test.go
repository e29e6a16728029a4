package e2e

import (
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/mcp-sse/mcp-sse/internal/ssetest"
)

// pageModules is where the modules of the page in the browser are.
const pageModules = "../internal/page/web"

// The types in the comments of the page's modules hold.
func TestTypesOfThePage(t *testing.T) {
	t.Parallel()
	node := node(t)
	check := exec.CommandContext(t.Context(), node, npm(t, "typescript/bin/tsc"), "--project", pageModules)
	if out, err := check.CombinedOutput(); err != nil {
		t.Errorf("tsc: %v\n%s", err, out)
	}
}

// The library in the page is the npm package of the lock file, unchanged.
func TestLibraryOfThePage(t *testing.T) {
	t.Parallel()
	npm(t, "@cfworker/json-schema/package.json")
	show := exec.CommandContext(t.Context(), node(t), "jsonschema.mjs")
	show.Dir = clientsDir
	want, err := show.Output()
	ssetest.Must(t, err)
	got, err := os.ReadFile(filepath.Join(pageModules, "jsonschema.js"))
	ssetest.Must(t, err)
	if string(got) != string(want) {
		t.Error("internal/page/web/jsonschema.js is not what e2e/clients/jsonschema.mjs prints: write it again")
	}
}

// Without a browser: what the page tells clients to paste, what its forms make of schemas, and its
// client of each transport against a gateway.
func TestModulesOfThePage(t *testing.T) {
	t.Parallel()
	g := startGateway(t, "--name", "mine")
	folder, err := filepath.Abs(pageModules)
	ssetest.Must(t, err)
	use := exec.CommandContext(t.Context(), node(t), "page.mjs", folder, g.url)
	use.Dir = clientsDir
	if out, err := use.CombinedOutput(); err != nil {
		t.Errorf("%v\n%s", err, out)
	}
}
