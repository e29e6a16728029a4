package main

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"os"
	"os/signal"
	"runtime"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/mcp-sse/mcp-sse/cmd/sse-server/internal/background"
	"github.com/mcp-sse/mcp-sse/cmd/sse-server/internal/browser"
	"github.com/mcp-sse/mcp-sse/cmd/sse-server/internal/config"
	"github.com/mcp-sse/mcp-sse/cmd/sse-server/internal/exit"
	"github.com/mcp-sse/mcp-sse/cmd/sse-server/internal/signin"
	"github.com/mcp-sse/mcp-sse/gateway"
	"github.com/mcp-sse/mcp-sse/internal/buildinfo"
	"github.com/mcp-sse/mcp-sse/internal/forprogram"
	"github.com/mcp-sse/mcp-sse/internal/login"
	"github.com/mcp-sse/mcp-sse/internal/stdio"
	"github.com/mcp-sse/mcp-sse/jsonrpc"
)

// surviveReaders makes a write to a closed pipe return an error instead of ending the program, which has servers to
// end. SIG_IGN would be inherited by the servers.
func surviveReaders() { signal.Notify(make(chan os.Signal, 1), syscall.SIGPIPE) }

// serveStdio serves one client on stdin and stdout, until stdin ends, a signal comes, or the
// parent process ends. It returns the exit code.
func (m *Main) serveStdio(c *config.Config, common gateway.Options) int {
	log := common.Logger
	var openBrowser func(address string) error // nil: there is none
	if !c.Stdio.Learn && !c.Stdio.NoLogin && browser.IsThere(m.LookupEnv) {
		openBrowser = func(address string) error { return browser.Open(m.LookupEnv, address) }
		askInBrowser(c, func(own login.Credentials) *signin.Interactive {
			return &signin.Interactive{Credentials: own, Open: openBrowser, Log: log}
		})
	}
	s, gw, behind, err := openStdio(c, openBrowser, common)
	if err != nil {
		return m.refuse(err)
	}
	if c.Stdio.Learn {
		return m.learn(c, s, gw, log)
	}
	grace := time.Duration(c.ShutdownTimeout)
	surviveReaders()
	log.Info("serving stdin and stdout", "version", buildinfo.Read().Version, "server", c.Title(s))
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	client := background.NewIntroduction(m.Stdin, m.Stdout)
	serving, endServing := context.WithCancelCause(ctx)
	defer endServing(nil)
	// StandBy starts a process, the learner, if the client has to wait for its first answer. The learner outlives this
	// process if the client ends it early: it learns what the server says, so that memory answers the next client.
	var standingBy sync.WaitGroup
	var learner io.Closer // nil: there is none
	program := forprogram.Of(gw)
	if program.Remembers() && c.StateDir != "" {
		standingBy.Go(func() { // ends with serving
			learner = background.StandBy(serving, client, program, m.Args, c.StateDir, log)
		})
	}
	// Until then other programs do not start these servers in an empty folder.
	release := []func(){program.UseServer()}
	for _, g := range behind {
		release = append(release, forprogram.Of(g).UseServer())
	}
	served := make(chan error, 1)
	go func() { served <- gw.ServeStdio(ctx, client, client, grace) }()
	code, why := m.awaitEnd(served, grace, log)
	endServing(why)
	standingBy.Wait()
	defer runtime.KeepAlive(&learner) // it has the pipe whose end tells the learner that this process has ended
	return m.stopWithin(log, grace, func(ctx context.Context) {
		if err := gw.Shutdown(ctx); err != nil {
			log.Warn("gateway shutdown failed", "err", err)
		}
		var ending sync.WaitGroup
		for _, g := range behind {
			ending.Go(func() {
				if err := g.Shutdown(ctx); err != nil {
					log.Warn("gateway shutdown failed", "err", err)
				}
			})
		}
		ending.Wait()
		for _, releaseServer := range release {
			releaseServer()
		}
	}, func() {
		for _, g := range append(behind, gw) {
			forprogram.Abort(g)
		}
	}, nil, code)
}

// refuseClient answers each request of the client with what is wrong with the configuration, until stdin ends, a signal
// comes, or the parent process ends. Most clients show the error, and hardly any shows stderr. Examples stay on stderr.
func (m *Main) refuseClient(err error) {
	why := withoutExamples(err)
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	refused := make(chan struct{})
	go func() { // ends with stdin and stdout, or with the program
		stdio.Refuse(m.Stdin, m.Stdout, jsonrpc.Errorf(jsonrpc.CodeInternalError, "%s", why))
		close(refused)
	}()
	select {
	case <-refused:
	case <-m.signals:
	case <-parentEnds(ctx):
	}
}

// withoutExamples returns the text of a configuration's faults without their examples, which may have the rest of the
// command line, and so a key.
func withoutExamples(faults error) string {
	if joined, ok := faults.(interface{ Unwrap() []error }); ok {
		var whole, short []string
		for _, fault := range joined.Unwrap() {
			whole, short = append(whole, fault.Error()), append(short, withoutExamples(fault))
		}
		if strings.Join(whole, "\n") == faults.Error() { // else there is text around them
			return strings.Join(short, "\n")
		}
	}
	why, _, _ := strings.Cut(faults.Error(), ", as in:") // the example is the end of a fault
	return why
}

// askInBrowser has remote servers that may need a login open the browser, as ask returns it. If there are several, they
// do so at calls alone: each would open a tab for a client that comes.
func askInBrowser(c *config.Config, ask func(own login.Credentials) *signin.Interactive) {
	all := make(map[*config.Server]login.Credentials)
	for _, s := range c.Each() {
		if own, ok := s.Remote().Credentials.(login.Credentials); ok {
			all[s] = own
		}
	}
	for s, own := range all {
		person := ask(own)
		person.AtCalls.Store(len(all) > 1)
		s.UseCredentials(person)
	}
}

// openStdio returns what is served on stdin and stdout, and its gateway: a server, the shared sse-server of --connect,
// or a view. behind are the gateways of the servers of a view. openBrowser is that of the person here; nil: there is
// none.
func openStdio(c *config.Config, openBrowser func(address string) error, common gateway.Options) (s *config.Server,
	gw *gateway.Gateway, behind []*gateway.Gateway, err error) {
	onStdio := []string{gateway.TransportStdio.String()}
	switch v := c.ViewOfStdio(); {
	case v != nil:
		v.Transports = onStdio
		servers := make(map[string]*gateway.Gateway)
		for _, m := range v.Members {
			m.Server.Transports = onStdio // it ends with the client, as a server alone does
			g, err := newGateway(c, m.Server, common)
			if err != nil {
				return nil, nil, nil, err
			}
			servers[m.Name], behind = g, append(behind, g)
		}
		_, gw, err = openView(c, v, servers, common)
		return v.Server, gw, behind, err
	case c.Connect != nil:
		s = c.Each()[0]
		for _, one := range c.Endpoints() { // several: the daemon serves them all
			if c.PathOf(one) == c.Connect.Path {
				s = one
			}
		}
		s.Transports = onStdio
		gw, err = connectedGateway(c, s, openBrowser, common)
		return s, gw, nil, err
	default:
		s = c.Each()[0]
		s.Transports = onStdio
		gw, err = newGateway(c, s, common)
		return s, gw, nil, err
	}
}

// awaitEnd waits until the client has been served, a signal comes, or the parent process ends. It returns the
// exit code, and background.ErrInOrder if the client has left in order.
func (m *Main) awaitEnd(served <-chan error, grace time.Duration, log *slog.Logger) (code int, why error) {
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	select {
	case err := <-served:
		if err != nil {
			log.Error("client lost", "err", err)
			return exit.Failure, nil
		}
		return exit.OK, background.ErrInOrder
	case sig := <-m.signals:
		log.Info("stopping", "signal", sig.String(), "timeout", grace)
	case <-parentEnds(ctx): // stdin does not tell that while another process has its other end too
		log.Info("stopping", "reason", parentEnded, "timeout", grace)
	}
	return exit.OK, nil
}

const parentEnded = "the parent process has ended"

// startedBy is the process that has started this one.
var startedBy = os.Getppid()

// parentEnds returns a channel that is closed when the process that has started this one ends. It looks once a second,
// until ctx ends: the signal of Linux for this (PR_SET_PDEATHSIG) comes already at the end of the thread that started
// this process.
func parentEnds(ctx context.Context) <-chan struct{} {
	ended := make(chan struct{})
	go func() { // ends with ctx
		tick := time.NewTicker(time.Second)
		defer tick.Stop()
		for os.Getppid() == startedBy {
			select {
			case <-tick.C:
			case <-ctx.Done():
				return
			}
		}
		close(ended)
	}()
	return ended
}

// connectedGateway returns the gateway of sse-server stdio --connect. Memory of the server answers the client
// also before the daemon is there.
func connectedGateway(c *config.Config, s *config.Server, openBrowser func(address string) error,
	common gateway.Options) (*gateway.Gateway, error) {
	up, options := upstreamOf(c, s, common)
	connected, err := background.Connect(c, up, common.Logger)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", c.Place("connect"), err)
	}
	connected.OpenBrowser = openBrowser
	// These are for the daemon.
	options.Warm, options.Sessions = 0, gateway.SessionsPerConnection
	options.MaxInFlight, options.ForwardHeaders = 0, nil
	return gateway.New(connected, options)
}

// learn is the process that stands by for a client: it has the server say what it says, unless that is remembered. It
// returns the exit code.
func (m *Main) learn(c *config.Config, s *config.Server, gw *gateway.Gateway, log *slog.Logger) int {
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	go func() { // ends with ctx
		select {
		case <-m.signals:
			cancel()
		case <-ctx.Done():
		}
	}()
	learned := make(chan error, 1)
	// It ends with stdin and the disk, and with ctx.
	go func() { learned <- background.Learn(ctx, m.Stdin, c, s, forprogram.Of(gw)) }()
	code := exit.OK
	select {
	case err := <-learned:
		if err != nil {
			log.Warn("what the server says could not be learned", "err", err)
			code = exit.Failure
		}
	case <-ctx.Done():
	}
	end := func(ctx context.Context) { _ = gw.Shutdown(ctx) }
	return m.stopWithin(log, time.Duration(c.ShutdownTimeout), end, func() { forprogram.Abort(gw) }, nil, code)
}
