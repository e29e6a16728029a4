package advice

import (
	"net/url"
	"regexp"
	"strings"

	"github.com/mcp-sse/mcp-sse/cmd/sse-server/internal/config"
	"github.com/mcp-sse/mcp-sse/cmd/sse-server/internal/diagnosis"
)

// pattern is met by a text that one of its regular expressions matches.
type pattern []*regexp.Regexp

// anyOf returns the pattern of regular expressions.
func anyOf(expressions ...string) (p pattern) {
	for _, expression := range expressions {
		p = append(p, regexp.MustCompile(expression))
	}
	return p
}

// find returns the first regular expression of p that matches a text, and where its groups are; nil if none does.
func (p pattern) find(text string) (one *regexp.Regexp, groups []int) {
	for _, one := range p {
		if groups := one.FindStringSubmatchIndex(text); groups != nil {
			return one, groups
		}
	}
	return nil, nil
}

// remedy is what to do about a server that does not start. It is meant if each pattern that it has is met.
type remedy struct {
	reason pattern // what sse-server says
	stderr pattern // what the program has written last
	either pattern // one of the two
	kind   string  // of servers; empty: any
	// command is met by the command and its arguments.
	command pattern
	// todo names options as they are written on the command line. $1 is what the first group of the pattern
	// has matched.
	todo string
}

// interpreter matches a command that is one alone: it takes its input for a program.
const interpreter = `^(?:.*[/\\])?(?:(?:ba|da|z|k|a|fi)?sh|pwsh|powershell|cmd|python[\d.]*|node|ruby|perl|php|lua)` +
	`(?:\.exe)?(?: -[il])*$`

var (
	// servesHTTP is met by what programs write that serve HTTP: its group is the port. One that is starting may say at
	// what it connects, such as a database, so that it needs more: http, a port or 0.0.0.0, and no comma before.
	servesHTTP = anyOf(`(?i)(?:\b(?:listening|running|serving|started|available|ready)\b[^|]{0,40}\b(?:on|at)\b` +
		`[^|]{0,20}?(?:\bport[ :]+|://[^\s/|]+:|(?:localhost|127\.0\.0\.1|0\.0\.0\.0|\*|::|\s):)` +
		`|\bstarting\b[^|,]{0,80}\b(?:on|at)\b[^|,]{0,20}?(?:\bport[ :]+|https?://[^\s/|]+:|0\.0\.0\.0:))(\d{2,5})\b`)
	isLate  = anyOf(`\(start-timeout\)`, `time is up`, `deadline exceeded`)
	refused = anyOf(`(?i)connection refused`, `ECONNREFUSED`)
)

// remedies are tried in this order: the first that is meant is taken.
var remedies = []remedy{
	{either: anyOf(`it starts itself again and again`, `the sse-server of this name has started this one`),
		todo: config.NameTheServer},
	{reason: anyOf(`the sse-server of this name differs in .*?: (stop it \(kill \d+\), or give --connect another port` +
		`(?:; with --dir DIR, and files by their whole paths, it is one for all directories)?` +
		`(?:; with the whole path of the program, PATH does not choose it)?)$`), todo: "$1"},
	{reason: anyOf(`the issuer cannot renew the login now`),
		todo: "wait until the issuer works: somebody is logged in"},
	{reason: anyOf(`the server refused access`),
		todo: "give it credentials, as with --header 'Authorization: Bearer $${TOKEN}'"},
	{reason: anyOf(`listens at the proxy`, `to the proxy`, `answers at the proxy`, `(?:known for|of) the proxy`,
		`the proxy speaks no TLS`),
		todo: diagnosis.CheckProxy},
	// Shells write these about a message that they take for a command: at the beginning of a line, or after a prompt.
	// They have removed its quotes.
	{stderr: anyOf(`(?:^|[|#$%>] |/)-?(?:ba|da|z|k|mk|a|fi)?sh: ` +
		`(?:(?:line )?\d+: |<stdin>\[\d+\]: |command not found: |Unknown command: )?\{?jsonrpc:`),
		todo: "name an MCP server: this is a shell, which takes its messages for commands"},
	{reason: anyOf(`^it has not answered initialize`, `\(start-timeout\)`), command: anyOf(interpreter),
		todo: "name an MCP server after it, such as a script: the command is a shell or interpreter alone, " +
			"which takes its messages for a program"},
	{stderr: servesHTTP, kind: config.OfCommand,
		todo: "serve it with --url http://127.0.0.1:$1/mcp, as it seems to serve HTTP itself, " +
			"or give it an option for stdio, if it has one"},
	{stderr: anyOf(`E404`, `npm (?:error|ERR!) 404`, `not in (?:this|the npm) registry`, `No matching distribution`,
		`not found in the package registry`),
		todo: "check the name of the package, and which registry is configured"},
	{either: anyOf(`ENOTFOUND`, `EAI_AGAIN`, `no such host`, `no address is known`,
		`Temporary failure in name resolution`, `Name or service not known`),
		todo: "check the name of the host, and that this machine reaches the network"},
	{stderr: anyOf(`Cannot connect to the Docker daemon`, `docker\.sock`, `docker: error during connect`),
		todo: "start Docker, and let this user use it"},
	{stderr: anyOf(`pull access denied`, `manifest unknown`),
		todo: "check the name of the image; a private one needs docker login"},
	{reason: isLate, stderr: anyOf(`Unable to find image '(\w[\w./:@-]*)' locally`),
		todo: "the image is still being pulled: run docker pull $1 first, or give it more time with --start-timeout"},
	{reason: isLate, stderr: anyOf(`: Pulling from`, `: Pulling fs layer`, `: (?:Download|Pull) complete`,
		`: Verifying Checksum`),
		todo: "the image is still being pulled: run docker pull with the image first, " +
			"or give it more time with --start-timeout"},
	// A module with the whole path, which no other one imports, is the file that the command names.
	{stderr: anyOf(`Cannot find module '((?:/|[A-Za-z]:\\)[^']*)'(?: \||$)`),
		todo: "there is no file $1: check the path, and whether the program has been built"},
	{stderr: anyOf(`python[\w.]*(?:\.exe)?: No module named ([\w.]*\w)`),
		todo: "install the Python module $1, or check its name"},
	{stderr: anyOf(`Cannot find (?:module|package)`, `MODULE_NOT_FOUND`, `ModuleNotFoundError`, `ImportError`),
		todo: "install what the program needs, and build it, in its directory"},
	{stderr: anyOf(`can't open file`, `No such file or directory`, `ENOENT`),
		todo: "check the path; it is relative to --dir, or to where sse-server was started"},
	{stderr: anyOf(`EACCES`, `PermissionError`, `[Pp]ermission denied(?: \||$)`),
		todo: "check the permissions: this user may not use what the message names"},
	{reason: anyOf(`it has no #! line`),
		todo: "begin the script with a line such as #!/bin/sh, or name its interpreter first, as in: sh script"},
	{reason: anyOf(`no such program in PATH`), todo: spelling},
	// The reason says what to do by itself.
	{reason: anyOf(`start "[^"]*": [^:]*: ((?:check|create|give|let|save) .*)$`), todo: "$1"},
	{stderr: anyOf(`command not found`, `executable file not found`, `sh: \d+: \S+: not found`), todo: spelling},
	{stderr: anyOf(`EADDRINUSE`, `[Aa]ddress already in use`),
		todo: "give it an option for stdio, if it has one; one that serves HTTP goes after --url"},
	{stderr: anyOf(`(?i)not logged[ -]in`, `(?i)to be logged in`,
		"(?i)\\brun:? [\\w ./'`-]{0,60}\\b(?:log[ -]?in|auth)\\b"),
		todo: "log in as it says, as the user that sse-server runs as"},
	{either: anyOf(`(?i)api.?key`, `(?i)access.?token`, `(?i)environment variable`, `(?i)credential`,
		`\b[A-Z][A-Z0-9_]*_(?:KEY|TOKEN)\b`,
		`\b[A-Z][A-Z0-9]*_[A-Z0-9_]+\b.{0,20} (?:required|missing|not set|unset|undefined|not defined|must be set)`,
		`(?i:\bset|missing|requires?) \b[A-Z][A-Z0-9]*_[A-Z0-9_]+\b`),
		todo: "give it what it asks for with --env NAME=VALUE"},
	{either: refused, kind: config.OfCommand,
		todo: "start what the program connects to, or check the address that it is given"},
	{reason: refused,
		todo: "start the server that --url names, or check its address"},
	{reason: anyOf(`the server redirects to `),
		todo: "put the address to which it redirects into --url, unless that is a login page"},
	{reason: anyOf(`but "text/html`),
		todo: "check the path, such as /mcp; a login page in front of the server has to let programs pass"},
	{reason: anyOf(`not HTTPS`),
		todo: "use http:// in --url"},
	{reason: anyOf(`HTTP request to an HTTPS server`),
		todo: "use https:// in --url"},
	{reason: anyOf(`MCP is at (/[\w./-]*)`),
		todo: "use the path that it names: $1"},
	{either: anyOf(`certificate`, `x509`),
		todo: "check the address, and its certificate"},
	{reason: anyOf(`sends back what it gets`, `wrote no JSON-RPC`, `text to stdout`),
		todo: "serve a program that speaks MCP on stdin and stdout; many need an argument such as stdio"},
	{reason: anyOf(`^list \w+: .*(?:in time|deadline|time is up|time-?out)`),
		todo: "give its lists more time with --request-timeout and --start-timeout"},
	{reason: anyOf(`no endpoint event`),
		todo: "check the path; a proxy in front of the server must not hold back its event stream"},
	{reason: isLate,
		todo: "give it more time with --start-timeout"},
	{stderr: anyOf(`(?i)usage:`,
		`(?i)(?:unknown|unrecognized|invalid|no such) (?:\w+ )?(?:option|flag|command|argument)`, `missing required argument`),
		todo: "check the arguments of the command"},
}

const spelling = "check the spelling of the program, and the PATH of sse-server"

// For returns what to do about a server that has not started, with the text of that error.
func For(s *config.Server, text string) string {
	reason, stderr := Apart(text)
	if todo := Known(s, reason, stderr); todo != "" {
		return todo
	}
	if s.Kind() == config.OfCommand {
		return "run the command alone in a terminal to see more of it"
	}
	return "open the address with curl to see more of it"
}

// Known returns what to do about a reason, and what the program has written last; empty if nothing is known of
// them.
func Known(s *config.Server, reason, stderr string) string {
	if todo := logIn(s, reason); todo != "" {
		return todo
	}
	if s.LacksLogin() && strings.Contains(reason, "the server refused access (401") {
		return inItsFile(s, chooseLogin)
	}
	for _, one := range remedies {
		if todo, isMeant := one.of(s, reason, stderr); isMeant {
			return todo
		}
	}
	return ""
}

// chooseLogin is what to do about a server that refuses access, where nobody has said whose login it gets.
const chooseLogin = "if it wants a login: --login shared, one for all clients, or --login per-principal, where each " +
	"person logs in; if it wants a key: --header 'Authorization: Bearer ${TOKEN}'"

// inItsFile returns a text with the options of a server as keys, if a file has it.
func inItsFile(s *config.Server, text string) string {
	if !s.IsInFile() {
		return text
	}
	return option.ReplaceAllString(text, "$1:")
}

// logIn returns what to do about a login that is missing; empty if that is not the reason. The command is the program's
// own: a reason quotes what the server says, and people run what they read here.
func logIn(s *config.Server, reason string) string {
	command, _ := s.Remote().LoginNeeded()
	todo := "run in a terminal: " + command
	_, after, found := strings.Cut(reason, todo)
	switch {
	case command == "" || !found:
		return ""
	case strings.HasPrefix(after, " --scope "):
		todo += scopes.FindString(after)
	case strings.Contains(reason, todo+" and call again; or configure"):
		todo += "; or, if it wants a key and no login, give it that, as with --header 'Authorization: Bearer ${TOKEN}'"
		if s.IsInFile() {
			todo = strings.Replace(todo, "--header", "header:", 1)
		}
	}
	return todo
}

// scopes is met by the options of a command that asks for more scopes. The server has named these.
var scopes = regexp.MustCompile(`^(?: --scope [\w.:/+-]+)+`)

// of returns what the remedy says for a server, and whether it is meant.
func (r *remedy) of(s *config.Server, reason, stderr string) (todo string, isMeant bool) {
	if r.kind != "" && r.kind != s.Kind() {
		return "", false
	}
	template := r.todo
	if s.IsInFile() { // options are keys there
		template = option.ReplaceAllString(template, "$1:")
	}
	todo = strings.ReplaceAll(template, "$$", "$")
	for _, in := range []struct {
		pattern pattern
		text    string
	}{
		{r.reason, reason}, {r.stderr, stderr}, {r.either, reason + "\n" + stderr},
		{r.command, strings.Join(s.Command, " ")},
	} {
		if in.pattern == nil {
			continue
		}
		one, groups := in.pattern.find(in.text)
		if one == nil {
			return "", false
		}
		if len(groups) > 2 {
			todo = string(one.ExpandString(nil, template, in.text, groups))
		}
	}
	return atServer(s, todo), true
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
func atServer(s *config.Server, todo string) string {
	if before, path, found := strings.Cut(todo, "it names: /"); found {
		if at, err := url.Parse(s.Remote().Address); err == nil {
			todo = before + "it names: " + (&url.URL{Scheme: at.Scheme, Host: at.Host, Path: "/" + path}).String()
		}
	}
	return todo
}
