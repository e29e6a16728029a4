// Package config reads the configuration of sse-server from a YAML file, the
// environment and flags.
//
// The table of options (table.go) is its centre: each row has the name of an
// option, where its value is kept, how it is read and written, and where it may be
// given. Flags, variables, keys of the file, --help, the effective settings and
// docs/reference/config.md come from it.
package config

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"time"

	"github.com/mcp-sse/mcp-sse/gateway"
	"github.com/mcp-sse/mcp-sse/upstream"
)

// Config is the configuration of the daemon, or of one of its servers.
type Config struct {
	// Options are those of the gateway, without Logger, Registry and Authenticate.
	Options gateway.Options

	// The rest is the same for all servers.

	// Addr is the address to serve on, AdminAddr a separate one for operators or "".
	Addr, AdminAddr string
	// TLSCert and TLSKey are files; both are "" for plain HTTP.
	TLSCert, TLSKey string
	// LogLevel and LogFormat are as the options allow.
	LogLevel, LogFormat string
	// MaxTCP and MaxTCPPerIP bound TCP connections, in all and from one address; 0 is
	// unlimited.
	MaxTCP, MaxTCPPerIP int
	// ShutdownTimeout is how long a stop waits for requests in flight.
	ShutdownTimeout time.Duration
	// Tokens maps bearer tokens to principals; nil: there is no authentication.
	Tokens map[string]string
	// Servers are those of the file; empty: the daemon has one, without a name.
	Servers []*Config
	// Help, Version and CheckConfig ask for something else than serving.
	Help, Version, CheckConfig bool
	// Stdio asks for one client on stdin and stdout in place of HTTP.
	Stdio bool

	// How the server is reached, and what the checks below turn into Tokens and remote.
	command            []string // of the child process
	env, headers       [][2]string
	envAllow           []string
	principalEnv       string
	dir                string
	maxLineBytes       int
	address, transport string
	bearerTokenFile    string
	remote             upstream.URL
	demo, insecure     bool
	path, tokensFile   string

	rows   []option          // the table, bound to this Config
	origin map[string]origin // of the options that were given here
	daemon *Config           // of a server: the configuration of all; nil for the daemon
	// unsure is true if a key of the file is misspelled, which may say what to serve.
	unsure    bool
	lookupEnv func(string) (string, bool)
	report    *report // one for the daemon and its servers
}

// origin is where an option was given.
type origin struct {
	name   string // for messages: --addr, SSE_SERVER_ADDR or gw.yaml:3: addr
	line   int    // of the file; 0 elsewhere
	faulty bool   // the value is wrong, and reported
	unset  bool   // it was given nowhere
}

// report collects what is wrong, each only once.
type report struct {
	faults   []fault
	warnings []string
	secrets  []string // names of the variables that remote servers use
}

type fault struct {
	line int // of the file; 0 for none
	text string
}

// newConfig returns the defaults.
func newConfig(lookupEnv func(string) (string, bool)) *Config {
	c := &Config{
		Options:         gateway.Defaults(),
		maxLineBytes:    16 << 20,
		Addr:            "127.0.0.1:8080",
		LogLevel:        "info",
		LogFormat:       "text",
		MaxTCP:          50_000,
		MaxTCPPerIP:     1000,
		ShutdownTimeout: 15 * time.Second,
		transport:       "auto",
		origin:          map[string]origin{},
		lookupEnv:       lookupEnv,
		report:          &report{},
	}
	c.Options.Transports = []string{gateway.TransportSSE, gateway.TransportStreamable}
	c.rows = c.table()
	return c
}

// Load reads the configuration from the arguments of the program, the environment
// and the file that they name: a flag wins over a variable, a variable over the
// file. The faults are all that is wrong, one line each. If there are any, only
// Help and Version may be used.
func Load(args []string, lookupEnv func(string) (string, bool)) (c *Config, faults []string) {
	c = newConfig(lookupEnv)
	own, command := args, []string(nil)
	if i := slices.Index(args, "--"); i >= 0 {
		own, command = args[:i], args[i+1:]
	}
	flags := c.readFlags(own)
	if len(command) > 0 {
		flags[commandKey] = input{kind: sequence, texts: command, from: origin{name: "the command"}}
	}
	c.apply(c.row("config"), flags, nil)
	file := c.readFile(c.path)
	for i := range c.rows {
		c.apply(&c.rows[i], flags, file.top.values)
	}
	c.unsure = file.top.unknown
	for _, entry := range file.servers {
		c.addServer(entry)
	}
	c.check()
	return c, c.report.lines()
}

// apply sets an option to the value of the source that wins. An empty variable
// counts as not set, so that FOO: ${FOO:-} in a compose file means the default.
func (c *Config) apply(o *option, flags, file map[string]input) {
	if in, ok := flags[o.name]; ok {
		c.set(o, in)
	} else if text, _ := c.lookupEnv(envName(o.name)); text != "" && o.inEnv() {
		c.set(o, input{texts: []string{text}, from: origin{name: envName(o.name)}})
	} else if in, ok := file[o.name]; ok {
		c.set(o, in)
	}
}

// set gives an option a value, or reports why it cannot have it.
func (c *Config) set(o *option, in input) {
	shown, want := "", "needs a value"
	if in.kind != missing {
		shown, want = o.value.set(in)
	}
	if want != "" {
		name := in.from.name
		if shown != "" {
			name += " " + strconv.Quote(shown)
		}
		in.from.faulty = true
		c.report.add(in.from.line, "%s: %s", name, want)
	}
	c.origin[o.name] = in.from
}

// row returns the option with a name, which must be in the table.
func (c *Config) row(name string) *option {
	return &c.rows[slices.IndexFunc(c.rows, func(o option) bool { return o.name == name })]
}

// given returns whether an option was given, for a server in its own entry.
func (c *Config) given(name string) bool {
	_, ok := c.origin[name]
	return ok
}

// from returns where the value of an option comes from.
func (c *Config) from(name string) origin {
	if from, ok := c.origin[name]; ok {
		return from
	}
	if c.daemon != nil {
		return c.daemon.from(name)
	}
	return origin{name: "--" + name, unset: true}
}

// Name returns an option as the user gave it: --addr, SSE_SERVER_ADDR or
// config.yaml:3: addr.
func (c *Config) Name(option string) string { return c.from(option).name }

// Warnings returns what does not keep the daemon from serving but belongs in its
// log.
func (c *Config) Warnings() []string { return c.report.warnings }

// add reports a fault of a line of the file, or of none.
func (r *report) add(line int, format string, args ...any) {
	if f := (fault{line, fmt.Sprintf(format, args...)}); !slices.Contains(r.faults, f) {
		r.faults = append(r.faults, f)
	}
}

func (r *report) warn(format string, args ...any) {
	if text := fmt.Sprintf(format, args...); !slices.Contains(r.warnings, text) {
		r.warnings = append(r.warnings, text)
	}
}

// lines returns the faults: those without a line of the file as they were found,
// then the others in the order of their lines.
func (r *report) lines() []string {
	slices.SortStableFunc(r.faults, func(a, b fault) int { return cmp.Compare(a.line, b.line) })
	lines := make([]string, len(r.faults))
	for i, f := range r.faults {
		lines[i] = f.text
	}
	return lines
}
