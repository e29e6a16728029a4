package main

import (
	"regexp"

	"github.com/mcp-sse/mcp-sse/cmd/sse-server/internal/config"
)

// refused is a connection that nobody takes: of the program itself, or of sse-server to a remote server.
var refused = regexp.MustCompile(`connection refused`)

// remedies say what to do about a server that does not start, by what its error and its last words
// have in them. The first that matches is meant.
var remedies = []struct {
	pattern *regexp.Regexp
	what    string
}{
	{regexp.MustCompile(`the server refused access`), "give it credentials, as with --header 'Authorization: Bearer ${TOKEN}'"},
	{regexp.MustCompile(`E404|404 Not Found|not in this registry|No matching distribution|not found in the package registry`), "check the name of the package, and which registry is configured"},
	{regexp.MustCompile(`ENOTFOUND|EAI_AGAIN|no such host|Temporary failure in name resolution`), "check the name of the host, and that this machine reaches the network"},
	{regexp.MustCompile(`Cannot connect to the Docker daemon|docker\.sock|docker daemon`), "start Docker, and let this user use it"},
	{regexp.MustCompile(`pull access denied|manifest unknown|manifest for .* not found|Unable to find image`), "check the name of the image; a private one needs docker login"},
	{regexp.MustCompile(`Cannot find module|MODULE_NOT_FOUND|ModuleNotFoundError|ImportError`), "install what the program needs, and build it, in its directory"},
	{regexp.MustCompile(`can't open file|No such file or directory|ENOENT`), "check the path; it is relative to --dir, or to where sse-server was started"},
	{regexp.MustCompile(`exec format error`), "begin a script with a line such as #!/bin/sh, or name its interpreter first: -- sh script"},
	{regexp.MustCompile(`command not found|executable file not found|sh: (line )?\d+: \S+: not found`), "check the spelling of the program, and the PATH of sse-server"},
	{regexp.MustCompile(`EADDRINUSE|[Aa]ddress already in use`), "give it an option for stdio, if it has one; one that serves HTTP goes after --url"},
	{regexp.MustCompile(`(?i:api.?key|access.?token|environment variable|credential)|\b[A-Z][A-Z0-9_]*_(KEY|TOKEN)\b|` +
		`\b[A-Z][A-Z0-9]*_[A-Z0-9_]+\b.{0,20} (required|missing|not set|unset|undefined|not defined|must be set)|(?i:\bset|missing|requires?) \b[A-Z][A-Z0-9]*_[A-Z0-9_]+\b`), "give it what it asks for with --env NAME=VALUE"},
	{refused, "start the server that --url names, or check its address"},
	{regexp.MustCompile(`certificate|x509`), "check the address, and its certificate"},
	{regexp.MustCompile(`sends back what it gets|wrote no JSON-RPC|text to stdout`), "want a program that speaks MCP on stdin and stdout; many need an argument such as stdio"},
	{regexp.MustCompile(`^list \w+: .*(in time|deadline|time is up|time-?out)`), "give its lists more time with --request-timeout and --start-timeout"},
	{regexp.MustCompile(`in time|deadline`), "give it more time with --start-timeout"},
	{regexp.MustCompile(`(?i)usage:|unknown (option|flag)|missing required|required argument`), "check the arguments after --"},
}

// remedyFor returns what to do about a server that has not started.
func remedyFor(s *config.Server, text string) string {
	for _, remedy := range remedies {
		if !remedy.pattern.MatchString(text) {
			continue
		}
		if remedy.pattern == refused && s.Kind() == config.OfCommand {
			return "start what the program connects to, or check the address that it is given"
		}
		return remedy.what
	}
	if s.Kind() == config.OfCommand {
		return "run the command alone in a terminal to see more of it"
	}
	return "open the address with curl to see more of it"
}
