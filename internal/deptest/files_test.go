package deptest

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
)

// ordered are the packages of whose files docs/design/life.md has the order, with how many names of one file used in
// another the test must find at least.
var ordered = map[string]int{"internal/bridge": 500, "handshake": 500}

// unknown imports packages without looking at them: what matters is what the one that is checked declares.
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
	if err != nil {
		t.Fatal(err)
	}
	for folder, atLeast := range ordered {
		t.Run(folder, func(t *testing.T) {
			_, section, _ := strings.Cut(string(text), "\n### Files of `"+folder+"`\n")
			section, _, _ = strings.Cut(section, "\n#")
			var order []string
			for _, found := range regexp.MustCompile("(?m)^\\| `([a-z]+\\.go)` \\|").FindAllStringSubmatch(section, -1) {
				order = append(order, found[1])
			}
			names := sources(t, filepath.Join("../..", folder))
			if got := slices.Sorted(slices.Values(order)); !slices.Equal(got, names) {
				t.Fatalf("the page has the files %q, want %q", got, names)
			}
			down := 0
			for _, u := range usesBetween(t, filepath.Join("../..", folder), names) {
				switch above := slices.Index(order, u.from) - slices.Index(order, u.to); {
				case above > 0:
					t.Errorf("%s uses %s of %s, which stands above it", u.from, u.name, u.to)
				case above < 0:
					down++
				}
			}
			if down < atLeast {
				t.Errorf("%d uses were found, want at least %d", down, atLeast)
			}
		})
	}
}

// sources returns the names of the files of a package, but for its tests and its documentation.
func sources(t *testing.T, folder string) (names []string) {
	t.Helper()
	all, err := filepath.Glob(filepath.Join(folder, "*.go"))
	if err != nil {
		t.Fatal(err)
	}
	for _, file := range all {
		if name := filepath.Base(file); !strings.HasSuffix(name, "_test.go") && name != "doc.go" {
			names = append(names, name)
		}
	}
	return names
}

// use is a name that a file uses and another one, or the same, declares.
type use struct{ from, name, to string }

// usesBetween returns the uses of what the files of a package declare.
func usesBetween(t *testing.T, folder string, names []string) (all []use) {
	t.Helper()
	places, files := token.NewFileSet(), []*ast.File(nil)
	for _, name := range names {
		file, err := parser.ParseFile(places, filepath.Join(folder, name), nil, parser.SkipObjectResolution)
		if err != nil {
			t.Fatal(err)
		}
		files = append(files, file)
	}
	uses := &types.Info{Uses: make(map[*ast.Ident]types.Object)}
	checker := types.Config{Importer: unknown{}, Error: func(error) {}} // of what other packages have
	p, _ := checker.Check(folder, places, files, uses)
	fileOf := func(at token.Pos) string { return filepath.Base(places.Position(at).Filename) }
	for id, used := range uses.Uses {
		if used.Pkg() == p {
			all = append(all, use{fileOf(id.Pos()), id.Name, fileOf(used.Pos())})
		}
	}
	return all
}
