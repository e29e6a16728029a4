package config

import (
	"fmt"
	"regexp"
	"slices"
	"strings"

	"github.com/agnivade/levenshtein"
	"github.com/goccy/go-yaml/ast"
)

// maxEdits is how many letters of a name may be wrong, maxSuggestions how many
// names are suggested for one (more are no help), and maxNameBytes how long a name
// may be: a key of a megabyte would take seconds.
const (
	maxEdits       = 2
	maxSuggestions = 4
	maxNameBytes   = 64
)

// otherNames are the names that other programs have for our options.
var otherNames = map[string]string{
	"port": "addr", "p": "addr", "host": "addr", "listen": "addr", "bind": "addr", "cert": "tls-cert", "key": "tls-key",
}

// nearest returns the names that an unknown one may mean: the same in another
// spelling, else those with the fewest letters that differ, else those that it is
// a part of.
func nearest(unknown string, names []string) []string {
	if len(unknown) > maxNameBytes {
		return nil
	}
	unknown = kebab(unknown)
	if slices.Contains(names, unknown) {
		return []string{unknown}
	}
	var found []string
	least := min(maxEdits, (len(unknown)+1)/3)
	for _, name := range names {
		switch edits := levenshtein.ComputeDistance(unknown, name); {
		case edits < least:
			found, least = []string{name}, edits
		case edits == least:
			found = append(found, name)
		}
	}
	if len(found) == 0 && len(unknown) > 2 {
		for _, name := range names {
			if strings.Contains("-"+name+"-", "-"+unknown+"-") {
				found = append(found, name)
			}
		}
	}
	if len(found) > maxSuggestions {
		return nil
	}
	return found
}

var capital = regexp.MustCompile(`\B[A-Z]`)

// kebab writes a name of another spelling as ours: maxConnections, max_connections
// and SSE_SERVER_MAX_CONNECTIONS are max-connections.
func kebab(name string) string {
	name = strings.TrimPrefix(strings.TrimLeft(name, "-"), envName(""))
	if strings.ToUpper(name) != name {
		name = capital.ReplaceAllString(name, "-$0")
	}
	return strings.ReplaceAll(strings.ToLower(name), "_", "-")
}

// didYouMean is the end of a message about an unknown name.
func didYouMean(names ...string) string {
	switch len(names) {
	case 0:
		return ""
	case 1:
		return fmt.Sprintf(", did you mean %q?", names[0])
	}
	return `, did you mean one of "` + strings.Join(names, `", "`) + `"?`
}

// keys returns the names of the options that the file may have.
func (c *Config) keys() []string {
	var keys []string
	for _, o := range c.rows {
		if o.inFile() {
			keys = append(keys, o.name)
		}
	}
	return keys
}

// hint is the end of the message about an unknown key: which option it may mean,
// and where that belongs.
func (f *file) hint(s *section, node *ast.MappingValueNode) string {
	key, names := node.Key.GetToken().Value, f.keys()
	serves := func(name string) bool { return name != serversKey && f.row(name).where == serving }
	inside := f.inside(node.Value)
	switch list := strings.Join(inside, ", "); {
	case len(inside) > 0 && s.under != "":
		return fmt.Sprintf(": options have no heading, put %s directly into %s", list, strings.TrimSuffix(s.under, "."))
	case slices.ContainsFunc(inside, serves):
		return ": if it is a server, put it under servers"
	case len(inside) > 0:
		return fmt.Sprintf(": options have no heading, put %s at the top level", list)
	case key == "mcpServers" || key == "server":
		return ": want servers, " + serversForm
	case key == "args":
		return ": put the arguments into command, such as [npx, -y, server]"
	case s.under == "":
		names = append(names, serversKey)
	}
	found := nearest(key, names)
	if name, ok := otherNames[key]; ok {
		found = []string{name}
	}
	hint := didYouMean(found...)
	switch {
	case len(found) != 1:
	case s.under != "" && f.row(found[0]).where == topLevel:
		hint = strings.TrimSuffix(hint, "?") + ", at the top level?"
	case s.under == "" && f.several && serves(found[0]):
		hint = strings.TrimSuffix(hint, "?") + ", in an entry of servers?"
	}
	return hint
}

// inside returns the keys of a mapping that are options.
func (f *file) inside(node ast.Node) []string {
	pairs, _ := mappingOf(node)
	var names []string
	for _, pair := range pairs {
		if key := pair.Key.GetToken().Value; slices.Contains(f.keys(), key) {
			names = append(names, key)
		}
	}
	return names
}
