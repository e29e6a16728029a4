package config

import (
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"

	"github.com/goccy/go-yaml"

	"github.com/mcp-sse/mcp-sse/cmd/sse-server/internal/envfile"
	"github.com/mcp-sse/mcp-sse/internal/httpcheck"
	"github.com/mcp-sse/mcp-sse/internal/merge"
	"github.com/mcp-sse/mcp-sse/internal/plainjson"
)

// Entry is a server of a file that is to be made.
type Entry struct {
	Name    string // as its source calls it; FileOf makes it one that a path can have
	From    string // its source, for a comment
	Command []string
	Env     map[string]string
	EnvFile []string
	Dir     string
	URL     string
	Header  map[string]string
	Inputs  map[string]string // what VS Code asks its user for: the descriptions by their ids
	// OfProject says that its source belongs to a project: others may have written it.
	OfProject bool
	// ReadsFiles says that ${file:PATH} in its URL and headers is a reference, because sse-server has replaced it so
	// far.
	ReadsFiles bool
	// Apart says that it stays with its client: it is not in the view that clients get in the place of their entries.
	Apart bool
}

// Making says how a file is made.
type Making struct {
	// EnvFile returns the path for the values of a server that may be secret; nil: they are in the file itself.
	EnvFile func(server string) string
	// Expand are the variables that an entry of a project may send.
	Expand []string
}

// text is a text in YAML. A text that is not plain is quoted as in JSON, which is YAML too: the library leaves some
// texts plain that it reads as something else, such as "? x" after another value.
type text string

var plainText = regexp.MustCompile(`^[A-Za-z/][A-Za-z0-9_./-]*$`)

func (t text) MarshalYAML() ([]byte, error) {
	if plainText.MatchString(string(t)) {
		return yaml.Marshal(string(t)) // which quotes yes
	}
	return plainjson.Encode(string(t))
}

func asTexts(of []string) (all []text) {
	for _, one := range of {
		all = append(all, text(one))
	}
	return all
}

// File is a file of options that has been made.
type File struct {
	Data []byte
	// Names are those of its servers, and NameOf has that of each entry.
	Names, NameOf []string
	// Gateway is the name of the server or view that clients get in the place of their entries; empty: there is none.
	Gateway string
	// Variables are those of the environment that it refers to, with what is known of each, which may be
	// empty.
	Variables []Variable
	// EnvFiles are the files that it names, by their paths.
	EnvFiles map[string][]byte
	// Warnings say what it lacks of the entries.
	Warnings []string

	how      Making
	values   map[string]string // of the env-file of the server that is made
	reserved map[string]bool   // names that no value of that env-file gets: the server has them, or refers to them
}

// Variable is one of the environment.
type Variable struct{ Name, About string }

// FileOf returns a file with these servers. Of two that are the same it takes one, and of two others with one
// name the second gets a number.
func FileOf(entries []Entry, how Making) (f File) {
	f.how, f.EnvFiles = how, map[string][]byte{}
	servers, comments := yaml.MapSlice{}, yaml.CommentMap{}
	known := map[string]string{} // what is served, by its name
	var together []string        // in the place of entries of clients
	for _, e := range entries {
		// A map has an order in the text.
		what := fmt.Sprintf("%q", []any{e.Command, e.Env, e.EnvFile, e.Dir, e.URL, e.Header})
		name := pathName(e.Name)
		if name == "" || slices.Contains(routes, name) {
			name = strings.Trim(name+"-server", "-")
		}
		name = free(name, func(name string) bool { was, there := known[name]; return !there || was == what })
		f.NameOf = append(f.NameOf, name)
		if !e.Apart && !slices.Contains(together, name) {
			together = append(together, name)
		}
		if _, there := known[name]; there {
			continue
		}
		known[name] = what
		f.Names = append(f.Names, name)
		servers = append(servers, yaml.MapItem{Key: name, Value: f.options(name, e)})
		if e.From != "" {
			comments["$.servers."+name] = []*yaml.Comment{yaml.HeadComment(" from " + e.From)}
		}
	}
	file := yaml.MapSlice{{Key: serversKey, Value: servers}}
	if views := f.views(together); views != nil {
		file = append(file, yaml.MapItem{Key: viewsKey, Value: views})
	}
	data, err := yaml.MarshalWithOptions(file, yaml.WithComment(comments), yaml.IndentSequence(true))
	if err != nil { // texts in lists and mappings have a form
		panic(err)
	}
	f.Data = data
	return f
}

// views returns the views of the file: one that has each server, if there are several, and one that has those which
// are in the place of entries of clients, if these are others. They are nil if there are none, or too many servers.
func (f *File) views(together []string) (all yaml.MapSlice) {
	add := func(name string, servers []string) string {
		name = free(name, func(name string) bool { return !slices.Contains(f.Names, name) })
		all = append(all, yaml.MapItem{Key: name, Value: yaml.MapSlice{{Key: serversKey, Value: membersOf(servers)}}})
		return name
	}
	switch {
	case len(f.Names) < 2:
		if len(together) == 1 {
			f.Gateway = together[0]
		}
		return nil
	case len(f.Names) > merge.MaxMembers:
		f.warn("%d servers are too many for one view, which has at most %d: name views of those that belong together",
			len(f.Names), merge.MaxMembers)
	default:
		name := add("all", f.Names)
		if len(together) == len(f.Names) {
			f.Gateway = name
			return all
		}
	}
	// A server of that name would have it, and stdio --connect finds the view by it.
	if len(together) > 0 && len(together) < len(f.Names) && len(together) <= merge.MaxMembers &&
		!slices.Contains(f.Names, GatewayName) {
		f.Gateway = add(GatewayName, together)
	}
	return all
}

// PrefixInGateway returns what the tools of a server have before their names in what clients get.
func (f *File) PrefixInGateway(server string) string {
	switch prefix := prefixOf(server); {
	case server == f.Gateway:
		return ""
	case prefix != nil:
		return *prefix
	}
	return server + "__"
}

// membersOf returns the servers of a view, with a prefix where the name cannot be that.
func membersOf(servers []string) (members yaml.MapSlice) {
	for _, server := range servers {
		rules := yaml.MapSlice{}
		if prefix := prefixOf(server); prefix != nil {
			rules = append(rules, yaml.MapItem{Key: "prefix", Value: text(*prefix)})
		}
		members = append(members, yaml.MapItem{Key: server, Value: rules})
	}
	return members
}

// free returns a name like this one that nobody has.
func free(like string, isFree func(string) bool) string {
	name := like
	for i := 2; !isFree(name); i++ {
		name = fmt.Sprintf("%s-%d", strings.TrimRight(like[:min(len(like), 60)], "-"), i)
	}
	return name
}

// options returns the options that an entry means.
func (f *File) options(name string, e Entry) (options yaml.MapSlice) {
	add := func(key string, value any) { options = append(options, yaml.MapItem{Key: key, Value: value}) }
	f.values, f.reserved = map[string]string{}, namesIn(e)
	if len(e.Command) == 0 {
		add("url", text(f.url(name, e)))
		if header := f.header(name, e); len(header) > 0 {
			add("header", header)
		}
		if files := f.envFiles(name, nil); len(files) > 0 {
			add("env-file", files)
		}
		return options
	}
	add(commandKey, asTexts(f.command(name, e)))
	if env := f.env(name, e); len(env) > 0 {
		add("env", env)
	}
	var files []string
	for _, file := range e.EnvFile {
		if found := reference.FindString(file); found != "" {
			f.warn("%s: its env-file is left out, as %s is not known here", name, shown(found))
			continue
		}
		files = append(files, file)
	}
	if files := f.envFiles(name, files); len(files) == 1 {
		add("env-file", files[0])
	} else if len(files) > 1 {
		add("env-file", files)
	}
	if found := reference.FindString(e.Dir); found != "" {
		f.warn("%s: its dir is left out, as %s is not known here", name, shown(found))
	} else if e.Dir != "" {
		add("dir", text(e.Dir))
	}
	return options
}

// keep puts a text that may be secret into the env-file of the server, and returns the reference to it; the text
// itself where there is no such file.
func (f *File) keep(text string, words ...string) string {
	if f.how.EnvFile == nil || text == "" || strings.Contains(text, "\x00") {
		return escape(text)
	}
	variable := variableOfWords(words)
	for i := 2; ; i++ {
		if was, there := f.values[variable]; !f.reserved[variable] && (!there || was == text) {
			break
		}
		variable = fmt.Sprintf("%s_%d", variableOfWords(words), i)
	}
	f.values[variable] = text
	return "${" + variable + "}"
}

// escape returns a text in which nothing is replaced.
func escape(text string) string { return closedReference.ReplaceAllString(text, "$$$0") }

var closedReference = regexp.MustCompile(`\$\{[^}]*\}`)

// namesIn returns the variables that an entry has or refers to.
func namesIn(e Entry) map[string]bool {
	names := map[string]bool{}
	all := append(append([]string{e.URL}, e.Command...), slices.Concat(slices.Collect(maps.Values(e.Env)),
		slices.Collect(maps.Values(e.Header)))...)
	for _, text := range all {
		for _, found := range reference.FindAllString(text, -1) {
			written, _, _ := strings.Cut(strings.TrimSuffix(found[2:], "}"), ":-")
			variable, _ := variableIn(written)
			names[variable] = true
		}
	}
	for variable := range e.Env {
		names[variable] = true
	}
	return names
}

func variableOfWords(words []string) string {
	all := strings.ToUpper(notInVariable.ReplaceAllString(strings.Join(words, "_"), "_"))
	return "V_"[:2*len(startsWithDigit.FindString(all))] + all
}

var startsWithDigit = regexp.MustCompile(`^[0-9]`)

// envFiles returns the env-files of a server: those that it has, and that of its values.
func (f *File) envFiles(name string, files []string) (all []text) {
	if len(f.values) > 0 {
		path := f.how.EnvFile(name)
		f.EnvFiles[path] = envfile.Format(f.values)
		files = append(files, path)
	}
	return asTexts(files)
}

// leadIn matches what comes before a reference and is no secret, such as --header=Authorization: Bearer.
var leadIn = regexp.MustCompile(`^(?:--?[A-Za-z_-]+=)?(?:[A-Za-z_-]+\s*[:=]\s*)?(?i:(?:bearer|basic|token)\s*)?$`)

// url returns the URL of an entry.
func (f *File) url(name string, e Entry) string {
	return f.write(f.parts(name, e, e.URL, hostOf(e.URL)), isHarmless, name, "url")
}

// command returns the command of an entry.
func (f *File) command(name string, e Entry) (all []string) {
	for i, arg := range e.Command {
		harmless, about := isHarmless, "arg"
		if i == 0 || shellPrograms.MatchString(e.Command[0]) {
			harmless = isHarmlessText
		}
		option, _, _ := strings.Cut(arg, "=")
		if i > 0 && secretFollows.MatchString(e.Command[i-1]) {
			harmless, option = never, e.Command[i-1]
		}
		// An option that is not harmless may have the secret itself.
		if option != "" && option[0] == '-' && isHarmless(option) && secretFollows.MatchString(option) {
			about = option
		}
		all = append(all, f.write(f.parts(name, e, arg, ""), harmless, name, strings.TrimLeft(about, "-")))
	}
	return all
}

func never(string) bool { return false }

// header returns the headers of an entry that the file can have.
func (f *File) header(name string, e Entry) (all yaml.MapSlice) {
	for _, header := range slices.Sorted(maps.Keys(e.Header)) {
		if err := httpcheck.CheckHeaderName(header); err != nil {
			f.warn("%s: the header %s is left out: %v", name, header, err)
			continue
		}
		value := f.write(f.parts(name, e, strings.TrimSpace(e.Header[header]), hostOf(e.URL)), never, name, header)
		all = append(all, yaml.MapItem{Key: header, Value: text(value)})
	}
	return all
}

// shown is a reference without its default, which may be a secret.
func shown(reference string) string {
	if name, _, has := strings.Cut(reference, ":-"); has {
		return name + "}"
	}
	return reference
}

// env returns the variables of an entry that its env-file cannot have: nothing is replaced there, and what it has
// would win over a variable that is referred to.
func (f *File) env(name string, e Entry) (all yaml.MapSlice) {
	refersTo := namesIn(Entry{URL: e.URL, Command: e.Command, Header: e.Header})
	for _, value := range e.Env {
		maps.Copy(refersTo, namesIn(Entry{URL: value}))
	}
	for _, variable := range slices.Sorted(maps.Keys(e.Env)) {
		value := e.Env[variable]
		isText := e.From == "" || !reference.MatchString(value)
		if isText && f.how.EnvFile != nil && envfile.IsName(variable) && !refersTo[variable] &&
			!strings.Contains(value, "\x00") {
			f.values[variable] = value
			continue
		}
		all = append(all,
			yaml.MapItem{Key: variable, Value: text(f.write(f.parts(name, e, value, ""), never, name, variable))})
	}
	return all
}

// part is a part of a text: text for whoever gets it, or a reference as the file has it, live or escaped.
type part struct {
	text        string
	isReference bool
}

// write returns a text of these parts as the file has it: the text is kept in the env-file if it is not known to be
// harmless.
func (f *File) write(parts []part, harmless func(string) bool, words ...string) string {
	var all strings.Builder
	for _, p := range parts {
		if !p.isReference {
			all.WriteString(p.text)
		}
	}
	isKept := !harmless(all.String())
	all.Reset()
	for i, p := range parts {
		switch {
		case p.isReference:
			all.WriteString(p.text)
		case isKept && (i > 0 || len(parts) == 1 || !leadIn.MatchString(p.text)),
			i < len(parts)-1 && strings.HasSuffix(p.text, "$"): // the $ would escape the reference
			all.WriteString(f.keep(p.text, words...))
		default:
			all.WriteString(escape(p.text))
		}
	}
	return all.String()
}

// parts returns the parts of a text of an entry. sentTo is the host that gets the text; empty: a process does.
func (f *File) parts(name string, e Entry, of, sentTo string) (all []part) {
	at := 0
	for _, found := range referenceOrText.FindAllStringIndex(of, -1) {
		p := f.partOf(name, e, of[found[0]:found[1]], sentTo)
		all = append(all, part{text: of[at:found[0]]}, p)
		at = found[1]
	}
	all = append(all, part{text: of[at:]})
	joined := all[:0]
	for _, p := range all {
		last := len(joined) - 1
		switch {
		case p.text == "":
		case last >= 0 && !p.isReference && !joined[last].isReference:
			joined[last].text += p.text
		default:
			joined = append(joined, p)
		}
	}
	return joined
}

// partOf returns what a reference of a client, or an escaped one, means.
func (f *File) partOf(name string, e Entry, found, sentTo string) part {
	if e.From == "" { // an option of init means the same in the file, and on a command line all is text
		return part{found, sentTo != ""}
	}
	if strings.HasPrefix(found, "$$") {
		return part{found, true}
	}
	inner, closed := strings.CutSuffix(found[2:], "}")
	written, fallback, hasDefault := strings.Cut(inner, ":-")
	variable, input := variableIn(written)
	switch isName := closed && variableName.MatchString(variable); {
	case strings.HasPrefix(inner, "file:") && e.ReadsFiles && sentTo != "":
		return part{found, true}
	case strings.HasPrefix(inner, "file:"): // text for clients
		return part{"$" + found, true}
	case !isName:
		if closed {
			f.warn("%s: %s is not known here: write the value there", name, shown(found))
		}
		return part{found, closed}
	case sentTo != "" && e.OfProject && !slices.Contains(f.how.Expand, variable):
		f.warn("%s: the variable %s would be sent to %s because %s says so, which others may have written: "+
			"it is left as text; init --expand %s allows it", name, variable, sentTo, e.From, variable)
		return part{"$" + found, true}
	case hasDefault:
		return part{"${" + variable + ":-" + fallback + "}", true}
	}
	f.needs(variable, e.Inputs[input])
	return part{"${" + variable + "}", true}
}

var notInVariable = regexp.MustCompile(`[^A-Za-z0-9_]`)

// variableIn returns the variable of the environment that a reference of a client means, without ${}: NAME, env:NAME,
// or input:id of VS Code, which asks its user for that. Then input is the id.
func variableIn(reference string) (variable, input string) {
	if input, isInput := strings.CutPrefix(reference, "input:"); isInput {
		return strings.ToUpper(notInVariable.ReplaceAllString(input, "_")), input
	}
	return strings.TrimPrefix(reference, "env:"), ""
}

func (f *File) needs(variable, about string) {
	i := slices.IndexFunc(f.Variables, func(v Variable) bool { return v.Name == variable })
	if i < 0 {
		f.Variables = append(f.Variables, Variable{variable, about})
	} else if f.Variables[i].About == "" {
		f.Variables[i].About = about
	}
}

func (f *File) warn(format string, args ...any) {
	f.Warnings = append(f.Warnings, fmt.Sprintf(format, args...))
}
