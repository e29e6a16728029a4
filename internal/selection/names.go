package selection

import (
	"errors"
	"fmt"
)

// Names are globs over names that no server gives, such as those of principals. A nil *Names has every name. It is
// immutable.
type Names struct{ globs *globs }

// CompileNames compiles globs over names. Without any the result has no name. The error names each glob that cannot be
// read.
func CompileNames(list []string) (*Names, error) {
	var wrong []error
	for _, glob := range list {
		if glob != "" && glob[0] == '!' {
			wrong = append(wrong, fmt.Errorf("the glob %q cannot be read: ! leaves nothing out here", glob))
		}
	}
	if err := errors.Join(wrong...); err != nil {
		return nil, err
	}
	g, err := compileGlobs(Resources, list) // whose characters are all plain but for * and ?
	if err != nil {
		return nil, err
	}
	return &Names{g}, nil
}

// Has reports whether a glob matches a name.
func (n *Names) Has(name string) bool {
	if n == nil {
		return true
	}
	o, _ := n.globs.match(name)
	return o == met
}
