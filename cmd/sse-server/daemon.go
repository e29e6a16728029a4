package main

import (
	"context"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"net/url"
	"runtime/debug"
	"strings"
	"time"

	"golang.org/x/net/netutil"

	"github.com/mcp-sse/mcp-sse/cmd/sse-server/internal/config"
	"github.com/mcp-sse/mcp-sse/cmd/sse-server/internal/demo"
	"github.com/mcp-sse/mcp-sse/front"
	"github.com/mcp-sse/mcp-sse/gateway"
	"github.com/mcp-sse/mcp-sse/metrics"
	"github.com/mcp-sse/mcp-sse/upstream"
)

const (
	readTimeout    = 10 * time.Second
	writeTimeout   = 10 * time.Second
	idleTimeout    = 2 * time.Minute
	maxHeaderBytes = 32 << 10
	// maxStreams bounds the requests at a time on one HTTP/2 connection.
	maxStreams = 100
)

// daemon is the gateway with the servers in front of it.
type daemon struct {
	log       *slog.Logger
	gw        service
	endpoints []*endpoint // the main one, and that of the admin routes if it is another
	grace     time.Duration
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

// endpoint is one address that is served.
type endpoint struct {
	option    string // the name of the address
	place     string // where it was given
	cert, key string // both "" for plain HTTP
	server    *http.Server
	limit     int          // of TCP connections; 0: unlimited
	listener  net.Listener // nil until adopt or listen
	arrivals  arrivals
}

// newDaemon builds the gateway. It listens on nothing yet.
func newDaemon(c *config.Config, log *slog.Logger) (*daemon, error) {
	var authenticate func(*http.Request) (principal string, err error)
	if c.Tokens != nil {
		var err error
		if authenticate, err = front.BearerTokens(c.Tokens); err != nil {
			return nil, err
		}
	}
	if c.NoIDKey != nil {
		log.Info("no place for the key of ids, set id-key-file: sessions end with this process", "err", c.NoIDKey)
	}
	all := gateway.Options{Logger: log, Registry: metrics.NewRegistry(), Authenticate: authenticate}
	gw, err := newService(c, all)
	if err != nil {
		return nil, err
	}
	d := &daemon{log: log, gw: gw, grace: time.Duration(c.ShutdownTimeout)}
	guards := front.Options{Logger: log, Authenticate: authenticate, AllowedHosts: c.AllowedHosts}
	guard := front.New(guards)
	guards.Basic = true
	routes, operators := d.routes(guard, front.New(guards), c.AdminAddr == "")
	d.endpoints = append(d.endpoints, newEndpoint("addr", c.Addr, c, routes, log))
	if c.AdminAddr != "" {
		d.endpoints = append(d.endpoints, newEndpoint("admin-addr", c.AdminAddr, c, operators, log))
	}
	return d, nil
}

// newService builds the gateway of each server. shared has the options that all of
// them have in common.
func newService(c *config.Config, shared gateway.Options) (service, error) {
	var all []*gateway.Gateway
	threads := 10_000
	for _, s := range c.Each() {
		if s.Kind() == config.OfCommand {
			threads += s.MaxConnections + s.Warm
		}
		gw, err := newGateway(c, s, shared)
		if err != nil {
			return nil, err
		}
		all = append(all, gw)
	}
	// Each child holds a thread while it runs, and Go ends a program with 10,000.
	debug.SetMaxThreads(threads)
	if len(c.Servers) == 0 {
		return all[0], nil
	}
	return gateway.NewServers(all...)
}

// newGateway builds the gateway of one server.
func newGateway(c *config.Config, s *config.Server, shared gateway.Options) (*gateway.Gateway, error) {
	if err := s.CheckCommand(); err != nil && s.Name == "" {
		return nil, err
	} else if err != nil { // the other servers can be served
		shared.Logger.Warn("configuration warning", "warning", err.Error())
	}
	options := c.Gateway(s)
	options.Logger, options.Registry, options.Authenticate = shared.Logger, shared.Registry, shared.Authenticate
	up := s.Upstream()
	if up == nil {
		up = upstream.Serve(demo.Serve)
	}
	gw, err := gateway.New(up, options)
	if err != nil {
		return nil, c.Explain(s, err)
	}
	return gw, nil
}

// routes are those of the main and of the admin address. Without a separate admin address,
// the main one has the admin routes that tell nothing about single connections. Health and
// readiness are open, because probes have no token. forPeople is the guard of /status.
func (d *daemon) routes(guard, forPeople *front.Front, together bool) (main, operators *http.ServeMux) {
	main, operators = http.NewServeMux(), http.NewServeMux()
	admin := d.gw.Admin()
	protect := func(guard *front.Front) http.HandlerFunc {
		return func(w http.ResponseWriter, r *http.Request) {
			if _, ok := guard.Admit(w, r, front.Route{}); ok {
				admin.ServeHTTP(w, r)
			}
		}
	}
	protected := protect(guard)
	main.Handle("/", forgetHead(d.gw))
	operators.Handle("/", protected)
	operators.Handle("/status", protect(forPeople))
	operators.Handle("/status/", protect(forPeople))
	open := operators
	if together {
		open = main
		main.Handle("/metrics", protected)
	} else {
		for _, path := range []string{"/healthz", "/readyz", "/metrics", "/connections", "/status"} {
			main.HandleFunc(path, func(w http.ResponseWriter, r *http.Request) {
				where := path + " is on the address of admin-addr"
				if guard.IsLocal(r) { // others need not know
					where += ": " + d.endpoints[1].url() + path
				}
				guard.NotFound(w, r, where)
			})
		}
	}
	open.Handle("/healthz", admin)
	open.Handle("/readyz", admin)
	return main, operators
}

// forgetHead serves a GET with the head of its request, and takes the head out of the
// request itself: net/http keeps that as long as its stream.
func forgetHead(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Method == http.MethodGet {
			own := r.WithContext(r.Context())
			own.Method, own.Proto = http.MethodGet, strings.Clone(r.Proto) // not parts of a long first line
			r.Method, r.Proto = own.Method, own.Proto
			r.Header, r.URL, r.RequestURI, r.Host = http.Header{}, &url.URL{Path: "/"}, "", ""
			r = own
		}
		next.ServeHTTP(w, r)
	})
}

// newEndpoint prepares a server. Its timeouts are for requests that end: the
// gateway lifts them for a stream, and bounds each write of it.
func newEndpoint(option string, addr config.Addr, c *config.Config, routes http.Handler, log *slog.Logger) *endpoint {
	protocols := new(http.Protocols)
	protocols.SetHTTP1(true)
	protocols.SetHTTP2(true)
	protocols.SetUnencryptedHTTP2(true)
	e := &endpoint{
		option: option, place: c.Place(option), arrivals: arrivals{served: make(chan struct{})}, cert: c.TLSCert, key: c.TLSKey,
		server: &http.Server{
			Addr:           string(addr),
			Handler:        routes,
			Protocols:      protocols,
			ReadTimeout:    readTimeout,
			WriteTimeout:   readTimeout + writeTimeout, // it begins before the body is read
			IdleTimeout:    idleTimeout,
			MaxHeaderBytes: maxHeaderBytes,
			HTTP2:          &http.HTTP2Config{MaxConcurrentStreams: maxStreams, WriteByteTimeout: writeTimeout},
			ErrorLog:       serverErrors(log),
		},
	}
	e.server.ConnState = e.arrivals.note
	for _, s := range c.Each() {
		if s.MaxConnections == 0 {
			e.limit = 0
			break
		}
		e.limit += 5 * s.MaxConnections // a stream, POSTs beside it, and a client that reconnects
	}
	return e
}

// listen takes the address, unless a socket has been adopted.
func (e *endpoint) listen(ctx context.Context) (err error) {
	if e.listener == nil {
		if e.listener, err = listen(ctx, e.server.Addr); err != nil {
			return fmt.Errorf("%s: %w: choose another address", e.place, err)
		}
	}
	if e.limit > 0 {
		e.listener = netutil.LimitListener(e.listener, e.limit)
	}
	return nil
}

// serve serves until the server is shut down.
func (e *endpoint) serve() error {
	defer close(e.arrivals.served)
	if e.cert != "" {
		return e.server.ServeTLS(e.listener, e.cert, e.key)
	}
	return e.server.Serve(e.listener)
}

// url returns the address with a host that a client on this machine can use.
func (e *endpoint) url() string {
	scheme, at := "http://", e.listener.Addr().String()
	if e.cert != "" {
		scheme = "https://"
	}
	if tcp, ok := e.listener.Addr().(*net.TCPAddr); ok && tcp.IP.IsUnspecified() {
		at = fmt.Sprintf("localhost:%d", tcp.Port)
	}
	return scheme + at
}
