package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"
	"time"

	"github.com/mcp-sse/mcp-sse/auth/oauthclient"
	"github.com/mcp-sse/mcp-sse/cmd/sse-server/internal/background"
	"github.com/mcp-sse/mcp-sse/cmd/sse-server/internal/check"
	"github.com/mcp-sse/mcp-sse/cmd/sse-server/internal/config"
	"github.com/mcp-sse/mcp-sse/cmd/sse-server/internal/exit"
	"github.com/mcp-sse/mcp-sse/cmd/sse-server/internal/observe"
	"github.com/mcp-sse/mcp-sse/cmd/sse-server/internal/setup"
	"github.com/mcp-sse/mcp-sse/cmd/sse-server/internal/signin"
	"github.com/mcp-sse/mcp-sse/cmd/sse-server/internal/terminal"
	"github.com/mcp-sse/mcp-sse/gateway"
	"github.com/mcp-sse/mcp-sse/internal/buildinfo"
	"github.com/mcp-sse/mcp-sse/internal/completions"
	"github.com/mcp-sse/mcp-sse/internal/login"
)

// Main is the program with everything that it takes from its process, so that a
// test can run it.
type Main struct {
	Args           []string  // without the program's name
	Stdin          io.Reader // for the subcommand stdio, as Stdout, which then gets only messages
	Stdout, Stderr io.Writer // Stderr gets the log and faults
	LookupEnv      func(string) (string, bool)
	// Notify returns the signals to catch: those that stop the program, a second one at
	// once, and SIGHUP, which reloads the configuration of the daemon. It is called once
	// that has been read, and a cluster joined: until then a signal ends the process.
	Notify func(catch ...os.Signal) <-chan os.Signal
	// Sockets are those that systemd passes. They replace addresses.
	Sockets []*os.File
	// Silence is how long a check or a stop may go on before a line says so; 0 means 3 s to a pipe, and 1 s at a
	// stop.
	Silence time.Duration
	// Ready, if not nil, is called with the URL of the (first) server, and the address of
	// the admin server or "", once both accept connections.
	Ready func(url, admin string)

	releases string // where the newest release is; empty: newestRelease

	hasClient bool // one client is served on Stdin and Stdout

	live    *terminal.Line   // of stdout
	starts  *observe.Starts  // nil, unless a person reads the log and the start check on one terminal
	signals <-chan os.Signal // that stop the program
	hangup  <-chan os.Signal // SIGHUP of the daemon
}

// Run runs the program and returns its exit code.
func (m *Main) Run() int {
	m.live = terminal.NewLine(m.Stdout)
	c, err := m.loadConfig(new(config.Config))
	m.hasClient = c.Does == "stdio" && !c.Stdio.Learn
	if err != nil {
		return m.refuse(err)
	}
	if code, done := m.atOnce(c); done {
		return code
	}
	if c.Does == "serve" {
		m.hangup = m.Notify(syscall.SIGHUP)
	} else if c.Does == "stdio" || c.Does == "tools" || c.Check.Start { // the rest a signal just ends
		m.signals = m.Notify(syscall.SIGINT, syscall.SIGTERM, syscall.SIGHUP)
	}
	level := new(slog.LevelVar)
	_ = level.UnmarshalText([]byte(c.LogLevel)) // has been checked
	stderr := m.live.Over(m.Stderr)
	direct := observe.NewLogger(stderr, level, c.LogFormat)
	lines := observe.NewLogWriter(stderr, func(n int64) { direct.Warn("log lines dropped", "lines", n) })
	defer lines.Close()
	if err, ok := m.Stderr.(*os.File); ok && terminal.Is(err) && m.live.IsShown() && c.LogFormat != "json" {
		m.starts = observe.NewStarts()
	}
	log := m.starts.Logger(observe.NewLogger(lines, level, c.LogFormat))
	for _, warning := range c.Warnings {
		log.Warn("configuration warning", "warning", warning)
	}
	openOne := func(s *config.Server) (*gateway.Gateway, error) {
		return newGateway(c, s, gateway.Options{Logger: log})
	}
	if c.Does == "tools" {
		return m.check().Tools(c, openOne, m.signals)
	}
	audit, err := observe.OpenAudit(c, m.Stdout, log)
	if err != nil {
		return m.refuse(err)
	}
	if audit.IsOnStdout() {
		m.Stdout = io.Discard // the banner
	}
	defer audit.Close()
	tracing, err := observe.NewTracing(context.Background(), m.LookupEnv, log)
	if err != nil {
		return m.refuse(err)
	}
	defer tracing.Close()
	defer oauthclient.Finish()
	defer login.Finish()
	defer login.GiveUp(c.StateDir)
	if c.Does == "stdio" {
		return m.serveStdio(c, gateway.Options{Logger: log, Audit: audit.Logger, TracerProvider: tracing.Provider})
	}
	d, err := newDaemon(c, m.loadConfig, log, level, audit, tracing)
	if err != nil {
		return m.refuse(err)
	}
	d.args, d.starts = m.Args, m.starts
	if c.Does == "check" {
		fmt.Fprint(m.Stdout, configurationOK)
		if c.Check.Start {
			return m.check().Try(c, openOne, m.signals)
		}
		return exit.OK
	}
	m.signals = m.Notify(syscall.SIGINT, syscall.SIGTERM)
	code := m.serve(d, c)
	if code < exit.Signal { // else the process ends at once
		d.leave()
	}
	return code
}

// loadConfig loads the configuration; running is the one of before.
func (m *Main) loadConfig(running *config.Config) (*config.Config, error) {
	c, err := config.Load(m.Args, m.LookupEnv, running)
	if err == nil && len(m.Sockets) > 0 {
		c.DropViewOfAll()
	}
	return c, err
}

// atOnce does what needs neither servers nor a log, and reports whether that was all.
func (m *Main) atOnce(c *config.Config) (code int, done bool) {
	switch {
	case c.HelpText != "":
		fmt.Fprint(m.Stdout, c.HelpText)
	case c.Version:
		build := buildinfo.Read()
		fmt.Fprintf(m.Stdout, "sse-server %s\nrevision %s\n%s %s/%s\n",
			build.Version, build.Revision, build.GoVersion, runtime.GOOS, runtime.GOARCH)
		if c.VersionOf.Check {
			return m.tellNewer(build.Version, cmp.Or(m.releases, newestRelease)), true
		}
	case c.Completion.Values != "":
		for _, value := range config.Values(c.Completion.Values) {
			fmt.Fprintln(m.Stdout, value)
		}
	case c.Does == "completion":
		fmt.Fprint(m.Stdout, completions.Scripts[c.Completion.Shell])
	case c.Does == "init":
		return m.setup().Init(c), true
	case c.Does == "connect":
		return m.setup().Connect(c), true
	case c.Does == "service":
		return m.setup().Service(c, m.system()), true
	case c.Does == "login":
		return m.signin().Login(c), true
	case c.Does == "logout":
		return m.signin().Logout(c), true
	case c.Does == "logins":
		return m.signin().Logins(c), true
	case c.Diagnoses():
		defer login.Finish() // it may renew a login
		return m.check().URL(c, m.Notify(syscall.SIGINT, syscall.SIGTERM)), true
	default:
		return exit.OK, false
	}
	return exit.OK, true
}

// setup returns what the commands init and connect need.
func (m *Main) setup() *setup.Command {
	cmd := &setup.Command{Stdout: m.Stdout, Stderr: m.Stderr, LookupEnv: m.LookupEnv, Try: m.try}
	if m.isTyped() && m.live.IsShown() {
		cmd.Answers = m.Stdin
	}
	return cmd
}

// system returns what the command service takes from the system.
func (m *Main) system() setup.System {
	self, _ := os.Executable() // the command says what it lacks
	if real, err := filepath.EvalSymlinks(self); err == nil {
		self = real
	}
	home, _ := os.UserConfigDir()
	return setup.System{
		OS: runtime.GOOS, Program: self, SocketOf: background.SocketOf, ConfigHome: home,
		Run: background.Run,
	}
}

// try runs check with these arguments as a program of its own, in the environment and the folder that the shared
// sse-server of a file has. It returns what check says of the server, and the exit code.
func (m *Main) try(file string, args ...string) (said string, code int) {
	c, err := config.Load([]string{"stdio", "--connect", "--config", file}, m.LookupEnv, new(config.Config))
	if err != nil {
		return "", m.refuse(err)
	}
	out, code, err := background.RunAsOfFile(c, m.Stderr, args...)
	if err != nil {
		return "", m.refuse(err)
	}
	return strings.TrimPrefix(string(out), configurationOK), code // that is said of the file once
}

// configurationOK is what check says first.
const configurationOK = "configuration ok\n"

// signin returns what logs in at remote servers.
func (m *Main) signin() *signin.Command {
	return &signin.Command{Stdin: m.Stdin, Stdout: m.Stdout, Stderr: m.Stderr, LookupEnv: m.LookupEnv,
		Signals: m.Notify(syscall.SIGINT, syscall.SIGTERM)}
}

// check returns what says whether servers can be used.
func (m *Main) check() *check.Check {
	return &check.Check{Stdout: m.Stdout, Stderr: m.Stderr, Live: m.live, Silence: m.Silence, Log: m.starts}
}

// isTyped reports whether stdin is a terminal.
func (m *Main) isTyped() bool {
	in, isFile := m.Stdin.(*os.File)
	return isFile && terminal.Is(in)
}

// refuse prints what is wrong with the configuration, tells it to the client of stdio, if there is one, and returns the
// exit code.
func (m *Main) refuse(err error) int {
	code := exit.Refuse(m.Stderr, err)
	if m.hasClient && !m.isTyped() {
		m.refuseClient(err)
	}
	if errors.Is(err, errJoin) {
		return exit.Failure
	}
	return code
}
