package config

import (
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"os"
	"regexp"
	"slices"
	"strings"

	"github.com/mcp-sse/mcp-sse/front"
	"github.com/mcp-sse/mcp-sse/upstream"
)

// maxTokenBytes bounds the file of the bearer token for a remote server.
const maxTokenBytes = 64 << 10

// Kind returns the kind of server that is served.
func (c *Config) Kind() Kind {
	switch {
	case len(c.command) > 0:
		return Child
	case c.address != "":
		return Remote
	}
	return Demo
}

// Served names what is served, without what may be secret.
func (c *Config) Served() string {
	switch c.Kind() {
	case Child:
		return c.command[0]
	case Remote:
		return c.remote.Place()
	}
	return "demo"
}

// Upstream returns what is served, nil for the demo server.
func (c *Config) Upstream() upstream.Upstream {
	switch c.Kind() {
	case Child:
		return c.child()
	case Remote:
		return c.remote
	}
	return nil
}

func (c *Config) child() upstream.Command {
	child := upstream.Command{Path: c.command[0], Args: c.command[1:], Dir: c.dir, MaxLineBytes: c.maxLineBytes, PrincipalEnv: c.principalEnv}
	child.Env = []string{} // not nil, which means all
	for _, variable := range os.Environ() {
		if name, _, _ := strings.Cut(variable, "="); c.passes(name) {
			child.Env = append(child.Env, variable)
		}
	}
	for _, variable := range c.env { // of two with one name the last counts
		child.Env = append(child.Env, variable[0]+"="+variable[1])
	}
	return child
}

// passes reports whether the child process gets a variable of sse-server. It does
// not get the secrets of remote servers, unless it is allowed to by name.
func (c *Config) passes(name string) bool {
	if len(c.envAllow) > 0 {
		return slices.Contains(c.envAllow, name)
	}
	return !slices.Contains(c.report.secrets, name) && name != envName("header") && name != envName("url")
}

// CheckCommand returns an error if there is no such program as the command names:
// that is better reported at the start than to the first client.
func (c *Config) CheckCommand() error {
	if c.Kind() != Child {
		return nil
	}
	err := c.child().Check()
	if err == nil {
		return nil
	}
	program, line := c.command[0], strings.Join(c.command, " ")
	_, missing := os.Stat(program)
	switch {
	case missing == nil || len(strings.Fields(program)) == 1:
	case c.from(commandKey).line > 0: // no shell takes the program and its arguments apart
		err = fmt.Errorf("there is no program named %q: give the program and its arguments as separate entries, as in: command: %s",
			program, yamlList(strings.Fields(line)))
	default:
		err = fmt.Errorf("there is no program named %q: give the program and its arguments as separate words, without quotes around them all, as in: sse-server -- %s",
			program, line)
	}
	return fmt.Errorf("command: %w", err)
}

// urlValue is the address of a remote server. Its query and password are secret.
func (c *Config) urlValue() value {
	v := text("URL", &c.address, nil)
	v.short = func() string { return "" }
	v.secret = func() bool { return c.remote.Place() != c.remote.Address }
	v.text = func() string {
		if v.secret() {
			return yamlText(c.remote.Place())
		}
		return yamlText(c.address)
	}
	return v
}

// checkRemote makes the remote server of its options.
func (c *Config) checkRemote() {
	header := http.Header{}
	c.remote = upstream.URL{Header: header, Transport: c.transport, MaxMessageBytes: c.maxLineBytes}
	if c.transport == "auto" {
		c.remote.Transport = ""
	}
	var err error
	if c.remote.Address, err = c.expand(c.address); err != nil {
		c.refuse("url", "%v", err)
		return
	}
	for _, h := range c.headers {
		name := strings.TrimSpace(h[0])
		value, err := c.expand(h[1])
		if err != nil {
			c.refuse("header", "%s: %v", name, err)
		}
		header.Add(name, value)
	}
	c.readBearerToken(header)
	at, err := url.Parse(c.remote.Address)
	if err != nil { // its text would have a part of the address
		c.refuse("url", "want a URL, such as https://example.com/mcp, with special characters in a password escaped")
		return
	}
	if err := c.remote.Check(); err != nil {
		c.refuse("url", "%v", err)
	}
	if at.Scheme == "http" && !front.IsLoopback(at.Host) && (len(header) > 0 || at.User != nil) {
		c.report.warn("%s %s: the headers go over the network in plain text", c.Name("url"), c.remote.Place())
	}
	for _, name := range c.Options.ForwardHeaders {
		if strings.EqualFold(name, "Authorization") && c.tokensFile != "" {
			c.refuse("forward-header", "Authorization: the remote server would get the tokens of %s, which are for this one", c.Name("auth-tokens-file"))
		}
	}
}

var reference = regexp.MustCompile(`\$\{[^}]*\}?`)

var variable = regexp.MustCompile(`^\$\{[A-Za-z0-9_]+\}$`)

// expand replaces ${NAME} by an environment variable. It cuts blanks off the ends:
// many a secret ends with a newline.
func (c *Config) expand(text string) (string, error) {
	var wrong error
	expanded := reference.ReplaceAllStringFunc(text, func(found string) string {
		name := strings.Trim(found, "${}")
		value, _ := c.lookupEnv(name)
		c.report.secrets = append(c.report.secrets, name)
		if !variable.MatchString(found) {
			wrong = errors.New("want ${NAME} with the name of an environment variable, of letters, digits and _")
		} else if value == "" {
			wrong = fmt.Errorf("the environment variable %s is not set", name)
		}
		return value
	})
	return strings.TrimSpace(expanded), wrong
}

// readBearerToken reads the file of the token for the remote server.
func (c *Config) readBearerToken(header http.Header) {
	if c.bearerTokenFile == "" {
		return
	}
	if header.Get("Authorization") != "" {
		c.report.add(c.from("bearer-token-file").line, "%s and an Authorization in %s: want one of them",
			c.Name("bearer-token-file"), c.Name("header"))
	}
	data, err := readLimited(c.bearerTokenFile, maxTokenBytes)
	token := strings.TrimSpace(string(data))
	notVisible := func(r rune) bool { return r <= ' ' || r >= 0x7f }
	switch {
	case err != nil:
		c.refuse("bearer-token-file", "%v", err)
	case token == "" || strings.ContainsFunc(token, notVisible):
		c.refuse("bearer-token-file", "want the token alone on one line")
	default:
		header.Set("Authorization", "Bearer "+token)
		c.report.warnOfOthers("bearer token file", c.bearerTokenFile)
	}
}

// warnOfOthers warns if other users of this machine can read or change a file of
// secrets.
func (r *report) warnOfOthers(what, path string) {
	info, err := os.Stat(path)
	if err != nil || !info.Mode().IsRegular() {
		return
	}
	if info.Mode().Perm()&0o004 != 0 {
		r.warn("%s %s can be read by every user of this machine", what, path)
	}
	if info.Mode().Perm()&0o022 != 0 {
		r.warn("%s %s can be changed by other users of this machine", what, path)
	}
}
