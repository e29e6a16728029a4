package main

import (
	"fmt"
	"slices"

	"github.com/alecthomas/kong"
)

// commandKey is the one key of the file that is no flag: on the command line
// the command stands after "--".
const commandKey = "command"

// sources is the kong resolver for what the command line leaves open: the
// environment first, then the file. kong's own handling of variables is not
// used, as it reads the process's environment and stops at the first fault.
type sources struct {
	lookupEnv func(string) (string, bool)
	origin    map[string]string

	read   bool
	file   configFile
	faults []string

	command       []string
	commandFaulty bool
}

var _ kong.Resolver = (*sources)(nil)

// Validate implements [kong.Resolver]. The checks are ours.
func (*sources) Validate(*kong.Application) error { return nil }

// Resolve implements [kong.Resolver]. An empty variable counts as unset, so
// that FOO: ${FOO:-} in a compose file means the default.
func (s *sources) Resolve(ctx *kong.Context, _ *kong.Path, flag *kong.Flag) (any, error) {
	if !s.read {
		s.read = true
		s.readFile(ctx)
	}
	if inEnv(flag) {
		if value, ok := s.lookupEnv(envName(flag.Name)); ok && value != "" {
			s.origin[flag.Name] = envName(flag.Name)
			return fileValue{kind: scalarValue, text: value}, nil
		}
	}
	if value, ok := s.file.values[flag.Name]; ok {
		s.origin[flag.Name] = s.file.at(value)
		return value, nil
	}
	return nil, nil
}

// readFile reads the file that --config or its variable names.
func (s *sources) readFile(ctx *kong.Context) {
	flags := ctx.Model.Flags
	i := slices.IndexFunc(flags, func(f *kong.Flag) bool { return f.Name == "config" })
	path := ""
	if value, ok := ctx.FlagValue(flags[i]).(text); ok {
		path = value.value
	}
	if path == "" {
		path, _ = s.lookupEnv(envName("config"))
	}
	if path == "" {
		return
	}
	s.file, s.faults = readConfigFile(path, newFileKeys(flags))
	command, want := takeCommand(s.file.values)
	if s.command, s.commandFaulty = command, want != ""; s.commandFaulty {
		s.faults = append(s.faults, fmt.Sprintf("%s:%s", s.file.path, want))
	}
}

// takeCommand takes the command out of the values of a file. What is wrong with
// it begins with its line.
func takeCommand(values map[string]fileValue) (command []string, want string) {
	value, ok := values[commandKey]
	if !ok {
		return nil, ""
	}
	delete(values, commandKey)
	if value.kind != listValue || value.nested || len(value.list) == 0 || value.list[0] == "" {
		return nil, fmt.Sprintf("%d: %s %q: want a list of the program and its arguments, such as [npx, -y, server]",
			value.line, value.key, value.String())
	}
	return value.list, ""
}
