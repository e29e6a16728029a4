package config

import (
	"slices"
	"strconv"
	"strings"
)

// words maps arguments to the flag that they mean, because other programs have such
// commands. Users give a program with such a name after "--".
var words = map[string]string{"help": "--help", "version": "--version", "check": "--check-config", "stdio": "--stdio"}

// readFlags returns the values that the arguments give, by option. It reports
// arguments that are no flags.
func (c *Config) readFlags(args []string) map[string]input {
	given := map[string]input{}
	for len(args) > 0 {
		arg := args[0]
		if flag, ok := words[arg]; ok {
			arg = flag
		}
		if isValue(arg) {
			c.report.add(0, "unexpected argument %q: the command to serve goes after --, as in: sse-server [flags] -- %s",
				arg, strings.Join(args, " "))
			return given
		}
		args = args[1:]
		name, text, assigned := strings.Cut(arg, "=")
		o, on := c.flag(name)
		hasNext := len(args) > 0 && (isValue(args[0]) || isNegative(args[0]))
		switch {
		case o == nil:
			c.report.add(0, "%s", c.unknownFlag(name))
			if hasNext && !assigned {
				args = args[1:]
			}
			continue
		case assigned && !on:
			c.report.add(0, "%s: takes no value", arg)
			continue
		case assigned:
		case o.value.unit == "":
			text = strconv.FormatBool(on)
		case hasNext:
			text, args = args[0], args[1:]
		default:
			given[o.name] = input{kind: missing, from: origin{name: "--" + o.name}}
			continue
		}
		given[o.name] = input{texts: append(given[o.name].texts, text), from: origin{name: "--" + o.name}}
	}
	return given
}

// isValue reports whether an argument is not a flag.
func isValue(arg string) bool { return arg == "-" || !strings.HasPrefix(arg, "-") }

// isNegative tells a negative number, which some try for "no limit", from a flag:
// the option has a better message for it.
func isNegative(arg string) bool { return len(arg) > 1 && arg[1] >= '0' && arg[1] <= '9' }

// flag returns the option that a flag names, nil if there is none. The flag
// --no-NAME switches it off.
func (c *Config) flag(name string) (o *option, on bool) {
	for i := range c.rows {
		switch o := &c.rows[i]; {
		case o.isFlag() && (name == "--"+o.name || name == o.short):
			return o, true
		case o.value.invertible && name == "--no-"+o.name:
			return o, false
		}
	}
	return nil, false
}

// unknownFlag returns the message about an argument that names no flag.
func (c *Config) unknownFlag(flag string) string {
	message := "unknown flag " + flag
	name := strings.TrimLeft(flag, "-")
	if meant, ok := otherNames[name]; ok {
		return message + didYouMean(c.row(meant).form())
	}
	names := []string{"args"}
	for _, o := range c.rows {
		names = append(names, o.name)
		if o.value.invertible {
			names = append(names, "no-"+o.name)
		}
	}
	found := nearest(name, names)
	if slices.Contains(found, commandKey) || slices.Contains(found, "args") {
		return message + ": the command to serve goes after --, as in: sse-server [flags] -- npx -y server"
	}
	for i := range found {
		found[i] = "--" + found[i]
	}
	return message + didYouMean(found...)
}
