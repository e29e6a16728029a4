package config

import (
	"strings"
	"time"

	"github.com/mcp-sse/mcp-sse/connstate"
	"github.com/mcp-sse/mcp-sse/gateway"
)

// option is a row of the table.
type option struct {
	group string // the heading in --help and the reference
	name  string // of the flag and the key of the file; envName gives the variable
	short string // "-c", or ""
	value value
	of    Kind   // the kinds of server that it has an effect on; 0: all
	where scope  // where it may be given
	help  string // "" for the command, which is not a flag
}

// scope is where an option may be given.
type scope int

const (
	anywhere   scope = iota // flag, variable, file, and each entry of servers
	topLevel                // not in an entry of servers
	serving                 // says what to serve: with servers, only in their entries
	flagAndEnv              // not in the file
	flagOnly                // neither in the environment nor in the file
)

// Kind is a kind of server, or a set of kinds.
type Kind int

// The kinds of server.
const (
	Demo Kind = 1 << iota
	Child
	Remote
)

// envName returns the environment variable of an option.
func envName(name string) string {
	return "SSE_SERVER_" + strings.ToUpper(strings.ReplaceAll(name, "-", "_"))
}

func (o *option) isFlag() bool { return o.help != "" }
func (o *option) inEnv() bool  { return o.isFlag() && o.where != flagOnly }
func (o *option) inFile() bool { return o.where < flagAndEnv }

// isFor reports whether the option has an effect on a kind of server.
func (o *option) isFor(kind Kind) bool { return o.of == 0 || o.of&kind != 0 }

// table returns all options, one a line, bound to the fields of c. To add one, add
// its row, and the field that keeps it if gateway.Options has none.
func (c *Config) table() []option {
	o := &c.Options
	var all []option
	group := func(title string, rows []option) {
		for _, row := range rows {
			row.group = title
			all = append(all, row)
		}
	}
	group("Server", []option{
		{name: commandKey, where: serving, of: Child, value: command(&c.command)},
		{name: "addr", where: topLevel, value: text("HOST:PORT", &c.Addr, checkAddr), help: "Address to serve on. Port 0 takes a free port. The host 0.0.0.0, [::] or an empty one takes all addresses, IPv4 and IPv6."},
		{name: "admin-addr", where: topLevel, value: text("HOST:PORT", &c.AdminAddr, optional(checkAddr)), help: "Separate address for /healthz, /readyz, /metrics and /connections. Without it, the first three are served on the main address and /connections is not served."},
		{name: "prefix", where: topLevel, value: text("PATH", &o.Prefix, checkPrefix), help: "Path before every route: with /mcp, the stream is at /mcp/sse."},
		{name: "tls-cert", where: topLevel, value: text("FILE", &c.TLSCert, nil), help: "PEM file with the TLS certificate chain. Without it, the server speaks plain HTTP."},
		{name: "tls-key", where: topLevel, value: text("FILE", &c.TLSKey, nil), help: "PEM file with the key of --tls-cert."},
		{name: "config", short: "-c", where: flagAndEnv, value: text("FILE", &c.path, nil), help: "YAML file of options. Its keys are the names in this list without the dashes, command and servers."},
		{name: "log-level", where: topLevel, value: choice("LEVEL", &c.LogLevel, "debug", "info", "warn", "error"), help: "Lowest level to log to stderr: debug, info, warn or error."},
		{name: "log-format", where: topLevel, value: choice("FORMAT", &c.LogFormat, "text", "json"), help: "Format of the log: text or json."},
		{name: "shutdown-timeout", where: topLevel, value: duration(&c.ShutdownTimeout, refused), help: "How long the server waits for requests in flight when it stops. Then it closes their streams."},
		{name: "demo", where: serving, value: toggle(&c.demo), help: "Serve the built-in demo server. It is also served if there is no command and no --url."},
		{name: "stdio", where: flagOnly, value: toggle(&c.Stdio), help: "Serve one client on stdin and stdout instead of HTTP, until stdin or the parent process ends. Flags for HTTP are refused; their variables and keys have no effect."},
		{name: "check-config", where: flagOnly, value: toggle(&c.CheckConfig), help: "Check the configuration, print the effective settings and exit."},
		{name: "version", where: flagOnly, value: toggle(&c.Version), help: "Print the version and exit."},
		{name: "help", short: "-h", where: flagOnly, value: toggle(&c.Help), help: "Print this help and exit."},
	})
	group("Child process", []option{
		{name: "env", of: Child, value: pairs("KEY=VALUE", &c.env, checkVariable), help: "Environment variable of the child process, added to those of sse-server. Repeat the flag for more; the variable has one on each line."},
		{name: "env-allow", of: Child, value: list("NAME,...", &c.envAllow, parseVariableName), help: "Environment variables of sse-server that the child process gets, beside those of --env. Without it, the child process gets all but those that the options of remote servers use."},
		{name: "principal-env", of: Child, value: text("NAME", &c.principalEnv, optional(checkVariableName)), help: "Environment variable in which the child process gets the principal of its client. Not with --warm or --sessions shared. Without it, it gets none."},
		{name: "dir", of: Child, value: text("DIR", &c.dir, optional(checkDir)), help: "Working directory of the child process. Without it, that of sse-server."},
		{name: "max-line-bytes", of: Child | Remote, value: size(&c.maxLineBytes), help: "Longest message that a server may send: a line on the stdout of a child process, or a message of a remote server."},
	})
	group("Remote server", []option{
		{name: "url", where: serving, value: c.urlValue(), help: "Serve the remote MCP server at this address. ${NAME} is replaced by an environment variable."},
		{name: "header", where: serving, of: Remote, value: pairs("'NAME: VALUE'", &c.headers, checkHeader), help: "Header of every request to the remote server, such as 'Authorization: Bearer ${TOKEN}'. ${NAME} is replaced by an environment variable. Repeat the flag for more; the variable has one on each line."},
		{name: "bearer-token-file", where: serving, of: Remote, value: text("FILE", &c.bearerTokenFile, nil), help: "File with the bearer token for the remote server, alone on a line. It is read at startup."},
		{name: "forward-header", where: serving, of: Remote, value: list("NAME,...", &o.ForwardHeaders, parseHeaderName), help: "Headers of the request that opens a connection, to send to the remote server with each request of its session. Without it, no header of a client is sent."},
		{name: "url-transport", where: serving, of: Remote, value: choice("NAME", &c.transport, "auto", "streamable", "stateless", "sse"), help: "Protocol of the remote server: streamable (MCP 2025-03-26 to 2025-11-25), stateless (2026-07-28), sse (2024-11-05), or auto to find out."},
	})
	group("Protocol", []option{
		{name: "transports", value: list("NAME,...", &o.Transports, parseTransport), help: "Transports to serve: sse is HTTP+SSE at /sse, streamable is Streamable HTTP at /mcp."},
		{name: "require-initialize", value: toggle(&o.RequireInitialize), help: "Refuse requests over Streamable HTTP without a session with 400, as the specification has it. If off, the gateway makes a session for them and runs the MCP handshake."},
		{name: "adopt-sessions", value: toggle(&o.AdoptSessions), help: "Make a new session for an Mcp-Session-Id that is not known, under that id. If off, the client gets 404 and has to initialize again."},
		{name: "trust-forwarded-prefix", value: toggle(&o.TrustForwardedPrefix), help: "Put the X-Forwarded-Prefix header before the path in the endpoint event. Use it only behind a proxy that always sets or removes this header."},
		{name: "auto-initialize", value: inverted(&o.NoAutoInitialize), help: "Run the MCP handshake for each connection when it opens. If off, the gateway adds nothing: over HTTP+SSE it is a plain transport of 2024-11-05, over Streamable HTTP --require-initialize is on."},
		{name: "announce", value: inverted(&o.Quiet), help: "Send the connection and mcp-response events. If off, no client gets them, as with ?auto=0."},
		{name: "event", value: choice("NAME", &o.EventName, "", connstate.EventMessage, connstate.EventResponse), help: "Name of the events that carry responses: message or mcp-response. Without it, the gateway decides for each connection."},
		{name: "capabilities", value: object("JSON", &o.Capabilities), help: "Client capabilities that the gateway's own initialize declares, as a JSON object. In the file they may also be a mapping."},
	})
	group("Sessions", []option{
		{name: "sessions", value: choice("MODE", &o.Sessions, gateway.SessionsPerConnection, gateway.SessionsShared), help: "per-connection gives each connection its own session with the server; shared gives all connections the same, which needs capabilities {}."},
		{name: "sessions-size", value: count(&o.SessionsSize, refused), help: "Number of shared sessions. Connections are spread over them. Only with --sessions shared."},
		{name: "warm", value: count(&o.Warm, zero("none")), help: "Number of servers to keep started ahead of connections. With --sessions shared, 1 or more starts the shared sessions ahead."},
		{name: "start-concurrency", value: count(&o.StartConcurrency, refused), help: "Number of sessions that may start at the same time. More wait."},
		{name: "retry", value: choice("WHICH", &o.Retry, gateway.RetrySafe, gateway.RetryNever), help: "What happens to requests in flight when their session is lost: safe repeats once those that change nothing; never answers all with an error."},
	})
	group("Times", []option{
		{name: "initialization-timeout", value: duration(&o.InitializationTimeout, refused), help: "How long a client's message waits for the handshake."},
		{name: "start-timeout", value: duration(&o.StartTimeout, refused), help: "How long one start of the server may take, including the handshake."},
		{name: "initialize-timeout", value: duration(&o.InitializeTimeout, refused), help: "How long a client's own initialize waits for the server, including failed starts. Most clients give up after 60s."},
		{name: "max-handshake-attempts", value: count(&o.MaxHandshakeAttempts, refused), help: "Number of failed starts in a row after which a connection gives up."},
		{name: "heartbeat-interval", value: duration(&o.HeartbeatInterval, off("no heartbeats"), 100*time.Millisecond), help: "Longest silence on a stream before the gateway sends a heartbeat."},
		{name: "connection-timeout", value: duration(&o.ConnectionTimeout, zero("never")), help: "Close a connection over HTTP+SSE that has had no POST and no request in flight for this long."},
		{name: "session-timeout", value: duration(&o.SessionTimeout, off("never")), help: "Close a session of Streamable HTTP that has had no POST, no request in flight and no open GET for this long. One whose id its client never sends back has a minute at most."},
		{name: "resume-time", value: duration(&o.ResumeTime, refused), help: "How long an event of Streamable HTTP is kept for a client whose stream was cut."},
		{name: "request-timeout", value: duration(&o.RequestTimeout, refused), help: "How long the server may take for a request, or between two progress reports."},
		{name: "max-request-timeout", value: duration(&o.MaxRequestTimeout, refused), help: "How long the server may take for a request, whatever progress it reports. The default is --request-timeout if that is longer."},
		{name: "hang-timeout", value: duration(&o.HangTimeout, off("never")), help: "Suspect that a server hangs if it is silent for this long with requests in flight. The gateway then pings it beside its requests, and restarts it if it misses two pings."},
		{name: "read-timeout", where: topLevel, value: duration(&o.ReadTimeout, refused), help: "How long a client may take to send a request, from its first byte."},
		{name: "write-timeout", value: duration(&o.WriteTimeout, refused), help: "How long a client may take to read 64 KiB, and how long a message waits for room in its outbox while nothing is written."},
		{name: "announce-delay", value: duration(&o.AnnounceDelay, off("none")), help: "Least time between the endpoint event and the mcp-response event."},
		{name: "reconnect-delay", value: duration(&o.ReconnectDelay, refused), help: "How long clients are told to wait before they reconnect."},
		{name: "slow-request", value: duration(&o.SlowRequest, off("never")), help: "Log requests that take at least this long as slow."},
	})
	group("Limits", []option{
		{name: "max-connections", value: count(&o.MaxConnections, off("unlimited")), help: "Number of open connections."},
		{name: "max-connections-per-ip", value: count(&o.MaxConnectionsPerIP, zero("unlimited")), help: "Number of open connections from one client address (one /64 for IPv6)."},
		{name: "max-tcp-connections", where: topLevel, value: count(&c.MaxTCP, zero("unlimited")), help: "Number of open TCP connections to one address that is served."},
		{name: "max-tcp-connections-per-ip", where: topLevel, value: count(&c.MaxTCPPerIP, zero("unlimited")), help: "Number of open TCP connections from one client address (one /64 for IPv6). Loopback addresses and --trusted-proxies are exempt."},
		{name: "max-sessions", value: count(&o.MaxSessions, off("unlimited")), help: "Number of sessions with the server, from before their start until they have ended: a child process counts until it is reaped. Further starts wait. The default is --max-connections and --warm."},
		{name: "connect-rate", value: rate(&o.ConnectRate, off("unlimited")), help: "New connections a second from one client address. Loopback addresses are exempt."},
		{name: "connect-burst", value: count(&o.ConnectBurst, refused), help: "Number of new connections that may come at once within --connect-rate."},
		{name: "max-held-bytes", where: topLevel, value: total(&o.MaxHeldBytes, off("unlimited")), help: "Size of all bodies that are being read and all messages that wait, of all servers together. Over it new requests and connections are refused."},
		{name: "resume-bytes", value: total(&o.ResumeBytes, off("none are kept")), help: "Size of the events of Streamable HTTP that are kept for clients whose stream was cut."},
		{name: "max-message-bytes", value: size(&o.MaxMessageBytes), help: "Size of the body of a POST."},
		{name: "outbox-bytes", value: size(&o.OutboxBytes), help: "Size of all messages that wait to be written to one client."},
		{name: "gate-queue", value: count(&o.GateQueue, refused), help: "Number of messages of one connection that wait for the handshake."},
		{name: "max-in-flight", value: count(&o.MaxInFlight, zero("unlimited")), help: "Number of requests of one session that the server works on at the same time. More wait in order; 1 serializes them."},
		{name: "max-waiting", value: count(&o.MaxWaiting, refused), help: "Number of requests of one session that wait because of --max-in-flight."},
		{name: "max-pending", value: count(&o.MaxPending, refused), help: "Number of unanswered requests of one connection, including those that wait."},
	})
	group("Access", []option{
		{name: "auth-tokens-file", where: topLevel, value: text("FILE", &c.tokensFile, nil), help: "File of bearer tokens for clients, one on each line: TOKEN or PRINCIPAL:TOKEN. # starts a comment. Without it, there is no authentication."},
		{name: "insecure", where: topLevel, value: toggle(&c.insecure), help: "Allow an address that other machines can reach without --auth-tokens-file."},
		{name: "trusted-proxies", where: topLevel, value: list("CIDR,...", &o.TrustedProxies, parsePrefix), help: "Networks or addresses of proxies whose X-Forwarded-For is believed. Without it, the header is ignored."},
		{name: "allowed-origins", where: topLevel, value: list("ORIGIN,...", &o.AllowedOrigins, parseOrigin), help: "Origins of web pages to allow beside the server's own, such as https://app.example.com; * allows any."},
		{name: "allowed-hosts", where: topLevel, value: list("HOST,...", &o.AllowedHosts, parseHost), help: "Host headers, without port, to allow on a loopback address beside loopback names; * allows any."},
		{name: "error-details", where: topLevel, value: choice("WHICH", &o.ErrorDetails, gateway.ErrorDetailsAuto, gateway.ErrorDetailsFull, gateway.ErrorDetailsSafe), help: "What errors tell clients about the server: full includes its exit status, the end of its stderr, and its command or address; safe tells only the category; auto is full for clients on this machine if there is no --auth-tokens-file. The log always has everything."},
		{name: "cors", where: topLevel, value: toggle(&o.CORS), help: "Answer preflights and send CORS headers for --allowed-origins."},
	})
	return all
}
