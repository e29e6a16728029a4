package config

import (
	"slices"
	"strings"

	"github.com/alecthomas/kong"

	"github.com/mcp-sse/mcp-sse/internal/clients"
)

// shells are those that have a completion.
var shells = []string{"bash", "zsh", "fish"}

// Values returns what can follow a word of the command line, for completions of shells: the values of a flag, or
// those of the first argument of a command. It returns nil where nothing is known of what
// follows.
func Values(word string) []string {
	switch word {
	case "--for":
		return append(clients.Names(clients.All), AllClients)
	case "connect":
		return clients.Names(clients.WithEntry())
	case "completion":
		return shells
	case "service":
		return serviceWords
	}
	c := newConfig()
	flags := newParser(c, &c.Server).Model.Flags
	i := slices.IndexFunc(flags, func(f *kong.Flag) bool { return "--"+f.Name == word && f.Tag.Has("oneof") })
	if i < 0 {
		return nil
	}
	return strings.Split(flags[i].Tag.Get("oneof"), ",")
}
