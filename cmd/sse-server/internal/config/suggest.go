package config

import (
	"fmt"
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

// kebab writes a name of another spelling as ours: maxConnections, max_connections
// and SSE_SERVER_MAX_CONNECTIONS are max-connections.
func kebab(name string) string {
	name = strings.TrimPrefix(strings.TrimLeft(name, "-"), envName(""))
	if strings.ToUpper(name) == name {
		name = strings.ToLower(name)
	}
	var b strings.Builder
	for i, r := range name {
		switch {
		case r == '_':
			r = '-'
		case r >= 'A' && r <= 'Z':
			if i > 0 {
				b.WriteByte('-')
			}
			r += 'a' - 'A'
		}
		b.WriteRune(r)
	}
	return b.String()
}

// didYouMean is the end of a message about an unknown name.
func didYouMean(names ...string) string {
	quoted := make([]string, len(names))
	for i, name := range names {
		quoted[i] = fmt.Sprintf("%q", name)
	}
	switch len(quoted) {
	case 0:
		return ""
	case 1:
		return ", did you mean " + quoted[0] + "?"
	}
	return ", did you mean one of " + strings.Join(quoted, ", ") + "?"
}

// keys returns the keys of the file that names of options, and the command, are.
func (c *Config) keys() []string {
	keys := []string{commandKey}
	for _, o := range c.rows {
		if o.inFile() {
			keys = append(keys, o.name)
		}
	}
	return keys
}

func (c *Config) isKey(name string) bool { return slices.Contains(c.keys(), name) }

// belongs reports whether a key may be given in a place only. The command says
// what to serve.
func (c *Config) belongs(key string, where place) bool {
	if key == commandKey {
		return where == serving
	}
	return c.row(key).where == where
}

// hint is the end of the message about an unknown key: which option it may mean,
// and where that belongs.
func (f *file) hint(s *section, node *ast.MappingValueNode) string {
	key := node.Key.GetToken().Value
	if inside := f.inside(node.Value); len(inside) > 0 {
		return f.headingHint(inside, strings.TrimSuffix(s.under, "."))
	}
	switch key {
	case "mcpServers", "server":
		return ": want servers, " + serversForm
	case "args":
		return ": put the arguments into command, such as [npx, -y, server]"
	}
	names := f.keys()
	if s.under == "" {
		names = append(names, serversKey)
	}
	found := nearest(key, names)
	if name, ok := otherNames[key]; ok {
		found = []string{name}
	}
	hint := didYouMean(found...)
	if len(found) != 1 || found[0] == serversKey {
		return hint
	}
	switch {
	case s.under != "" && f.belongs(found[0], topLevel):
		hint = strings.TrimSuffix(hint, "?") + ", at the top level?"
	case s.under == "" && f.several && f.belongs(found[0], serving):
		hint = strings.TrimSuffix(hint, "?") + ", in an entry of servers?"
	}
	return hint
}

// headingHint is the hint for a key over options, in an entry of servers or, if
// entry is "", at the top level.
func (f *file) headingHint(inside []string, entry string) string {
	list := strings.Join(inside, ", ")
	switch {
	case entry != "":
		return fmt.Sprintf(": options have no heading, put %s directly into %s", list, entry)
	case slices.ContainsFunc(inside, func(key string) bool { return f.belongs(key, serving) }):
		return ": if it is a server, put it under servers"
	}
	return fmt.Sprintf(": options have no heading, put %s at the top level", list)
}

// inside returns the keys of a mapping that are options.
func (f *file) inside(node ast.Node) []string {
	pairs, _ := mappingOf(node)
	var names []string
	for _, pair := range pairs {
		if key := pair.Key.GetToken().Value; f.isKey(key) {
			names = append(names, key)
		}
	}
	return names
}
