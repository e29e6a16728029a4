package config

import (
	"crypto/tls"
	"fmt"
	"reflect"
	"slices"
	"strings"

	"github.com/mcp-sse/mcp-sse/front"
	"github.com/mcp-sse/mcp-sse/gateway"
	"github.com/mcp-sse/mcp-sse/upstream"
)

// check reports options that contradict each other, and what is wrong with the
// files that they name. Options that are wrong by themselves are reported already:
// nothing is said of them again.
func (c *Config) check() {
	if c.Stdio {
		c.checkStdio()
	} else {
		c.checkTLS()
		c.readTokens()
		c.checkExposure()
	}
	if len(c.Servers) > 0 {
		c.checkServers()
	}
	for _, s := range c.Each() {
		s.checkUpstream()
		s.checkGateway()
	}
}

// refuse reports that an option, which is right by itself, cannot be used.
func (c *Config) refuse(option, format string, args ...any) {
	if from := c.from(option); !from.faulty {
		c.report.add(from.line, "%s: %s", c.describe(option), fmt.Sprintf(format, args...))
	}
}

// sound reports whether none of the options is wrong by itself.
func (c *Config) sound(options ...string) bool {
	return !slices.ContainsFunc(options, func(option string) bool { return c.from(option).faulty })
}

// describe returns an option as the user gave it, with its value if that is short
// and no secret.
func (c *Config) describe(option string) string {
	value := c.row(option).value
	if short := value.short(); short != "" && value.unit != "" {
		return c.Name(option) + " " + short
	}
	return c.Name(option)
}

// forHTTP are the options that have no effect on a client on stdin and stdout.
var forHTTP = []string{
	"addr", "admin-addr", "prefix", "tls-cert", "tls-key", "trust-forwarded-prefix", "announce", "event", "forward-header",
	"principal-env", "heartbeat-interval", "connection-timeout", "read-timeout", "announce-delay", "reconnect-delay",
	"max-connections", "max-connections-per-ip", "max-tcp-connections", "max-tcp-connections-per-ip", "connect-rate",
	"connect-burst", "auth-tokens-file", "insecure", "trusted-proxies", "allowed-origins", "allowed-hosts", "cors",
}

// checkStdio refuses flags that have no effect with stdio. Variables and a file may be
// those of a daemon.
func (c *Config) checkStdio() {
	for _, name := range forHTTP {
		if c.from(name).name == "--"+name && c.given(name) {
			c.refuse(name, "has no effect with --stdio, which serves no HTTP")
		}
	}
	if len(c.Servers) > 0 {
		c.report.add(c.from(serversKey).line, "%s: want one server with --stdio", c.Name(serversKey))
	}
}

func (c *Config) checkTLS() {
	switch {
	case !c.sound("tls-cert", "tls-key"), c.TLSCert == "" && c.TLSKey == "":
	case c.TLSKey == "":
		c.refuse("tls-cert", "needs --tls-key, the file of its key")
	case c.TLSCert == "":
		c.refuse("tls-key", "needs --tls-cert, the file of its certificate")
	default:
		if _, err := tls.LoadX509KeyPair(c.TLSCert, c.TLSKey); err != nil {
			c.report.add(c.from("tls-cert").line, "%s with %s: %v", c.describe("tls-cert"), c.describe("tls-key"), err)
		}
	}
}

// Exposed reports whether other machines reach an address without authentication.
func (c *Config) Exposed(addr string) bool {
	return addr != "" && c.tokensFile == "" && !front.IsLoopback(addr)
}

// checkExposure refuses an exposed address, or warns of it with --insecure:
// everyone who reaches it can run the tools of the server.
func (c *Config) checkExposure() {
	check := func(option, addr, open string) {
		switch {
		case !c.Exposed(addr) || !c.sound("auth-tokens-file", "insecure"):
		case c.insecure:
			c.report.warn("%s without authentication: everyone who reaches it can %s", c.describe(option), open)
		default:
			c.refuse(option, "other machines may reach it; want a loopback address such as 127.0.0.1:8080, --auth-tokens-file, or --insecure to allow it")
		}
	}
	check("addr", c.Addr, "run the tools of the server")
	check("admin-addr", c.AdminAddr, "read /metrics and /connections")
	for _, network := range c.Options.TrustedProxies {
		if network.Bits() == 0 {
			c.report.warn("%s %s: any client can choose the address that limits and logs see", c.Name("trusted-proxies"), network)
		}
	}
	if c.AdminAddr != "" && c.AdminAddr == c.Addr && !strings.HasSuffix(c.Addr, ":0") {
		c.refuse("admin-addr", "want another address than --addr")
	}
}

// checkUpstream refuses a server that is not one, or has options of another kind.
// It says nothing of that if it cannot tell what the server is.
func (c *Config) checkUpstream() {
	var told []string // what to serve
	tell := func(option string, given bool) {
		if given {
			told = append(told, option)
		}
	}
	tell("url", c.address != "")
	tell("demo", c.demo)
	tell(commandKey, len(c.command) > 0)
	switch {
	case c.unsure || !c.sound("url", "demo", commandKey):
	case len(told) > 1:
		c.report.add(c.from(told[0]).line, "%s and %s: want one of them, as both say what to serve",
			c.describe(told[0]), c.describe(told[1]))
	case c.daemon != nil && len(told) == 0:
		c.report.add(c.from(serversKey).line, "%s: want what to serve: command, url or demo: true", c.Name(serversKey))
	default:
		c.checkKind()
	}
}

// checkKind refuses options that have no effect on the kind of server.
func (c *Config) checkKind() {
	kind := c.Kind()
	for _, o := range c.rows {
		switch {
		case o.isFor(kind) || !c.given(o.name):
		case !o.isFor(Child):
			c.refuse(o.name, "has no effect without --url")
		case kind == Remote:
			c.refuse(o.name, "has no effect on a remote server, which is not started here")
		default:
			c.refuse(o.name, "has no effect on the demo server, want a command after -- or in the file")
		}
	}
	if kind == Remote {
		c.checkRemote()
	}
}

// checkGateway reports what the gateway refuses. Options that were given for all
// servers may have no effect on some.
func (c *Config) checkGateway() {
	o, defaults := &c.Options, gateway.Defaults()
	alone := o.Sessions == gateway.SessionsPerConnection
	if alone && !c.given("sessions-size") {
		o.SessionsSize = defaults.SessionsSize
	}
	var up upstream.Upstream
	if c.Kind() == Remote {
		if up = c.remote; alone && !c.given("warm") {
			o.Warm = defaults.Warm
		}
	}
	if c.from("max-request-timeout").unset {
		o.MaxRequestTimeout = max(o.MaxRequestTimeout, o.RequestTimeout)
	}
	if c.from("max-sessions").unset {
		if o.MaxSessions = -1; o.MaxConnections > 0 {
			o.MaxSessions = o.MaxConnections + o.Warm
		}
	}
	if o.InitializationTimeout > o.StartTimeout { // a program may shorten the start alone
		c.contradict("initialization-timeout", "start-timeout", "must be at most %s")
	}
	for _, wrong := range gateway.Check(up, *o) {
		option, other := c.keeping(wrong.Option), c.keeping(wrong.Other)
		switch {
		case option == nil: // the name of the server
			c.report.add(c.from(serversKey).line, "%s: %s", c.Name(serversKey), wrong.Problem)
		case option.name == "prefix" && c.daemon != nil: // follows from the name
		case other == nil:
			c.refuse(option.name, "%s", wrong.Problem)
		default:
			c.contradict(option.name, other.name, strings.Replace(wrong.Problem, wrong.Other, "%s", 1))
		}
	}
}

// contradict reports that an option contradicts another one, whose place in the
// problem is %s, unless that is wrong by itself.
func (c *Config) contradict(option, other, problem string) {
	if !c.sound(other) {
		return
	}
	name := c.Name(other)
	if short := c.row(other).value.short(); short != "" {
		name += " (" + short + ")"
	}
	c.refuse(option, problem, name)
}

// keeping returns the option that is kept in a field of gateway.Options, nil if
// there is none.
func (c *Config) keeping(field string) *option {
	for i := range c.rows {
		if f := reflect.ValueOf(&c.Options).Elem().FieldByName(field); f.IsValid() && c.rows[i].value.target == f.Addr().Interface() {
			return &c.rows[i]
		}
	}
	return nil
}
