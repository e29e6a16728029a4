package deptest

import (
	"encoding/json"
	"errors"
	"io"
	"os/exec"
	"slices"
	"strings"
	"testing"
)

const module = "github.com/mcp-sse/mcp-sse/docsearch/"

// mayImport is what each package may import of the module, tests aside. An agent's call
// goes down one branch, a file up the other, and they meet in api alone, apart from two
// packages of a few lines.
var mayImport = map[string][]string{
	"api":                     {},
	"cmd/docsearch":           {"api", "client", "crawl", "daemon", "discovery", "embed", "extract", "index", "internal/pause", "internal/printable", "mcpserver", "models"},
	"client":                  {"api", "discovery", "internal/pause", "internal/printable"},
	"crawl":                   {},
	"daemon":                  {"api", "crawl", "daemon/internal/folders", "discovery", "extract", "index"},
	"daemon/internal/folders": {"api", "crawl", "extract", "index"},
	"discovery":               {"api"},
	"e2e":                     {},
	"embed":                   {"internal/printable"},
	"embed/model2vec":         {},
	"embed/static":            {},
	"extract":                 {"extract/internal/plain"},
	"extract/internal/plain":  {},
	"index":                   {"api", "extract", "index/internal/vectors"},
	"index/internal/vectors":  {},
	"internal/deptest":        {},
	"internal/pause":          {},
	"internal/printable":      {},
	"mcpserver":               {"api", "client", "internal/pause"},
	"models":                  {"embed/model2vec", "embed/static"},
	"tools/makemodel":         {"embed/static"},
}

// reserved are imports that only some packages may have, tests aside.
var reserved = map[string][]string{
	"os/exec":                         {"client", "extract"},
	"github.com/xuri/excelize/v2":     {"extract"},
	"github.com/fsnotify/fsnotify":    {"crawl"},
	"github.com/gofrs/flock":          {"client", "discovery", "models"},
	"github.com/alecthomas/kong":      {"cmd/docsearch"},
	"github.com/cenkalti/backoff/v5":  {"client", "embed"},
	"github.com/blevesearch/bleve/v2": {"index"},
}

// imports returns what each package of the module imports.
func imports(t *testing.T) map[string][]string {
	t.Helper()
	cmd := exec.Command("go", "list", "-json=ImportPath,Imports", "./...")
	cmd.Dir = "../.."
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("go list: %v", err)
	}
	all := map[string][]string{}
	for decoder := json.NewDecoder(strings.NewReader(string(out))); ; {
		var p struct {
			ImportPath string
			Imports    []string
		}
		if err := decoder.Decode(&p); errors.Is(err, io.EOF) {
			return all
		} else if err != nil {
			t.Fatal(err)
		}
		all[strings.TrimPrefix(p.ImportPath, module)] = p.Imports
	}
}

func TestImportsFollowTheLayers(t *testing.T) {
	all := imports(t)
	for name, imported := range all {
		allowed, known := mayImport[name]
		if !known {
			t.Errorf("%s is not in mayImport: say what it may import, and add it to docs/architecture.md", name)
		}
		for _, path := range imported {
			if own, ok := strings.CutPrefix(path, module); ok && !slices.Contains(allowed, own) {
				t.Errorf("%s must not import %s", name, own)
			}
			if users, ok := reserved[path]; ok && !slices.Contains(users, name) {
				t.Errorf("%s must not import %s: only %v may", name, path, users)
			}
			if strings.HasPrefix(path, "github.com/mcp-sse/mcp-sse/") && !strings.HasPrefix(path, module) {
				t.Errorf("%s imports %s of the gateway: the two share no code", name, path)
			}
		}
	}
	for name := range mayImport {
		if _, ok := all[name]; !ok {
			t.Errorf("mayImport has %s, which is no package", name)
		}
	}
}
