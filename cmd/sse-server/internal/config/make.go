package config

import (
	"maps"
	"regexp"
	"slices"
	"strings"

	"github.com/goccy/go-yaml"
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
}

// input is how VS Code refers to what it asks its user for.
var input = regexp.MustCompile(`\$\{input:([^}]*)\}`)

// FileOf returns a file of options with these servers, the variables of the environment that it refers to,
// and the names of the servers. Of two that are the same it takes one, and of two others with one name the
// second gets a number.
func FileOf(entries []Entry) (data []byte, variables, names []string) {
	servers, comments := yaml.MapSlice{}, yaml.CommentMap{}
	known := map[string]string{} // what is served, by its name
	refer := func(text string) string {
		text = input.ReplaceAllStringFunc(text, func(found string) string {
			id := input.FindStringSubmatch(found)[1]
			return "${" + strings.ToUpper(regexp.MustCompile(`[^A-Za-z0-9]`).ReplaceAllString(id, "_")) + "}"
		})
		for _, found := range reference.FindAllString(text, -1) {
			name := strings.TrimPrefix(strings.Trim(found, "${}"), "env:")
			if !strings.HasPrefix(name, "file:") && !slices.Contains(variables, name) {
				variables = append(variables, name)
			}
		}
		return text
	}
	for _, e := range entries {
		options := yaml.MapSlice{}
		add := func(key string, value any) { options = append(options, yaml.MapItem{Key: key, Value: value}) }
		if len(e.Command) > 0 {
			add("command", e.Command)
		} else {
			add("url", refer(e.URL))
		}
		if len(e.Command) > 0 && len(e.Env) > 0 {
			add("env", sorted(e.Env, func(value string) string { return value }))
		}
		if e.EnvFile != "" {
			add("env-file", e.EnvFile)
		}
		if len(e.Command) > 0 && e.Dir != "" {
			add("dir", e.Dir)
		}
		if len(e.Command) == 0 && len(e.Header) > 0 {
			add("header", sorted(e.Header, refer))
		}
		name, what := pathName(e.Name), strings.Join(e.Command, "\x00")+"\x00"+e.URL
		if name == "" || slices.Contains(routes, name) {
			name = strings.Trim(name+"-server", "-")
		}
		for was, there := known[name]; there && was != what; was, there = known[name] {
			name += "-2"
		}
		if _, there := known[name]; there {
			continue
		}
		known[name] = what
		names = append(names, name)
		servers = append(servers, yaml.MapItem{Key: name, Value: options})
		if e.From != "" {
			comments["$.servers."+name] = []*yaml.Comment{yaml.HeadComment(" from " + e.From)}
		}
	}
	file := yaml.MapSlice{{Key: serversKey, Value: servers}}
	data, err := yaml.MarshalWithOptions(file, yaml.WithComment(comments), yaml.IndentSequence(true))
	if err != nil { // texts in lists and mappings have a form
		panic(err)
	}
	return data, variables, names
}

// sorted returns a mapping in the order of its keys.
func sorted(all map[string]string, change func(string) string) (items yaml.MapSlice) {
	for _, key := range slices.Sorted(maps.Keys(all)) {
		items = append(items, yaml.MapItem{Key: key, Value: change(all[key])})
	}
	return items
}
