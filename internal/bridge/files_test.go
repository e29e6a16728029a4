package bridge_test

import (
	"go/ast"
	"go/parser"
	"go/token"
	"go/types"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/mcp-sse/mcp-sse/internal/ssetest"
)

// unknown imports packages without looking at them: what matters is what this one declares.
type unknown struct{}

func (unknown) Import(of string) (*types.Package, error) {
	p := types.NewPackage(of, path.Base(of))
	p.MarkComplete()
	return p, nil
}

// Each file uses only those that stand below it in docs/design/life.md, so that there is an order of reading. A file
// tells those above of what happens by an interface that it declares.
func TestFilesUseOnlyThoseBelow(t *testing.T) {
	text, err := os.ReadFile("../../docs/design/life.md")
	ssetest.Must(t, err)
	_, section, _ := strings.Cut(string(text), "\n## Files\n")
	section, _, _ = strings.Cut(section, "\n## ")
	var order []string
	for _, found := range regexp.MustCompile("(?m)^\\| `([a-z]+\\.go)` \\|").FindAllStringSubmatch(section, -1) {
		order = append(order, found[1])
	}
	names, err := filepath.Glob("*.go")
	ssetest.Must(t, err)
	names = slices.DeleteFunc(names, func(name string) bool { return strings.HasSuffix(name, "_test.go") || name == "doc.go" })
	ssetest.WantText(t, "files of the page", strings.Join(slices.Sorted(slices.Values(order)), " "), strings.Join(names, " "))

	places, files := token.NewFileSet(), []*ast.File(nil)
	for _, name := range names {
		file, err := parser.ParseFile(places, name, nil, parser.SkipObjectResolution)
		ssetest.Must(t, err)
		files = append(files, file)
	}
	uses := &types.Info{Uses: make(map[*ast.Ident]types.Object)}
	checker := types.Config{Importer: unknown{}, Error: func(error) {}} // of what other packages have
	p, _ := checker.Check("bridge", places, files, uses)
	down := 0
	for id, used := range uses.Uses {
		if used.Pkg() != p {
			continue
		}
		from, to := places.Position(id.Pos()).Filename, places.Position(used.Pos()).Filename
		switch above := slices.Index(order, from) - slices.Index(order, to); {
		case above > 0:
			t.Errorf("%s uses %s of %s, which stands above it", from, id.Name, to)
		case above < 0:
			down++
		}
	}
	if down < 500 {
		t.Errorf("%d uses were found", down)
	}
}
