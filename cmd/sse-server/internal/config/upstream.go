package config

import (
	"cmp"
	"encoding"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"net/http"
	"net/netip"
	"net/url"
	"os"
	"path/filepath"
	"reflect"
	"regexp"
	"runtime"
	"slices"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/mcp-sse/mcp-sse/auth/oauthclient"
	"github.com/mcp-sse/mcp-sse/cmd/sse-server/internal/envfile"
	"github.com/mcp-sse/mcp-sse/compose"
	"github.com/mcp-sse/mcp-sse/gateway"
	"github.com/mcp-sse/mcp-sse/internal/environ"
	"github.com/mcp-sse/mcp-sse/internal/forprogram"
	"github.com/mcp-sse/mcp-sse/internal/hosts"
	"github.com/mcp-sse/mcp-sse/internal/httpcheck"
	"github.com/mcp-sse/mcp-sse/internal/selection"
	"github.com/mcp-sse/mcp-sse/internal/upstream/remote"
	"github.com/mcp-sse/mcp-sse/internal/upstream/stdio"
	"github.com/mcp-sse/mcp-sse/upstream"
)

// The kinds of server, as the tag for names them.
const (
	OfCommand = "command"
	ofURL     = "url"
	OfDemo    = "demo"
	OfView    = "view"
)

// Kind returns the kind of server that is served.
func (s *Server) Kind() string {
	switch {
	case s.view:
		return OfView
	case len(s.Command) > 0:
		return OfCommand
	case s.URL != "":
		return ofURL
	}
	return OfDemo
}

// IsInFile reports whether the file of the configuration says what is served, not the command line or the
// environment.
func (s *Server) IsInFile() bool {
	place := s.given[s.Kind()]
	return place != "" && place != "the command" && !strings.HasPrefix(place, "--") && place != envName(s.Kind())
}

// Served names what is served, without what may be secret.
func (s *Server) Served() string {
	switch s.Kind() {
	case OfCommand:
		return s.Command[0]
	case ofURL:
		return s.remote.Place()
	}
	return OfDemo
}

// PrefixOf returns the path before the routes of s.
func (c *Config) PrefixOf(s *Server) string {
	if s.Name == "" || s.Kind() == OfView && s.Name == rootName { // the view of all
		return c.Prefix
	}
	return c.Prefix + "/" + s.Name
}

// PathOf returns the path of the URL of s.
func (c *Config) PathOf(s *Server) string { return c.PrefixOf(s) + gateway.Path }

// Gateway returns the options of the gateway in front of s: o, with those that c has.
func (c *Config) Gateway(s *Server, o gateway.Options) gateway.Options {
	o.Name, o.Prefix, o.IDKey = s.Name, c.PrefixOf(s), c.IDKey
	for _, word := range s.Transports {
		var transport gateway.Transport
		mustSet(&transport, word)
		o.Transports = append(o.Transports, transport)
	}
	mustSet(&o.Sessions, s.Sessions)
	mustSet(&o.ErrorDetails, c.ErrorDetails)
	o.NoAutoInitialize = !s.AutoInitialize
	o.Page, o.Description = c.page(), s.Description
	if s.resource != nil && c.pageClient != "" {
		o.PageLogin = &gateway.PageLogin{Issuer: s.protection.Issuer, ClientID: c.pageClient,
			Resource: s.protection.Resource, Scopes: slices.Concat(s.protection.Scopes, s.protection.Supported)}
	}
	if s.Warm != nil {
		o.Warm = off(*s.Warm)
	}
	own := forprogram.OptionsOf(&o)
	if s.Kind() == OfCommand && c.StateDir != "" {
		own.LockDir = filepath.Join(c.StateDir, "locks")
	}
	if s.Remember && s.Kind() == OfCommand {
		o.Remember = &gateway.Remember{For: time.Duration(s.RememberFor)}
		// Over stdio the program may end at any time: there its learner does it.
		own.LearnsAnyFolder = !slices.Contains(o.Transports, gateway.TransportStdio)
		if c.StateDir != "" {
			o.Remember.Dir = filepath.Join(c.StateDir, "remembered")
		}
		if s.ProcessIdle != nil {
			o.Remember.ProcessIdle = off(time.Duration(*s.ProcessIdle))
		}
	}
	own.Restricted = s.isRestricted()
	o.Select = s.selection()
	o.ForwardHeaders = s.ForwardedHeaders()
	if s.ForwardsTokens() {
		o.ForwardHeaders = append(slices.Clone(o.ForwardHeaders), "Authorization")
	}

	o.InitializationTimeout, o.StartTimeout = time.Duration(s.InitializationTimeout), time.Duration(s.StartTimeout)
	o.HeartbeatInterval, o.RequestTimeout = off(time.Duration(s.HeartbeatInterval)), time.Duration(s.RequestTimeout)
	if s.IdleTimeout != nil {
		o.IdleTimeout = off(time.Duration(*s.IdleTimeout))
	}

	o.MaxConnections, o.MaxConnectionsPerIP = off(s.MaxConnections), s.MaxConnectionsPerIP
	o.ConnectRate, o.MaxMessageBytes, o.MaxInFlight = off(s.ConnectRate), int64(s.MaxMessageBytes), s.MaxInFlight

	o.AllowedOrigins, o.AllowedHosts = c.AllowedOrigins, c.AllowedHosts
	o.PublicHost = c.PublicHost()
	for _, n := range c.TrustedProxies {
		o.TrustedProxies = append(o.TrustedProxies, netip.Prefix(n))
	}
	o.Authenticate, o.Reauthenticate = s.Authenticate, s.Reauthenticate
	return o
}

// PublicHost returns the host of public-url; empty: there is none.
func (c *Config) PublicHost() string {
	public, err := url.Parse(c.PublicURL)
	if err != nil { // what needs it refuses it
		return ""
	}
	return public.Hostname()
}

// PublicOrigin returns the origin of public-url, as browsers write it; empty: there is none.
func (c *Config) PublicOrigin() string { return hosts.Origin(c.PublicURL) }

// mustSet sets an option of the gateway to the value of a word, which the tag oneof has allowed.
func mustSet(option encoding.TextUnmarshaler, word string) {
	if err := option.UnmarshalText([]byte(word)); err != nil {
		panic(fmt.Sprintf("the tag oneof allows %q: %v", word, err))
	}
}

// selection returns what is offered of the server; nil: everything.
func (s *Server) selection() *compose.Selection {
	chosen := compose.Selection{
		Include: s.Include, Exclude: s.Exclude, Prompts: s.Prompts, Resources: s.Resources,
	}
	mustSet(&chosen.Only, s.Only)
	if reflect.ValueOf(chosen).IsZero() {
		return nil
	}
	return &chosen
}

// Rules returns the rules of the selection; nil: they leave nothing out.
func (s *Server) Rules() *selection.Rules { return s.rules }

// compileRules sets the rules. It refuses what cannot be read.
func (s *Server) compileRules() (err error) {
	for _, part := range []struct {
		option string
		spec   selection.Spec
	}{
		{"include", selection.Spec{Include: s.Include}}, {"exclude", selection.Spec{Exclude: s.Exclude}},
		{"prompts", selection.Spec{Prompts: s.Prompts}}, {"resources", selection.Spec{Resources: s.Resources}},
	} {
		if _, err := selection.Compile(part.spec); err != nil {
			return s.refuse(part.option, "%s", strings.TrimPrefix(err.Error(), part.option+": "))
		}
	}
	s.rules, err = selection.Compile(selection.Spec{
		Include: s.Include, Exclude: s.Exclude, Only: selection.Only(s.Only),
		Prompts: s.Prompts, Resources: s.Resources,
	})
	return err
}

// page returns who gets the page, as gateway.Options has it.
func (c *Config) page() gateway.Page {
	switch {
	case c.Page == nil:
		return gateway.PageAuto
	case *c.Page:
		return gateway.PageOn
	}
	return gateway.PageOff
}

// ForwardedHeaders returns the headers of clients that the remote server gets, by the names that clients have.
func (s *Server) ForwardedHeaders() (names []string) {
	for _, one := range s.ForwardHeader {
		name, _, _ := strings.Cut(one, ":")
		names = append(names, strings.TrimSpace(name))
	}
	return names
}

// renames returns the names by which the remote server gets headers of clients, where they are others.
func (s *Server) renames() (map[string]string, error) {
	var renamed map[string]string
	targets := map[string]bool{}
	for _, one := range s.ForwardHeader {
		from, to, isRenamed := strings.Cut(one, ":")
		from, to = http.CanonicalHeaderKey(strings.TrimSpace(from)), strings.TrimSpace(to)
		if !isRenamed {
			to = from
		} else if err := httpcheck.CheckHeaderName(to); err != nil {
			return nil, err
		}
		to = http.CanonicalHeaderKey(to)
		if targets[to] {
			return nil, fmt.Errorf("two headers would be sent as %s", to)
		}
		targets[to] = true
		if isRenamed && to != from {
			if renamed == nil {
				renamed = map[string]string{}
			}
			renamed[from] = to
		}
	}
	return renamed, nil
}

// ForwardsTokens reports whether the token of each client gets it one for the remote server.
func (s *Server) ForwardsTokens() bool {
	own, ok := s.remote.Credentials.(oauthclient.Config)
	return ok && own.Grant == oauthclient.TokenExchange
}

// off returns what switches a limit of gateway.Options off if v is 0, which is the default
// there.
func off[T int | float64 | time.Duration](v T) T {
	if v == 0 {
		return -1
	}
	return v
}

// optionOf names the option that sets a field of gateway.Options, or of upstream.Command, where
// an error of the gateway may be about it.
var optionOf = map[string]string{
	"Name": nameKey, "Prefix": "prefix", "Transports": "transports", "IDKey": "id-key-file", "Cluster": "nats",
	"NoAutoInitialize": "auto-initialize", "Sessions": "sessions", "Warm": "warm",
	"Remember": "remember", "Remember.For": "remember-for", "ErrorDetails": "error-details",
	"Page": "page", "PageLogin": "oauth", "Description": "description",
	"Select":      "include",
	"PassRequest": "principal-env", "PrincipalEnv": "principal-env", "ForwardHeaders": "forward-header",
	"InitializationTimeout": "initialization-timeout", "StartTimeout": "start-timeout",
	"HeartbeatInterval": "heartbeat-interval", "IdleTimeout": "idle-timeout", "RequestTimeout": "request-timeout",
	"MaxConnections": "max-connections", "MaxConnectionsPerIP": "max-connections-per-ip", "ConnectRate": "connect-rate",
	"MaxMessageBytes": "max-message-bytes", "MaxInFlight": "max-in-flight", "TrustedProxies": "trusted-proxies",
	"AllowedOrigins": "allowed-origins", "AllowedHosts": "allowed-hosts", "PublicHost": "public-url",
	"Audit": "audit-log",
}

// Explain returns an error of package gateway about s with the options as they were given, in
// place of the fields of gateway.Options.
func (c *Config) Explain(s *Server, err error) error {
	var all []error
	for _, wrong := range optionErrors(err) {
		if errors.Is(wrong, gateway.ErrFixed) {
			wrong = &gateway.OptionError{Option: wrong.Option, Problem: restart}
		}
		problem := wrong.Problem
		if wrong.Other != "" {
			problem = fmt.Sprintf(problem, c.placeOfField(s, wrong.Other))
		}
		all = append(all, errors.New(c.placeOfField(s, wrong.Option)+": "+problem))
	}
	if len(all) == 0 {
		return err
	}
	return errors.Join(all...)
}

// placeOfField returns where the option that sets a field of gateway.Options was given.
func (c *Config) placeOfField(s *Server, field string) string {
	option := optionOf[field]
	switch {
	case option == "":
		return field
	case option == nameKey:
		return cmp.Or(s.given[option], option)
	}
	return cmp.Or(s.given[option], c.Place(option))
}

// optionErrors returns the errors about options in an error of package gateway; none if it has another reason.
func optionErrors(err error) []*gateway.OptionError {
	switch e := err.(type) {
	case *gateway.OptionError:
		return []*gateway.OptionError{e}
	case interface{ Unwrap() error }:
		return optionErrors(e.Unwrap())
	case interface{ Unwrap() []error }:
		var all []*gateway.OptionError
		for _, one := range e.Unwrap() {
			all = append(all, optionErrors(one)...)
		}
		return all
	}
	return nil
}

// Upstream returns what is served, nil for the demo server and for a view.
func (s *Server) Upstream() upstream.Upstream {
	switch s.Kind() {
	case OfCommand:
		return s.child()
	case ofURL:
		return s.remote
	}
	return nil
}

func (s *Server) child() stdio.Command {
	command, env := s.Command, s.Env
	if len(s.process.command) > 0 {
		command, env = s.process.command, s.process.env
	}
	child := stdio.Command{Path: command[0], Args: command[1:], Dir: s.Dir, PrincipalEnv: s.PrincipalEnv,
		CloseTimeout: time.Duration(s.CloseTimeout), Route: s.route}
	child.Env = []string{} // not nil, which means all
	given := map[string]bool{}
	for _, variable := range slices.Concat(s.fromFile, env) {
		name, _ := environ.Split(variable)
		given[name] = true
	}
	for _, variable := range os.Environ() {
		name, value, _ := strings.Cut(variable, "=")
		if !s.passes(name, value) {
			continue
		}
		child.Env = append(child.Env, variable)
		if !given[environ.Fold(name)] && (!s.ofEditor || environ.IsAmbient(name) || environ.IsPlace(name)) {
			child.Inherited = append(child.Inherited, name)
		}
	}
	child.Env = append(append(child.Env, s.fromFile...), env...) // of two with one name the last counts
	return child
}

// passes reports whether the child process gets a variable of sse-server. It does not get the options
// of sse-server, which are not for another one that it may start, nor the secrets of remote servers and collectors,
// unless it is allowed to by name.
func (s *Server) passes(name, value string) bool {
	if len(s.EnvAllow) > 0 {
		return slices.Contains(s.EnvAllow, name)
	}
	isSecretOfOTLP := strings.HasPrefix(name, "OTEL_EXPORTER_OTLP_") &&
		(strings.HasSuffix(name, "HEADERS") || strings.HasSuffix(name, "ENDPOINT") && strings.Contains(value, "@"))
	return !isSecretOfOTLP && !slices.Contains(*s.secrets, name) && !ownVariables()[name]
}

// ownVariables are those of the environment that set an option of sse-server or of one of its commands.
var ownVariables = sync.OnceValue(func() map[string]bool {
	all, c := map[string]bool{}, newConfig()
	model := newParser(c, &c.Server).Model
	for _, node := range append(model.Children, model.Node) {
		for _, flag := range node.Flags {
			all[envName(flag.Name)] = true
		}
	}
	return all
})

// CheckCommand returns an error if there is no such program as the command names:
// that is better reported at the start than to the first client.
func (s *Server) CheckCommand() error {
	if s.Kind() != OfCommand {
		return nil
	}
	err := s.child().Check()
	if err == nil {
		return nil
	}
	words := strings.Fields(s.Command[0])
	if len(words) < 2 || len(s.Command) > 1 || !s.mayStart(words[0]) {
		if instead := s.programInstead(err); instead != "" && !errors.Is(err, syscall.EISDIR) {
			return s.refuse(commandKey, "%s", instead)
		}
		return s.refuse(commandKey, "%v", err)
	}
	instead := `: command: ["` + strings.Join(words, `", "`) + `"]`
	if strings.ContainsAny(s.Command[0], `"'`) { // what a shell would take as one word
		instead = `, each in quotes: command: ["` + words[0] + `", "…"]`
	}
	if s.given[commandKey] == "the command" {
		instead = ", without quotes: sse-server " + s.verb + "-- " + strings.Join(words, " ")
	}
	return s.refuse(commandKey, "%q is one word, and no program has that name: write the words separately%s",
		s.Command[0], instead)
}

// mayStart reports whether the first word of a command in one string can be its program, installed or not. A path
// with a space in it is one word.
func (s *Server) mayStart(program string) bool {
	child := s.child()
	child.Path = program
	return !strings.ContainsAny(program, `/\`) || child.Check() == nil
}

var (
	assignment  = regexp.MustCompile(`^([A-Za-z_][A-Za-z0-9_]*)=`)
	windowsPath = regexp.MustCompile(`^[A-Za-z]:[\\/]`)
)

// interpreters are the programs that run scripts, by the ending of these.
var interpreters = map[string]string{".js": "node", ".mjs": "node", ".cjs": "node", ".py": "python3", ".sh": "sh",
	".rb": "ruby"}

// programInstead says what to write in place of a first word of the command that is not a program because of err,
// but that a shell would take, say; empty if that is not known. It shows no values.
func (s *Server) programInstead(err error) string {
	word := s.Command[0]
	flag := func(name, value string) string {
		if s.IsInFile() {
			return name + ":"
		}
		return "--" + name + " " + value
	}
	interpreter := interpreters[filepath.Ext(word)]
	if errors.Is(err, fs.ErrNotExist) { // there is no such script
		interpreter = ""
	}
	switch {
	case assignment.MatchString(word):
		name := assignment.FindStringSubmatch(word)[1]
		return name + "=… is not a program: set the variable with " + flag("env", name+"=VALUE")
	case word == "cd":
		return "cd is a command of shells, not a program: set the directory with " + flag("dir", "DIR")
	case slices.Contains([]string{"source", ".", "export", "alias", "set", "ulimit", "exec"}, word):
		return word +
			" is a command of shells, not a program: write sh -c and the whole command as one word, or a script"
	case strings.HasPrefix(word, "~"):
		return "only shells replace ~ by the home directory: write the whole path of the program"
	case strings.Contains(word, "://"):
		return "an address is not a program: serve it with " + flag("url", "URL")
	case windowsPath.MatchString(word) && runtime.GOOS != "windows":
		return "it is a path of Windows, which this machine does not have: write the path that the program has here"
	case interpreter != "" && s.IsInFile():
		return fmt.Sprintf("a script comes after its interpreter, as in: command: [%s, %s]", interpreter, word)
	case interpreter != "":
		return fmt.Sprintf("a script comes after its interpreter, as in: sse-server %s-- %s %s", s.verb, interpreter,
			asTyped([]string{word}))
	}
	return ""
}

// makeRemote makes the remote server of the URL and the headers.
func (s *Server) makeRemote(c *Config, lookupEnv func(string) (string, bool)) (err error) {
	s.remote = remote.URL{Header: http.Header{}, Name: s.Name}
	in := s.expansion(lookupEnv)
	in.variables = s.variables()
	s.remote.Address, err = c.expand(s.URL, in)
	if err != nil {
		return s.refuse("url", "%v", err)
	}
	for _, header := range s.Header {
		name, value, _ := strings.Cut(header, ":")
		value, err = c.expand(value, in)
		if err == nil {
			err = httpcheck.CheckHeaderName(name)
		}
		if err != nil {
			return s.refuse("header", "%s: %v", name, err)
		}
		s.remote.Header.Set(name, value)
	}
	if s.remote.Rename, err = s.renames(); err != nil {
		return s.refuse("forward-header", "%v", err)
	}
	if len(s.OAuthClient) > 0 {
		if err := s.makeCredentials(c, lookupEnv); err != nil {
			return err
		}
	}
	if err := s.remote.Check(); err != nil {
		return s.refuse("url", "%v%s", err, urlMeant(s.remote.Address))
	}
	if at, _ := url.Parse(s.remote.Address); at.Scheme == "http" && !httpcheck.IsLoopback(at.Host) &&
		(len(s.Header) > 0 || at.User != nil || s.remote.Credentials != nil) {
		c.warn("%s %s: the headers go over the network in plain text", s.Place("url"), s.remote.Place())
	}
	if (c.AuthTokensFile != "" || len(c.OAuth) > 0) && slices.ContainsFunc(s.ForwardedHeaders(), isAuthorization) {
		return s.refuse("forward-header",
			"Authorization: the remote server would get the tokens of %s, "+
				"which are for this one", cmp.Or(c.given["auth-tokens-file"], c.given[oauthKey]))
	}
	if err := s.readLoginClient(c, lookupEnv); err != nil {
		return err
	}
	return s.useLogin(c)
}

// urlMeant asks whether a URL is meant by an address without a scheme; it is empty if none is. Parts that may be
// secret are left out.
func urlMeant(address string) string {
	at, err := url.Parse("http://" + address)
	switch {
	case err != nil || strings.Contains(address, "://") || at.Hostname() == "":
		return ""
	case at.Port() != "" || httpcheck.IsLoopback(at.Host):
	case strings.Contains(at.Host, "."):
		at.Scheme = "https"
	default:
		return ""
	}
	return ", did you mean " + remote.URL{Address: at.String()}.Place() + "?"
}

var reference = regexp.MustCompile(`\$\{[^}]*\}?`)

// readEnvFile reads the variables of the env-files. No error shows a value.
func (s *Server) readEnvFile(c *Config) error {
	all := map[string]string{}
	for _, file := range s.EnvFile {
		data, info, err := c.read(file)
		if err != nil {
			return s.refuse("env-file", "%v", err)
		}
		c.warnOfOthers(file, info)
		variables, err := envfile.Parse(string(data))
		if err != nil {
			return s.refuse("env-file", "%s: %v", file, err)
		}
		maps.Copy(all, variables)
	}
	s.fromFile = nil
	for _, name := range slices.Sorted(maps.Keys(all)) {
		s.fromFile = append(s.fromFile, name+"="+all[name])
	}
	return nil
}

// variables are those of the env-file, by their names.
func (s *Server) variables() map[string]string {
	all := map[string]string{}
	for _, variable := range s.fromFile {
		name, value, _ := strings.Cut(variable, "=")
		all[name] = value
	}
	return all
}

// expansion says what the references in a text may refer to.
type expansion struct {
	variables map[string]string // of the env-file: they win
	lookupEnv func(string) (string, bool)
	// ofProcess says that the text is for a process, which has the environment anyway, and perhaps another use for
	// ${…}: what is no reference stays.
	ofProcess bool
	noFiles   bool   // ${file:PATH} stays text, as clients do not know it
	sentTo    string // where a file that others may have written sends the text; empty: the file is of this user
}

var (
	referenceOrText = regexp.MustCompile(`\$?\$\{[^}]*\}?`)
	variableName    = regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_]*$`)
)

// expand replaces ${NAME} and ${NAME:-default}, which Cursor writes as ${env:NAME} and VS Code as ${input:name}, by a
// variable, and ${file:PATH} by the content of a file. $${ is the text ${. It cuts blanks off the ends: many a secret
// ends with a newline.
func (c *Config) expand(text string, in expansion) (string, error) {
	var wrong error
	expanded := referenceOrText.ReplaceAllStringFunc(text, func(found string) string {
		if strings.HasPrefix(found, "$$") {
			return found[1:]
		}
		inner, closed := strings.CutSuffix(found[2:], "}")
		if path, isFile := strings.CutPrefix(inner, "file:"); isFile && closed {
			if in.noFiles {
				return found
			}
			data, info, err := c.read(path)
			wrong = cmp.Or(err, wrong)
			c.warnOfOthers(path, info)
			return strings.TrimSpace(string(data))
		}
		inner, fallback, hasDefault := strings.Cut(inner, ":-")
		name, asked := variableIn(inner)
		if in.ofProcess && (!closed || !variableName.MatchString(name)) {
			return found
		}
		c.references = append(c.references, name)
		value, isSet := in.lookupEnv(name)
		if fromFile, ok := in.variables[name]; ok {
			value, isSet = fromFile, true
		}
		if value != "" && in.sentTo != "" && !slices.Contains(c.Expand, name) {
			wrong = fmt.Errorf("the variable %s is set here, and would be sent to %s because a file of a project "+
				"says so, which others may have written: --expand %s allows it", name, in.sentTo, name)
		}
		if !in.ofProcess {
			*c.secrets = append(*c.secrets, name)
		}
		switch {
		case !closed:
			wrong = errors.New("want a } after ${NAME} or ${file:PATH}")
		case value == "" && hasDefault:
			return fallback
		case in.ofProcess && isSet, value != "":
		case asked != "":
			wrong = fmt.Errorf("VS Code asks for the input %q; set the environment variable %s to it", asked, name)
		default:
			wrong = fmt.Errorf("the environment variable %s is not set", name)
		}
		return value
	})
	if in.ofProcess {
		return expanded, wrong
	}
	return strings.TrimSpace(expanded), wrong
}

// expansion returns what the file of s may refer to in what it has sent.
func (s *Server) expansion(lookupEnv func(string) (string, bool)) expansion {
	in := expansion{lookupEnv: lookupEnv, noFiles: s.owner != ours}
	if s.owner == ofProject {
		in.sentTo = hostOf(s.URL)
	}
	return in
}

// hostOf returns the host of a URL, for messages.
func hostOf(address string) string {
	at, err := url.Parse(address)
	if err != nil || at.Host == "" {
		return "its server"
	}
	return at.Host
}
