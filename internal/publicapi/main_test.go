package main

import (
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
