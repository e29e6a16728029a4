package config

import (
	"cmp"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"net/url"
	"os"
	"slices"
	"strings"

	"github.com/mcp-sse/mcp-sse/internal/clients"
	"github.com/mcp-sse/mcp-sse/internal/clusterwords"
	"github.com/mcp-sse/mcp-sse/internal/environ"
	"github.com/mcp-sse/mcp-sse/internal/httpcheck"
)

// AllClients is the value of --for that means each client.
const AllClients = "all"

// check returns an error if options contradict each other, or if the files that they
// name are wrong. It reads the tokens and the key of ids, and makes the remote servers.
func (c *Config) check(lookupEnv func(string) (string, bool)) error {
	c.StateDir = stateDir(lookupEnv)
	c.RuntimeDir, _ = lookupEnv("XDG_RUNTIME_DIR")
	c.Parents = environ.Parents(lookupEnv)
	for _, client := range []*string{&c.Check.For, &c.Tools.For} {
		if *client == "" || c.connects(client) {
			continue
		}
		if err := nameClient(client); err != nil {
			return err
		}
	}
	if c.Check.For != "" && !c.connects(&c.Check.For) || c.Check.Name != "" {
		c.Check.Start = c.Check.Start || !c.Check.Offline
	}
	for _, word := range []string{c.ConnectClient.Client, c.ConnectClient.Server} {
		if c.Does == "connect" && strings.Contains(word, "://") {
			client := strings.Replace(c.ConnectClient.Client, word, "cursor", 1) // if that was left out
			return fmt.Errorf("connect: the address of a server goes after --url, as in: "+
				"sse-server connect %s --url %s", client, word)
		}
	}
	if c.Does == "connect" {
		if err := c.checkWriting(); err != nil {
			return err
		}
	}
	if slices.Contains([]string{"true", "false", "yes", "no", "on", "off"}, c.AuditLog) {
		return c.refuse("audit-log", "want the path of a file, or - for stdout, but got %q", c.AuditLog)
	}
	if err := c.checkDiagnosis(); err != nil {
		return err
	}
	if err := errors.Join(c.checkConnect(), c.checkService()); err != nil {
		return err
	}
	switch {
	case c.Called == "":
	case len(c.Servers) > 0:
		return c.refuse(nameKey, "the keys of servers name them")
	case pathName(c.Called) != c.Called || c.Called[0] == '_':
		return c.refuse(nameKey, "want letters of a-z, digits, _ and -, such as %s, but got %q",
			cmp.Or(pathName(c.Called), "docs"), c.Called)
	}
	if c.Does == "stdio" && c.Connect == nil {
		if err := c.checkStdio(); err != nil {
			return err
		}
	}
	c.addViewOfAll()
	if c.Does == "stdio" && len(c.Servers) > 1 && c.Connect == nil && c.ViewOfStdio() == nil {
		return fmt.Errorf("%s: stdio serves one server or view, and the file has %d servers and %d views: "+
			"want one view of those that the client needs, or no key views, for all", c.Config, len(c.Servers),
			len(c.Views))
	}
	if c.Does != "stdio" {
		if err := c.checkHTTP(lookupEnv); err != nil {
			return err
		}
	}
	if len(c.Servers) > 0 {
		for _, option := range []string{commandKey, "url", "header", "forward-header"} {
			if c.given[option] != "" {
				return c.refuse(option, "want it in an entry of servers, each of which says what it serves")
			}
		}
	}
	for _, s := range c.Each() {
		if err := s.check(c, lookupEnv); err != nil {
			return err
		}
	}
	c.checkViews()
	if err := c.checkNamed(); err != nil {
		return err
	}
	switch {
	case c.Watch && c.Does == "stdio":
		return c.refuse("watch", "stdio keeps its configuration")
	case c.Watch && len(c.files) == 0:
		return c.refuse("watch", "there is no file to watch; want --config")
	}
	return nil
}

// checkWriting returns an error if connect is told what to do with a file, and no file is to be written.
func (c *Config) checkWriting() error {
	switch writes := c.ConnectClient.Write || c.ConnectClient.File != ""; {
	case c.ConnectClient.Replace && !writes:
		return c.refuse("replace", "has no effect without --write")
	case c.ConnectClient.Undo && (c.ConnectClient.Replace || c.ConnectClient.Write):
		return c.refuse("undo", "not with --write or --replace, which it takes back")
	}
	return nil
}

// checkStdio refuses flags about HTTP, which have no effect on stdio. It ignores options about HTTP in a file or in
// the environment, which other programs may use too.
func (c *Config) checkStdio() error {
	for _, flag := range c.flags {
		if flag.Tag.Has("http") && c.given[flag.Name] == "--"+flag.Name {
			return c.refuse(flag.Name,
				"has no effect on stdio, which serves one client without HTTP; leave the word stdio out to serve HTTP")
		}
	}
	return nil
}

// checkDiagnosis returns an error if check --url cannot do what it is told, or check is told what only that does.
func (c *Config) checkDiagnosis() error {
	at, _ := url.Parse(c.Check.Origin)
	switch {
	case c.Does != "check":
		return nil
	case c.Check.Origin != "" && (at == nil || at.Host == "" || at.Scheme+"://"+at.Host != c.Check.Origin):
		return c.refuse("origin", "want a scheme and a host, such as https://app.example.com, but got %q",
			c.Check.Origin)
	case c.Diagnoses():
		return nil
	}
	for _, option := range []string{"origin", "wait", "json"} {
		switch {
		case c.given[option] == "":
		case c.given["url"] != "--url":
			return c.refuse(option, "has no effect without --url")
		case c.Check.Offline:
			return c.refuse(option, "has no effect with --offline, which asks nothing")
		default:
			return c.refuse(option,
				"has no effect with --start, which opens a session with the server; leave out --start")
		}
	}
	return nil
}

// connects reports whether a --for names a hosted client whose connector is to reach the server at --url.
func (c *Config) connects(client *string) bool {
	return client == &c.Check.For && c.given["url"] == "--url" && slices.Contains(Connectors, *client)
}

// Connector returns the hosted client whose connector is to reach the server at --url; empty: none.
func (c *Config) Connector() string {
	if c.connects(&c.Check.For) {
		return c.Check.For
	}
	return ""
}

// Connectors are the hosted clients that --for takes beside those of the table of clients, with --url.
var Connectors = []string{"claude.ai", "chatgpt"}

// nameClient finds the client of --for, which people may call otherwise than the table of clients does.
func nameClient(called *string) error {
	if *called == AllClients {
		return nil
	}
	client, known := clients.Named(*called)
	if known {
		*called = client.Name
		return nil
	}
	if slices.Contains(Connectors, *called) {
		return fmt.Errorf("--for: %s goes with check --url, and the public address of the server", *called)
	}
	names := clients.Names(clients.All)
	hint := cmp.Or(DidYouMean(*called, names), ";")
	return fmt.Errorf("--for: nothing is known of %q%s want %s, or one of %s", *called, hint, AllClients,
		strings.Join(names, ", "))
}

// checkHTTP checks the options of the addresses, and who may use them.
func (c *Config) checkHTTP(lookupEnv func(string) (string, bool)) error {
	if err := c.readCertificate(); err != nil {
		return err
	}
	if err := c.checkCluster(); err != nil {
		return err
	}
	if _, port, _ := net.SplitHostPort(string(c.Addr)); c.Addr == c.AdminAddr && port != "0" && c.given["addr"] != "" {
		return c.refuse("admin-addr", "want another port than --addr, which has %s", port)
	}
	return errors.Join(c.readIDKey(lookupEnv), c.readTokens(), c.makeAccess(lookupEnv), c.restrict(),
		c.CheckExposure("addr", c.Addr), c.CheckExposure("admin-addr", c.AdminAddr))
}

// ofTLS are errors of crypto/tls by a part of their text, with the option that each is about and what that file is.
var ofTLS = []struct{ part, option, is string }{
	{"but did find a private key", "tls-cert", "holds a private key: want a certificate"},
	{"in certificate input", "tls-cert", "holds no certificate in PEM"},
	{"found a certificate", "tls-key", "holds a certificate: want its private key"},
	{"in key input", "tls-key", "holds no private key in PEM"},
	{"does not match", "tls-cert", "does not belong to the key of tls-key"},
}

// readCertificate reads the certificate and its key.
func (c *Config) readCertificate() error {
	files := map[string]string{"tls-cert": c.TLSCert, "tls-key": c.TLSKey}
	switch {
	case c.TLSCert == "" && c.TLSKey == "":
		return nil
	case c.TLSKey == "":
		return c.refuse("tls-cert", "also needs --tls-key")
	case c.TLSCert == "":
		return c.refuse("tls-key", "also needs --tls-cert")
	}
	cert, _, err := c.read(c.TLSCert)
	if err != nil {
		return c.refuse("tls-cert", "%v", err)
	}
	key, _, err := c.read(c.TLSKey)
	if err != nil {
		return c.refuse("tls-key", "%v", err)
	}
	pair, err := tls.X509KeyPair(cert, key)
	c.Certificate = &pair
	if err == nil {
		return nil
	}
	for _, known := range ofTLS {
		if strings.Contains(err.Error(), known.part) {
			return c.refuse(known.option, "%s %s", files[known.option], known.is)
		}
	}
	return c.refuse("tls-cert", "%s with the key in %s: %v", c.TLSCert, c.TLSKey, err)
}

// checkCluster checks the options of a cluster. Its errors do not have the URL, in which there
// may be a password.
func (c *Config) checkCluster() error {
	if c.NATS == "" {
		for _, option := range []string{"nats-creds", "cluster", "cluster-addr", "replica"} {
			if c.given[option] != "" {
				return c.refuse(option, "has no effect without --nats")
			}
		}
		return nil
	}
	if !clusterwords.IsURL(c.NATS) {
		return c.refuse("nats", "want URLs such as nats://host:4222 or tls://host:4222, with commas between them")
	}
	for option, name := range map[string]string{"cluster": c.ClusterName, "replica": c.Replica} {
		if name != "" && !clusterwords.IsName(name) {
			return c.refuse(option, "%q: want at most 48 letters, digits, _ and -", name)
		}
	}
	if c.IDKeyFile == "" {
		return c.refuse("nats", "replicas recognize each other's ids by the same key; "+
			"want --id-key-file with a copy of one file on all of them")
	}
	if _, err := os.Stat(c.NATSCreds); c.NATSCreds != "" && err != nil {
		return c.refuse("nats-creds", "%v", missing(c.NATSCreds, err))
	}
	return nil
}

// CheckExposure refuses an address that other machines reach without authentication, or
// warns with --insecure of what they can do.
func (c *Config) CheckExposure(option string, addr Addr) error {
	isOpen, oauth, what := c.AuthTokensFile == "" && len(c.OAuth) == 0, "oauth in the file, ",
		"run the tools of the server"
	if option == "admin-addr" {
		isOpen, oauth, what = c.AuthTokensFile == "", "",
			"read /metrics, /connections and /status, and reload the configuration"
	}
	switch {
	case addr == "" || !isOpen || httpcheck.IsLoopback(string(addr)):
		return nil
	case !c.Insecure:
		return c.refuse(option, "other machines may reach %s; want a loopback address such as 127.0.0.1:8080, "+
			"--auth-tokens-file, %sor --insecure to allow it", addr, oauth)
	}
	c.warn("%s %s without authentication: everyone who reaches it can %s", c.Place(option), addr, what)
	if option == "addr" && c.KeepsPageHere() {
		c.warn("%s %s: browsers on other machines get no page, because there is no authentication: "+
			"auth-tokens-file, oauth or page gives it to them", c.Place(option), addr)
	}
	return nil
}

// check checks one server.
func (s *Server) check(c *Config, lookupEnv func(string) (string, bool)) error {
	if s.given[commandKey] != "" && (len(s.Command) == 0 || s.Command[0] == "") {
		return s.refuse(commandKey, "want a program and its arguments, such as [npx, -y, server] in the file")
	}
	if len(s.Command) > 0 && s.URL != "" {
		return s.refuse("url", "want either a command or a URL, as both say what to serve")
	}
	if slices.ContainsFunc(slices.Concat(s.Command, s.Env),
		func(text string) bool { return strings.Contains(text, "\x00") }) {
		return s.refuse(commandKey, "neither an argument nor a variable may hold a NUL byte")
	}
	for _, flag := range s.flags {
		if kind := flag.Tag.Get("for"); kind != "" && kind != s.Kind() && s.given[flag.Name] != "" {
			return s.refuse(flag.Name, "has no effect without a %s to serve", kind)
		}
	}
	if err := s.compileRules(); err != nil {
		return err
	}
	if err := s.readEnvFile(c); err != nil {
		return err
	}
	s.route = c.PathOf(s)
	if err := s.makeProcess(c, lookupEnv); err != nil {
		return err
	}
	s.ofEditor = c.Does == "stdio" || c.Shared != ""
	if info, err := os.Stat(s.Dir); s.Kind() == OfCommand && s.Dir != "" && (err != nil || !info.IsDir()) {
		return s.refuse("dir", "want a directory that exists, but got %q", s.Dir)
	}
	if s.Kind() == ofURL {
		if s.Sessions != "shared" && s.given["warm"] == "" {
			s.Warm = nil // given for all servers
		}
		if err := s.makeRemote(c, lookupEnv); err != nil {
			return err
		}
	}
	if err := s.checkParents(c); err != nil {
		return err
	}
	return s.checkItself(c)
}

// isWritten reports whether an option is in a file, where references are replaced: on a command line the shell does
// that, and after -- all is text.
func (s *Server) isWritten(c *Config, option string) (place string, is bool) {
	place = cmp.Or(s.given[option], c.given[option])
	return place, place != "" && place != "the command" && !strings.HasPrefix(place, "--") && place != envName(option)
}

// makeProcess replaces the references of the file in command and env.
func (s *Server) makeProcess(c *Config, lookupEnv func(string) (string, bool)) error {
	s.process = process{command: s.Command, env: s.Env}
	if s.Kind() != OfCommand {
		return nil
	}
	in := expansion{variables: s.variables(), lookupEnv: lookupEnv, ofProcess: true, noFiles: s.owner != ours}
	if place, is := s.isWritten(c, commandKey); is {
		s.process.command = nil
		for _, word := range s.Command {
			expanded, err := c.expand(word, in)
			if err != nil {
				return fmt.Errorf("%s: %w", place, err)
			}
			s.process.command = append(s.process.command, expanded)
		}
	}
	place, is := s.isWritten(c, "env")
	if !is {
		s.warnOfEnv(c)
		return nil
	}
	s.process.env = nil
	for _, variable := range s.Env {
		name, value, _ := strings.Cut(variable, "=")
		expanded, err := c.expand(value, in)
		if err != nil {
			return fmt.Errorf("%s: %s: %w", place, name, err)
		}
		s.process.env = append(s.process.env, name+"="+expanded)
	}
	return nil
}

// warnOfEnv warns of variables that look as if something were replaced in them.
func (s *Server) warnOfEnv(c *Config) {
	var names []string
	for _, variable := range s.Env {
		if name, value, _ := strings.Cut(variable, "="); reference.MatchString(value) {
			names = append(names, name)
		}
	}
	if len(names) > 0 {
		c.warn("%s: ${…} is replaced only in a file, and in url and header, so the process gets %s as written; "+
			"leave out what it has from sse-server",
			cmp.Or(s.given["env"], c.Place("env")), strings.Join(names, ", "))
	}
}
