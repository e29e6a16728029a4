package config

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/goccy/go-yaml/ast"
	"github.com/goccy/go-yaml/token"

	"github.com/mcp-sse/mcp-sse/cmd/sse-server/internal/tree"
	"github.com/mcp-sse/mcp-sse/compose"
	"github.com/mcp-sse/mcp-sse/internal/clients"
	"github.com/mcp-sse/mcp-sse/internal/httpcheck"
	"github.com/mcp-sse/mcp-sse/internal/merge"
	"github.com/mcp-sse/mcp-sse/internal/selection"
	"github.com/mcp-sse/mcp-sse/jsonrpc"
)

// viewsKey is the key of the file for views.
const viewsKey = "views"

// searchKey is the key of a view for its search.
const searchKey = "search"

// rootName is the name of the view of all servers.
const rootName = "mcp"

// View is one URL for several servers: an entry of the key views.
type View struct {
	*Server // its name, and the options of its gateway: those for all servers, or its own
	Title   string
	For     string   // a client whose limits are kept; empty: none
	Search  bool     // tools are found, not listed
	Members []Member // in the order of the file

	ofAll bool
}

// Member is a server of a view, with the rules for what the view has of it.
type Member struct {
	Server         *Server
	compose.Member // without Upstream
}

// keysOfViews are those of a view that are no options of its gateway, and keysOfMembers those of its servers.
var (
	keysOfViews   = []string{"title", "for", searchKey, serversKey}
	keysOfMembers = []string{"include", "exclude", "only", "prefix", "rename", "describe", "prompts", "resources"}
)

// Endpoints returns the configuration of all that has a URL: the views, then the servers.
func (c *Config) Endpoints() (all []*Server) {
	for _, v := range c.Views {
		all = append(all, v.Server)
	}
	return append(all, c.Each()...)
}

// Pasted returns those of Endpoints that a client needs to reach each server once: the views, and the servers that no
// view has.
func (c *Config) Pasted() (all []*Server) {
	inView := make(map[*Server]bool)
	for _, v := range c.Views {
		for _, m := range v.Members {
			inView[m.Server] = true
		}
	}
	return slices.DeleteFunc(c.Endpoints(), func(s *Server) bool { return inView[s] })
}

// named returns the name of a server or view in the arguments of tools or check; empty: there is none.
func (c *Config) named() string {
	return cmp.Or(c.Tools.Name, c.Check.Name, c.LogIn.Target, c.LogOut.Target)
}

// Chosen returns the servers and views that the arguments of tools or check mean, each of which has a URL: all, or the
// one that they name.
func (c *Config) Chosen() (servers []*Server, views []*View) {
	name := c.named()
	if name == "" {
		return c.Each(), c.Views
	}
	for _, s := range c.Each() {
		isCalled := s.Name != "" && s.Name == pathName(name) // clients' files have other names
		if isCalled || c.Title(s) == name {
			servers = append(servers, s)
		}
	}
	for _, v := range c.Views {
		if v.Name == name {
			views = append(views, v)
		}
	}
	return servers, views
}

// ChosenServers returns the chosen servers and those of the chosen views, in the order of the file.
func (c *Config) ChosenServers() []*Server {
	servers, views := c.Chosen()
	return slices.DeleteFunc(slices.Clone(c.Each()), func(s *Server) bool {
		isMember := func(v *View) bool {
			return slices.ContainsFunc(v.Members, func(m Member) bool { return m.Server == s })
		}
		return !slices.Contains(servers, s) && !slices.ContainsFunc(views, isMember)
	})
}

// checkNamed refuses a name in the arguments of tools or check that no server or view has.
func (c *Config) checkNamed() error {
	if servers, views := c.Chosen(); len(servers)+len(views) > 0 {
		return nil
	}
	var names []string
	for _, s := range c.Endpoints() {
		names = append(names, c.Title(s))
	}
	hint := ""
	if len(c.Servers) == 0 {
		hint = fmt.Sprintf("; the command to serve goes after --, as in: sse-server %s-- %s", c.verb,
			asTyped([]string{c.named()}))
	}
	return fmt.Errorf("%s: no server or view is called %q%s want one of %s%s", c.Does, c.named(),
		cmp.Or(DidYouMean(c.named(), names), ";"), strings.Join(names, ", "), hint)
}

// Composed returns the members of the view and its options, as package compose has them. upstream returns that of a
// server.
func (v *View) Composed(upstream func(server string) jsonrpc.Dialer) (members []compose.Member, o compose.Options) {
	for _, m := range v.Members {
		one := m.Member
		one.Upstream, one.Allow = upstream(m.Server.Name), v.allow(m.Server)
		members = append(members, one)
	}
	return members, compose.Options{Name: v.Name, Title: v.Title, For: v.For, Search: v.Search}
}

// IsOfAll reports whether it is the view of all servers, which no file names.
func (v *View) IsOfAll() bool { return v.ofAll }

// addViewOfAll adds the view of all servers at the path of a single one: where there are several, nobody else can reach
// them, and the file says nothing about views. A server of its name keeps the path. On stdio it is what several servers
// are served as.
func (c *Config) addViewOfAll() {
	isTaken := func(s *Server) bool { return slices.Contains(namesOfAll, s.Name) }
	switch {
	case len(c.Servers) < 2, c.hasViews, c.Shared != "", c.Connect != nil:
	case c.Does != "stdio" && (c.reachesOthers() || slices.ContainsFunc(c.Servers, isTaken)):
	case len(c.Servers) > merge.MaxMembers:
		c.warn("%s: it has %d servers, and a view has at most %d, so there is none of all: name views of those that "+
			"belong together", c.Config, len(c.Servers), merge.MaxMembers)
	default:
		v := c.newView(rootName)
		v.ofAll = true
		for _, s := range c.Servers {
			m := Member{Server: s}
			m.Name, m.Prefix = s.Name, prefixOf(s.Name)
			v.Members = append(v.Members, m)
		}
		c.Views = append(c.Views, v)
	}
}

// reachesOthers reports whether somebody on another machine may reach the servers: at the address itself, or through a
// proxy on this machine, which the options for one give away.
func (c *Config) reachesOthers() bool {
	isOther := func(host string) bool { return !httpcheck.IsLoopback(host) }
	return isOther(string(c.Addr)) || slices.ContainsFunc(c.AllowedHosts, isOther) || len(c.TrustedProxies) > 0 ||
		c.PublicURL != "" || c.AuthTokensFile != "" || len(c.OAuth) > 0
}

// namesOfAll are names of servers beside which there is no view of all.
var namesOfAll = []string{rootName, "login"}

// prefixOf returns a prefix for the tools of a server whose name cannot be theirs in a view; nil if it can.
func prefixOf(server string) *string {
	if !merge.MayMeet(server) && len(server)+len("__") <= merge.MaxPrefix {
		return nil
	}
	for strings.Contains(server, "__") {
		server = strings.ReplaceAll(server, "__", "_")
	}
	return new(strings.TrimRight(server[:min(len(server), merge.MaxPrefix-len("__"))], "_") + "__")
}

// DropViewOfAll removes the view of all servers: sockets that somebody else has opened may be reached by others.
func (c *Config) DropViewOfAll() { c.Views = slices.DeleteFunc(c.Views, (*View).IsOfAll) }

// ViewOfStdio returns the view that is served on stdin and stdout; nil: a server is.
func (c *Config) ViewOfStdio() *View {
	if c.Does == "stdio" && c.Connect == nil && len(c.Views) == 1 {
		return c.Views[0]
	}
	return nil
}

// text is all that the file says of the view's servers, in one form.
func (v *View) text() string {
	var all strings.Builder
	fmt.Fprintf(&all, "%q %q", v.Title, v.For)
	if v.Search {
		all.WriteString(" search")
	}
	for _, m := range v.Members {
		fmt.Fprintf(&all, "\n%q %q %q %q %q %q", m.Name, m.Include, m.Exclude, m.Only, m.Prompts, m.Resources)
		if m.Prefix != nil {
			fmt.Fprintf(&all, " prefix %q", *m.Prefix)
		}
		// Maps are printed in the order of their keys. A list that is nil is not one that is empty.
		fmt.Fprintf(&all, " %q %q", m.Rename, m.Describe)
		fmt.Fprintf(&all, " %t %t %t", m.Include == nil, m.Prompts == nil, m.Resources == nil)
	}
	return all.String()
}

// readViews adds the entries of the key views.
func (c *Config) readViews(node ast.Node) error {
	entries, ok := tree.Members(node)
	if !ok {
		return c.at(node.GetToken(),
			"views: want a mapping of names to views, such as {team: {servers: {github: {}, memory: {}}}}")
	}
	c.hasViews = true
	if len(entries) > 0 && len(c.Servers) == 0 {
		return c.at(entries[0].Key.GetToken(), "views: the file has no servers that a view could have: "+
			"name them below the key servers, such as servers: {github: {command: [github-mcp-server, stdio]}}")
	}
	var names []string
	for _, entry := range entries {
		names = append(names, entry.Key.GetToken().Value)
	}
	for _, entry := range entries {
		if err := c.readView(entry, names); err != nil {
			return err
		}
	}
	return nil
}

// readView adds a view. views are the names of all.
func (c *Config) readView(entry *ast.MappingValueNode, views []string) error {
	key := entry.Key.GetToken()
	where := viewsKey + "." + key.Value
	options, ok := tree.Members(entry.Value)
	if !ok {
		return c.at(entry.Value.GetToken(), "%s: want options, such as {servers: {%s: {}}}", where, c.Servers[0].Name)
	}
	v, err := c.addView(key, where)
	for _, option := range options {
		switch name := option.Key.GetToken().Value; {
		case err != nil:
			return err
		case isNull(option.Value):
		case name == "title":
			v.Title, err = c.textAt(option.Value, where+".title")
		case name == "for":
			err = c.readFor(v, option.Value, where)
		case name == searchKey:
			v.Search, err = c.switchAt(option.Value, where+"."+searchKey)
		case name == serversKey:
			err = c.readMembers(v, option.Value, where+".servers", views)
		default:
			err = c.readOptionOfView(v, option, where)
		}
	}
	switch {
	case err != nil:
		return err
	case v.Search && v.For != "":
		return c.at(key, "%s: for and search exclude each other: with search three tools are listed, which are within "+
			"the limits of each client: remove for", where)
	case len(v.Members) == 0:
		return c.at(key, "%s: name its servers, such as servers: {%s: {}}", where, c.Servers[0].Name)
	case len(v.Members) > merge.MaxMembers:
		return c.at(key, "%s: it has %d servers, and a view has at most %d: make two views of it", where,
			len(v.Members), merge.MaxMembers)
	}
	if err := v.tryToCompose(); err != nil { // the checks above find all that is known to be wrong
		return c.at(key, "%s: %v", where, err)
	}
	return nil
}

// tryToCompose returns what package compose says of the view.
func (v *View) tryToCompose() error {
	_, err := compose.New(v.Composed(func(string) jsonrpc.Dialer { return new(compose.View) }))
	return err
}

// addView adds a view without members. In the file it is key, at the path where.
func (c *Config) addView(key *token.Token, where string) (*View, error) {
	v := c.newView(key.Value)
	v.given[nameKey] = c.at(key, "%s", where).Error()
	if err := c.checkPathName(v.Server); err != nil {
		return nil, err
	}
	isSame := func(s *Server) bool { return s.Name == key.Value }
	switch {
	case slices.Contains(namesOfAll, key.Value):
		return nil, v.refuse(nameKey, "want another name: /%s is a route of sse-server", key.Value)
	case slices.ContainsFunc(c.Servers, isSame):
		return nil, v.refuse(nameKey, "want another name: a server has this one")
	}
	c.Views = append(c.Views, v)
	return v, nil
}

// newView returns a view without members that has what c has for all. Options about servers do not concern it.
func (c *Config) newView(name string) *View {
	s := c.Server
	s.Name, s.view, s.given = name, true, map[string]string{}
	s.Sessions, s.Warm, s.MaxInFlight, s.Remember, s.ForwardHeader = newConfig().Sessions, new(0), 0, false, nil
	s.Description = ""
	s.Include, s.Exclude, s.Only, s.Prompts, s.Resources = nil, nil, "", nil, nil // by the names that servers give
	newParser(&s, &s)
	return &View{Server: &s}
}

// isOfServers are options that say what a server is, how it runs or what is offered of it, beside those of one kind of
// server.
var isOfServers = []string{commandKey, "args", "url", "env-file", "sessions", "warm", "max-in-flight", "include",
	"exclude", "only", "prompts", "resources"}

// readOptionOfView sets an option of the gateway of a view.
func (c *Config) readOptionOfView(v *View, option *ast.MappingValueNode, where string) error {
	key := option.Key.GetToken()
	flag := v.option(key.Value)
	switch {
	case slices.Contains(isOfServers, key.Value), flag != nil && flag.Tag.Get("for") != "":
		return c.at(key, "%s: %s is about a server: write it at the server, below servers", where, key.Value)
	case flag == nil:
		names := slices.Clone(keysOfViews)
		for _, flag := range v.flags {
			if flag.Tag.Get("for") == "" && !slices.Contains(isOfServers, flag.Name) {
				names = append(names, flag.Name)
			}
		}
		return c.at(key, "unknown key %q in %s%s; a view has %s, and the options of sse-server --help-all that are "+
			"about clients", key.Value, where, suggestionOf([]string{key.Value}, names),
			strings.Join(keysOfViews, ", "))
	}
	return c.setFrom(v.Server, flag, key.Value, option.Value)
}

// readFor sets the client that a view is for.
func (c *Config) readFor(v *View, node ast.Node, where string) error {
	name, err := c.textAt(node, where+".for")
	if err != nil {
		return err
	}
	client, known := clients.Named(name)
	if !known {
		names := clients.Names(clients.All)
		hint := cmp.Or(DidYouMean(name, names), ";")
		return c.at(node.GetToken(), "%s.for: no client is called %q%s want one of %s", where, name, hint,
			strings.Join(names, ", "))
	}
	v.For = client.Name
	return nil
}

// readMembers adds the servers of a view. views are the names of all views.
func (c *Config) readMembers(v *View, node ast.Node, where string, views []string) error {
	entries, ok := tree.Members(node)
	if !ok {
		return c.at(node.GetToken(), "%s: want a mapping of the names of servers to rules, such as {%s: {}}", where,
			c.Servers[0].Name)
	}
	places := make(map[string]*token.Token) // by the names of servers
	for _, entry := range entries {
		key := entry.Key.GetToken()
		s, err := c.serverOfView(key, where, views)
		if err != nil {
			return err
		}
		if places[s.Name] != nil {
			return c.at(key, "%s.%s: the server is there twice: remove one of the two", where, key.Value)
		}
		places[s.Name] = key
		if err := c.readMemberOfView(v, s, entry, where+"."+key.Value); err != nil {
			return err
		}
	}
	alone := len(v.Members) == 1
	for _, m := range v.Members {
		mayMeet := !alone && merge.MayMeet(m.Name)
		switch key := places[m.Name]; {
		case m.Prefix != nil:
		case mayMeet:
			return c.at(key, "%s.%s: names of tools begin with the name of the server and __, so with __ in it, "+
				"or _ at its end, those of two servers could be the same: give the server another name, "+
				"or a prefix here, such as {prefix: %s_}", where, key.Value,
				strings.Trim(strings.ReplaceAll(m.Name, "__", "_"), "_"))
		case len(m.Name)+len("__") > merge.MaxPrefix:
			return c.at(key, "%s.%s: names of tools begin with the name of the server and __, which are over %d "+
				"characters: give the server a shorter name, or a prefix here, such as {prefix: %s_}", where, key.Value,
				merge.MaxPrefix, m.Name[:8])
		}
	}
	c.warnOfNames(v, entries, where)
	return nil
}

// warnOfNames warns of new names of tools that two servers of a view have. The entries are those of its servers.
func (c *Config) warnOfNames(v *View, entries []*ast.MappingValueNode, where string) {
	before := make(map[string]string) // the tools, by their final names
	for i, entry := range entries {
		m := &v.Members[i]
		prefix := m.Name + "__"
		if m.Prefix != nil {
			prefix = *m.Prefix
		}
		rules, _ := selection.Compile(selection.Spec{Include: m.Include, Exclude: m.Exclude}) // they have been read
		options, _ := tree.Members(entry.Value)
		tools, _ := tree.Members(tree.Member(options, "rename"))
		for _, tool := range tools {
			own := tool.Key.GetToken().Value
			final := merge.FinalName(len(v.Members) == 1 && m.Prefix == nil, prefix, m.Rename[own])
			switch first, isTaken := before[final]; {
			case !rules.Name(selection.Tools, own).Allowed():
			case isTaken:
				place := where + "." + entry.Key.GetToken().Value + ".rename." + own
				c.warn("%v", c.at(tool.Value.GetToken(), "%s: %s has the name %s, as it comes first, so this "+
					"tool is left out: want another name", place, first, final))
			default:
				before[final] = own + " of " + m.Name
			}
		}
	}
}

// serverOfView returns the server that an entry of a view names.
func (c *Config) serverOfView(key *token.Token, where string, views []string) (*Server, error) {
	var names []string
	for _, s := range c.Servers {
		if s.Name == key.Value || s.Name == pathName(key.Value) { // clients' files have other names
			return s, nil
		}
		names = append(names, s.Name)
	}
	if slices.Contains(views, key.Value) {
		return nil, c.at(key, "%s.%s: a view cannot be in a view: name its servers", where, key.Value)
	}
	return nil, c.at(key, "%s.%s: the file has no such server%s want one of %s", where, key.Value,
		cmp.Or(DidYouMean(key.Value, names), ";"), strings.Join(names, ", "))
}

// readMemberOfView adds a server to a view, with its rules.
func (c *Config) readMemberOfView(v *View, s *Server, entry *ast.MappingValueNode, where string) error {
	rules, ok := tree.Members(entry.Value)
	if !ok {
		return c.at(entry.Value.GetToken(), `%s: want rules, such as {include: ["get_*"]}, or {} for all that the server `+
			"has", where)
	}
	m := Member{Server: s}
	m.Name = s.Name
	for _, rule := range rules {
		if isNull(rule.Value) {
			continue
		}
		if err := c.readRule(&m, rule, where); err != nil {
			return err
		}
	}
	for _, rule := range rules {
		if err := c.checkExcluded(m, rule, where); err != nil {
			return err
		}
	}
	v.Members = append(v.Members, m)
	return nil
}

// readRule sets a rule of a member.
func (c *Config) readRule(m *Member, rule *ast.MappingValueNode, where string) (err error) {
	key, node := rule.Key.GetToken(), rule.Value
	where += "." + key.Value
	switch key.Value {
	case "include":
		m.Include, err = c.globsAt(node, where, selection.Tools)
	case "exclude":
		m.Exclude, err = c.globsAt(node, where, selection.Tools)
	case "prompts":
		m.Prompts, err = c.globsAt(node, where, selection.Prompts)
	case "resources":
		m.Resources, err = c.globsAt(node, where, selection.Resources)
	case "only":
		var word string
		word, err = c.textAt(node, where)
		if err == nil && (word == "" || m.Only.UnmarshalText([]byte(word)) != nil) {
			err = c.at(node.GetToken(), "%s: want %v or %v, but got %q", where, compose.OnlyReadOnly,
				compose.OnlyNonDestructive, word)
		}
	case "prefix":
		var prefix string
		prefix, err = c.textAt(node, where)
		if n := utf8.RuneCountInString(prefix); err == nil && n > merge.MaxPrefix {
			err = c.at(node.GetToken(), "%s: it has %d characters, and %d are allowed", where, n, merge.MaxPrefix)
		}
		m.Prefix = &prefix
	case "rename":
		m.Rename, err = c.readRename(node, where)
	case "describe":
		m.Describe, err = c.textsByName(node, where, `{search: "Searches the web."}`)
	default:
		err = c.at(key, "unknown key %q in %s%s; a server of a view has %s", key.Value,
			strings.TrimSuffix(where, "."+key.Value), suggestionOf([]string{key.Value}, keysOfMembers),
			strings.Join(keysOfMembers, ", "))
	}
	return err
}

// readRename returns the new names of tools.
func (c *Config) readRename(node ast.Node, where string) (map[string]string, error) {
	rename, err := c.textsByName(node, where, "{brave_web_search: web_search}")
	if err != nil {
		return nil, err
	}
	before := make(map[string]string) // own names, by the new ones
	entries, _ := tree.Members(node)
	for _, entry := range entries {
		own, place := entry.Key.GetToken().Value, entry.Value.GetToken()
		name := rename[own]
		if !merge.IsNewName(name) {
			return nil, c.at(place, "%s.%s: want a name of up to 64 letters, digits, _ and -, but got %q", where, own,
				name)
		}
		if other, isTaken := before[name]; isTaken {
			return nil, c.at(place, "%s.%s: %s gets the same name: want another one", where, own, other)
		}
		before[name] = own
	}
	return rename, nil
}

// checkExcluded refuses a new name or description of a tool that is left out by its whole name.
func (c *Config) checkExcluded(m Member, rule *ast.MappingValueNode, where string) error {
	key := rule.Key.GetToken().Value
	if key != "rename" && key != "describe" {
		return nil
	}
	entries, _ := tree.Members(rule.Value)
	for _, entry := range entries {
		if tool := entry.Key.GetToken(); slices.Contains(m.Exclude, tool.Value) {
			return c.at(tool, "%s.%s.%s: exclude leaves this tool out: remove one of the two", where, key, tool.Value)
		}
	}
	return nil
}

// globsAt returns a list of globs over names of a kind. It is not nil.
func (c *Config) globsAt(node ast.Node, where string, kind selection.Kind) ([]string, error) {
	nodes := []ast.Node{node}
	if list, isList := node.(*ast.SequenceNode); isList {
		nodes = list.Values
	}
	globs := []string{}
	for _, one := range nodes {
		glob, err := c.textAt(one, where)
		if err != nil {
			return nil, err
		}
		rule := map[selection.Kind]selection.Spec{
			selection.Tools: {Include: []string{glob}}, selection.Prompts: {Prompts: []string{glob}},
			selection.Resources: {Resources: []string{glob}},
		}[kind]
		if _, err := selection.Compile(rule); err != nil {
			_, why, _ := strings.Cut(err.Error(), ": ") // after the key
			return nil, c.at(one.GetToken(), "%s: %s", where, why)
		}
		globs = append(globs, glob)
	}
	return globs, nil
}

// textsByName returns the texts of a mapping, by their names.
func (c *Config) textsByName(node ast.Node, where, such string) (map[string]string, error) {
	entries, ok := tree.Members(node)
	if !ok {
		return nil, c.at(node.GetToken(), "%s: want a mapping of names of tools, such as %s", where, such)
	}
	texts := make(map[string]string)
	for _, entry := range entries {
		name := entry.Key.GetToken().Value
		text, err := c.textAt(entry.Value, where+"."+name)
		if err != nil {
			return nil, err
		}
		texts[name] = text
	}
	return texts, nil
}

// textAt returns a scalar as it is written.
func (c *Config) textAt(node ast.Node, where string) (string, error) {
	text, err := tree.Text(node)
	if err != nil {
		return "", c.at(node.GetToken(), "%s: %v", where, err)
	}
	return text, nil
}

// switchAt returns true or false.
func (c *Config) switchAt(node ast.Node, where string) (bool, error) {
	if on, ok := node.(*ast.BoolNode); ok {
		return on.Value, nil
	}
	return false, c.at(node.GetToken(), "%s: want true or false, but got %q", where, node.GetToken().Value)
}

func isNull(node ast.Node) bool {
	_, is := node.(*ast.NullNode)
	return is
}

// checkViews has each view keep the headers of clients that its servers send on.
func (c *Config) checkViews() {
	for _, v := range c.Views {
		names := make(map[string]bool)
		for _, m := range v.Members {
			for _, name := range m.Server.ForwardedHeaders() {
				names[name] = true
			}
			if m.Server.ForwardsTokens() {
				names["Authorization"] = true
			}
		}
		v.ForwardHeader = slices.Sorted(maps.Keys(names))
		v.route = c.PathOf(v.Server)
	}
}
