package config

import (
	"maps"
	"net/url"
	"slices"
	"strings"

	"github.com/mcp-sse/mcp-sse/cmd/sse-server/internal/naming"
)

// Behind returns the server that an entry leads to: itself, or for the program sse-server stdio the command
// or the URL that it has. It reports false if that is an sse-server: the one that c is of, at whatever path,
// or one that the entry starts with a file or an address of its own.
func (c *Config) Behind(e Entry) (Entry, bool) {
	if args, starts := ownArgs(e.Command); starts {
		of := newConfig()
		err := of.readFlags(args)
		if err != nil || of.Does != "stdio" || of.Config != "" || of.Kind() == OfDemo {
			return e, false
		}
		e = of.entry(e)
	}
	addresses := addressesIn(e.Command)
	if e.URL != "" {
		addresses = append(addresses, e.URL)
	}
	return e, !slices.ContainsFunc(addresses, func(address string) bool {
		at, err := url.Parse(address)
		return err == nil && c.isHere(at)
	})
}

// npmPackage is the package of npm that starts sse-server, and has a command of this name too.
const npmPackage = "mcp-sse"

// ownArgs returns the arguments of sse-server in a command that starts it, by itself or by a launcher such as npx. It
// reports false for a command that does not.
func ownArgs(command []string) (args []string, starts bool) {
	if len(command) == 0 {
		return nil, false
	}
	if program := naming.ProgramOf(command); program == "sse-server" || program == npmPackage {
		return command[1:], true
	}
	if name, isLaunched := naming.OfCommand(command, ""); !isLaunched || name != npmPackage {
		return nil, false
	}
	at := slices.IndexFunc(command, func(word string) bool {
		return word == npmPackage || strings.HasPrefix(word, npmPackage+"@")
	})
	return command[at+1:], at > 0
}

// entry returns the server of options, in the place of the entry that starts sse-server with them. The
// variables of that are put in: they are not in the environment of another sse-server.
func (c *Config) entry(e Entry) Entry {
	put := func(text string) string {
		return reference.ReplaceAllStringFunc(text, func(found string) string {
			if value, ok := e.Env[strings.Trim(found, "${}")]; ok {
				return value
			}
			return found
		})
	}
	of := Entry{
		Name: e.Name, From: e.From, EnvFile: e.EnvFile, Command: c.Command, URL: put(c.URL),
		Dir: e.Dir, Inputs: e.Inputs,
		OfProject: e.OfProject, ReadsFiles: !e.OfProject,
	}
	if len(c.EnvFile) > 0 {
		of.EnvFile = c.EnvFile
	}
	if c.Dir != "" {
		of.Dir = c.Dir
	}
	of.Env, of.Header = maps.Clone(e.Env), map[string]string{}
	if of.Env == nil {
		of.Env = map[string]string{}
	}
	maps.Copy(of.Env, pairsOf(c.Env, "="))
	for name, value := range pairsOf(c.Header, ":") {
		of.Header[name] = put(value)
	}
	return of
}

// pairsOf returns the values of pairs by their names.
func pairsOf(pairs []string, separator string) map[string]string {
	all := map[string]string{}
	for _, pair := range pairs {
		name, value, _ := strings.Cut(pair, separator)
		if separator == ":" {
			value = strings.TrimSpace(value)
		}
		all[strings.TrimSpace(name)] = value
	}
	return all
}

// EntryOf returns the server that the options of init have, which have one.
func (c *Config) EntryOf() Entry {
	return c.entry(Entry{Name: c.Title(&c.Server)})
}
