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
	"github.com/mcp-sse/mcp-sse/upstream"
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
	// ReadsFiles says that ${file:PATH} in its URL and headers is a reference, because sse-server has replaced it so far.
	ReadsFiles bool
}

// Making says how a file is made.
type Making struct {
	// EnvFile returns the path for the values of a server that may be secret; nil: they are in the file itself.
	EnvFile func(server string) string
	// Expand are the variables that an entry of a project may send, and LookupEnv says which are set.
	Expand    []string
	LookupEnv func(string) (string, bool)
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
	// EnvFiles are the files that it names, by their paths.
	EnvFiles map[string][]byte
	// Warnings say what it lacks of the entries.
	Warnings []string

	how    Making
	values map[string]string // of the env-file of the server that is made
}

// Variable is one of the environment.
type Variable struct{ Name, About string }

// FileOf returns a file with these servers. Of two that are the same it takes one, and of two others with one
// name the second gets a number.
func FileOf(entries []Entry, how Making) (f File) {
	f.how, f.EnvFiles = how, map[string][]byte{}
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
	f.values = map[string]string{}
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
	add(commandKey, texts(f.command(name, e)))
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

// keep puts a value that may be secret into the env-file of the server, and returns the reference to it; the value
// itself where there is no such file.
func (f *File) keep(value string, name ...string) string {
	if f.how.EnvFile == nil || value == "" || strings.Contains(value, "\x00") {
		return value
	}
	variable := free(variableOfWords(name), func(name string) bool { was, there := f.values[name]; return !there || was == value })
	f.values[variable] = value
	return "${" + variable + "}"
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
		f.EnvFiles[path] = formatEnvFile(f.values)
		files = append(files, path)
	}
	return texts(files)
}

// url returns the URL of an entry. What its place does not have may be secret.
func (f *File) url(name string, e Entry) string {
	if !reference.MatchString(e.URL) && (upstream.URL{Address: e.URL}).Place() != e.URL {
		return f.keep(e.URL, name, "url")
	}
	return f.refer(name, e, e.URL, hostOf(e.URL))
}

var (
	secretFlag = regexp.MustCompile(`(?i)^(--?[a-z0-9_.-]*(?:token|key|secret|passw|auth|credential)[a-z0-9_.-]*)(=.+)?$`)
	secretURL  = regexp.MustCompile(`^[A-Za-z][A-Za-z0-9+.-]*://[^/?#\s]*:[^/?#\s]*@`)
)

// command returns the command of an entry. What follows a flag with such a name, or has a password in a URL, may be secret.
func (f *File) command(name string, e Entry) (all []string) {
	before := ""
	for _, word := range e.Command {
		flag := secretFlag.FindStringSubmatch(word)
		switch {
		case reference.MatchString(word):
			all = append(all, f.refer(name, e, word, ""))
		case flag != nil && flag[2] != "":
			all = append(all, flag[1]+"="+f.keep(flag[2][1:], name, strings.TrimLeft(flag[1], "-")))
		case before != "" && !strings.HasPrefix(word, "-"):
			all = append(all, f.keep(word, name, before))
		case secretURL.MatchString(word):
			all = append(all, f.keep(word, name, "url"))
		default:
			all = append(all, word)
		}
		before = ""
		if flag != nil && flag[2] == "" {
			before = strings.TrimLeft(flag[1], "-")
		}
	}
	return all
}

// header returns the headers of an entry that the file can have.
func (f *File) header(name string, e Entry) (all yaml.MapSlice) {
	for _, header := range slices.Sorted(maps.Keys(e.Header)) {
		if err := gateway.CheckHeaderName(header); err != nil {
			f.warn("%s: the header %s is left out: %v", name, header, err)
			continue
		}
		value := e.Header[header]
		if reference.MatchString(value) {
			value = f.refer(name, e, value, hostOf(e.URL))
		} else {
			value = f.keep(strings.TrimSpace(value), name, header)
		}
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

// env returns the variables of an entry that are not in its env-file: those with references, in which nothing is
// replaced there.
func (f *File) env(name string, e Entry) (all yaml.MapSlice) {
	for _, variable := range slices.Sorted(maps.Keys(e.Env)) {
		value := e.Env[variable]
		isText := e.From == "" || !reference.MatchString(value)
		if isText && f.how.EnvFile != nil && envFileName.MatchString(variable) && !strings.Contains(value, "\x00") {
			f.values[variable] = value
			continue
		}
		all = append(all, yaml.MapItem{Key: variable, Value: text(f.refer(name, e, value, ""))})
	}
	return all
}

// refer returns a text with the references of clients as the file has them. sentTo is the host that gets the text;
// empty: a process does.
func (f *File) refer(name string, e Entry, of, sentTo string) string {
	return reference.ReplaceAllStringFunc(of, func(found string) string {
		inner, closed := strings.CutSuffix(found[2:], "}")
		written, fallback, hasDefault := strings.Cut(inner, ":-")
		variable, input := variableIn(written)
		switch isName := closed && variableName.MatchString(variable); {
		case e.ReadsFiles && sentTo != "" && strings.HasPrefix(inner, "file:"):
			return found
		case e.From == "" && sentTo != "": // an option of init means the same in the file
			return found
		case e.From == "" && (isName || strings.HasPrefix(inner, "file:")), strings.HasPrefix(inner, "file:"):
			return "$" + found // text: on a command line, and for clients
		case !isName:
			if closed {
				f.warn("%s: %s is not known here: write the value there", name, shown(found))
			}
			return found
		case sentTo != "" && e.OfProject && f.isSet(variable) && !slices.Contains(f.how.Expand, variable):
			f.warn("%s: the variable %s is set here, and would be sent to %s because %s says so, which others may have written: it is left as text; init --expand %s allows it", name, variable, sentTo, e.From, variable)
			return "$" + found
		}
		if hasDefault {
			return "${" + variable + ":-" + fallback + "}"
		}
		about := e.Inputs[input]
		f.needs(variable, about)
		return "${" + variable + "}"
	})
}

func (f *File) isSet(variable string) bool {
	if f.how.LookupEnv == nil {
		return false
	}
	value, _ := f.how.LookupEnv(variable)
	return value != ""
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
