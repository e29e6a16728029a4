package handshake

import (
	"go/ast"
	"go/parser"
	"go/token"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/mcp-sse/mcp-sse/internal/ssetest"
)

// lifeFiles have the life of a connection's sessions. All others have the supply of sessions.
var lifeFiles = []string{
	"bridge.go", "life.go", "actions.go", "start.go", "state.go", "prepare.go", "recall.go", "told.go", "initializes.go", "idle.go",
	"restore.go", "report.go", "attachment.go", "early.go",
}

// The supply of sessions names nothing of the life above it: it tells who follows it.
func TestTheSupplyKnowsNothingOfTheLife(t *testing.T) {
	paths, err := filepath.Glob("*.go")
	ssetest.Must(t, err)
	files := token.NewFileSet()
	ofLife := make(map[string]bool)
	supply := make(map[string]*ast.File)
	for _, path := range paths {
		if strings.HasSuffix(path, "_test.go") {
			continue
		}
		file, err := parser.ParseFile(files, path, nil, parser.SkipObjectResolution)
		ssetest.Must(t, err)
		if !slices.Contains(lifeFiles, path) {
			supply[path] = file
			continue
		}
		for _, declared := range file.Decls {
			if g, ok := declared.(*ast.GenDecl); ok {
				for _, spec := range g.Specs {
					if named, ok := spec.(*ast.TypeSpec); ok {
						ofLife[named.Name.Name] = true
					}
				}
			}
		}
	}
	if len(ofLife) < 10 || len(supply) < 10 {
		t.Fatalf("%d types of the life, %d files of the supply", len(ofLife), len(supply))
	}
	members := make(map[*ast.Ident]bool) // names of others: of fields, methods, and of what is in another package
	for _, file := range supply {
		ast.Inspect(file, func(n ast.Node) bool {
			switch n := n.(type) {
			case *ast.FuncDecl:
				members[n.Name] = true
			case *ast.SelectorExpr:
				members[n.Sel] = true
			}
			return true
		})
	}
	for path, file := range supply {
		ast.Inspect(file, func(n ast.Node) bool {
			if id, ok := n.(*ast.Ident); ok && ofLife[id.Name] && !members[id] {
				t.Errorf("%s names %s", path, id.Name)
			}
			return true
		})
	}
}
