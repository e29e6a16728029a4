package config

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"

	"github.com/goccy/go-yaml"

	"github.com/mcp-sse/mcp-sse/gateway"
)

// Entry is a server of a file that is to be made.
type Entry struct {
	Name    string // as its source calls it; FileOf makes it one that a path can have
	From    string // its source, for a comment
	Command []string
	Env     map[string]string
	EnvFile string
	Dir     string
	URL     string
	Header  map[string]string
	Inputs  map[string]string // what VS Code asks its user for: the descriptions by their ids
}

// text is a text in YAML. What is not plain is quoted as in JSON, which is YAML too: the library leaves some
// texts plain that it reads as something else, such as "? x" after another value.
type text string

var plainText = regexp.MustCompile(`^[A-Za-z/][A-Za-z0-9_./-]*$`)

func (t text) MarshalYAML() ([]byte, error) {
	if plainText.MatchString(string(t)) {
		return yaml.Marshal(string(t)) // which quotes yes
	}
	var b bytes.Buffer
	quote := json.NewEncoder(&b)
	quote.SetEscapeHTML(false)
	err := quote.Encode(string(t))
	return b.Bytes(), err
}

func texts(of []string) (all []text) {
	for _, one := range of {
		all = append(all, text(one))
	}
	return all
}

// File is a file of options that has been made.
type File struct {
	Data []byte
	// Names are those of its servers.
	Names []string
	// Variables are those of the environment that it refers to, with what is known of each, which may be
	// empty.
	Variables []Variable
	// Warnings say what it lacks of the entries.
	Warnings []string

	referred  []string          // the variables of URLs and headers
	processes map[string]string // the servers that need a variable in their process
}

// Variable is one of the environment.
type Variable struct{ Name, About string }

// FileOf returns a file with these servers. Of two that are the same it takes one, and of two others with one
// name the second gets a number.
func FileOf(entries []Entry) (f File) {
	f.processes = map[string]string{}
	servers, comments := yaml.MapSlice{}, yaml.CommentMap{}
	known := map[string]string{} // what is served, by its name
	for _, e := range entries {
		what := fmt.Sprintf("%q", []any{e.Command, e.Env, e.EnvFile, e.Dir, e.URL, e.Header}) // a map has an order there
		name := pathName(e.Name)
		if name == "" || slices.Contains(routes, name) {
			name = strings.Trim(name+"-server", "-")
		}
		name = free(name, func(name string) bool { was, there := known[name]; return !there || was == what })
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
	for _, variable := range f.referred {
		if name, needs := f.processes[variable]; needs {
			f.warn("%s: the process does not get %s, which is a secret of a URL or a header: add it to env if the process needs it", name, variable)
		}
	}
	file := yaml.MapSlice{{Key: serversKey, Value: servers}}
	data, err := yaml.MarshalWithOptions(file, yaml.WithComment(comments), yaml.IndentSequence(true))
	if err != nil { // texts in lists and mappings have a form
		panic(err)
	}
	f.Data = data
	return f
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
	if len(e.Command) == 0 {
		add("url", text(f.refer(name, e, e.URL)))
		if header := f.header(name, e); len(header) > 0 {
			add("header", header)
		}
		return options
	}
	add(commandKey, texts(e.Command))
	for _, word := range e.Command {
		if reference.MatchString(word) {
			f.warn("%s: %s in its command is not replaced: write the value there", name, shown(reference.FindString(word)))
		}
	}
	if env := f.env(name, e); len(env) > 0 {
		add("env", env)
	}
	for _, option := range [][2]string{{"env-file", e.EnvFile}, {"dir", e.Dir}} {
		key, value := option[0], option[1]
		switch found := reference.FindString(value); {
		case found != "":
			f.warn("%s: its %s is left out, as %s is not known here", name, key, shown(found))
		case value != "":
			add(key, text(value))
		}
	}
	return options
}

// header returns the headers of an entry that the file can have.
func (f *File) header(name string, e Entry) (all yaml.MapSlice) {
	for _, header := range slices.Sorted(maps.Keys(e.Header)) {
		if err := gateway.CheckHeaderName(header); err != nil {
			f.warn("%s: the header %s is left out: %v", name, header, err)
			continue
		}
		all = append(all, yaml.MapItem{Key: header, Value: text(f.refer(name, e, e.Header[header]))})
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

// env returns the variables of an entry but for those that the client makes of others: nothing is replaced in
// the values of the file, and a process has the variables of sse-server anyway.
func (f *File) env(name string, e Entry) (all yaml.MapSlice) {
	for _, variable := range slices.Sorted(maps.Keys(e.Env)) {
		value := e.Env[variable]
		found := reference.FindString(value)
		if found == "" {
			all = append(all, yaml.MapItem{Key: variable, Value: text(value)})
			continue
		}
		_, about := variableOf(e, found)
		switch of := strings.TrimPrefix(strings.Trim(found, "${}"), "env:"); {
		case found != value:
			about = "for " + name + ", with " + shown(found) + " in it there"
		case about == "" && of != variable:
			about = "for " + name + ", " + shown(found) + " there"
		}
		f.processes[variable] = name
		f.needs(variable, about)
	}
	return all
}

// refer returns a text with the references of clients as the file has them.
func (f *File) refer(name string, e Entry, of string) string {
	return reference.ReplaceAllStringFunc(of, func(found string) string {
		if strings.HasPrefix(found, "${file:") {
			return found
		}
		if variable, value, has := strings.Cut(strings.Trim(found, "${}"), ":-"); has {
			f.warn("%s: %s has become its default: the file knows none", name, "${"+variable+":-…}")
			return value
		}
		variable, about := variableOf(e, found)
		f.needs(variable, about)
		f.referred = append(f.referred, variable)
		return "${" + variable + "}"
	})
}

var notInVariable = regexp.MustCompile(`[^A-Za-z0-9_]`)

// variableOf returns the variable of the environment that a reference of a client becomes, and what is known
// of it.
func variableOf(e Entry, found string) (variable, about string) {
	variable, input := variableIn(strings.Trim(found, "${}"))
	return variable, e.Inputs[input]
}

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
