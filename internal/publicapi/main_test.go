package main

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"go/types"
	"os"
	"strings"
	"testing"
)

// opener looks for types of internal packages, which a user who reads an exported signature cannot open.
type opener struct {
	seen  map[types.Type]bool
	found []string // how one gets to such types
}

// open follows a type to all that a user can reach from it. from says where it stands.
func (o *opener) open(of types.Type, from string) {
	if of == nil || o.seen[of] {
		return
	}
	o.seen[of] = true
	switch of := of.(type) {
	case *types.Alias:
		o.name(of.Obj(), from)
		o.open(types.Unalias(of), from)
	case *types.Named:
		o.name(of.Obj(), from)
		if path := pathOf(of.Obj()); path != module && !strings.HasPrefix(path, module+"/") {
			return
		}
		from += " → " + text(of)
		o.members(of, from)
	case *types.Struct, *types.Interface:
		o.members(of, from)
	case *types.Pointer:
		o.open(of.Elem(), from)
	case *types.Slice:
		o.open(of.Elem(), from)
	case *types.Array:
		o.open(of.Elem(), from)
	case *types.Chan:
		o.open(of.Elem(), from)
	case *types.Map:
		o.open(of.Key(), from)
		o.open(of.Elem(), from)
	case *types.Signature:
		for v := range of.Params().Variables() {
			o.open(v.Type(), from)
		}
		for v := range of.Results().Variables() {
			o.open(v.Type(), from)
		}
	}
}

// members follows the exported fields and methods of a type.
func (o *opener) members(of types.Type, from string) {
	for _, field := range fieldsOf(of) {
		o.open(field.Type(), from+"."+field.Name())
	}
	for _, method := range methodsOf(of) {
		o.open(method.Signature(), from+"."+method.Name())
	}
	switch under := of.Underlying().(type) {
	case *types.Struct, *types.Interface:
	default:
		o.open(under, from)
	}
}

func (o *opener) name(object *types.TypeName, from string) {
	if strings.Contains(pathOf(object)+"/", "/internal/") && strings.HasPrefix(pathOf(object), module) {
		o.found = append(o.found, from+" → "+text(object.Type()))
	}
}

func pathOf(object types.Object) string {
	if object.Pkg() == nil {
		return ""
	}
	return object.Pkg().Path()
}

// openAll follows all that packages export.
func openAll(t *testing.T, names ...string) *opener {
	packages, err := load(names)
	if err != nil {
		t.Fatal(err)
	}
	o := &opener{seen: map[types.Type]bool{}}
	for _, p := range packages {
		for _, object := range exported(p) {
			o.open(object.Type(), shortPath(p)+"."+object.Name())
		}
	}
	return o
}

func TestPublicSignaturesAreOpen(t *testing.T) {
	if found := openAll(t, promised...).found; len(found) > 0 {
		t.Errorf("go doc does not show the last type of each of these: a user cannot open it\n%s", strings.Join(found, "\n"))
	}
	if openAll(t, "handshake").found == nil { // whose options have a memory and locks
		t.Error("it finds nothing in a package that is known to lead to internal types")
	}
}

func TestPromisedPackagesAreInTheDocs(t *testing.T) {
	page, err := os.ReadFile("../../docs/library.md")
	if err != nil {
		t.Fatal(err)
	}
	_, section, found := strings.Cut(string(page), "\n## What version 1 promises\n")
	section, _, _ = strings.Cut(section, "\n## ")
	for _, p := range promised {
		if !found || !strings.Contains(section, "`"+p+"`") {
			t.Errorf("docs/library.md does not promise %s", p)
		}
	}
}

// imported has packages that are loaded, by their paths.
type imported map[string]*types.Package

func (i imported) Import(path string) (*types.Package, error) {
	if p := i[path]; p != nil {
		return p, nil
	}
	return nil, fmt.Errorf("%s is not loaded", path)
}

// compile returns the error of the compiler for a program that has the expression.
func (i imported) compile(t *testing.T, expression string) error {
	source := "package p\n"
	for path := range i {
		source += fmt.Sprintf("import %q\n", path)
	}
	files := token.NewFileSet()
	file, err := parser.ParseFile(files, "p.go", source+"var _ = "+expression+"\n", 0)
	if err != nil {
		t.Fatal(err)
	}
	var first error // that is about the expression: most imports are unused
	check := types.Config{Importer: i, Error: func(err error) {
		if first == nil && !strings.Contains(err.Error(), "imported and not used") {
			first = err
		}
	}}
	_, _ = check.Check("p", files, []*ast.File{file}, nil)
	return first
}

// A word of an option is a constant of a type that no text converts to.
func TestAWrongWordDoesNotCompile(t *testing.T) {
	packages, err := load([]string{"gateway", "upstream", "auth/oauthclient"})
	if err != nil {
		t.Fatal(err)
	}
	loaded := imported{}
	for _, p := range packages {
		loaded[p.Path()] = p
	}
	for right, wrong := range map[string]string{
		"gateway.Options{Sessions: gateway.SessionsShared}":                      `gateway.Options{Sessions: "sharde"}`,
		"gateway.Options{Transports: []gateway.Transport{gateway.TransportSSE}}": `gateway.Options{Transports: []gateway.Transport{"see"}}`,
		"gateway.Options{ErrorDetails: gateway.ErrorDetailsSafe}":                `gateway.Options{ErrorDetails: "save"}`,
		"gateway.Options{Page: gateway.PageOff}":                                 `gateway.Options{Page: "of"}`,
		"upstream.URL{Transport: upstream.TransportStateless}":                   `upstream.URL{Transport: "statless"}`,
		"oauthclient.Config{Grant: oauthclient.TokenExchange}":                   `oauthclient.Config{Grant: "token_exchange"}`,
	} {
		if err := loaded.compile(t, right); err != nil {
			t.Errorf("%s: %v", right, err)
		}
		if err := loaded.compile(t, wrong); err == nil || !strings.Contains(err.Error(), "cannot use") {
			t.Errorf("%s: got %v, want an error of the compiler", wrong, err)
		}
	}
}
