package clientfile

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"

	"github.com/goccy/go-yaml/ast"
	"github.com/goccy/go-yaml/token"
	"github.com/pelletier/go-toml/v2"

	"github.com/mcp-sse/mcp-sse/cmd/sse-server/internal/tree"
	"github.com/mcp-sse/mcp-sse/internal/clients"
)

// Needed are members of which an entry has at least one: its program, or what clients call its address. The first
// address counts.
var Needed = []string{"command", "url", "httpUrl", "serverUrl"}

var addresses = Needed[1:]

// options are the options of sse-server that clients call otherwise.
var options = map[string]string{
	"headers": "header", "cwd": "dir", "envFile": "env-file", "environment": "env",
	"httpUrl": "url", "serverUrl": "url",
}

// Option returns the option of sse-server that a member of an entry means; the same name if it means none.
func Option(member string) string { return cmp.Or(options[member], member) }

// IsType reports whether clients have this type of servers, and whether it is that of programs.
func IsType(text string) (isType, ofPrograms bool) {
	ofPrograms = text == "stdio" || text == "local"
	ofURLs := []string{"http", "sse", "streamable-http", "streamableHttp", "streamable_http", "remote"}
	return ofPrograms || slices.Contains(ofURLs, text), ofPrograms
}

// OfVSCode returns the part of a file of VS Code that has the key servers, which is also one of ours; nil if the file
// is none. In its settings that part is below the key mcp, elsewhere it is all of the file: then what it asks its user
// for shows whose it is, or an entry that says its type or the arguments of the command apart.
func OfVSCode(root ast.Node) ast.Node {
	members, _ := tree.Members(root)
	if settings := tree.Member(members, "mcp"); settings != nil {
		below, _ := tree.Members(settings)
		servers, isMapping := tree.Member(below, clients.VSCodeKey).(*ast.MappingNode)
		if isMapping && !hasMember(servers, Needed) { // opencode may have one of that name
			return settings
		}
	}
	servers, isMapping := tree.Member(members, clients.VSCodeKey).(*ast.MappingNode)
	if !isMapping {
		return nil
	}
	entries, _ := tree.Members(servers)
	if tree.Member(members, "inputs") != nil || slices.ContainsFunc(entries, func(entry *ast.MappingValueNode) bool {
		return hasMember(entry.Value, []string{"type", "args"})
	}) {
		return root
	}
	return nil
}

// hasMember reports whether a mapping has one of these members.
func hasMember(node ast.Node, names []string) bool {
	members, _ := tree.Members(node)
	return slices.ContainsFunc(names, func(name string) bool { return tree.Member(members, name) != nil })
}

// Written is an entry as a client's file has it.
type Written struct {
	Name  *token.Token
	IsOff bool
	// IsProgram says that it has a command, and IsServer that it has that or a URL.
	IsProgram, IsServer bool
	Members             []Member
}

// Member is a member of an entry.
type Member struct {
	// Option is the option of sse-server that it means, and Name what the file calls it.
	Option, Name string
	// Values has one, and of a command its arguments too.
	Values []ast.Node
}

// Read returns an entry of a file, in which it is below key, without what other members of it say.
func Read(key string, entry *ast.MappingValueNode) (w Written, err error) {
	w.Name = entry.Key.GetToken()
	members, ok := tree.Members(entry.Value)
	if !ok {
		return w, tree.Errorf(entry.Value.GetToken(),
			`want a mapping with command or url, such as {"command": "npx", "args": ["-y", "server"]}`)
	}
	names, values := []string{}, map[string]ast.Node{}
	add := func(name string, value ast.Node) {
		if _, isNull := value.(*ast.NullNode); !isNull {
			names, values[name] = append(names, name), value
		}
	}
	for _, member := range members {
		name := member.Key.GetToken().Value
		program, ok := member.Value.(*ast.MappingNode)
		if name != "command" || !ok {
			add(name, member.Value)
			continue
		}
		for _, part := range program.Values { // the older form of Zed: path, args and env
			name := part.Key.GetToken().Value
			add(cmp.Or(map[string]string{"path": "command"}[name], name), part.Value)
		}
	}
	has := func(name string) bool { return values[name] != nil }
	is := func(name, want string) bool { return has(name) && values[name].GetToken().Value == want }
	w.IsOff = is("disabled", "true") || is("enabled", "false")
	w.IsProgram, w.IsServer = has("command"), slices.ContainsFunc(Needed, has)
	for _, name := range names {
		one := Member{Option(name), name, []ast.Node{values[name]}}
		switch before := addresses[:max(0, slices.Index(addresses, name))]; {
		case name == "disabled", name == "enabled", name == "args" && w.IsProgram: // the command has it
		case slices.ContainsFunc(before, has), name == "environment" && has("env"):
		case name == "command" && has("args"):
			one.Values = append(one.Values, values["args"])
			fallthrough
		default:
			w.Members = append(w.Members, one)
		}
	}
	if key == clients.OpencodeKey {
		ast.Walk(asOthers{}, entry.Value)
	}
	return w, nil
}

// errNoServers says that a file of TOML has no servers of Codex.
var errNoServers = errors.New("it has no table [mcp_servers.NAME], as the file of Codex has; " +
	"a file of options is written in YAML or JSON")

// FromTOML returns Codex's file in JSON, with headers as others write them. It fails with errNoServers if it has none.
func FromTOML(data []byte) ([]byte, error) {
	var file map[string]any
	tables, err := tablesIn(data)
	if err == nil {
		err = toml.Unmarshal(data, &file)
	}
	if err != nil {
		first, _, _ := strings.Cut(err.Error(), "\n")
		return nil, errors.New(first)
	}
	if len(tables) == 0 {
		return nil, errNoServers
	}
	for _, members := range tables {
		headers := map[string]any{}
		if given, ok := members["http_headers"].(map[string]any); ok {
			maps.Copy(headers, given)
		}
		if variables, ok := members["env_http_headers"].(map[string]any); ok {
			for name, variable := range variables {
				headers[name] = fmt.Sprintf("${%v}", variable)
			}
		}
		if variable, ok := members["bearer_token_env_var"]; ok {
			headers["Authorization"] = fmt.Sprintf("Bearer ${%v}", variable)
		}
		for _, name := range []string{"http_headers", "env_http_headers", "bearer_token_env_var"} {
			delete(members, name)
		}
		if len(headers) > 0 {
			members["headers"] = headers
		}
	}
	file[clients.CodexKey] = tables
	return json.Marshal(file)
}

// asOthers writes the references of opencode to variables of the environment as other clients do.
type asOthers struct{}

var ofOpencode = regexp.MustCompile(`(^|[^$])\{env:([A-Za-z0-9_]+)\}`)

func (v asOthers) Visit(node ast.Node) ast.Visitor {
	if text, ok := node.(*ast.StringNode); ok {
		text.Token.Value = ofOpencode.ReplaceAllString(text.Token.Value, "$1$${$2}")
	}
	return v
}
