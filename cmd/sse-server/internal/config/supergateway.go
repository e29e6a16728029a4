package config

import (
	"cmp"
	"slices"
	"strings"
)

// flagsOfSupergateway are flags that may follow the command of supergateway.
var flagsOfSupergateway = []string{"port", "baseurl", "outputtransport", "ssepath", "messagepath",
	"streamablehttppath", "loglevel", "cors",
	"healthendpoint", "header", "oauth2bearer", "stateful", "sessiontimeout", "protocolversion"}

// ofSupergateway returns the command line that means the same as one of supergateway; empty if args are
// none. Its options have the command or the address of the server as their value.
func ofSupergateway(args []string) string {
	values := valuesIn(args)
	command, url := values["stdio"], cmp.Or(values["sse"], values["streamablehttp"])
	switch {
	case command != "" && !strings.HasPrefix(command, "-"):
		addr := ""
		if port := values["port"]; port != "" {
			addr = "--addr 127.0.0.1:" + port + " "
		}
		return "sse-server " + addr + "-- " + command + restOfCommand(args)
	case strings.Contains(url, "://"):
		return "sse-server stdio --url " + url + ", or without stdio to serve it over HTTP"
	}
	return ""
}

// restOfCommand returns the words after the value of --stdio that belong to the command, after a space: with
// supergateway all of it is one word, in quotes that people forget.
func restOfCommand(args []string) string {
	i := slices.IndexFunc(args, func(arg string) bool { return arg == "--stdio" || strings.HasPrefix(arg, "--stdio=") })
	if i < 0 {
		return ""
	}
	if args[i] == "--stdio" {
		i++
	}
	rest := args[i+1:]
	if end := slices.IndexFunc(rest, func(arg string) bool {
		name, _, _ := strings.Cut(arg, "=")
		return strings.HasPrefix(name, "--") && slices.Contains(flagsOfSupergateway, plainName(name))
	}); end >= 0 {
		rest = rest[:end]
	}
	if len(rest) == 0 {
		return ""
	}
	return " " + asTyped(rest)
}
