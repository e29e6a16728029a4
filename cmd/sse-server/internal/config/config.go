package config

import (
	"cmp"
	"crypto/sha256"
	"crypto/tls"
	_ "embed"
	"encoding"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"reflect"
	"slices"
	"strings"
	"time"

	"github.com/alecthomas/kong"

	"github.com/mcp-sse/mcp-sse/auth/oauth"
	"github.com/mcp-sse/mcp-sse/gateway"
	"github.com/mcp-sse/mcp-sse/internal/httpcheck"
	"github.com/mcp-sse/mcp-sse/internal/login"
	"github.com/mcp-sse/mcp-sse/internal/selection"
	"github.com/mcp-sse/mcp-sse/internal/upstream/remote"
)

// Config is the configuration of the daemon.
//
// Tags of our own: zero marks numbers that may be 0, and the help says what that means;
// oneof lists the values of a text, or of each text of a list; pairs is the separator of
// names and values, which may be secret; for names the kind of server that has the option;
// only marks those that are flags alone; empty marks lists that may be empty, which is another thing than to be left
// out; fixed those that cannot change without a restart; common those that --help shows, where --help-all shows all;
// http those that stdio has no use for.
type Config struct {
	Addr            Addr     `group:"Server" http:"" common:"" fixed:"" placeholder:"HOST:PORT" help:"Address to serve on. Port 0 takes a free port. The host 0.0.0.0, [::] or an empty one takes all addresses, IPv4 and IPv6."`
	AdminAddr       Addr     `group:"Server" http:"" common:"" fixed:"" placeholder:"HOST:PORT" help:"Separate address for /healthz, /readyz, /metrics, /connections, /-/reload and the page /status. Without it, the first three are served on the main address and the others are not served."`
	Prefix          string   `group:"Server" http:"" fixed:"" placeholder:"PATH" help:"Path before every route: with /tools, MCP is at /tools/mcp."`
	TLSCert         string   `group:"Server" http:"" common:"" placeholder:"FILE" help:"PEM file with the TLS certificate chain. Without it, the server speaks plain HTTP."`
	TLSKey          string   `group:"Server" http:"" common:"" placeholder:"FILE" help:"PEM file with the key of --tls-cert."`
	Expand          []string `group:"Remote server" only:"" placeholder:"NAME" help:"Variables of the environment that url and headers in the file of a client may send although the file belongs to a project, which others may have written."`
	Config          string   `group:"Server" common:"" short:"c" placeholder:"FILE" help:"YAML file of options. Its keys are the names in this list without the dashes, command, servers, mcpServers, views, oauth-client, login-client, public-url, oauth, scopes, principals and operators."`
	Watch           bool     `group:"Server" common:"" fixed:"" help:"Reload the configuration when one of its files changes: that of --config, tokens, certificates, secrets."`
	LogLevel        string   `group:"Server" common:"" placeholder:"LEVEL" oneof:"debug,info,warn,error" help:"Lowest level to log to stderr: debug, info, warn or error."`
	LogFormat       string   `group:"Server" fixed:"" placeholder:"FORMAT" oneof:"text,json" help:"Format of the log: text or json."`
	AuditLog        string   `group:"Server" fixed:"" placeholder:"FILE" help:"File to which a line of JSON is added for each call of a tool: who called which, of which server and view, from which address and client, and how it ended. - means stdout."`
	ExitUnused      Duration `group:"Server" http:"" fixed:"" placeholder:"DURATION" zero:"" help:"End when no client has been connected for this long. 0 means never."`
	ShutdownTimeout Duration `group:"Server" placeholder:"DURATION" help:"How long the server waits for requests in flight when it stops. Then it closes their streams."`
	HTTPIdleTimeout Duration `group:"Server" http:"" name:"http-idle-timeout" fixed:"" placeholder:"DURATION" help:"Close a TCP connection that has had no request for this long. It should be longer than a proxy or load balancer in front keeps its connections, which else may send a request while this end closes."`
	Called          string   `group:"Server" name:"name" fixed:"" common:"" placeholder:"NAME" help:"Name of the server in the banner, in the log and in what people paste into their clients: up to 64 letters of a-z, digits, _ and -. Without it, it comes from the package, program or address that is served."`
	StartCheck      bool     `group:"Server" http:"" fixed:"" negatable:"" help:"After the banner, start each server once and say what it is, or why it does not start."`
	Version         bool     `group:"Server" common:"" only:"" help:"Print the version and exit."`
	Help            bool     `group:"Server" common:"" only:"" short:"h" help:"Print the help with the flags that most need, after a command with those of its own, and exit."`
	HelpAll         bool     `group:"Server" common:"" only:"" help:"Print the help with all flags and exit."`

	AuthTokensFile string    `group:"Access" http:"" common:"" placeholder:"FILE" help:"File of bearer tokens for clients, one on each line: TOKEN, PRINCIPAL:TOKEN or PRINCIPAL:sha256:HEX. # starts a comment. Without it and oauth, there is no authentication."`
	IDKeyFile      string    `group:"Access" http:"" fixed:"" placeholder:"FILE" help:"File of at least 32 random characters, with which ids of sessions are signed, so that clients of Streamable HTTP go on after a restart. It is made if it is missing, unless there is --nats. Without the option it is id-key in $$STATE_DIRECTORY, $$XDG_STATE_HOME/sse-server or ~/.local/state/sse-server."`
	Insecure       bool      `group:"Access" http:"" common:"" help:"Allow an address that other machines can reach without --auth-tokens-file or oauth."`
	TrustedProxies []network `group:"Access" http:"" placeholder:"CIDR" help:"Networks or addresses of proxies whose X-Forwarded-For and X-Forwarded-Prefix are believed. Without it, the headers are ignored."`
	AllowedOrigins []string  `group:"Access" http:"" placeholder:"ORIGIN" help:"Origins of web pages to allow beside the server's own, such as https://app.example.com; * allows any. They get CORS headers."`
	AllowedHosts   []string  `group:"Access" http:"" placeholder:"HOST" help:"Host headers, without port, to allow beside loopback names; * allows any. Without it, any is allowed on an address that is not loopback; with it, only these and IP addresses."`
	Page           *bool     `group:"Access" http:"" negatable:"" help:"Serve browsers a page at the URL of each server, and at / one of all servers. Without it, clients on this machine get the page, and with --auth-tokens-file or oauth everybody, because the page asks for a token."`
	ErrorDetails   string    `group:"Access" placeholder:"WHICH" oneof:"auto,full,safe" help:"What errors tell clients about the server: full includes its exit status, the end of its stderr, and its command or address; safe tells only the category; auto is full for clients on this machine if there is neither --auth-tokens-file nor oauth. The log always has everything."`

	NATS        string `group:"Cluster" http:"" fixed:"" placeholder:"URL" help:"NATS servers, such as nats://host:4222 or tls://host:4222, with commas between them. Replicas that share them serve each other's clients behind any load balancer. All need the same --id-key-file. Without it, the process is alone."`
	NATSCreds   string `group:"Cluster" http:"" fixed:"" placeholder:"FILE" help:"File with the credentials for NATS."`
	ClusterName string `group:"Cluster" http:"" fixed:"" name:"cluster" placeholder:"NAME" help:"Name of the cluster, the same for all its replicas: up to 48 letters, digits, _ and -."`
	ClusterAddr Addr   `group:"Cluster" http:"" fixed:"" name:"cluster-addr" placeholder:"HOST:PORT" help:"Address at which the other replicas send requests for clients of this one, over TLS with certificates made from the key of ids. Without a host, as :7946, it listens on all addresses, and the others are told the one from which it reaches NATS. Without the option it is that address, which is loopback if NATS is, and a free port."`
	Replica     string `group:"Cluster" http:"" fixed:"" placeholder:"NAME" help:"Name of this replica, which no other one has: up to 48 letters, digits, _ and -. Without it, the host name."`

	// Shared is for sse-server itself: the socket of those who share it by stdio --connect. It serves there
	// in place of Addr.
	Shared string `hidden:""`
	// OfFile says that this is the shared sse-server of its file.
	OfFile bool `hidden:""`

	// Keys of the file:
	PublicURL string   `hidden:""`
	OAuth     []string `hidden:"" name:"oauth" sep:"none" pairs:"=" placeholder:"a mapping such as {issuer: https://…}"`
	// OperatorNames are globs over the principals that are operators. nil: each with a token of the file is, unless
	// there are principals.
	OperatorNames []string `hidden:"" name:"operators" sep:"none" empty:""`

	unnamed    []string // where tokens without a principal are
	pageClient string   // of oauth: the client with which the page logs in, "" for none

	Server
	Servers []*Server `kong:"-"` // those of the file; empty: there is only Server
	Views   []*View   `kong:"-"` // those of the file, or that of all servers

	Serve struct{} `cmd:"" default:"1" help:"Serve over HTTP. This is what sse-server does without a command of its own."`
	Stdio struct {
		Connect string `placeholder:"URL" help:"Share one sse-server with other programs of this user. The URL, such as http://127.0.0.1:8080/mcp, is its name: they meet at a socket that no other user can open, and no port. Without a URL it is the one of the file of --config, which takes only what the file names from the environment. If it does not run, start it with the other options and the command; it ends when nobody has been connected for 10m."`
		NoLogin bool   `help:"Do not open a browser where a remote server wants a login: the client gets a link instead."`
		Learn   bool   `hidden:"" help:"For sse-server itself: serve nobody, and remember what the server says to a client with the params of initialize on stdin."`
		// LearnAfter is how long after its client has left a server starts in an empty folder.
		LearnAfter Duration `hidden:"" default:"1m" help:"For tests of sse-server itself."`
	} `cmd:"" help:"Serve one agent on stdin and stdout, for clients that only start programs: with several servers in the file, all of them together. With --connect, through an sse-server that others use too."`
	Init struct {
		File string `arg:"" optional:"" help:"File to write. Without it, servers.yaml."`
		Yes  bool   `help:"Let each client use the gateway in the place of its own entries, without a question."`
	} `cmd:"" help:"Write a servers.yaml with the servers that Claude, Cursor, VS Code, Zed, Codex and others have here, or with the command after --. On a terminal it then starts each once, and asks for each client whether it shall use the gateway in the place of its own entries."`
	ConnectClient struct {
		Client string `arg:"" optional:"" help:"Name of the client, such as cursor."`
		Server string `arg:"" optional:"" help:"Name of one of several servers. Without it, all."`
		Write  bool   `help:"Add the entry to the file of the client: that of the project, or of the user. An entry with its name is replaced if it has only a URL."`
		File   string `placeholder:"FILE" help:"Add it to this file."`
		// Replace and Undo need a file.
		Replace bool `help:"With --write, also take over an entry with its name that has more than a URL, such as the command that sse-server serves now."`
		Undo    bool `help:"Restore the entries that the last --write or init has changed. One that somebody has changed since stays."`
	} `cmd:"" name:"connect" help:"Print what a client such as cursor needs to use this sse-server, with the options that it serves with, or the one at --url. With --write, add it to the client's file."`
	LogIn struct {
		Target       string   `arg:"" optional:"" name:"url-or-name" help:"URL of the server, or its name in the file of --config."`
		Issuer       string   `placeholder:"URL" help:"Log in at this issuer alone, also if it is at another site than the server. It is needed with --client-id."`
		EndpointHost []string `placeholder:"HOST" help:"Host of another site than the issuer's at which the issuer may have addresses, such as its token_endpoint. Without it, a terminal is asked, and elsewhere the login is refused."`
		ClientID     string   `name:"client-id" placeholder:"ID" help:"Client that is registered at the issuer by hand. No other way to get one is tried then."`
		ClientSecret string   `placeholder:"FILE" help:"File with the secret of that client."`
		Scope        []string `placeholder:"SCOPE" help:"Scopes to ask for. Without it, those of the login before, or else those that the server names."`
		NoResource   bool     `help:"Do not say for which server the token is, for an issuer that refuses that. A hostile server could then use the token at others."`
		Port         uint16   `placeholder:"PORT" help:"Port of 127.0.0.1 at which the browser comes back. Without it, that of the login before with --client-id, or else a free one."`
		NoBrowser    bool     `help:"Print the address instead of opening a browser, and take the one at which the browser ends. Without a display, and over SSH, that is so anyway."`
	} `cmd:"" name:"login" help:"Log in at a remote server in the browser, once for all clients of this machine: sse-server login https://mcp.example.com/mcp. It waits 5 minutes for you. The requests to it then carry the login, which is renewed as needed."`
	LogOut struct {
		Target    string `arg:"" optional:"" name:"url-or-name" help:"URL of the server, or its name in the file of --config."`
		Principal string `placeholder:"NAME" help:"End the login that this principal of a gateway has there, in place of the one for all clients."`
		Forget    bool   `help:"With --principal, forget the login also if the key of ids does not open it, so that the issuer cannot be told."`
	} `cmd:"" name:"logout" help:"Have the issuer end the login at a server, and forget it."`
	Logins struct {
		JSON bool `name:"json" help:"Print JSON."`
	} `cmd:"" help:"List who is logged in where: server, issuer, scopes, when the login ends and when it was last used. It prints no token."`
	Completion struct {
		Shell  string `arg:"" optional:"" help:"bash, zsh or fish."`
		Values string `hidden:"" help:"For completions themselves: print what can follow this flag or command, a line each."`
	} `cmd:"" help:"Print the completion for a shell: bash, zsh or fish."`
	VersionOf struct {
		Check bool `help:"Also ask GitHub whether there is a newer release. Nothing else asks there."`
	} `cmd:"" name:"version" help:"Print the version. With --check, also say whether there is a newer one."`
	Service struct {
		Do string `arg:"" optional:"" help:"install, uninstall or status."`
	} `cmd:"" help:"Keep the gateway of the file of --config running for this user, for clients that init has given to it: install writes a service of the system and starts it, uninstall removes what install has written, status says how it is. It serves a socket of this user, and opens no TCP port."`
	Tools struct {
		Name string `arg:"" optional:"" help:"Name of one server or view. Without it, all."`
		For  string `placeholder:"CLIENT" help:"Compare with the limits of this client alone: claude-code, codex, cursor, trae and others. Without it, with those of each."`
		JSON bool   `name:"json" help:"Print JSON."`
	} `cmd:"" help:"Print the tools of each server and view: the name that clients see, the server that has it, its name there, what is left out by which rule, and what the list costs against the limits of clients. With NAME, of one. It takes lists from memory, and starts servers of which nothing is known."`
	Check struct {
		Name    string   `arg:"" optional:"" help:"Name of one server or view to try. It opens sessions, as --start does."`
		Start   bool     `help:"Also open a session with each server, and print what it is, or why there is none."`
		For     string   `placeholder:"CLIENT" help:"Also say what this client will lose of each server and view, and what helps: claude-code, codex, cursor, trae and others, or all. It opens a session with each, as --start does. The exit code does not depend on it. With --url, claude.ai and chatgpt say what keeps their connectors from the server there."`
		Offline bool     `help:"Check the configuration alone. With --url nothing is asked there."`
		Origin  string   `placeholder:"ORIGIN" help:"With --url, also try what the browser does for a web page of this origin, such as https://app.example.com."`
		Wait    Duration `placeholder:"DURATION" help:"With --url, also leave a stream silent for this long, such as 70s, to see whether a proxy cuts it."`
		JSON    bool     `name:"json" help:"With --url, print the steps as JSON."`
		Learn   bool     `name:"learn-too" hidden:"" help:"For sse-server itself: remember what servers say, as when they serve clients."`
	} `cmd:"" help:"Check the configuration and serve nothing. With --start, also try each server, or with NAME that one. With --for CLIENT, also say what a client such as claude-code, or all, will lose of each. With --url of a running gateway or server, try step by step what a client meets there."`

	// The fields below follow from the options. Load sets them, and nobody changes them later.

	// Does is the command: serve, stdio, init, connect, login, logout, logins, completion, service, tools or check.
	Does string `kong:"-"`
	// Tokens has the principals by their tokens. It is nil if there is no file of tokens.
	Tokens map[string]string `kong:"-"`
	// IDKey signs the ids of sessions. If it is nil, the process makes a key of its own, and NoIDKey
	// says why; both are nil if nothing is served.
	IDKey   []byte `kong:"-"`
	NoIDKey error  `kong:"-"`
	// StateDir is the directory for what outlives the process. It is empty if there is none.
	StateDir string `kong:"-"`
	// RuntimeDir is the directory for what lasts as long as the user is logged in. It is empty if there is none.
	RuntimeDir string `kong:"-"`
	// Parents are the ids of the processes of the gateways that have started this one, the outermost first.
	Parents []string `kong:"-"`
	// Connect is the name of the sse-server that stdio --connect shares, nil without it, and DaemonArgs are the
	// arguments with which that is started: there the options that it was given.
	Connect    *url.URL `kong:"-"`
	DaemonArgs []string `kong:"-"`
	// Warnings are for the log, once it is there.
	Warnings []string `kong:"-"`
	// HelpText is what --help or --help-all prints; empty without them.
	HelpText string `kong:"-"`
	// Operators authenticates on the routes for operators, and Scrapers at /metrics. They are nil if nobody has to be
	// authenticated there.
	Operators, Scrapers func(*http.Request) (string, error) `kong:"-"`
	// Metadata serves the metadata of the resources of OAuth, by their paths.
	Metadata map[string]http.Handler `kong:"-"`
	// Certificate is that of the servers. If it is nil, they speak plain HTTP.
	Certificate *tls.Certificate `kong:"-"`

	// files has the hashes of the files that were read, by their paths: a reload compares them.
	files map[string][sha256.Size]byte
	again func() (*Config, error) // of Again
	// references are the variables to which what it has read refers.
	references []string
	// ignored has the members of mcpServers in the file that mean nothing here. A warning names them.
	ignored []string
	// home is the home directory of the user, empty if there is none.
	home string
	// hasViews says that the file has the key views.
	hasViews bool
	// isOfVSCode says that the file is one of VS Code: its key servers is not ours.
	isOfVSCode bool
}

// Server is the configuration of one MCP server: an entry of the key servers, or all
// that the daemon has.
type Server struct {
	Name    string   `kong:"-"`             // "": the only one
	Command []string `hidden:"" sep:"none"` // a key of the file, or after --

	// These are keys of the file: the scopes that tokens of OAuth must have, and globs over the principals that may use
	// the server. nil: each may.
	Scopes     []string `hidden:""`
	Principals []string `hidden:"" sep:"none" empty:""`

	Authenticate   func(*http.Request) (string, error) `kong:"-"` // nil: there is no authentication
	Reauthenticate bool                                `kong:"-"`
	resource       *oauth.Resource                     // nil: there is no issuer
	protection     oauth.Options                       // of resource

	Env          []string `group:"Child process" common:"" sep:"none" pairs:"=" placeholder:"KEY=VALUE" for:"command" help:"Environment variable of the child process, added to those of sse-server. Repeat the flag for more; the variable has one on each line."`
	EnvFile      []string `group:"Child process" common:"" sep:"none" placeholder:"FILE" help:"File of environment variables, a line each: NAME=VALUE, with # for comments. Nothing is expanded in the values, which may be quoted. The child process gets them; those of --env win. $${NAME} in --url and --header finds them, too. Repeat the flag for more; of two with one name the last counts."`
	EnvAllow     []string `group:"Child process" placeholder:"NAME" for:"command" help:"Environment variables of sse-server that the child process gets, beside those of --env. Without it, the child process gets all but those of sse-server's options, and those with secrets of remote servers, oauth, NATS and collectors of traces."`
	PrincipalEnv string   `group:"Child process" placeholder:"NAME" for:"command" help:"Environment variable in which the child process gets the principal of its client. Not with --warm or --sessions shared."`
	Dir          string   `group:"Child process" common:"" placeholder:"DIR" for:"command" help:"Working directory of the child process. Without it, that of sse-server."`
	CloseTimeout Duration `group:"Child process" placeholder:"DURATION" for:"command" help:"How long a child process may take to end after the end of its stdin, and again after SIGTERM; then it is killed. At a shutdown, --shutdown-timeout bounds both."`

	URL           string   `group:"Remote server" common:"" placeholder:"URL" help:"Serve the remote MCP server at this address. $${NAME} is replaced by an environment variable, $${file:PATH} by the content of a file."`
	Header        []string `group:"Remote server" common:"" sep:"none" pairs:":" placeholder:"'NAME: VALUE'" for:"url" help:"Header of every request to the remote server, such as 'Authorization: Bearer $${file:/run/secrets/token}'. $${NAME} and $${file:PATH} are replaced. Repeat the flag for more; the variable has one on each line."`
	ForwardHeader []string `group:"Remote server" placeholder:"NAME" renames:"" for:"url" help:"Headers of the request that opens a connection, to send to the remote server with each request of its session. 'X-Jira-Token: Authorization' sends the first one as the second; in the file that is {X-Jira-Token: Authorization}. Without it, no header of a client is sent."`
	// OAuthClient and LoginClient are keys of the file.
	OAuthClient []string `hidden:"" name:"oauth-client" sep:"none" pairs:"=" placeholder:"a mapping such as {token-url: https://…}" for:"url"`
	LoginClient []string `hidden:"" name:"login-client" sep:"none" pairs:"=" placeholder:"a mapping such as {client-id: …, issuer: https://…}" for:"url"`

	// LoginUse says whose login the requests carry.
	LoginUse string `group:"Remote server" name:"login" placeholder:"WHICH" oneof:"shared,off,per-principal" for:"url" help:"Whether requests carry the login of sse-server login, where nothing else is configured: shared lets all clients use it, off none. With per-principal each principal logs in by a link, and uses that login alone. Without it, it is used on a loopback address without authentication, and by stdio."`

	Description string `group:"Server" http:"" placeholder:"TEXT" help:"What the server is for, in a sentence for people: the page at / shows it. Without it, there is what the server says of itself."`

	Include   []string `group:"Selection" empty:"" placeholder:"GLOB" help:"Names of the tools to offer, such as 'read_*': * is any text, ? one character. Without it, all. The others are in no list and cannot be called. In the file, [] is none."`
	Exclude   []string `group:"Selection" empty:"" placeholder:"GLOB" help:"Names of tools not to offer, also of those that --include has."`
	Only      string   `group:"Selection" placeholder:"WHICH" oneof:"read-only,non-destructive" help:"Offer only tools that say of themselves that they change nothing (read-only), or destroy nothing (non-destructive). That is the server's word, and protects from no server that lies. A tool that does not say so is not offered."`
	Prompts   []string `group:"Selection" empty:"" placeholder:"GLOB" help:"Names of the prompts to offer. Without it, all."`
	Resources []string `group:"Selection" empty:"" sep:"none" placeholder:"GLOB" help:"URIs of the resources to offer, and templates of URIs. Without it, all. Repeat the flag for more; the variable has one."`

	Transports     []string `group:"Protocol" http:"" placeholder:"NAME" oneof:"sse,streamable" help:"Transports to serve at each address: sse is HTTP+SSE, streamable is Streamable HTTP."`
	AutoInitialize bool     `group:"Protocol" negatable:"" help:"Run the MCP handshake for each connection when it opens. If off, the gateway adds nothing: over HTTP+SSE it is a plain transport of 2024-11-05, and over Streamable HTTP it refuses requests without a session with 400."`
	Sessions       string   `group:"Protocol" common:"" placeholder:"MODE" oneof:"per-connection,shared" help:"per-connection gives each connection its own session with the server; shared gives all connections the same one."`
	Warm           *int     `group:"Protocol" common:"" placeholder:"N" zero:"" process:"" help:"Number of servers to keep started ahead of connections; one that is taken is replaced. Without it, 1 for a command of which each connection gets a process of its own, unless it has --principal-env: while nothing is remembered of it, and after its last use for as long as process-idle says. With --sessions shared, 1 or more starts the shared session ahead. 0 means none."`

	Remember    bool      `group:"Protocol" negatable:"" for:"command" help:"Remember what the server answered to initialize and its lists of tools, prompts and resources, also for the next start of sse-server, and answer from that while its process starts. Each start compares. Nothing is remembered with --max-in-flight. It is kept in remembered in $$STATE_DIRECTORY, $$XDG_STATE_HOME/sse-server or ~/.local/state/sse-server."`
	RememberFor Duration  `group:"Protocol" placeholder:"DURATION" for:"command" help:"Age of what is remembered from which the server is asked again in the background when a client comes."`
	ProcessIdle *Duration `group:"Times" placeholder:"DURATION" zero:"" for:"command" help:"End the process of a connection that has had no message for this long, and nothing open: no request, question, subscription or task. The next message starts another one. The process of --sessions shared ends when no client has been there for this long. Not with --no-remember. Without it, 10m. 0 means never."`

	InitializationTimeout Duration  `group:"Times" common:"" placeholder:"DURATION" help:"How long a client's message waits for the handshake."`
	StartTimeout          Duration  `group:"Times" common:"" placeholder:"DURATION" help:"How long one start of the server may take, including the handshake."`
	HeartbeatInterval     Duration  `group:"Times" http:"" placeholder:"DURATION" zero:"" help:"Longest silence on a stream before the gateway sends a heartbeat. 0 means no heartbeats."`
	IdleTimeout           *Duration `group:"Times" http:"" placeholder:"DURATION" zero:"" help:"Close a connection that has had no POST, no request in flight and, over Streamable HTTP, no open GET for this long. Without it, 10m over Streamable HTTP, and never over HTTP+SSE. 0 means never, but 5m for clients without sessions."`
	RequestTimeout        Duration  `group:"Times" common:"" placeholder:"DURATION" help:"How long the server may take for a request, or between two progress reports; with progress, ten times as long in all."`

	MaxConnections      int     `group:"Limits" http:"" placeholder:"N" zero:"" help:"Number of open connections, with --nats of all replicas together. It bounds TCP connections to five times as many, and together with --warm sessions with the server. 0 means unlimited."`
	MaxConnectionsPerIP int     `group:"Limits" http:"" placeholder:"N" zero:"" help:"Number of open connections from one client address (one /64 for IPv6), with tokens of one principal at one address. With --nats, of all replicas together. 0 means unlimited."`
	ConnectRate         float64 `group:"Limits" http:"" placeholder:"PER-SECOND" zero:"" help:"New connections a second from one client address, with tokens of one principal at one address; twice as many may come at once. With --nats, of all replicas together. Clients on this machine are exempt. 0 means unlimited."`
	MaxMessageBytes     Size    `group:"Limits" placeholder:"BYTES" help:"Size of the body of a POST."`
	MaxInFlight         int     `group:"Limits" placeholder:"N" zero:"" help:"Number of requests of one session that the server works on at the same time. More wait in order; 1 serializes them. 0 means unlimited."`

	rules    *selection.Rules // what include and its kind mean
	mayUse   *selection.Names // what principals means
	view     bool             // it is a view
	fromFile []string         // NAME=VALUE of the env-file
	process  process          // what command and env mean
	route    string           // the path of its URL
	owner    owner            // whose file says what is served
	ofEditor bool             // the environment may have what an editor gives to the server
	remote   remote.URL       // what url, header and oauth-client mean
	// loginClient is what login-client means, and loginIssuer the issuer at which it is registered.
	loginClient login.Client
	loginIssuer string
	lacksLogin  bool              // see LacksLogin
	secrets     *[]string         // variables of the environment that any remote server uses
	verb        string            // the word before the options on the command line, and a space; empty to serve
	given       map[string]string // options that were given, with their place
	flags       []*kong.Flag      // its options, or those of the whole Config
}

// process is what the child process gets, with the references of a file replaced.
type process struct{ command, env []string }

// owner says whose file an entry is from.
type owner int

const (
	ours      owner = iota // it is a file of sse-server, or there is none
	ofClient               // of a client, for its user
	ofProject              // of a client, for a project: others may have written it
)

// These have a place beside the flags: the command, and the name of one of several servers.
const (
	commandKey = "command"
	nameKey    = "name"

	oauthKey       = "oauth"
	oauthClientKey = "oauth-client"
	loginClientKey = "login-client"
)

// Stdout is the file that is stdout.
const Stdout = "-"

// newConfig returns the defaults.
func newConfig() *Config {
	c, d := &Config{}, gateway.Defaults()
	c.ErrorDetails, c.Sessions, c.AutoInitialize, c.Remember = d.ErrorDetails.String(), d.Sessions.String(), true, true
	c.StartCheck = true
	c.InitializationTimeout, c.StartTimeout = Duration(d.InitializationTimeout), Duration(d.StartTimeout)
	c.RememberFor = Duration(24 * time.Hour)
	c.HeartbeatInterval, c.RequestTimeout = Duration(d.HeartbeatInterval), Duration(d.RequestTimeout)
	c.MaxConnections, c.ConnectRate, c.MaxMessageBytes = d.MaxConnections, d.ConnectRate, Size(d.MaxMessageBytes)
	c.Transports = []string{gateway.TransportSSE.String(), gateway.TransportStreamable.String()}
	c.Addr, c.LogLevel, c.LogFormat, c.ClusterName = "127.0.0.1:8080", "info", "text", "mcp"
	c.HTTPIdleTimeout = Duration(15 * time.Minute)
	c.ShutdownTimeout, c.CloseTimeout = Duration(15*time.Second), Duration(2*time.Second)
	c.given, c.secrets, c.files = map[string]string{}, new([]string), map[string][sha256.Size]byte{}
	return c
}

// HomeOf returns the home directory that an environment names; empty if it names none.
func HomeOf(lookupEnv func(string) (string, bool)) string {
	for _, name := range []string{"HOME", "USERPROFILE"} {
		if dir, _ := lookupEnv(name); dir != "" {
			return dir
		}
	}
	return ""
}

// Load reads the configuration: a flag wins over a variable, and a variable over the
// file. A reload keeps the key of ids of the running one, which is empty at the start. With an error the configuration
// has no more than Does, which is empty if nothing shows what it was to do.
func Load(args []string, lookupEnv func(string) (string, bool), running *Config) (*Config, error) {
	c := newConfig()
	c.again = func() (*Config, error) { return Load(args, lookupEnv, c) }
	c.IDKey, c.NoIDKey = running.IDKey, running.NoIDKey
	if running.secrets != nil { // what was a secret stays one, also if its server has left the file
		*c.secrets = slices.Clone(*running.secrets)
	}
	err := c.readFlags(args)
	c.Version = c.Version || c.Does == "version"
	if err != nil || c.HelpText != "" || c.Version {
		return c, err
	}
	for _, flag := range c.flags {
		text, _ := lookupEnv(envName(flag.Name))
		// An empty variable is not set.
		if c.given[flag.Name] != "" || text == "" || flag.Tag.Has("only") || flag.Hidden {
			continue
		}
		texts := []string{text}
		if flag.Tag.Has("pairs") {
			texts = strings.FieldsFunc(text, func(r rune) bool { return r == '\n' })
		}
		if err := c.set(flag, texts, envName(flag.Name)); err != nil {
			return c, err
		}
	}
	if c.given["values"] != "" {
		return c, nil
	}
	if c.Does == "completion" {
		if c.Completion.Shell == "" {
			return c, errors.New("completion: name a shell, one of bash, zsh, fish, as in: " +
				"sse-server completion bash")
		}
		if !slices.Contains(shells, c.Completion.Shell) {
			return c, fmt.Errorf("completion: want a shell, one of bash, zsh, fish, but got %q", c.Completion.Shell)
		}
		return c, nil
	}
	if c.Does == "init" {
		c.StateDir = stateDir(lookupEnv)
		return c, c.Server.check(c, lookupEnv)
	}
	c.home = HomeOf(lookupEnv)
	if c.Does == "logins" {
		c.StateDir = stateDir(lookupEnv)
		return c, nil
	}
	if c.isAboutLogin() {
		if err := c.aimLogin(stateDir(lookupEnv)); err != nil {
			return c, err
		}
	}
	if err := c.readFile(); err != nil {
		return c, err
	}
	return c, c.check(lookupEnv)
}

//go:embed usage.txt
var usage string

// newParser returns the parser of the flags for options, whose values are the defaults. It
// sets s.flags, where s is a part of options or the same.
func newParser(options any, s *Server) *kong.Kong {
	parser := kong.Must(options, kong.Name("sse-server"), kong.Description(usage), kong.NoDefaultHelp(),
		kong.ValueFormatter(helpOf),
		kong.ConfigureHelp(kong.HelpOptions{
			NoAppSummary: true, NoAppDescFormat: true, WrapUpperBound: 100, Compact: true, FlagsLast: true,
		}))
	for _, flag := range parser.Model.Flags {
		flag.Default = flagText(flag.Target)
		flag.HasDefault = flag.Default != ""
	}
	s.flags = parser.Model.Flags
	return parser
}

// helpOf returns the help of an option, with its default.
func helpOf(value *kong.Value) string {
	text := value.Help
	if value.HasDefault && !value.IsBool() {
		text += " [default" + joint + value.Default + "]"
	}
	return text
}

// envName returns the environment variable of an option.
func envName(name string) string {
	return "SSE_SERVER_" + strings.ToUpper(strings.ReplaceAll(name, "-", "_"))
}

// flagText returns the value of an option as a flag takes it, "" if there is none.
func flagText(v reflect.Value) string {
	v = reflect.Indirect(v)
	if !v.IsValid() || v.Kind() == reflect.Slice && v.Len() == 0 {
		return ""
	}
	switch v := v.Interface().(type) {
	case []string:
		return strings.Join(v, ",")
	case encoding.TextMarshaler:
		text, _ := v.MarshalText() // never fails
		return string(text)
	default:
		return fmt.Sprint(v)
	}
}

// selectionGroup is the group of the options that choose among what a server lists. Each program that shares an
// sse-server has its own.
const selectionGroup = "Selection"

// internalFlags are those with which sse-server starts itself.
var internalFlags = map[string]bool{
	"learn": true, "learn-after": true, "learn-too": true, "of-file": true, "shared": true, "values": true,
}

// readFlags sets the options and the command that the arguments give.
func (c *Config) readFlags(args []string) error {
	var command []string
	if i := slices.Index(args, "--"); i >= 0 {
		args, command = args[:i], args[i+1:]
		c.given[commandKey] = "the command"
	}
	if len(args) > 0 && words[args[0]] != "" {
		args = append([]string{words[args[0]]}, args[1:]...)
	}
	args = withNameOfFile(args)
	parser := newParser(c, &c.Server)
	ctx, err := parser.Parse(args)
	if wrong, is := errors.AsType[*kong.ParseError](err); is {
		ctx = wrong.Context
	}
	if ctx != nil && ctx.Selected() != nil {
		c.Does = ctx.Selected().Name
	}
	if err != nil {
		flags := slices.Clone(parser.Model.Flags)
		for _, command := range parser.Model.Children {
			flags = append(flags, command.Flags...)
		}
		return refuseArgs(err, args, flags)
	}
	if c.given[commandKey] != "" && len(command) == 0 { // a variable that is not set: the demo would be a surprise
		return c.refuse(commandKey,
			"nothing comes after --; want a program and its arguments, as in: sse-server -- npx -y server")
	}
	c.Command = command
	if c.Does != "serve" {
		c.verb = c.Does + " "
	}
	if word := cmp.Or(c.Tools.Name, c.Check.Name); isNoName(word) {
		return unexpected(word, args)
	}
	if c.Help || c.HelpAll {
		c.HelpText, err = helpText(parser, ctx, c.HelpAll)
		return err
	}
	for _, path := range ctx.Path {
		if path.Flag == nil {
			continue
		}
		if path.Flag.Hidden && !internalFlags[path.Flag.Name] {
			place := cmp.Or(meantBy(path.Flag.Name).place, "it is a key of the file that --config names")
			return fmt.Errorf("unknown flag --%s: %s", path.Flag.Name, place)
		}
		isOwn := slices.Contains([]string{"connect", "no-login"}, path.Flag.Name) || // of this window alone
			path.Flag.Group != nil && path.Flag.Group.Title == selectionGroup
		if c.given[path.Flag.Name] == "" && !isOwn && !internalFlags[path.Flag.Name] {
			c.DaemonArgs = append(c.DaemonArgs, argsOf(path.Flag)...)
		}
		c.given[path.Flag.Name] = "--" + path.Flag.Name
		if err := verify(path.Flag); err != nil {
			return fmt.Errorf("--%s: %w", path.Flag.Name, err)
		}
	}
	return nil
}

// set gives an option its value, or the values of a list. The error names their place.
func (s *Server) set(flag *kong.Flag, texts []string, place string) (err error) {
	flag.Target.SetZero()
	if flag.Target.Kind() == reflect.Pointer {
		flag.Target.Set(reflect.New(flag.Target.Type().Elem()))
	}
	if flag.Tag.Has("empty") {
		flag.Target.Set(reflect.MakeSlice(flag.Target.Type(), 0, len(texts)))
	}
	for _, text := range texts {
		if err == nil {
			scan := kong.Scan().PushTyped(text, kong.FlagValueToken)
			if err = flag.Mapper.Decode(&kong.DecodeContext{Value: flag.Value, Scan: scan}, flag.Target); err != nil {
				err = plainValue(flag, err)
			}
		}
	}
	if err == nil {
		err = verify(flag)
	}
	if err != nil {
		return fmt.Errorf("%s: %w", place, err)
	}
	s.given[flag.Name] = place
	return nil
}

// maxProcesses bounds how many processes of a server are started ahead.
const maxProcesses = 1000

// maxCount keeps sums and products of counts far from overflow.
const maxCount = 100_000_000

// verify returns an error if the value of an option is out of its range.
func verify(flag *kong.Flag) error {
	v, number := reflect.Indirect(flag.Target), 1.0
	switch {
	case flag.Tag.Has("pairs"):
		return verifyPairs(flag)
	case flag.Tag.Has("oneof"):
		allowed := strings.Split(flag.Tag.Get("oneof"), ",")
		for value := range strings.SplitSeq(flagText(v), ",") {
			if !slices.Contains(allowed, value) {
				return fmt.Errorf("want one of %s, but got %q", strings.Join(allowed, ", "), value)
			}
		}
	case v.CanInt():
		number = float64(v.Int())
	case v.CanFloat():
		number = v.Float()
	}
	switch {
	case number == 0 && !flag.Tag.Has("zero"):
		return errors.New("0 is refused: want more, or leave it out")
	case number < 0:
		return fmt.Errorf("want %s, but got %q", numbersOf(flag), flagText(v))
	case flag.Tag.Has("process") && number > maxProcesses:
		return fmt.Errorf("want a number up to %d, as each is a process, but got %q", maxProcesses, flagText(v))
	case v.Type().PkgPath() == "" && !(number <= maxCount): // not NaN either
		return fmt.Errorf("want a number up to %d, but got %q", maxCount, flagText(v))
	}
	return nil
}

// verifyPairs returns an error, without a value, if there is a text that is no pair, or one
// whose name another has.
func verifyPairs(flag *kong.Flag) error {
	names := map[string]bool{}
	for _, text := range flag.Target.Interface().([]string) {
		name, _, ok := strings.Cut(text, flag.Tag.Get("pairs"))
		name = strings.TrimSpace(name)
		if !ok || name == "" {
			return fmt.Errorf("want %s", flag.PlaceHolder)
		}
		if names[name] {
			return fmt.Errorf("%s is given twice", name)
		}
		names[name] = true
	}
	return nil
}

// Each returns the configuration of each server.
func (c *Config) Each() []*Server {
	if len(c.Servers) > 0 {
		return c.Servers
	}
	return []*Server{&c.Server}
}

// Place returns where an option was given, for messages: --addr, SSE_SERVER_ADDR or
// gw.yaml:3:7: addr.
func (s *Server) Place(option string) string { return cmp.Or(s.given[option], "--"+option) }

// Base returns the URL of the address that is served, for clients on this machine, or the public one.
func (c *Config) Base() (string, error) {
	if c.PublicURL != "" {
		return strings.TrimSuffix(c.PublicURL, "/"), nil
	}
	host, port, _ := net.SplitHostPort(string(c.Addr)) // has been checked
	if port == "0" {
		return "", c.refuse("addr", "port 0 is another one each time: want a port")
	}
	if ip, err := netip.ParseAddr(host); host == "" || err == nil && ip.IsUnspecified() {
		host = "localhost"
	}
	scheme := "http://"
	if c.Certificate != nil {
		scheme = "https://"
	}
	return scheme + net.JoinHostPort(host, port), nil
}

// Diagnoses reports whether check is to find out what a client meets at the URL.
func (c *Config) Diagnoses() bool {
	return c.Does == "check" && c.given["url"] == "--url" && !c.Check.Start && !c.Check.Offline
}

// Remote returns the remote server.
func (s *Server) Remote() remote.URL { return s.remote }

// Given reports whether an option was given.
func (s *Server) Given(option string) bool { return s.given[option] != "" }

// refuse returns an error about an option.
func (s *Server) refuse(option, format string, args ...any) error {
	return fmt.Errorf("%s: %s", s.Place(option), fmt.Sprintf(format, args...))
}

// refuseFor returns an error about an option of a server, which the top level may have for all servers.
func (c *Config) refuseFor(s *Server, option, format string, args ...any) error {
	return fmt.Errorf("%s: %s", cmp.Or(s.given[option], c.Place(option)), fmt.Sprintf(format, args...))
}

// warn adds a warning.
func (c *Config) warn(format string, args ...any) {
	if text := fmt.Sprintf(format, args...); !slices.Contains(c.Warnings, text) {
		c.Warnings = append(c.Warnings, text)
	}
}

// ServesPage reports whether a browser on this machine gets a page at the URL of a server.
func (c *Config) ServesPage() bool { return c.Page == nil || *c.Page }

// KeepsPageHere reports whether other machines that can reach the servers get no page, because nothing protects these.
func (c *Config) KeepsPageHere() bool {
	return c.Page == nil && c.AuthTokensFile == "" && len(c.OAuth) == 0 && !httpcheck.IsLoopback(string(c.Addr))
}
