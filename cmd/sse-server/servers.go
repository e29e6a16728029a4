package main

import (
	"fmt"
	"io"
	"maps"
	"regexp"
	"slices"

	"github.com/alecthomas/kong"
	"github.com/goccy/go-yaml/ast"
)

// serversKey is the key of the file under which several servers stand: a mapping
// of names to options.
const serversKey = "servers"

// serversForm says what its value is.
const serversForm = "a mapping of names to options, such as {docs: {command: [npx, -y, server]}}"

// serverName is what a server may be called; gateway.Options.Name has the same
// rule.
var serverName = regexp.MustCompile(`^[a-z0-9][a-z0-9_-]{0,63}$`)

// reservedNames are routes: a server of that name could be taken for one.
func reservedNames() []string { return []string{"sse", "healthz", "readyz", "metrics", "connections"} }

// fileServer is one of several servers as it stands in the file.
type fileServer struct {
	name   string
	line   int
	values map[string]fileValue
}

// collectServers takes the mapping of servers apart.
func (f *configFile) collectServers(node *ast.MappingValueNode, known fileKeys) []string {
	if _, null := node.Value.(*ast.NullNode); null {
		return nil
	}
	pairs, ok := mappingOf(node.Value)
	if !ok || len(pairs) == 0 {
		return []string{fmt.Sprintf("%s:%d: %s: want %s", f.path, node.Key.GetToken().Position.Line, serversKey, serversForm)}
	}
	var faults []string
	for _, pair := range pairs {
		key := pair.Key.GetToken()
		s := fileServer{name: key.Value, line: key.Position.Line, values: map[string]fileValue{}}
		options, ok := mappingOf(pair.Value)
		if _, null := pair.Value.(*ast.NullNode); !ok && !null {
			faults = append(faults, fmt.Sprintf("%s:%d: %s.%s: want a mapping of option names to values", f.path, s.line, serversKey, s.name))
			continue
		}
		for _, option := range options {
			faults = append(faults, f.collectPair(option, serversKey+"."+s.name+".", known, s.values)...)
		}
		f.servers = append(f.servers, s)
	}
	return faults
}

// perServer says whether an option may stand in one of several servers.
func perServer(flag *kong.Flag) bool {
	switch flag.Group.Key {
	case "child", "remote", "mcp", "sessions", "times", "limits":
		return flag.Name != "prefix"
	}
	return flag.Name == "demo"
}

// addServers makes the configuration of each server of the file: its own options
// over those of the daemon, wherever these were given. It returns what is wrong
// with single options.
func (l *loaded) addServers(file configFile) []string {
	var faults []string
	for _, s := range file.servers {
		at := fmt.Sprintf("%s:%d: %s.%s", file.path, s.line, serversKey, s.name)
		switch {
		case !serverName.MatchString(s.name):
			faults = append(faults, at+": want a name of at most 64 characters of a-z, 0-9, _ and -, with a letter or a digit first")
		case slices.Contains(reservedNames(), s.name):
			faults = append(faults, at+": want another name, as this is that of a route")
		}
		entry, wrong, err := l.newServer(file, s)
		if err != nil {
			return append(faults, err.Error())
		}
		entry.origin[serversKey] = at
		faults = append(faults, wrong...)
		l.servers = append(l.servers, entry)
	}
	return faults
}

func (l *loaded) newServer(file configFile, s fileServer) (*loaded, []string, error) {
	entry := &loaded{server: s.name, commandInFile: true, origin: maps.Clone(l.origin), own: map[string]bool{}, lookupEnv: l.lookupEnv}
	parser, err := newParser(&entry.config, &sources{}, io.Discard)
	if err != nil {
		return nil, nil, fmt.Errorf("build options of a server: %w", err)
	}
	entry.flags = parser.Model.Flags
	var faults []string
	command, want := takeCommand(s.values)
	if entry.command, entry.commandFaulty = command, want != ""; want != "" {
		faults = append(faults, file.path+":"+want)
	}
	for i, flag := range entry.flags {
		value, given := s.values[flag.Name]
		if given && !perServer(flag) {
			faults = append(faults, file.at(value)+": want it at the top level, as it is about all servers")
		}
		var err error
		switch {
		case given && perServer(flag):
			entry.own[flag.Name], entry.origin[flag.Name] = true, file.at(value)
			err = flag.Parse(kong.ScanFromTokens(kong.Token{Type: kong.FlagValueToken, Value: value}), flag.Target)
		case whatToServe(flag):
			err = flag.Reset() // to its default
		default:
			flag.Target.Set(l.flags[i].Target)
		}
		if err != nil {
			return nil, nil, err
		}
	}
	entry.Prefix.value = l.Prefix.value + "/" + s.name
	return entry, append(faults, entry.faults()...), nil
}

// checkServers refuses what says what to serve beside servers.
func (l *loaded) checkServers(add addFault) {
	const want = "want it in an entry of servers, each of which says what it serves"
	if len(l.command) > 0 {
		add("command %q: "+want, l.command[0])
	}
	for _, flag := range l.flags {
		if whatToServe(flag) && l.given(flag.Name) && (flag.Name != "demo" || l.Demo.value) {
			add("%s: "+want, l.name(flag.Name))
		}
	}
}

// whatToServe says whether an option cannot be given for all servers: it is what
// one serves, or a secret for it.
func whatToServe(flag *kong.Flag) bool { return flag.Group.Key == "remote" || flag.Name == "demo" }

// each returns the configurations of all servers: of one without a name, or of
// those of the file.
func (l *loaded) each() []*loaded {
	if len(l.servers) > 0 {
		return l.servers
	}
	return []*loaded{l}
}
