package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"os"
	"runtime/debug"
	"strings"
	"time"

	"github.com/mcp-sse/mcp-sse/gateway"
	"github.com/mcp-sse/mcp-sse/internal/throttle"
	"github.com/mcp-sse/mcp-sse/metrics"
	"github.com/mcp-sse/mcp-sse/sse"
	"github.com/mcp-sse/mcp-sse/upstream"
)

const (
	readHeaderTimeout = 10 * time.Second
	idleTimeout       = 2 * time.Minute
	maxHeaderBytes    = 64 << 10
)

// daemon is the gateway with the servers in front of it.
type daemon struct {
	log   *slog.Logger
	gw    service
	main  *endpoint
	admin *endpoint // nil: the admin routes are on main
	grace time.Duration
}

// service is a gateway.Gateway, or gateway.Servers.
type service interface {
	http.Handler
	Admin() http.Handler
	Start()
	Drain()
	Shutdown(ctx context.Context) error
	Abort()
}

var (
	_ service = (*gateway.Gateway)(nil)
	_ service = (*gateway.Servers)(nil)
)

// endpoint is one address that is served.
type endpoint struct {
	flag, addr string
	name       string // the option as the user gave it
	cert, key  string // both "" for plain HTTP
	server     *http.Server
	listener   net.Listener // nil until listen
}

// newDaemon builds the gateway. It listens on nothing yet.
func newDaemon(l *loaded, log *slog.Logger) (*daemon, error) {
	var authenticate authenticator
	if l.tokens != nil {
		var err error
		if authenticate, err = sse.BearerTokens(l.tokens); err != nil {
			return nil, err
		}
	}
	gw, err := newService(l, authenticate, log)
	if err != nil {
		return nil, err
	}
	d := &daemon{log: log, gw: gw, grace: l.ShutdownGrace.value}
	d.main = newEndpoint("addr", l.Addr.value, l, d.mainRoutes(authenticate, l.AdminAddr.value == ""), log)
	if l.AdminAddr.value != "" {
		d.admin = newEndpoint("admin-addr", l.AdminAddr.value, l, d.adminRoutes(authenticate), log)
	}
	return d, nil
}

// newService builds the gateway of each server.
func newService(l *loaded, authenticate authenticator, log *slog.Logger) (service, error) {
	registry := metrics.NewRegistry()
	var all []*gateway.Gateway
	threads := 0
	for _, s := range l.each() {
		options := s.options()
		options.Logger, options.Registry, options.Authenticate = log, registry, authenticate
		up := newUpstream(s)
		if command, ok := up.(upstream.Command); ok {
			threads += 2 * s.MaxConnections.value
			if err := missing(s, command, log); err != nil {
				return nil, err
			}
		}
		gw, err := gateway.New(up, options)
		if err != nil {
			return nil, err
		}
		all = append(all, gw)
	}
	// Each child holds a thread while it runs, and Go ends a program with 10,000.
	debug.SetMaxThreads(max(10_000, threads))
	if len(l.servers) == 0 {
		return all[0], nil
	}
	return gateway.NewServers(all...)
}

// missing reports a program that is not there: better told now than to the first
// client. Of several servers one that is down does not keep the others from
// being served, so there it is a warning.
func missing(s *loaded, command upstream.Command, log *slog.Logger) error {
	err := command.Check()
	if err != nil && inOneWord(command.Path) {
		err = s.separate(command)
	}
	switch {
	case err == nil:
		return nil
	case s.server == "":
		return fmt.Errorf("command: %w", err)
	}
	log.Warn("configuration warning", "warning", fmt.Sprintf("%s: command: %v", s.origin[serversKey], err))
	return nil
}

// inOneWord says whether a program that cannot be started has its arguments in its
// name: there is no shell that would take them apart.
func inOneWord(path string) bool {
	_, err := os.Stat(path)
	return err != nil && len(strings.Fields(path)) > 1
}

// separate says how to give such a command, where it stands.
func (l *loaded) separate(command upstream.Command) error {
	line := strings.Join(append([]string{command.Path}, command.Args...), " ")
	if l.commandInFile {
		return fmt.Errorf("there is no program named %q: give the program and its arguments as separate entries, as in: command: %s",
			command.Path, yamlList(strings.Fields(line)))
	}
	return fmt.Errorf("there is no program named %q: give the program and its arguments as separate words, without quotes around them all, as in: sse-server -- %s",
		command.Path, line)
}

// newUpstream is what the gateway serves, which gives it its log and metrics.
func newUpstream(l *loaded) upstream.Upstream {
	switch l.kind() {
	case kindDemo:
		return upstream.Serve(newDemo().serve)
	case kindRemote:
		return l.remote()
	}
	var env []string // nil: this program's own
	if len(l.Env.values) > 0 {
		env = append(os.Environ(), l.Env.values...) // of two with one name the last counts
	}
	return upstream.Command{
		Path:         l.command[0],
		Args:         l.command[1:],
		Env:          env,
		Dir:          l.Dir.value,
		MaxLineBytes: int(l.MaxLineBytes.value),
	}
}

type authenticator func(*http.Request) (principal string, err error)

// mainRoutes are the gateway and, without a separate admin address, the admin
// routes that tell nothing about single connections.
func (d *daemon) mainRoutes(auth authenticator, withAdmin bool) http.Handler {
	mux := http.NewServeMux()
	mux.Handle("/", d.gw)
	if withAdmin {
		admin := d.gw.Admin()
		mux.Handle("/healthz", admin)
		mux.Handle("/readyz", admin)
		mux.Handle("/metrics", d.protect(auth, admin))
	}
	return mux
}

// adminRoutes are all admin routes. Health and readiness are open, because
// probes have no token.
func (d *daemon) adminRoutes(auth authenticator) http.Handler {
	mux := http.NewServeMux()
	admin := d.gw.Admin()
	mux.Handle("/", d.protect(auth, admin))
	mux.Handle("/healthz", admin)
	mux.Handle("/readyz", admin)
	return mux
}

// protect lets only authenticated requests through, if there is authentication.
// It logs those that it refuses, at a limited rate.
func (d *daemon) protect(auth authenticator, next http.Handler) http.Handler {
	if auth == nil {
		return next
	}
	line := throttle.NewLine(30*time.Second, 3)
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if _, err := auth(r); err != nil {
			if suppressed, due := line.Due(); due {
				d.log.Warn("client refused", "reason", "auth", "status", http.StatusUnauthorized, "method", r.Method[:min(16, len(r.Method))],
					"remote", r.RemoteAddr, "path", r.URL.Path[:min(128, len(r.URL.Path))], "err", err, "suppressed", suppressed)
			}
			sse.Challenge(w, r, err)
			return
		}
		next.ServeHTTP(w, r)
	})
}

// newEndpoint prepares a server. It sets no write timeout: a stream has none,
// and the gateway bounds each of its writes.
func newEndpoint(flag, addr string, l *loaded, routes http.Handler, log *slog.Logger) *endpoint {
	protocols := new(http.Protocols)
	protocols.SetHTTP1(true)
	protocols.SetHTTP2(true)
	protocols.SetUnencryptedHTTP2(true)
	return &endpoint{
		flag: flag, addr: addr, name: l.name(flag),
		cert: l.TLSCert.value, key: l.TLSKey.value,
		server: &http.Server{
			Handler:           routes,
			Protocols:         protocols,
			ReadHeaderTimeout: readHeaderTimeout,
			IdleTimeout:       idleTimeout,
			MaxHeaderBytes:    maxHeaderBytes,
			ErrorLog:          serverErrors(log),
		},
	}
}

// listen takes the address.
func (e *endpoint) listen(ctx context.Context) error {
	var config net.ListenConfig
	listener, err := config.Listen(ctx, "tcp", e.addr)
	if err != nil {
		if op, ok := errors.AsType[*net.OpError](err); ok {
			err = op.Err // without the address, which is named already
		}
		return fmt.Errorf("%s %s: %w: choose another with --%s", e.name, e.addr, err, e.flag)
	}
	e.listener = listener
	return nil
}

// serve serves until the server is shut down.
func (e *endpoint) serve() error {
	if e.cert != "" {
		return e.server.ServeTLS(e.listener, e.cert, e.key)
	}
	return e.server.Serve(e.listener)
}

// scheme is http or https.
func (e *endpoint) scheme() string {
	if e.cert != "" {
		return "https"
	}
	return "http"
}

// discard gives up a daemon that was only built to see whether it can be.
func (d *daemon) discard() {
	ctx, cancel := context.WithTimeout(context.Background(), time.Second)
	defer cancel()
	if err := d.gw.Shutdown(ctx); err != nil {
		d.log.Warn("gateway shutdown failed", "err", err)
	}
}
