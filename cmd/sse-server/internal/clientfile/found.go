package clientfile

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"github.com/pelletier/go-toml/v2"
	"github.com/tailscale/hujson"

	"github.com/mcp-sse/mcp-sse/internal/clients"
)

// Found is a server of a client's file: a program or an address.
type Found struct {
	Name, File string

	Command []string
	Env     map[string]string
	EnvFile string
	Dir     string
	URL     string
	Header  map[string]string
	Inputs  map[string]string // what VS Code asks its user for: the descriptions by their ids
	// Ignored are the members that mean nothing to other programs.
	Ignored []string
}

// place is where a client has servers: the member of a file that has them. If of is set, the file has that
// member for each project, below this one.
type place struct{ file, key, of string }

// others are files in which clients have servers beside those of the table of clients, to which connect writes.
var others = []place{
	{file: "~/.claude.json", key: "mcpServers"},
	{file: "~/.config/Code/User/mcp.json", key: "servers"},
	{file: "~/Library/Application Support/Code/User/mcp.json", key: "servers"},
	{file: "~/AppData/Roaming/Code/User/mcp.json", key: "servers"},
}

// places are the places in which clients have their servers, first those of a project. The first one keeps its
// name where two have the same.
func places() (all []place) {
	all = []place{{"~/.claude.json", "mcpServers", "projects"}}
	ofUser := slices.Clone(others)
	for _, c := range clients.WithEntry() {
		for _, file := range c.Entry.Files {
			if strings.HasPrefix(file, "~/") {
				ofUser = append(ofUser, place{file: file, key: c.Entry.Key})
			} else {
				all = append(all, place{file: file, key: c.Entry.Key})
			}
		}
	}
	return append(all, ofUser...)
}

// Find returns the servers that the files of clients have, in order, without those that are switched off. A
// file or an entry that cannot be read is an error beside the others.
func Find(home string) (all []Found, err error) {
	var wrong []error
	var seen []string
	for _, place := range places() {
		file, known := place.file, variables{"userHome": home, "pathSeparator": string(filepath.Separator), "/": string(filepath.Separator)}
		if rest, below := strings.CutPrefix(file, "~/"); below {
			file = filepath.Join(home, rest)
		} else if folder, err := os.Getwd(); err == nil {
			known["workspaceFolder"] = folder
		}
		full, _ := filepath.Abs(file)
		if slices.Contains(seen, full+place.of) { // in the home directory, a file of a project is the user's
			continue
		}
		seen = append(seen, full+place.of)
		data, err := readFile(file)
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		var found []Found
		switch {
		case err != nil && place.of != "": // it is said where the file is read for the user
			continue
		case err == nil && place.of != "":
			found, err = readProjects(data, place)
		case err == nil:
			found, err = read(data, place.key)
		}
		if err != nil {
			for line := range strings.Lines(err.Error()) {
				wrong = append(wrong, fmt.Errorf("%s: %s", file, strings.TrimSuffix(line, "\n")))
			}
		}
		for _, one := range found {
			one.File = file
			one.replace(known, filepath.Base(filepath.Dir(file)) == ".gemini")
			all = append(all, one)
		}
	}
	return all, errors.Join(wrong...)
}

// maxFile bounds the file of a client, in bytes.
const maxFile = 16 << 20

// readFile reads a file of a client. What is no file, such as a pipe, would be waited for.
func readFile(file string) ([]byte, error) {
	info, err := os.Stat(file)
	switch {
	case err != nil:
		return nil, err
	case !info.Mode().IsRegular():
		return nil, errors.New("it is not a regular file")
	case info.Size() > maxFile:
		return nil, fmt.Errorf("it has over %d MiB", maxFile>>20)
	}
	return os.ReadFile(file)
}

// variables are those that clients replace by what they know, by their names.
type variables map[string]string

// ofOpencode is how opencode refers to a variable of the environment.
var ofOpencode = regexp.MustCompile(`(^|[^$])\{env:([A-Za-z0-9_]+)\}`)

var dollarName = regexp.MustCompile(`\$([A-Za-z_][A-Za-z0-9_]*)`)

// replace replaces these variables. If dollars is set, $NAME becomes ${NAME}, as Gemini CLI takes both.
func (f *Found) replace(known variables, dollars bool) {
	in := func(text string) string {
		for name, value := range known {
			text = strings.ReplaceAll(text, "${"+name+"}", value)
		}
		text = ofOpencode.ReplaceAllString(text, "$1$${$2}")
		if dollars {
			text = dollarName.ReplaceAllString(text, "$${$1}")
		}
		return text
	}
	for i, word := range f.Command {
		f.Command[i] = in(word)
	}
	for _, all := range []map[string]string{f.Env, f.Header} {
		for name, value := range all {
			all[name] = in(value)
		}
	}
	f.URL, f.EnvFile, f.Dir = in(f.URL), in(f.EnvFile), in(f.Dir)
}

// word is a text that may be written as a number or a truth, or null.
type word string

func (w *word) UnmarshalJSON(data []byte) error {
	var text *string
	switch {
	case json.Unmarshal(data, &text) == nil && text != nil:
		*w = word(*text)
	case len(data) > 0 && strings.ContainsRune("[{", rune(data[0])):
		return errors.New("want texts in args, env and headers")
	case string(data) != "null":
		*w = word(data)
	}
	return nil
}

func textsOf(all map[string]word) map[string]string {
	texts := map[string]string{}
	for name, value := range all {
		texts[name] = string(value)
	}
	return texts
}

// written is an entry as clients write it, and program the command in the older form of Zed.
type written struct {
	Command json.RawMessage
	program
	EnvFile   string
	CWD       string
	URL       string
	HTTPURL   string
	ServerURL string
	Headers   map[string]word
	Disabled  bool
	// Environment is what opencode calls Env.
	Environment map[string]word
	Enabled     *bool
}

type program struct {
	Path string
	Args []word
	Env  map[string]word
}

// members are those of an entry that are taken, or say no more than others.
var members = []string{"command", "args", "env", "environment", "envFile", "cwd", "url", "httpUrl", "serverUrl", "headers", "disabled", "enabled", "type", "source", "transport"}

// read returns the servers of a file in the order of their names. What is no entry is left out: files of
// clients have much else.
func read(data []byte, key string) (all []Found, err error) {
	if key == "mcp_servers" {
		return readTOML(data)
	}
	data, err = hujson.Standardize(data)
	if err != nil {
		return nil, errors.New("it is not valid JSON")
	}
	var file, entries map[string]json.RawMessage
	_ = json.Unmarshal(data, &file)
	_ = json.Unmarshal(file[key], &entries)
	inputs := inputsOf(file["inputs"])
	var wrong []error
	for _, name := range slices.Sorted(maps.Keys(entries)) {
		var of map[string]json.RawMessage
		if json.Unmarshal(entries[name], &of) != nil {
			continue
		}
		one, isServer, err := readEntry(entries[name])
		if err != nil {
			wrong = append(wrong, fmt.Errorf("%s: %w", name, err))
		}
		if !isServer || err != nil {
			continue
		}
		one.Name, one.Inputs = name, inputs
		for _, member := range slices.Sorted(maps.Keys(of)) {
			if !slices.Contains(members, member) {
				one.Ignored = append(one.Ignored, member)
			}
		}
		all = append(all, one)
	}
	for _, id := range slices.Sorted(maps.Keys(inputs)) {
		if len(all) > 0 && !bytes.Contains(file[key], []byte("${input:"+id+"}")) {
			all[0].Ignored = append(all[0].Ignored, "the input "+id)
		}
	}
	return all, errors.Join(wrong...)
}

// readProjects returns the servers of the project that is the current folder. Those of others are errors, which
// say where they are.
func readProjects(data []byte, in place) (all []Found, err error) {
	plain, err := hujson.Standardize(data)
	if err != nil {
		return nil, nil // it is said where the file is read for the user
	}
	var file, projects map[string]json.RawMessage
	_ = json.Unmarshal(plain, &file)
	_ = json.Unmarshal(file[in.of], &projects)
	var wrong []error
	for _, path := range slices.Sorted(maps.Keys(projects)) {
		found, err := read(projects[path], in.key)
		if isHere(path) {
			all = append(all, found...)
			wrong = append(wrong, err)
			continue
		}
		var names []string
		for _, one := range found {
			names = append(names, one.Name)
		}
		if len(names) > 0 {
			wrong = append(wrong, fmt.Errorf("what belongs to another project, for which you run init in %s: %s", path, strings.Join(names, ", ")))
		}
	}
	return all, errors.Join(wrong...)
}

// isHere reports whether a path is that of the current folder.
func isHere(path string) bool {
	here, err := os.Stat(".")
	there, noPath := os.Stat(path)
	return err == nil && noPath == nil && filepath.IsAbs(path) && os.SameFile(here, there)
}

// inputsOf returns what VS Code asks for.
func inputsOf(data json.RawMessage) map[string]string {
	var inputs []struct{ ID, Description string }
	_ = json.Unmarshal(data, &inputs)
	all := map[string]string{}
	for _, input := range inputs {
		all[input.ID] = input.Description
	}
	return all
}

// readEntry returns the server of an entry. It reports false if there is none, or it is off.
func readEntry(data json.RawMessage) (f Found, isServer bool, err error) {
	var of written
	if err := json.Unmarshal(data, &of); err != nil {
		if wrong, ok := errors.AsType[*json.UnmarshalTypeError](err); ok { // its text quotes nothing
			return f, false, fmt.Errorf("%s is a %s", cmp.Or(wrong.Field, "it"), wrong.Value)
		}
		return f, false, err
	}
	var command string
	var words []word
	switch {
	case json.Unmarshal(of.Command, &command) == nil:
	case json.Unmarshal(of.Command, &words) == nil && len(words) > 0: // that of opencode
		command, of.Args = string(words[0]), words[1:]
	default:
		_ = json.Unmarshal(of.Command, &of.program) // the older form of Zed
		command = of.Path
	}
	if of.Env == nil {
		of.Env = of.Environment
	}
	f = Found{Env: textsOf(of.Env), EnvFile: of.EnvFile, Dir: of.CWD, Header: textsOf(of.Headers), URL: cmp.Or(of.URL, of.HTTPURL, of.ServerURL)}
	if command != "" {
		f.Command = []string{command}
		for _, arg := range of.Args {
			f.Command = append(f.Command, string(arg))
		}
	}
	isOn := !of.Disabled && (of.Enabled == nil || *of.Enabled)
	return f, isOn && (command != "" || f.URL != ""), nil
}

// membersOfCodex are members of an entry of Codex, beside others that it shares. What its env_vars name, a
// process has anyway.
var membersOfCodex = []string{"bearer_token_env_var", "http_headers", "env_http_headers", "env_vars"}

// readTOML is read of Codex's file.
func readTOML(data []byte) (all []Found, err error) {
	var file struct {
		Servers map[string]struct {
			Command    string            `toml:"command"`
			Args       []string          `toml:"args"`
			Env        map[string]string `toml:"env"`
			CWD        string            `toml:"cwd"`
			URL        string            `toml:"url"`
			Header     map[string]string `toml:"http_headers"`
			FromEnv    map[string]string `toml:"env_http_headers"`
			TokenInEnv string            `toml:"bearer_token_env_var"`
			Enabled    *bool             `toml:"enabled"`
		} `toml:"mcp_servers"`
	}
	var names struct {
		Servers map[string]map[string]any `toml:"mcp_servers"`
	}
	if err := errors.Join(toml.Unmarshal(data, &file), toml.Unmarshal(data, &names)); err != nil {
		first, _, _ := strings.Cut(err.Error(), "\n")
		return nil, fmt.Errorf("it is not valid TOML: %s", first)
	}
	for _, name := range slices.Sorted(maps.Keys(file.Servers)) {
		of := file.Servers[name]
		one := Found{Name: name, Env: of.Env, Dir: of.CWD, URL: of.URL, Header: map[string]string{}}
		maps.Copy(one.Header, of.Header)
		for header, variable := range of.FromEnv {
			one.Header[header] = "${" + variable + "}"
		}
		if of.TokenInEnv != "" {
			one.Header["Authorization"] = "Bearer ${" + of.TokenInEnv + "}"
		}
		if of.Command != "" {
			one.Command = append([]string{of.Command}, of.Args...)
		}
		for _, member := range slices.Sorted(maps.Keys(names.Servers[name])) {
			if !slices.Contains(members, member) && !slices.Contains(membersOfCodex, member) {
				one.Ignored = append(one.Ignored, member)
			}
		}
		if (of.Enabled == nil || *of.Enabled) && (of.Command != "" || of.URL != "") {
			all = append(all, one)
		}
	}
	return all, nil
}
