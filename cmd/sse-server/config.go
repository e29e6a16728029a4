package main

import (
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"

	"github.com/alecthomas/kong"
)

// config is every option of the daemon. The field name in kebab case is the
// flag and the key in the file; envName gives the variable.
//
// Tags of our own, beside kong's: zero says in words what 0 means (without it 0
// is refused), off marks those zeros that gateway.Options writes as a negative
// number, allowed and check restrict a text, min a duration, and only:"flag"
// keeps an option out of the environment and the file. The tag of lists the kinds
// of server that an option has an effect on; without it, all.
type config struct {
	Addr          text     `group:"server" default:"127.0.0.1:8080" placeholder:"HOST:PORT" check:"addr" help:"Address to serve on. Port 0 takes a free one; the host 0.0.0.0, [::] or none takes all addresses, of IPv4 and IPv6."`
	AdminAddr     text     `group:"server" placeholder:"HOST:PORT" check:"optional-addr" help:"Separate address for /healthz, /readyz, /metrics and /connections. None: the first three are on the main address and /connections is not served."`
	TLSCert       text     `group:"server" name:"tls-cert" placeholder:"FILE" help:"PEM file of the TLS certificate chain. None: plain HTTP."`
	TLSKey        text     `group:"server" name:"tls-key" placeholder:"FILE" help:"PEM file of the key of --tls-cert."`
	Config        text     `group:"server" short:"c" only:"flag+env" placeholder:"FILE" help:"YAML file of options: the names in this list without the dashes, command and servers."`
	LogLevel      text     `group:"server" default:"info" placeholder:"LEVEL" allowed:"debug|info|warn|error" help:"Least level that is logged to stderr: debug, info, warn or error."`
	LogFormat     text     `group:"server" default:"text" placeholder:"FORMAT" allowed:"text|json" help:"Form of the log: text or json."`
	ShutdownGrace duration `group:"server" name:"shutdown-timeout" default:"15s" placeholder:"DURATION" help:"How long a stop waits for requests in flight before it cuts them. 0 is refused."`
	Demo          toggle   `group:"server" help:"Serve the built-in demo server, as without any command."`
	CheckConfig   toggle   `group:"server" only:"flag" help:"Check the configuration, print the effective settings and leave."`
	Version       toggle   `group:"server" only:"flag" help:"Print the version and leave."`
	Help          toggle   `group:"server" short:"h" only:"flag" help:"Print this help and leave."`

	Env          pairs `group:"child" of:"child" placeholder:"KEY=VALUE" help:"Environment variable of the child process, added to this program's own. The flag may be repeated; in the variable one entry a line."`
	Dir          text  `group:"child" of:"child" placeholder:"DIR" check:"dir" help:"Working directory of the child process. None: this program's own."`
	MaxLineBytes size  `group:"child" of:"child remote" default:"16MiB" placeholder:"BYTES" help:"Longest line that is read from the child's stdout, or message from a remote server, in bytes. 0 is refused."`

	URL             text    `group:"remote" name:"url" placeholder:"URL" help:"Serve the remote MCP server at this address instead of a command. $${NAME} stands for an environment variable."`
	Header          headers `group:"remote" of:"remote" placeholder:"'NAME: VALUE'" help:"Header of each request to the remote server, such as 'Authorization: Bearer $${TOKEN}', where $${NAME} stands for an environment variable. The flag may be repeated; in the variable one entry a line."`
	BearerTokenFile text    `group:"remote" of:"remote" placeholder:"FILE" help:"File of the bearer token for the remote server, alone on a line. It is read at the start. None: no token."`
	ForwardHeader   list    `group:"remote" of:"remote" placeholder:"NAME,..." check:"header" help:"Headers of a client's GET that are handed on to the remote server with each request of its session. None: nothing of a client's is."`
	URLTransport    text    `group:"remote" name:"url-transport" of:"remote" default:"auto" placeholder:"NAME" allowed:"auto|streamable|stateless|sse" help:"What the remote server speaks: streamable (MCP 2025-03-26 to 2025-11-25), stateless (2026-07-28), sse (2024-11-05), or auto, which finds out."`

	Prefix               text   `group:"mcp" placeholder:"PATH" check:"prefix" help:"Path before every route: with /mcp the stream is at /mcp/sse. None: /sse."`
	TrustForwardedPrefix toggle `group:"mcp" help:"Put X-Forwarded-Prefix before the path in the endpoint event. Only behind a proxy that sets or removes it."`
	AutoInitialize       toggle `group:"mcp" default:"true" negatable:"" help:"Run the MCP handshake for each connection when it opens. Off: a plain HTTP+SSE transport of 2024-11-05."`
	Announce             toggle `group:"mcp" default:"true" negatable:"" help:"Send the connection and mcp-response events. Off: withhold them from all clients, as ?auto=0 does for one."`
	Event                text   `group:"mcp" placeholder:"NAME" allowed:"|message|mcp-response" help:"Name of the events that carry responses: message or mcp-response. Empty: decided for each connection."`
	Capabilities         object `group:"mcp" default:"{}" placeholder:"JSON" help:"Client capabilities that the gateway's own initialize declares, as a JSON object; in the file also as a mapping."`

	Sessions         text  `group:"sessions" default:"per-connection" placeholder:"MODE" allowed:"per-connection|shared" help:"Who gets a session with the server: per-connection, each its own; shared, all the same, with capabilities {}."`
	SessionsSize     count `group:"sessions" default:"1" placeholder:"N" help:"Shared sessions that connections are spread over, as a number. Only with --sessions shared. 0 is refused."`
	Warm             count `group:"sessions" default:"0" placeholder:"N" zero:"none" help:"Servers that are kept started ahead of connections, as a number. With --sessions shared, one or more has the shared sessions started ahead. 0: none."`
	StartConcurrency count `group:"sessions" default:"16" placeholder:"N" help:"Sessions that are started at a time, as a number; more wait. 0 is refused."`
	Retry            text  `group:"sessions" default:"safe" placeholder:"WHICH" allowed:"safe|never" help:"Requests in flight when their session is lost: safe repeats once those that change nothing; never answers all with an error."`

	InitializationTimeout duration `group:"times" default:"5s" placeholder:"DURATION" help:"How long a client's message waits for the handshake. 0 is refused."`
	StartTimeout          duration `group:"times" default:"60s" placeholder:"DURATION" help:"How long one start of the server may take, handshake included. 0 is refused."`
	InitializeTimeout     duration `group:"times" default:"50s" placeholder:"DURATION" help:"How long a client's own initialize waits for the server, failed starts included. Most clients give up after 60s. 0 is refused."`
	MaxHandshakeAttempts  count    `group:"times" default:"5" placeholder:"N" help:"Failed starts in a row after which a connection gives up, as a number. 0 is refused."`
	HeartbeatInterval     duration `group:"times" default:"15s" placeholder:"DURATION" min:"100ms" zero:"no heartbeats" off:"" help:"Longest silence on a stream before a heartbeat. 0: no heartbeats."`
	ConnectionTimeout     duration `group:"times" default:"0" placeholder:"DURATION" zero:"never" help:"Close a connection without any POST or request in flight for that long. 0: never."`
	RequestTimeout        duration `group:"times" default:"60s" placeholder:"DURATION" help:"How long the server may take for one request, or between two reports of its progress. 0 is refused."`
	MaxRequestTimeout     duration `group:"times" default:"600s" placeholder:"DURATION" help:"How long it may take whatever progress it reports; --request-timeout if that is longer. 0 is refused."`
	HangTimeout           duration `group:"times" default:"30s" placeholder:"DURATION" zero:"never" off:"" help:"Silence of a server with requests in flight after which it is suspected to hang: pinged once it is idle, and started anew if it misses two pings. 0: never."`
	WriteTimeout          duration `group:"times" default:"10s" placeholder:"DURATION" help:"How long one write to a client, or the wait for room in its outbox, may take. 0 is refused."`
	AnnounceDelay         duration `group:"times" default:"100ms" placeholder:"DURATION" zero:"none" off:"" help:"Least time between the endpoint and the mcp-response event. 0: none."`
	ReconnectDelay        duration `group:"times" default:"1s" placeholder:"DURATION" help:"How long clients are told to wait before they reconnect. 0 is refused."`
	SlowRequest           duration `group:"times" default:"5s" placeholder:"DURATION" zero:"never" off:"" help:"Duration from which a request is logged as slow. 0: never."`

	MaxConnections      count `group:"limits" default:"10000" placeholder:"N" zero:"unlimited" off:"" help:"Open connections, as a number. 0: unlimited."`
	MaxConnectionsPerIP count `group:"limits" name:"max-connections-per-ip" default:"0" placeholder:"N" zero:"unlimited" help:"Open connections of one client address (one /64 for IPv6), as a number. 0: unlimited."`
	ConnectRate         rate  `group:"limits" default:"50" placeholder:"PER-SECOND" zero:"unlimited" off:"" help:"New connections a second from one client address, loopback exempt. 0: unlimited."`
	ConnectBurst        count `group:"limits" default:"100" placeholder:"N" help:"New connections that may come at once within --connect-rate, as a number. 0 is refused."`
	MaxMessageBytes     size  `group:"limits" default:"4MiB" placeholder:"BYTES" help:"Body of a POST, in bytes. 0 is refused."`
	OutboxBytes         size  `group:"limits" default:"1MiB" placeholder:"BYTES" help:"What may wait to be written to one client, in bytes. 0 is refused."`
	GateQueue           count `group:"limits" default:"64" placeholder:"N" help:"Messages of one connection that wait for the handshake, as a number. 0 is refused."`
	MaxInFlight         count `group:"limits" default:"0" placeholder:"N" zero:"unlimited" help:"Requests that one session of the server works on at a time, as a number; more wait in order, 1 serializes. 0: unlimited."`
	MaxWaiting          count `group:"limits" default:"1024" placeholder:"N" help:"Requests of one session that wait for their turn within --max-in-flight, as a number. 0 is refused."`
	MaxPending          count `group:"limits" default:"4096" placeholder:"N" help:"Unanswered requests of one connection, waiting ones included, as a number. 0 is refused."`

	AuthTokensFile text   `group:"access" placeholder:"FILE" help:"File of bearer tokens that clients must show, one a line: TOKEN or PRINCIPAL:TOKEN; # starts a comment. None: no authentication."`
	Insecure       toggle `group:"access" help:"Allow an address that other machines reach without --auth-tokens-file."`
	TrustedProxies list   `group:"access" placeholder:"CIDR,..." check:"cidr" help:"Networks or addresses of the proxies whose X-Forwarded-For is believed. None: it is ignored."`
	AllowedOrigins list   `group:"access" placeholder:"ORIGIN,..." check:"origin" help:"Origins of web pages that are allowed beside the server's own, such as https://app.example.com; * allows any. None: only its own."`
	AllowedHosts   list   `group:"access" placeholder:"HOST,..." check:"host" help:"Host headers, without port, that are allowed on a loopback address beside loopback names; * allows any. None: only loopback names."`
	ErrorDetails   text   `group:"access" default:"auto" placeholder:"WHICH" allowed:"auto|full|safe" help:"What errors tell clients of the server: full, its exit status, the last of its stderr, its command or address; safe, the category alone; auto, full for clients on this machine while there is no --auth-tokens-file. The log has all of it."`
	CORS           toggle `group:"access" name:"cors" help:"Answer preflights and send CORS headers for --allowed-origins."`
}

// groups are the headings of the help and of docs/reference/config.md.
func groups() []kong.Group {
	return []kong.Group{
		{Key: "server", Title: "Server"},
		{Key: "child", Title: "Child process"},
		{Key: "remote", Title: "Remote server"},
		{Key: "mcp", Title: "Protocol"},
		{Key: "sessions", Title: "Sessions"},
		{Key: "times", Title: "Times"},
		{Key: "limits", Title: "Limits"},
		{Key: "access", Title: "Access"},
	}
}

// envName is the environment variable of a flag.
func envName(flag string) string {
	return "SSE_SERVER_" + strings.ToUpper(strings.ReplaceAll(flag, "-", "_"))
}

// inEnv and inFile say where a flag's option may be given too.
func inEnv(flag *kong.Flag) bool  { return flag.Tag.Get("only") != "flag" }
func inFile(flag *kong.Flag) bool { return !flag.Tag.Has("only") }

// The kinds of server.
const (
	kindDemo   = "demo"
	kindChild  = "child"
	kindRemote = "remote"
)

// isFor says whether an option has an effect on a kind of server.
func isFor(flag *kong.Flag, kind string) bool {
	return !flag.Tag.Has("of") || slices.Contains(strings.Fields(flag.Tag.Get("of")), kind)
}

// loaded is a configuration and where each part of it came from: that of the
// daemon, or of one of its servers.
type loaded struct {
	config
	// server is the name of the server; empty for the daemon.
	server string
	// servers are those of the file; none: the daemon has one, without a name.
	servers []*loaded
	// command is what the gateway serves, if it is a child process.
	command       []string
	commandInFile bool // it is that of the file
	commandFaulty bool // the file has one that cannot be used
	// address and header are those of a remote server, with what the environment
	// and files hold. Secrets.
	address string
	header  http.Header
	// tokens maps bearer tokens to principals; nil: no authentication.
	tokens map[string]string
	// warnings do not stop the daemon but belong in its log.
	warnings []string

	flags     []*kong.Flag
	origin    map[string]string // flag name → how a message names the option; missing: default
	own       map[string]bool   // what is given for this server itself; nil for the daemon: all of origin
	lookupEnv func(string) (string, bool)
}

// load reads the configuration from the arguments, the environment and the
// file. It returns all that is wrong with it, one line each.
func load(args []string, lookupEnv func(string) (string, bool), help io.Writer) (*loaded, []string, error) {
	l := &loaded{origin: map[string]string{}, lookupEnv: lookupEnv}
	sources := &sources{lookupEnv: lookupEnv, origin: l.origin}
	parser, err := newParser(&l.config, sources, help)
	if err != nil {
		return nil, nil, fmt.Errorf("build command line: %w", err)
	}
	l.flags = parser.Model.Flags
	own, command := splitCommand(args)
	own, faults := cleanArgs(parser, own)
	ctx, err := parser.Parse(own)
	if err != nil {
		return l, append(faults, err.Error()), nil
	}
	if l.Help.value {
		return l, nil, ctx.PrintUsage(false)
	}
	noteFlags(ctx, l.origin)
	faults = append(faults, sources.faults...)
	l.command, l.commandFaulty = command, sources.commandFaulty
	if len(command) == 0 {
		l.command, l.commandInFile = sources.command, true
	}
	faults = append(faults, l.faults()...)
	faults = append(faults, l.addServers(sources.file)...)
	faults = append(faults, l.validate()...)
	sortByLine(faults, sources.file.path)
	return l, faults, nil
}

// newParser builds the kong model over c.
func newParser(c *config, resolver kong.Resolver, help io.Writer) (*kong.Kong, error) {
	return kong.New(c,
		kong.Name("sse-server"),
		kong.NoDefaultHelp(),
		kong.Writers(help, help),
		kong.Exit(func(int) {}),
		kong.ExplicitGroups(groups()),
		kong.ConfigureHelp(kong.HelpOptions{NoAppSummary: true, WrapUpperBound: 110}),
		kong.ValueFormatter(helpText),
		kong.Help(printHelp),
		kong.Resolvers(resolver),
	)
}

// splitCommand cuts the arguments at the first "--".
func splitCommand(args []string) (own, command []string) {
	if i := slices.Index(args, "--"); i >= 0 {
		return args[:i], args[i+1:]
	}
	return args, nil
}

// words are the arguments that stand for a flag, as other programs have them for
// commands. A program of such a name is given after "--".
var words = map[string]string{"help": "--help", "version": "--version", "check": "--check-config"}

// cleanArgs takes out what kong would stop at, and returns what is wrong with
// it, so that the rest can still be checked.
func cleanArgs(parser *kong.Kong, args []string) (clean, faults []string) {
	isValue := func(i int) bool {
		return i < len(args) && (args[i] == "-" || !strings.HasPrefix(args[i], "-"))
	}
	for i := 0; i < len(args); i++ {
		arg := args[i]
		if flag, ok := words[arg]; ok {
			arg = flag
		}
		if isValue(i) && arg == args[i] {
			return clean, append(faults, fmt.Sprintf(
				"unexpected argument %q: the command to serve goes after --, as in: sse-server [flags] -- %s",
				arg, strings.Join(args[i:], " ")))
		}
		flag := findFlag(parser, arg)
		if flag == nil {
			faults = append(faults, unknownFlag(parser, arg))
			if isValue(i + 1) {
				i++
			}
			continue
		}
		switch next := i + 1; {
		case strings.HasPrefix(arg, "--no-") && strings.Contains(arg, "="):
			faults = append(faults, arg+": takes no value")
			continue
		case flag.IsBool() || strings.Contains(arg, "=") || next == len(args):
		case isValue(next):
			clean, arg, i = append(clean, arg), args[next], next
		case isNegative(args[next]):
			arg, i = arg+"="+args[next], next
		}
		clean = append(clean, arg)
	}
	return clean, faults
}

// isNegative tells a negative number, which some try for "no limit", from a
// flag: it gets the message of the option, not that of an unknown flag.
func isNegative(arg string) bool {
	return len(arg) > 1 && arg[0] == '-' && arg[1] >= '0' && arg[1] <= '9'
}

// findFlag returns the flag that an argument names, nil if there is none.
func findFlag(parser *kong.Kong, arg string) *kong.Flag {
	name, _, _ := strings.Cut(arg, "=")
	for _, flag := range parser.Model.Flags {
		switch {
		case name == "--"+flag.Name,
			flag.Short != 0 && arg == "-"+string(flag.Short),
			flag.Tag.Negatable != "" && name == "--no-"+flag.Name:
			return flag
		}
	}
	return nil
}

// noteFlags records which options the command line set.
func noteFlags(ctx *kong.Context, origin map[string]string) {
	for _, path := range ctx.Path {
		if path.Flag != nil && !path.Resolved {
			origin[path.Flag.Name] = "--" + path.Flag.Name
		}
	}
}

// faults returns what is wrong with each option by itself.
func (l *loaded) faults() []string {
	var out []string
	for _, flag := range l.flags {
		if !l.given(flag.Name) {
			continue // a default, or told before
		}
		given, want := flag.Target.Addr().Interface().(setting).fault()
		if want == "" {
			continue
		}
		name := l.name(flag.Name)
		if given != "" {
			name += fmt.Sprintf(" %q", given)
		}
		out = append(out, name+": "+want)
	}
	return out
}

// name is an option as the user gave it: --addr, SSE_SERVER_ADDR or
// config.yaml:3: addr.
func (l *loaded) name(flag string) string {
	if origin, ok := l.origin[flag]; ok {
		return origin
	}
	return "--" + flag
}

// given says whether an option was set by anything but its default, or that of
// all servers.
func (l *loaded) given(flag string) bool {
	if l.own != nil {
		return l.own[flag]
	}
	_, ok := l.origin[flag]
	return ok
}
