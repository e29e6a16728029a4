// Publicapi lists the exported API of the packages that version 1 promises, one line for each thing that a user can
// name, so that a change of it shows in a review. -check compares it with the committed listing.
package main

import (
	"cmp"
	"flag"
	"fmt"
	"go/importer"
	"go/token"
	"go/types"
	"io"
	"log"
	"os"
	"os/exec"
	"slices"
	"strings"
)

const module = "github.com/mcp-sse/mcp-sse"

// promised are the packages that docs/library.md promises.
var promised = []string{
	"auth", "auth/oauth", "auth/oauthclient", "cluster", "compose", "gateway", "gosdk", "jsonrpc", "mcpgo", "upstream",
}

// listing is the committed listing, below the root of the module.
const listing = "docs/reference/api.txt"

func main() {
	log.SetFlags(0)
	check := flag.Bool("check", false, "compare with "+listing+", from the root of the module")
	flag.Parse()
	packages, err := load(promised)
	if err != nil {
		log.Fatal(err)
	}
	text := strings.Join(lines(packages), "\n") + "\n"
	if !*check {
		fmt.Print(text)
		return
	}
	committed, err := os.ReadFile(listing)
	if err != nil {
		log.Fatal(err)
	}
	if string(committed) != text {
		log.Fatalf("the public API has changed: run make api, and look at the difference of %s", listing)
	}
}

// load returns the types of packages of the module.
func load(names []string) (all []*types.Package, err error) {
	// With the race detector, as go vet and the tests before: else all that the packages import is compiled once more.
	args := []string{"list", "-race", "-export", "-deps", "-f", "{{.ImportPath}}={{.Export}}"}
	for _, name := range names {
		args = append(args, module+"/"+name)
	}
	out, err := exec.Command("go", args...).Output()
	if err != nil {
		return nil, fmt.Errorf("go list: %w", err)
	}
	files := map[string]string{}
	for line := range strings.Lines(string(out)) {
		path, file, _ := strings.Cut(strings.TrimSpace(line), "=")
		files[path] = file
	}
	compiled := importer.ForCompiler(token.NewFileSet(), "gc", func(path string) (io.ReadCloser, error) {
		return os.Open(files[path])
	})
	for _, name := range names {
		p, err := compiled.Import(module + "/" + name)
		if err != nil {
			return nil, err
		}
		all = append(all, p)
	}
	return all, nil
}

// exported returns the exported objects of a package, by name.
func exported(p *types.Package) (all []types.Object) {
	for _, name := range p.Scope().Names() {
		if object := p.Scope().Lookup(name); object.Exported() {
			all = append(all, object)
		}
	}
	return all
}

// isPromised reports whether an object belongs to a promised package, or to none of the module.
func isPromised(object types.Object) bool {
	short, inModule := strings.CutPrefix(object.Pkg().Path(), module+"/")
	return !inModule || slices.Contains(promised, short)
}

// methodsOf returns the exported methods of a type and of pointers to it.
func methodsOf(t types.Type) (all []*types.Func) {
	methods := types.NewMethodSet(types.NewPointer(t))
	if types.IsInterface(t) {
		methods = types.NewMethodSet(t)
	}
	for method := range methods.Methods() {
		if method.Obj().Exported() {
			all = append(all, method.Obj().(*types.Func))
		}
	}
	return all
}

// fieldsOf returns the exported fields of a struct; none of anything else.
func fieldsOf(t types.Type) (all []*types.Var) {
	of, ok := t.Underlying().(*types.Struct)
	if !ok {
		return nil
	}
	for field := range of.Fields() {
		if field.Exported() {
			all = append(all, field)
		}
	}
	return all
}

// lines returns the listing, sorted: those of a type stand together.
func lines(packages []*types.Package) (all []string) {
	for _, p := range packages {
		add := func(format string, args ...any) {
			all = append(all, shortPath(p)+": "+fmt.Sprintf(format, args...))
		}
		for _, object := range exported(p) {
			switch object := object.(type) {
			case *types.Const:
				add("const %s %s = %s", object.Name(), text(object.Type()), object.Val().ExactString())
			case *types.Var:
				add("var %s %s", object.Name(), text(object.Type()))
			case *types.Func:
				add("func %s%s", object.Name(), signature(object))
			case *types.TypeName:
				addType(object, add)
			}
		}
	}
	slices.SortStableFunc(all, cmp.Compare[string])
	return all
}

// addType adds the lines of a type.
func addType(object *types.TypeName, add func(format string, args ...any)) {
	name, t := object.Name(), object.Type()
	if object.IsAlias() {
		add("type %s = %s", name, text(types.Unalias(t)))
		return
	}
	kind := text(t.Underlying())
	switch t.Underlying().(type) {
	case *types.Struct:
		kind = "struct"
	case *types.Interface:
		kind = "interface"
	}
	add("type %s %s", name, kind)
	for _, field := range fieldsOf(t) {
		what := "field"
		if field.Embedded() {
			what = "embedded"
		}
		add("type %s, %s %s %s", name, what, field.Name(), text(field.Type()))
	}
	for _, method := range methodsOf(t) {
		if method.Pkg() != nil && !isPromised(method) { // the type embeds one that nobody promises
			continue
		}
		receiver := "" // one that also a value has
		if _, isPointer := method.Signature().Recv().Type().(*types.Pointer); isPointer {
			receiver = "of a pointer "
		}
		add("type %s, %smethod %s%s", name, receiver, method.Name(), signature(method))
	}
}

func shortPath(p *types.Package) string { return strings.TrimPrefix(p.Path(), module+"/") }

func text(t types.Type) string { return types.TypeString(t, shortPath) }

// signature returns the types of a function's parameters and results. Their names are no part of the API.
func signature(f *types.Func) string {
	of := f.Signature()
	plain := types.NewSignatureType(nil, nil, nil, unnamed(of.Params()), unnamed(of.Results()), of.Variadic())
	return strings.TrimPrefix(text(plain), "func")
}

func unnamed(of *types.Tuple) *types.Tuple {
	var all []*types.Var
	for v := range of.Variables() {
		all = append(all, types.NewParam(token.NoPos, nil, "", v.Type()))
	}
	return types.NewTuple(all...)
}
