package config

import (
	"errors"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"unicode"

	"github.com/goccy/go-yaml/ast"
	"golang.org/x/text/unicode/norm"

	"github.com/mcp-sse/mcp-sse/cmd/sse-server/internal/clientfile"
	"github.com/mcp-sse/mcp-sse/cmd/sse-server/internal/tree"
)

// isJSON reports whether the file is in JSON by its name.
func (c *Config) isJSON() bool {
	return slices.Contains([]string{".json", ".jsonc"}, filepath.Ext(c.Config))
}

// isTOML reports whether the file is in TOML by its name, as that of Codex.
func (c *Config) isTOML() bool { return filepath.Ext(c.Config) == ".toml" }

// readClientServers adds the entries of a key of a client's file.
func (c *Config) readClientServers(parent string, node ast.Node) error {
	want := parent +
		`: want a mapping of names to servers, such as {"docs": {"command": "npx", "args": ["-y", "server"]}}`
	before := len(c.Servers)
	err := c.readEntries(node, want,
		func(entry *ast.MappingValueNode) error { return c.readClientServer(parent, entry) })
	if err == nil && len(c.Servers) == before {
		err = c.at(node.GetToken(), "%s: all servers are disabled", parent)
	}
	return err
}

// warnOfType warns of a type of server that contradicts what an entry has.
func (c *Config) warnOfType(node ast.Node, isProgram bool) {
	has, of := "url", node.GetToken()
	if isProgram {
		has = commandKey
	}
	if isType, ofPrograms := clientfile.IsType(of.Value); isType && isProgram != ofPrograms {
		c.warn("%v", c.at(of, "type: %s is ignored, as there is a %s", of.Value, has))
	}
}

// readClientServer adds one entry of such a key, unless it is disabled.
func (c *Config) readClientServer(parent string, entry *ast.MappingValueNode) error {
	written, err := clientfile.Read(parent, entry)
	if wrong, ok := errors.AsType[*tree.Error](err); ok {
		return c.at(wrong.Place, "%s", wrong.Text)
	}
	switch {
	case written.IsOff:
		c.warn("%v", c.at(written.Name, "%s.%s is left out: it is disabled in the file", parent, written.Name.Value))
		return nil
	case !written.IsServer:
		var names []string
		for _, member := range written.Members {
			names = append(names, member.Name)
		}
		return c.at(written.Name, "%s.%s: want command or url%s", parent, written.Name.Value,
			suggestionOf(names, clientfile.Needed))
	}
	s, err := c.addServer(pathName(written.Name.Value), parent, written.Name)
	for _, member := range written.Members {
		if err == nil {
			err = c.readMember(s, member, written.IsProgram)
		}
	}
	return err
}

// ownerOf returns whose the file is: a client's if it has the name of one or a key of theirs, whatever the ending and
// the form of its servers.
func (c *Config) ownerOf(root ast.Node) owner {
	members, _ := tree.Members(root)
	isOfClient := c.isOfVSCode || clientfile.HasNameOfClient(c.Config) ||
		slices.ContainsFunc(members, func(member *ast.MappingValueNode) bool {
			key := member.Key.GetToken().Value
			return key != serversKey && slices.Contains(entriesKeys, key)
		})
	switch {
	case !isOfClient:
		return ours
	case clientfile.IsOfUser(c.Config, c.home):
		return ofClient
	}
	return ofProject
}

// readMember sets the option of s that a member of a client's entry means.
func (c *Config) readMember(s *Server, member clientfile.Member, isProgram bool) error {
	flag, kind := s.option(member.Option), ofURL
	if isProgram {
		kind = OfCommand
	}
	switch {
	case member.Name == "type":
		c.warnOfType(member.Values[0], isProgram)
		return nil
	case flag == nil, !slices.Contains([]string{"", kind}, flag.Tag.Get("for")),
		member.Name == "envFile" && reference.MatchString(member.Values[0].GetToken().Value):
		// Such a reference is ${workspaceFolder}, which init knows.
		c.ignored = append(c.ignored, member.Name)
		return nil
	}
	return c.setFrom(s, flag, member.Name, member.Values...)
}

// notInPath matches what the name of a server in a path cannot have.
var notInPath = regexp.MustCompile(`[^a-z0-9_]`)

// pathName returns a name of a client's configuration as one that a path can have, which
// may be empty. A letter with a mark is that letter.
func pathName(name string) string {
	name = strings.Map(func(r rune) rune {
		if unicode.Is(unicode.Mn, r) {
			return -1
		}
		return r
	}, norm.NFD.String(name))
	name = strings.TrimLeft(notInPath.ReplaceAllString(strings.ToLower(name), "-"), "-_")
	return strings.TrimRight(name[:min(len(name), 64)], "-")
}
