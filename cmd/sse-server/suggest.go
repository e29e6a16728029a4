package main

import (
	"fmt"
	"slices"
	"strings"

	"github.com/agnivade/levenshtein"
	"github.com/alecthomas/kong"
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

// otherNames are the names that other servers have for an option of ours.
var otherNames = map[string]string{
	"port": "addr", "p": "addr", "host": "addr", "listen": "addr", "bind": "addr", "cert": "tls-cert", "key": "tls-key",
}

// nearest returns the names that an unknown one may mean: the same in another
// spelling, else those with the fewest letters that differ, else those of which it
// is a part.
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

// kebab is a name of another spelling in ours: maxConnections, max_connections and
// SSE_SERVER_MAX_CONNECTIONS are max-connections.
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
func didYouMean(names []string) string {
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

// unknownFlag is the message about an argument that names no flag.
func unknownFlag(parser *kong.Kong, arg string) string {
	flag, _, _ := strings.Cut(arg, "=")
	message := "unknown flag " + flag
	name := strings.TrimLeft(flag, "-")
	if meant, ok := otherNames[name]; ok {
		if meant == "addr" {
			meant += " HOST:PORT"
		}
		return message + didYouMean([]string{"--" + meant})
	}
	var names []string
	for _, f := range parser.Model.Flags {
		names = append(names, f.Name)
		if f.Tag.Negatable != "" {
			names = append(names, "no-"+f.Name)
		}
	}
	found := nearest(name, append(names, commandKey, "args"))
	if slices.Contains(found, commandKey) || slices.Contains(found, "args") {
		return message + ": the command to serve goes after --, as in: sse-server [flags] -- npx -y server"
	}
	for i := range found {
		found[i] = "--" + found[i]
	}
	return message + didYouMean(found)
}

// fileKeys are the keys of the configuration file.
type fileKeys struct {
	names    []string        // of the options and the command
	topLevel map[string]bool // those that may not stand in an entry of servers
	serving  map[string]bool // those that stand only there, if there is one
}

func newFileKeys(flags []*kong.Flag) fileKeys {
	keys := fileKeys{names: []string{commandKey}, topLevel: map[string]bool{}, serving: map[string]bool{commandKey: true}}
	for _, flag := range flags {
		if inFile(flag) {
			keys.names = append(keys.names, flag.Name)
			keys.topLevel[flag.Name], keys.serving[flag.Name] = !perServer(flag), whatToServe(flag)
		}
	}
	return keys
}

func (k fileKeys) has(key string) bool { return slices.Contains(k.names, key) }

// hint is the end of the message about an unknown key: the option that is meant,
// and where it stands. The keys of several servers are under a prefix, as in
// "servers.docs."; several says that the file has such.
func (k fileKeys) hint(node *ast.MappingValueNode, under string, several bool) string {
	key := node.Key.GetToken().Value
	if inside := k.inside(node.Value); len(inside) > 0 {
		return k.headingHint(inside, strings.TrimSuffix(under, "."))
	}
	switch key {
	case "mcpServers", "server":
		return ": want servers, " + serversForm
	case "args":
		return ": put the arguments into command, such as [npx, -y, server]"
	}
	names := k.names
	if under == "" {
		names = append(slices.Clip(names), serversKey)
	}
	found := nearest(key, names)
	if name, ok := otherNames[key]; ok {
		found = []string{name}
	}
	hint := didYouMean(found)
	if len(found) != 1 {
		return hint
	}
	switch {
	case under != "" && k.topLevel[found[0]]:
		hint = strings.TrimSuffix(hint, "?") + ", at the top level?"
	case under == "" && several && k.serving[found[0]]:
		hint = strings.TrimSuffix(hint, "?") + ", in an entry of servers?"
	}
	return hint
}

// headingHint is the hint for a key over options, in an entry of servers or, if
// the place is "", at the top level.
func (k fileKeys) headingHint(inside []string, place string) string {
	list := strings.Join(inside, ", ")
	switch {
	case place != "":
		return fmt.Sprintf(": options have no heading, put %s directly into %s", list, place)
	case slices.ContainsFunc(inside, func(name string) bool { return k.serving[name] }):
		return ": if it is a server, put it under servers"
	}
	return fmt.Sprintf(": options have no heading, put %s at the top level", list)
}

// inside returns the keys of a mapping that are options.
func (k fileKeys) inside(node ast.Node) []string {
	pairs, _ := mappingOf(node)
	var names []string
	for _, pair := range pairs {
		if key := pair.Key.GetToken().Value; k.has(key) {
			names = append(names, key)
		}
	}
	return names
}
