package advice

import (
	"net/url"
	"regexp"
	"strings"

	"github.com/mcp-sse/mcp-sse/cmd/sse-server/internal/config"
	"github.com/mcp-sse/mcp-sse/cmd/sse-server/internal/diagnosis"
)

// remedy is what to do about a server that does not start. It is meant if each pattern that it has matches.
type remedy struct {
	reason *regexp.Regexp // what sse-server says
	stderr *regexp.Regexp // what the program has written last
	either *regexp.Regexp // one of the two
	kind   string         // of servers; empty: any
	// command matches the command and its arguments.
	command *regexp.Regexp
	// what names options as they are written on the command line. $1 is what the first group of the pattern
	// has matched.
	what string
}

var (
	// servesHTTP matches what programs write that serve HTTP: its group is the port.
	servesHTTP = regexp.MustCompile(`(?i)\b(?:listening|running|serving|started|available|ready)\b[^|]{0,40}\b(?:on|at)\b[^|]{0,20}?(?:\bport[ :]+|://[^\s/|]+:|(?:localhost|127\.0\.0\.1|0\.0\.0\.0|\*|::|\s):)(\d{2,5})\b`)
	// takesCommands matches what shells write of a message.
	takesCommands = regexp.MustCompile(`\b(?:ba|da|z|k|a|fi)?sh: [^|]{0,40}\{?"?jsonrpc"?:`)
	// interpreter matches a command that is one alone: it takes its input for a program.
	interpreter = regexp.MustCompile(`^(?:.*[/\\])?(?:(?:ba|da|z|k|a|fi)?sh|pwsh|powershell|cmd|python[\d.]*|node|ruby|perl|php|lua)(?:\.exe)?(?: -[il])*$`)
	notAnswered = regexp.MustCompile(`^it has not answered initialize|\(start-timeout\)`)
	isLate      = regexp.MustCompile(`\(start-timeout\)|time is up|deadline exceeded`)
	refused     = regexp.MustCompile(`(?i)connection refused|ECONNREFUSED`)
)

// remedies are tried in this order: the first that is meant is taken.
var remedies = []remedy{
	{reason: regexp.MustCompile(`the sse-server of this name differs in .*?: (stop it .*)$`), what: "$1"},
	{reason: regexp.MustCompile(`the server refused access`),
		what: "give it credentials, as with --header 'Authorization: Bearer $${TOKEN}'"},
	{reason: regexp.MustCompile(`listens at the proxy|to the proxy|answers at the proxy|(?:known for|of) the proxy|the proxy speaks no TLS`),
		what: diagnosis.CheckProxy},
	{stderr: takesCommands, what: "name an MCP server: this is a shell, which takes its messages for commands"},
	{reason: notAnswered, command: interpreter,
		what: "name an MCP server after it, such as a script: the command is a shell or interpreter alone, which takes its messages for a program"},
	{stderr: servesHTTP, kind: config.OfCommand,
		what: "serve it with --url http://127.0.0.1:$1/mcp, as it seems to serve HTTP itself, or give it an option for stdio, if it has one"},
	{stderr: regexp.MustCompile(`E404|npm (?:error|ERR!) 404|not in this registry|No matching distribution|not found in the package registry`),
		what: "check the name of the package, and which registry is configured"},
	{either: regexp.MustCompile(`ENOTFOUND|EAI_AGAIN|no such host|no address is known|Temporary failure in name resolution`),
		what: "check the name of the host, and that this machine reaches the network"},
	{stderr: regexp.MustCompile(`Cannot connect to the Docker daemon|docker\.sock|docker daemon`),
		what: "start Docker, and let this user use it"},
	{stderr: regexp.MustCompile(`pull access denied|manifest unknown|manifest for .* not found|repository does not exist`),
		what: "check the name of the image; a private one needs docker login"},
	{reason: isLate, stderr: regexp.MustCompile(`Unable to find image '(\w[\w./:@-]*)' locally`),
		what: "the image is still being pulled: run docker pull $1 first, or give it more time with --start-timeout"},
	{reason: isLate, stderr: regexp.MustCompile(`Unable to find image|: Pulling (?:from|fs layer)|: (?:Download|Pull) complete|: Verifying Checksum`),
		what: "the image is still being pulled: run docker pull with the image first, or give it more time with --start-timeout"},
	// A module with the whole path, which no other one imports, is the file that the command names.
	{stderr: regexp.MustCompile(`Cannot find module '((?:/|[A-Za-z]:\\)[^']*)'(?: \||$)`),
		what: "there is no file $1: check the path, and whether the program has been built"},
	{stderr: regexp.MustCompile(`python[\w.]*(?:\.exe)?: No module named ([\w.]*\w)`),
		what: "install the Python module $1, or check its name"},
	{stderr: regexp.MustCompile(`Cannot find (?:module|package)|MODULE_NOT_FOUND|ModuleNotFoundError|ImportError`),
		what: "install what the program needs, and build it, in its directory"},
	{stderr: regexp.MustCompile(`can't open file|No such file or directory|ENOENT`),
		what: "check the path; it is relative to --dir, or to where sse-server was started"},
	{stderr: regexp.MustCompile(`EACCES|PermissionError|[Pp]ermission denied(?: \||$)`),
		what: "check the permissions: this user may not use what the message names"},
	{reason: regexp.MustCompile(`it has no #! line`),
		what: "begin the script with a line such as #!/bin/sh, or name its interpreter first, as in: sh script"},
	{reason: regexp.MustCompile(`no such program in PATH`), what: spelling},
	// The reason says what to do by itself.
	{reason: regexp.MustCompile(`start "[^"]*": [^:]*: ((?:check|create|give|let|save) .*)$`), what: "$1"},
	{stderr: regexp.MustCompile(`command not found|executable file not found|sh: (?:line )?\d+: \S+: not found`), what: spelling},
	{stderr: regexp.MustCompile(`EADDRINUSE|[Aa]ddress already in use`),
		what: "give it an option for stdio, if it has one; one that serves HTTP goes after --url"},
	{stderr: regexp.MustCompile(`(?i)not (?:logged|signed)[ -]in|please (?:log|sign)[ -]?in|\brun [\w ./'-]{0,60}\b(?:log[ -]?in|auth)\b`),
		what: "log in as it says, as the user that sse-server runs as"},
	{either: regexp.MustCompile(`(?i:api.?key|access.?token|environment variable|credential)|\b[A-Z][A-Z0-9_]*_(?:KEY|TOKEN)\b|` +
		`\b[A-Z][A-Z0-9]*_[A-Z0-9_]+\b.{0,20} (?:required|missing|not set|unset|undefined|not defined|must be set)|(?i:\bset|missing|requires?) \b[A-Z][A-Z0-9]*_[A-Z0-9_]+\b`),
		what: "give it what it asks for with --env NAME=VALUE"},
	{either: refused, kind: config.OfCommand,
		what: "start what the program connects to, or check the address that it is given"},
	{reason: refused,
		what: "start the server that --url names, or check its address"},
	{reason: regexp.MustCompile(`the server redirects to `),
		what: "put the address to which it redirects into --url, unless that is a login page"},
	{reason: regexp.MustCompile(`but "text/html`),
		what: "check the path, such as /mcp; a login page in front of the server has to let programs pass"},
	{reason: regexp.MustCompile(`not HTTPS|HTTP response to HTTPS client`),
		what: "use http:// in --url"},
	{reason: regexp.MustCompile(`HTTP request to an HTTPS server`),
		what: "use https:// in --url"},
	{reason: regexp.MustCompile(`MCP is at (/[\w./-]*)`),
		what: "use the path that it names: $1"},
	{either: regexp.MustCompile(`certificate|x509`),
		what: "check the address, and its certificate"},
	{reason: regexp.MustCompile(`sends back what it gets|wrote no JSON-RPC|text to stdout`),
		what: "serve a program that speaks MCP on stdin and stdout; many need an argument such as stdio"},
	{reason: regexp.MustCompile(`^list \w+: .*(?:in time|deadline|time is up|time-?out)`),
		what: "give its lists more time with --request-timeout and --start-timeout"},
	{reason: regexp.MustCompile(`no endpoint event`),
		what: "check the path; a proxy in front of the server must not hold back its event stream"},
	{reason: isLate,
		what: "give it more time with --start-timeout"},
	{stderr: regexp.MustCompile(`(?i)usage:|(?:unknown|unrecognized|invalid|no such) (?:\w+ )?(?:option|flag|command|argument)|missing required|required argument`),
		what: "check the arguments of the command"},
}

const spelling = "check the spelling of the program, and the PATH of sse-server"

// For returns what to do about a server that has not started, with that error.
func For(s *config.Server, text string) string {
	reason, stderr := Apart(text)
	if what := Known(s, reason, stderr); what != "" {
		return what
	}
	if s.Kind() == config.OfCommand {
		return "run the command alone in a terminal to see more of it"
	}
	return "open the address with curl to see more of it"
}

// Known returns what to do about a reason, and what the program has written last; empty if nothing is known of
// them.
func Known(s *config.Server, reason, stderr string) string {
	for _, one := range remedies {
		if what, meant := one.of(s, reason, stderr); meant {
			return what
		}
	}
	return ""
}

// of returns what the remedy says for a server, and whether it is meant.
func (r *remedy) of(s *config.Server, reason, stderr string) (what string, meant bool) {
	if r.kind != "" && r.kind != s.Kind() {
		return "", false
	}
	template := r.what
	if s.IsInFile() { // options are keys there
		template = option.ReplaceAllString(template, "$1:")
	}
	what = strings.ReplaceAll(template, "$$", "$")
	for _, in := range []struct {
		pattern *regexp.Regexp
		text    string
	}{{r.reason, reason}, {r.stderr, stderr}, {r.either, reason + "\n" + stderr}, {r.command, strings.Join(s.Command, " ")}} {
		if in.pattern == nil {
			continue
		}
		found := in.pattern.FindStringSubmatchIndex(in.text)
		if found == nil {
			return "", false
		}
		if len(found) > 2 {
			what = string(in.pattern.ExpandString(nil, template, in.text, found))
		}
	}
	return atServer(s, what), true
}

// Apart returns why a server has not started, and the lines that it has written last.
func Apart(text string) (reason, stderr string) {
	for _, before := range []string{"; stderr: ", "; its stderr says: "} {
		if reason, stderr, found := strings.Cut(text, before); found {
			return reason, stderr
		}
	}
	return text, ""
}

// option is one as remedies name it. The first group is its name.
var option = regexp.MustCompile(`--([a-z-]+)(?: NAME=VALUE)?`)

// atServer returns a remedy with the whole URL of a path at a remote server.
func atServer(s *config.Server, what string) string {
	if before, path, found := strings.Cut(what, "it names: /"); found {
		if at, err := url.Parse(s.Remote().Address); err == nil {
			what = before + "it names: " + (&url.URL{Scheme: at.Scheme, Host: at.Host, Path: "/" + path}).String()
		}
	}
	return what
}
