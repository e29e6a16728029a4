package config

import (
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"fmt"
	"net/url"
	"path/filepath"
	"reflect"
	"slices"
	"strconv"
	"strings"

	"github.com/alecthomas/kong"

	"github.com/mcp-sse/mcp-sse/internal/httpcheck"
)

// unusedDaemon is how long a daemon that sse-server stdio --connect has started goes on without a
// client.
const unusedDaemon = "10m"

// connectOfFile is the value of --connect that is given without one: the sse-server of the file of --config.
const connectOfFile = "the file of --config"

// withNameOfFile returns the arguments with that value where --connect has none.
func withNameOfFile(args []string) []string {
	i := slices.Index(args, "--connect")
	if i < 0 || i+1 < len(args) && !strings.HasPrefix(args[i+1], "-") {
		return args
	}
	args = slices.Clone(args)
	args[i] = "--connect=" + connectOfFile
	return args
}

// GatewayName is the name of the view that init makes for clients, and of the entry that they get.
const GatewayName = "gateway"

// ConnectsToFile reports whether stdio --connect means the sse-server of a file, which serves programs with any
// environment.
func (c *Config) ConnectsToFile() bool { return c.Connect != nil && c.Stdio.Connect == connectOfFile }

// IsOfFile reports whether this is the shared sse-server of a file, or a program that connects to it.
func (c *Config) IsOfFile() bool { return c.OfFile || c.ConnectsToFile() }

// nameOfFile returns the URL that is the name of the shared sse-server of a file: with a number for the path of the
// file in the place of the port, and the path of what it serves to clients.
func (c *Config) nameOfFile() (*url.URL, error) {
	if c.Config == "" {
		return nil, c.refuse("connect", "without a URL it means the sse-server of a file: want --config FILE too, "+
			"or a URL of this machine as the name, such as http://127.0.0.1:8080/mcp")
	}
	s := c.servedOfFile()
	if s == nil {
		var names []string
		for _, one := range c.Endpoints() {
			names = append(names, c.Title(one))
		}
		return nil, c.refuse("connect", "without a URL it means the one server or view of %s, or its view %s, and it "+
			"has %s: name the view that clients get %s", c.Config, GatewayName, strings.Join(names, ", "), GatewayName)
	}
	return &url.URL{Scheme: "http", Host: "127.0.0.1:" + c.numberOfFile(), Path: c.PathOf(s)}, nil
}

// servedOfFile returns what the shared sse-server of a file serves to clients: the view of that name, or the only view
// or server. It is nil if there are several.
func (c *Config) servedOfFile() *Server {
	for _, v := range c.Views {
		if v.Name == GatewayName || len(c.Views) == 1 {
			return v.Server
		}
	}
	if len(c.Views) == 0 && len(c.Each()) == 1 {
		return c.Each()[0]
	}
	return nil
}

// numberOfFile returns a number for the path of the file, of those that are no usual ports. If two files have one, the
// one that comes second is told.
func (c *Config) numberOfFile() string {
	const first, last = 20_000, 65_535
	sum := sha256.Sum256([]byte(c.fileWithPath()))
	return strconv.Itoa(first + int(binary.BigEndian.Uint32(sum[:])%(last-first+1)))
}

// fileWithPath returns the whole path of the file of --config.
func (c *Config) fileWithPath() string {
	if whole, err := filepath.Abs(c.Config); err == nil {
		return whole
	}
	return c.Config
}

// DirOfFile returns the folder of the file of --config, in which its shared sse-server runs.
func (c *Config) DirOfFile() string { return filepath.Dir(c.fileWithPath()) }

// SocketName returns the name of the socket of the shared sse-server: a number.
func (c *Config) SocketName() string {
	if c.Connect != nil {
		return c.Connect.Port()
	}
	return c.numberOfFile()
}

// checkConnect checks stdio's option connect, and makes the arguments of the daemon to connect to.
func (c *Config) checkConnect() error {
	if c.Stdio.Connect == "" {
		return nil
	}
	if c.Stdio.Connect == connectOfFile {
		return c.checkConnectOfFile()
	}
	at, err := url.Parse(c.Stdio.Connect)
	prefix, isMCP := "", false
	if err == nil {
		prefix, isMCP = strings.CutSuffix(at.Path, "/mcp")
	}
	if err != nil || at.Scheme != "http" || at.Port() == "" || !isMCP || at.RawQuery != "" || at.User != nil ||
		!httpcheck.IsLoopback(at.Host) {
		return c.refuse("connect", "%q: want a URL of this machine as the name, such as http://127.0.0.1:8080/mcp; "+
			"for a server that runs use --url", c.Stdio.Connect)
	}
	if err := c.checkDaemon(); err != nil {
		return err
	}
	isServed := func(s *Server) bool { return c.PrefixOf(s)+"/mcp" == at.Path }
	if len(c.Servers) > 0 && !slices.ContainsFunc(c.Endpoints(), isServed) {
		return c.refuse("connect", "%q: no server or view of %s is at this path", c.Stdio.Connect, c.Config)
	}
	c.Connect = at
	if c.given["exit-unused"] == "" {
		c.DaemonArgs = append(c.DaemonArgs, "--exit-unused="+unusedDaemon)
	}
	if c.given["start-check"] == "" {
		c.DaemonArgs = append(c.DaemonArgs, "--no-start-check") // its first client is coming
	}
	if prefix != "" && len(c.Servers) == 0 {
		c.DaemonArgs = append(c.DaemonArgs, "--prefix="+prefix)
	}
	if len(c.Command) > 0 && c.given[commandKey] == "the command" {
		c.DaemonArgs = append(append(c.DaemonArgs, "--"), c.Command...)
	}
	return nil
}

// serviceWords are what can follow service.
var serviceWords = []string{"install", "uninstall", "status"}

// checkService checks the command service.
func (c *Config) checkService() error {
	switch {
	case c.Does != "service":
		return nil
	case !slices.Contains(serviceWords, c.Service.Do):
		return fmt.Errorf("service: want one of %s, but got %q", strings.Join(serviceWords, ", "), c.Service.Do)
	case c.Service.Do != "install":
		return nil
	case c.Config == "":
		return errors.New("service: want --config FILE, the file whose servers it serves, as in: " +
			"sse-server service install --config servers.yaml")
	}
	c.OfFile = true
	if err := c.checkDaemon(); err != nil {
		return err
	}
	_, err := c.nameOfFile()
	return err
}

// References returns the variables of the environment to which the file refers.
func (c *Config) References() []string {
	return slices.Compact(slices.Sorted(slices.Values(c.references)))
}

// checkDaemon checks what a shared sse-server cannot have, or needs.
func (c *Config) checkDaemon() error {
	for _, option := range []string{"addr", "prefix", "auth-tokens-file", oauthKey, "tls-cert", "nats"} {
		if c.given[option] != "" {
			return c.refuse("connect", "not with %s: the sse-server that is started has no port; leave it out, "+
				"or start one with a port yourself and use stdio --url", c.given[option])
		}
	}
	if c.StateDir == "" {
		return c.refuse("connect", "neither STATE_DIRECTORY nor HOME is set: there is no place for its lock")
	}
	return nil
}

// checkConnectOfFile checks stdio's option connect without a URL. The daemon reads the file again when it changes: the
// programs that connect compare it.
func (c *Config) checkConnectOfFile() error {
	at, err := c.nameOfFile()
	if err == nil {
		err = c.checkDaemon()
	}
	if err != nil {
		return err
	}
	c.Connect = at
	c.DaemonArgs = slices.DeleteFunc(c.DaemonArgs, func(arg string) bool { return strings.HasPrefix(arg, "--config=") })
	c.DaemonArgs = append(c.DaemonArgs, "--config="+c.fileWithPath(), "--of-file")
	if c.given["watch"] == "" {
		c.DaemonArgs = append(c.DaemonArgs, "--watch")
	}
	if c.given["exit-unused"] == "" {
		c.DaemonArgs = append(c.DaemonArgs, "--exit-unused="+unusedDaemon)
	}
	if c.given["start-check"] == "" {
		c.DaemonArgs = append(c.DaemonArgs, "--no-start-check")
	}
	return nil
}

// argsOf returns a flag as it was given.
func argsOf(flag *kong.Flag) []string {
	name := "--" + flag.Name
	if flag.IsBool() {
		if !reflect.Indirect(flag.Target).Bool() {
			name = "--no-" + flag.Name
		}
		return []string{name}
	}
	if all, isList := flag.Target.Interface().([]string); isList && flag.Tag.Sep == -1 {
		var args []string
		for _, one := range all {
			args = append(args, name+"="+one)
		}
		return args
	}
	return []string{name + "=" + flagText(flag.Target)}
}

// DependsOnDir reports whether what is served depends on the directory in which sse-server was started.
func (c *Config) DependsOnDir() bool {
	paths := append(c.Files(), c.IDKeyFile, c.AuditLog)
	for _, s := range c.Each() {
		if s.Kind() == OfCommand && s.Dir == "" {
			return true
		}
		paths = append(paths, s.Dir)
	}
	return slices.ContainsFunc(paths, func(path string) bool {
		return path != "" && path != Stdout && !filepath.IsAbs(path)
	})
}

// Names reports whether the configuration names a variable of the environment: a reference of a file, or env-allow.
func (c *Config) Names(variable string) bool {
	return slices.Contains(c.references, variable) ||
		slices.ContainsFunc(c.Each(), func(s *Server) bool { return slices.Contains(s.EnvAllow, variable) })
}
