package config

import (
	"fmt"
	"strings"

	"github.com/alecthomas/kong"
)

// joint is a space at which no line ends, until the lines are made.
const joint = "\uE000"

// helpText returns the help for arguments that parser has parsed. Without a command it shows the flags
// that most need, or all. After a command with flags of its own it shows those, or these and all others.
func helpText(parser *kong.Kong, ctx *kong.Context, all bool) (string, error) {
	var b strings.Builder
	parser.Stdout = &b
	command := ctx.Selected()
	if command == nil || len(command.Flags)+len(command.Positional) == 0 {
		command = nil
		ctx.Path = ctx.Path[:1]
	} else {
		served := " [-- command args...]"
		if takesNoCommand(command.Name) {
			served = ""
		}
		fmt.Fprintf(&b, "Usage: sse-server %s%s\n", strings.Replace(command.Summary(), "[flags]", "", 1)+"[flags]",
			served)
	}
	for _, flag := range parser.Model.Flags {
		if !all && (command != nil || !flag.Tag.Has("common")) {
			flag.Hidden = true
		}
	}
	err := ctx.PrintUsage(false)
	switch {
	case all:
	case command != nil:
		fmt.Fprintf(&b, "\nIt also takes the flags of sse-server: sse-server %s --help-all lists all.\n", command.Name)
	default:
		b.WriteString("\nsse-server --help-all lists all flags, sse-server COMMAND --help those of a command alone.\n")
	}
	return strings.ReplaceAll(b.String(), joint, " "), err
}
