package clientfile

import (
	"bytes"
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

	"github.com/goccy/go-yaml/ast"
	"github.com/tailscale/hujson"

	"github.com/mcp-sse/mcp-sse/cmd/sse-server/internal/tree"
	"github.com/mcp-sse/mcp-sse/internal/atomicfile"
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

	// Client has it, and Stays says why it cannot be taken from there; empty if it can.
	Client clients.Client
	Stays  string
}

// serverFile is a file in which a client has servers.
type serverFile struct {
	clients.Client
	file string
	// projects is the member of the file that has the entries of single projects; empty: those of the whole file are
	// meant.
	projects string
}

// serverFiles are the files in which clients have their servers, first those of a project. The first one keeps its
// name where two have the same.
func serverFiles() (all []serverFile) {
	var ofProject, ofUser []serverFile
	for _, c := range clients.WithEntry() {
		for _, file := range c.Entry.Others {
			if c.Entry.Projects != "" {
				all = append(all, serverFile{c, file, c.Entry.Projects})
			}
			ofUser = append(ofUser, serverFile{c, file, ""})
		}
	}
	for _, c := range clients.WithEntry() {
		for _, file := range c.Entry.Files {
			switch {
			case c.Entry.Format == clients.YAML: // a list, which connect alone knows
			case isInHome(file):
				ofUser = append(ofUser, serverFile{c, file, ""})
			default:
				ofProject = append(ofProject, serverFile{c, file, ""})
			}
		}
	}
	return slices.Concat(all, ofProject, ofUser)
}

// Find returns the servers that the files of clients have, in order. A server that is switched off is an error beside
// the others, as is a file or an entry that cannot be read.
func Find(home string) (all []Found, err error) {
	var wrong []error
	var seen []string
	here := theseFolders()
	offInClaudeCode, offOfMCPJSON := offInClaudeCode(home, here)
	for _, place := range serverFiles() {
		separator := string(filepath.Separator)
		file, known := place.file, variables{"userHome": home, "pathSeparator": separator, "/": separator}
		if isInHome(file) {
			file = below(home, file)
		} else if folder, err := os.Getwd(); err == nil {
			known["workspaceFolder"] = folder
		}
		full, _ := filepath.Abs(file)
		if slices.Contains(seen, full+place.projects) { // in the home directory, a file of a project is the user's
			continue
		}
		seen = append(seen, full+place.projects)
		data, err := readFile(file)
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		var found []Found
		switch {
		case err != nil && place.projects != "": // it is said where the file is read for the user
			continue
		case err == nil && place.projects != "":
			found, err = readProjects(data, place, here)
		case err == nil:
			found, err = read(data, place.Entry)
		}
		off, isGemini := switches{}, place.Name == "gemini-cli"
		switch {
		case place.Name == "claude-code" && isInHome(place.file):
			off = offInClaudeCode
		case place.Name == "claude-code":
			off = offOfMCPJSON
		case isGemini:
			off = ofGemini(file, data, found)
		}
		found, leftOut := off.leaveOut(found)
		if err = errors.Join(err, leftOut); err != nil {
			for line := range strings.Lines(err.Error()) {
				wrong = append(wrong, fmt.Errorf("%s: %s", file, strings.TrimSuffix(line, "\n")))
			}
		}
		for _, one := range found {
			one.File, one.Client = file, place.Client
			switch {
			case place.projects != "", !isInHome(place.file):
				one.Stays = "it belongs to a project"
			default:
				one.Stays = one.dependsOnFolder()
			}
			one.replace(known, isGemini)
			all = append(all, one)
		}
	}
	return all, errors.Join(wrong...)
}

// maxFile bounds the file of a client, and maxEntries the part of it that has its servers, in bytes.
const (
	maxFile    = 16 << 20
	maxEntries = 1 << 20
)

// readFile reads a file of a client, without its byte order mark. It refuses a pipe and its like, for which it would
// wait.
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
	data, err := os.ReadFile(file)
	return bytes.TrimPrefix(data, atomicfile.ByteOrderMark), err
}

// variables are those that clients replace by what they know, by their names.
type variables map[string]string

var dollarName = regexp.MustCompile(`\$([A-Za-z_][A-Za-z0-9_]*)`)

// replace replaces these variables. If dollars is set, $NAME becomes ${NAME}, as Gemini CLI takes both.
func (f *Found) replace(known variables, dollars bool) {
	in := func(text string) string {
		for name, value := range known {
			text = strings.ReplaceAll(text, "${"+name+"}", value)
		}
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

// silent are members that say no more than others, or nothing to init: a process has the variables of env_vars
// anyway.
var silent = []string{"type", "source", "transport", "env_vars"}

// read returns the servers of a file. It leaves out all else, of which files of clients have much.
func read(data []byte, e *clients.Entry) (all []Found, err error) {
	key := e.Key
	if e.Format == clients.TOML {
		data, err = FromTOML(data)
		switch {
		case errors.Is(err, errNoServers):
			return nil, nil
		case err != nil:
			return nil, err
		}
	}
	file, err := hujson.Parse(data)
	if err != nil {
		return nil, errors.New("it is not valid JSON")
	}
	file.Standardize()
	entries := file.Find("/" + key)
	if entries == nil {
		return nil, nil
	}
	text := entries.Pack() // the rest of the file may be large
	if len(text) > maxEntries {
		return nil, fmt.Errorf("%s: it has over %d MiB", key, maxEntries>>20)
	}
	root, err := tree.Parse(text)
	if err != nil {
		what, _, _ := strings.Cut(err.Error(), " at [") // a place in this part
		return nil, fmt.Errorf("%s: %s", key, what)
	}
	if all, err = entriesOf(key, root); len(all) == 0 {
		return nil, err
	}
	inputs := inputsOf(file.Find("/inputs"))
	for i := range all {
		all[i].Inputs = inputs
	}
	for _, id := range slices.Sorted(maps.Keys(inputs)) {
		if !bytes.Contains(text, []byte("${input:"+id+"}")) {
			all[0].Ignored = append(all[0].Ignored, "the input "+id)
		}
	}
	return all, err
}

// entriesOf returns the servers of the entries below key, in the order of their names.
func entriesOf(key string, root ast.Node) (all []Found, err error) {
	var wrong []error
	entries, _ := tree.Members(root)
	entries = slices.SortedFunc(slices.Values(entries), func(a, b *ast.MappingValueNode) int {
		return strings.Compare(a.Key.GetToken().Value, b.Key.GetToken().Value)
	})
	for _, entry := range entries {
		if _, ok := entry.Value.(*ast.MappingNode); !ok {
			continue
		}
		written, err := Read(key, entry)
		if !written.IsServer {
			continue
		}
		if written.IsOff {
			wrong = append(wrong, fmt.Errorf("%s: it is disabled in the file", written.Name.Value))
			continue
		}
		one := Found{Name: written.Name.Value, Env: map[string]string{}, Header: map[string]string{}}
		for _, member := range written.Members {
			if err == nil {
				err = one.setMember(member)
			}
		}
		if len(one.Command) > 0 && one.Command[0] == "" {
			one.Command = nil
		}
		switch {
		case err != nil:
			wrong = append(wrong, fmt.Errorf("%s: %w", one.Name, err))
		case one.Command != nil || one.URL != "":
			slices.Sort(one.Ignored)
			all = append(all, one)
		}
	}
	return all, errors.Join(wrong...)
}

// setMember sets what a member of an entry says.
func (f *Found) setMember(member Member) (err error) {
	value := member.Values[0]
	switch member.Option {
	case "command":
		for i, part := range member.Values {
			words, wrong := tree.Texts(part)
			if _, isList := part.(*ast.SequenceNode); wrong != nil || i > 0 && !isList {
				return errNoTexts
			}
			f.Command = append(f.Command, words...)
		}
	case "url":
		f.URL, err = tree.Text(value)
	case "dir":
		f.Dir, err = tree.Text(value)
	case "env-file":
		f.EnvFile, err = tree.Text(value)
	case "env":
		err = addPairs(f.Env, value)
	case "header":
		err = addPairs(f.Header, value)
	default:
		if !slices.Contains(silent, member.Name) {
			f.Ignored = append(f.Ignored, member.Name)
		}
	}
	if err != nil && !errors.Is(err, errNoTexts) {
		err = fmt.Errorf("%s: %w", member.Name, err)
	}
	return err
}

var errNoTexts = errors.New("want texts in args, env and headers")

// addPairs adds the members of a mapping.
func addPairs(to map[string]string, node ast.Node) error {
	pairs, ok := tree.Members(node)
	if !ok {
		return errNoTexts
	}
	for _, pair := range pairs {
		text, err := tree.Text(pair.Value)
		if err != nil {
			return errNoTexts
		}
		to[pair.Key.GetToken().Value] = text
	}
	return nil
}

// readProjects returns the servers of the project here: of the nearest of the folders for which the file has some.
// The servers of other projects are errors, which say where they are.
func readProjects(data []byte, in serverFile, here folders) (all []Found, err error) {
	// An error in the JSON is told where the file is read for the user.
	projects := projectsIn(withoutComments(data), in.projects)
	found, failed, at := map[string][]Found{}, map[string]error{}, map[string]int{}
	nearest := len(here)
	for path, project := range projects {
		found[path], failed[path] = read(project, in.Entry)
		at[path] = here.index(path)
		if at[path] >= 0 && (len(found[path]) > 0 || failed[path] != nil) {
			nearest = min(nearest, at[path])
		}
	}
	var wrong []error
	for _, path := range slices.Sorted(maps.Keys(projects)) {
		if at[path] == nearest { // never, if none has servers: no folder has the place len(here)
			all = append(all, found[path]...)
			wrong = append(wrong, failed[path])
			continue
		}
		var names []string
		for _, one := range found[path] {
			names = append(names, one.Name)
		}
		if len(names) > 0 {
			wrong = append(wrong, fmt.Errorf("what belongs to another project, for which you run init in %s: %s", path,
				strings.Join(names, ", ")))
		}
	}
	return all, errors.Join(wrong...)
}

// inputsOf returns what VS Code asks for.
func inputsOf(value *hujson.Value) map[string]string {
	all := map[string]string{}
	if value == nil {
		return all
	}
	var inputs []struct{ ID, Description string }
	_ = json.Unmarshal(value.Pack(), &inputs)
	for _, input := range inputs {
		all[input.ID] = input.Description
	}
	return all
}

// IsOfUser reports whether a file is one in which a client has servers for its user, not for a project.
func IsOfUser(file, home string) bool {
	whole, err := filepath.Abs(file)
	return err == nil && home != "" && slices.ContainsFunc(serverFiles(), func(p serverFile) bool {
		return isInHome(p.file) && below(home, p.file) == whole
	})
}

// HasNameOfClient reports whether a file is called as one of a client, such as mcp.json.
func HasNameOfClient(file string) bool {
	return slices.ContainsFunc(serverFiles(),
		func(p serverFile) bool { return filepath.Base(filepath.FromSlash(p.file)) == filepath.Base(file) })
}
