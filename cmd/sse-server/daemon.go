package main

import (
	"cmp"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"runtime/debug"
	"sync"
	"sync/atomic"
	"time"

	"github.com/fsnotify/fsnotify"

	"github.com/mcp-sse/mcp-sse/cluster"
	"github.com/mcp-sse/mcp-sse/cmd/sse-server/internal/advice"
	"github.com/mcp-sse/mcp-sse/cmd/sse-server/internal/background"
	"github.com/mcp-sse/mcp-sse/cmd/sse-server/internal/config"
	"github.com/mcp-sse/mcp-sse/cmd/sse-server/internal/demo"
	"github.com/mcp-sse/mcp-sse/cmd/sse-server/internal/listen"
	"github.com/mcp-sse/mcp-sse/cmd/sse-server/internal/observe"
	"github.com/mcp-sse/mcp-sse/cmd/sse-server/internal/signin"
	"github.com/mcp-sse/mcp-sse/compose"
	"github.com/mcp-sse/mcp-sse/gateway"
	"github.com/mcp-sse/mcp-sse/internal/forprogram"
	"github.com/mcp-sse/mcp-sse/internal/httpcheck"
	"github.com/mcp-sse/mcp-sse/internal/login"
	"github.com/mcp-sse/mcp-sse/metrics"
	"github.com/mcp-sse/mcp-sse/upstream"
)

// daemon is the gateway with the servers in front of it.
type daemon struct {
	log       *slog.Logger
	level     *slog.LevelVar  // of log
	common    gateway.Options // of all gateways: Logger, Audit, TracerProvider and Registry
	metrics   *metrics.Config
	audit     *observe.AuditLog
	gw        service
	endpoints []*listen.Endpoint // the main one, and that of the admin routes if it is another
	config    atomic.Pointer[config.Config]
	guard     atomic.Pointer[httpcheck.Checker] // checks who uses the routes for operators
	scrapes   atomic.Pointer[httpcheck.Checker] // checks who uses /metrics
	visitors  atomic.Pointer[httpcheck.Checker] // checks Host and Origin of those who log in at a remote server
	args      []string                          // of the program
	load      func(running *config.Config) (*config.Config, error)
	starts    *observe.Starts      // of the log
	browsers  *background.Browsers // of the windows that share this; nil: it is shared by none

	leave   func()            // the cluster; nothing without one
	watcher *fsnotify.Watcher // of the files of config; nil: they are not watched

	// turn is a lock: a full channel means that a reload or the stop has it. It guards the fields below.
	turn     chan struct{}
	gateways map[string]*gateway.Gateway // by the name of the server or view
	views    map[string]*compose.View    // by their names
	asking   map[login.Credentials]*signin.Interactive
	fault    string // of the last reload; "": it worked

	retired  sync.Map       // each *gateway.Gateway that is being shut down, as it no longer serves
	retiring sync.WaitGroup // of retired
}

// service is a gateway.Gateway, or gateway.Servers.
type service interface {
	http.Handler
	Admin() http.Handler
	Start()
	Drain()
	Shutdown(ctx context.Context) error
}

// newDaemon builds the gateway. It listens on nothing yet. load loads the configuration
// again.
func newDaemon(c *config.Config, load func(*config.Config) (*config.Config, error), log *slog.Logger,
	level *slog.LevelVar, audit *observe.AuditLog, tracing *observe.Tracing) (_ *daemon, err error) {
	if c.NoIDKey != nil {
		log.Info("sessions will not survive a restart: set HOME or --id-key-file", "err", c.NoIDKey)
	}
	d := &daemon{
		log: log, level: level, audit: audit, load: load, turn: make(chan struct{}, 1),
		common: gateway.Options{Logger: log, Audit: audit.Logger, TracerProvider: tracing.Provider,
			Registry: metrics.NewRegistry()},
	}
	if err := d.join(c); err != nil {
		return nil, err
	}
	defer func() {
		if err != nil {
			d.leave()
		}
	}()
	d.metrics, err = metrics.NewConfig(d.common.Registry)
	if err != nil {
		return nil, err
	}
	d.metrics.Loaded(c.Hash())
	audit.Lost, tracing.Dropped = d.metrics.AuditLost, d.metrics.SpansDropped
	if c.Shared != "" {
		d.browsers = background.NewBrowsers()
	}
	if err := d.replaceGateways(c); err != nil {
		return nil, err
	}
	routes, operators := d.routes(c.AdminAddr == "")
	if c.Shared != "" {
		parts := func() map[string]string { return background.PartsOf(d.config.Load(), d.args) }
		forWindows := background.ForWindows(parts, d.browsers, routes)
		endpoint := d.newEndpoint(background.SharedOption, config.Addr(c.Shared), c, forWindows)
		endpoint.Server.RegisterOnShutdown(d.browsers.Close)
		d.endpoints = append(d.endpoints, endpoint)
	} else {
		d.endpoints = append(d.endpoints, d.newEndpoint("addr", c.Addr, c, routes))
	}
	if c.AdminAddr != "" {
		d.endpoints = append(d.endpoints, d.newEndpoint("admin-addr", c.AdminAddr, c, operators))
	}
	d.setConfig(c)
	return d, nil
}

// errJoin reports a cluster that this process cannot be part of now.
var errJoin = errors.New("the cluster cannot be joined")

// join makes a daemon that is to serve a replica, if c says of what.
func (d *daemon) join(c *config.Config) error {
	d.leave = func() {}
	if c.NATS == "" || c.Does != "serve" {
		return nil
	}
	node, err := cluster.Join(context.Background(), cluster.Options{
		URL: c.NATS, Credentials: c.NATSCreds, Name: c.ClusterName, Replica: c.Replica, Key: c.IDKey,
		Address: string(c.ClusterAddr), Logger: d.log, Registry: d.common.Registry,
	})
	if err != nil {
		return fmt.Errorf("%s: %w: %w", c.Place("nats"), errJoin, err)
	}
	d.common.Cluster, d.leave = node, node.Close
	return nil
}

// setConfig makes c the configuration of all but the gateways.
func (d *daemon) setConfig(c *config.Config) {
	d.config.Store(c)
	checks := httpcheck.Options{Logger: d.log, Authenticate: c.Operators, AllowedHosts: c.AllowedHosts}
	d.guard.Store(httpcheck.New(checks))
	checks.Authenticate = c.Scrapers
	d.scrapes.Store(httpcheck.New(checks))
	checks.Authenticate, checks.PublicHost = nil, c.PublicHost()
	if origin := c.PublicOrigin(); origin != "" { // a proxy may give another Host
		checks.AllowedOrigins = []string{origin}
	}
	d.visitors.Store(httpcheck.New(checks))
	for _, e := range d.endpoints {
		e.SetLimit(tcpLimit(c))
	}
}

// replaceGateways applies c: it reconfigures the gateways that it can, and makes those that are new or must be
// replaced, first those of servers, then those of views, which have members among them. It checks all before it
// changes anything. Views that stay get their new members last: those of a reload that fails are shut down.
func (d *daemon) replaceGateways(c *config.Config) (err error) {
	asking := d.askAtWindows(c)
	if err := d.checkAll(c); err != nil {
		return err
	}
	setMaxThreads(c)
	var all, made []*gateway.Gateway
	var root *gateway.Gateway // of the view of all; nil: there is none
	named, views := map[string]*gateway.Gateway{}, map[string]*compose.View{}
	defer func() {
		for _, gw := range made {
			if err != nil { // it serves nobody, and nobody else would end it
				_ = gw.Shutdown(context.Background())
			}
		}
	}()
	for _, s := range c.Each() {
		up, options := upstreamOf(c, s, d.common)
		gw, err := d.gateways[s.Name], error(nil)
		if gw != nil {
			err = gw.Reconfigure(up, options)
		}
		if gw == nil || s.Name != "" && errors.Is(err, gateway.ErrFixed) {
			if gw, err = gateway.New(up, options); err == nil {
				made = append(made, gw)
			}
		}
		if err != nil {
			return c.Explain(s, err)
		}
		all, named[s.Name] = append(all, gw), gw
	}
	for _, v := range c.Views {
		view, gw, err := d.viewOf(c, v, named)
		if err != nil {
			return err
		}
		if gw != d.gateways[v.Name] {
			made = append(made, gw)
		}
		named[v.Name], views[v.Name] = gw, view
		if v.IsOfAll() {
			root = gw
		} else {
			all = append(all, gw)
		}
	}
	if err := d.serveGateways(c, all, root); err != nil {
		return err
	}
	made = nil // they serve
	var refused []error
	for _, v := range c.Views {
		if view := views[v.Name]; view == d.views[v.Name] {
			refused = append(refused, replaceMembers(v, view, named, d.log))
		}
	}
	for name, gw := range d.gateways {
		if named[name] != gw {
			d.retire(gw)
		}
	}
	d.gateways, d.views, d.asking = named, views, asking
	return errors.Join(refused...)
}

// askAtWindows has the windows that share this program open the browser where a server of c needs a login, and returns
// who asks. A login that was there before a reload keeps its own: so its server is not replaced, and it is remembered
// whether a browser was opened.
func (d *daemon) askAtWindows(c *config.Config) map[login.Credentials]*signin.Interactive {
	asking := make(map[login.Credentials]*signin.Interactive)
	if d.browsers != nil {
		askInBrowser(c, func(own login.Credentials) *signin.Interactive {
			asking[own] = cmp.Or(d.asking[own], &signin.Interactive{Credentials: own, Open: d.browsers.Open,
				Came: d.browsers.Newest, Log: d.log})
			return asking[own]
		})
	}
	return asking
}

// checkAll returns an error if a gateway or a view of c cannot be made. It starts nothing, and changes nothing.
func (d *daemon) checkAll(c *config.Config) error {
	trial := d.common
	trial.Registry, trial.Cluster = nil, nil
	for _, s := range c.Each() {
		if _, err := newGateway(c, s, trial); err != nil {
			return err
		}
	}
	for _, v := range c.Views {
		if err := tryView(c, v, trial); err != nil {
			return err
		}
	}
	return nil
}

// setMaxThreads lets the program have the threads that its child processes hold while they run, beside the 10,000 that
// Go allows without this. Go ends a program with more.
func setMaxThreads(c *config.Config) {
	threads := 10_000
	for _, s := range c.Each() {
		if s.Kind() == config.OfCommand {
			warm := 1
			if s.Warm != nil {
				warm = *s.Warm
			}
			threads += s.MaxConnections + warm
		}
	}
	debug.SetMaxThreads(threads)
}

// serveGateways serves these gateways from now on, root beside the others if it is not nil.
func (d *daemon) serveGateways(c *config.Config, all []*gateway.Gateway, root *gateway.Gateway) (err error) {
	servers, isServing := d.gw.(*gateway.Servers)
	switch {
	case len(c.Servers) == 0:
		if d.gw == nil {
			d.gw = all[0]
		}
		return nil
	case !isServing:
		if servers, err = gateway.NewServers(all...); err != nil {
			return err
		}
		d.gw = servers
	case root == nil: // a server may have its name
		err = errors.Join(servers.SetRoot(nil), servers.Replace(all...))
		return err
	default:
		if err := servers.Replace(all...); err != nil {
			return err
		}
	}
	if root == nil {
		return nil
	}
	return servers.SetRoot(root)
}

// viewOf returns a view over the gateways of servers, and the gateway in front of it: those that it has now, if they
// can be changed. A view that stays keeps its members: replaceMembers gives it others.
func (d *daemon) viewOf(c *config.Config, v *config.View, servers map[string]*gateway.Gateway) (*compose.View,
	*gateway.Gateway, error) {
	view, gw := d.views[v.Name], d.gateways[v.Name]
	if view == nil {
		return openView(c, v, servers, d.common)
	}
	options := optionsOfView(c, v, d.common)
	err := gw.Reconfigure(view, options)
	if errors.Is(err, gateway.ErrFixed) {
		gw, err = gateway.New(view, options)
	}
	if err != nil {
		return nil, nil, c.Explain(v.Server, err)
	}
	return view, gw, nil
}

// newGateway builds the gateway of one server.
func newGateway(c *config.Config, s *config.Server, common gateway.Options) (*gateway.Gateway, error) {
	refuses := c.Does == "check" && !c.Check.Start // with --start each server is tried, and the others are, too
	alone := s.Name == "" || c.Does == "stdio" && c.ViewOfStdio() == nil
	if err := s.CheckCommand(); err != nil && (alone || refuses) {
		return nil, err
	} else if err != nil { // the other servers can be served
		common.Logger.Warn("configuration warning", "warning", err.Error())
	}
	gw, err := gateway.New(upstreamOf(c, s, common))
	if err != nil {
		return nil, c.Explain(s, err)
	}
	return gw, nil
}

// upstreamOf returns the upstream of one server, and the options of the gateway in front of it.
func upstreamOf(c *config.Config, s *config.Server, common gateway.Options) (upstream.Upstream, gateway.Options) {
	options := c.Gateway(s, common)
	options.Title = c.Title(s)
	own := forprogram.OptionsOf(&options)
	own.Remedy = func(err error) string { return advice.For(s, err.Error()) }
	own.LocalOnly = c.LocalOnly(s)
	if up := s.Upstream(); up != nil {
		return up, options
	}
	return demo.Server{}, options
}

// connections returns how many clients are connected. It waits while a reload runs.
func (d *daemon) connections() (n int) {
	d.turn <- struct{}{}
	defer func() { <-d.turn }()
	for _, gw := range d.gateways {
		n += gw.Connections()
	}
	return n
}

// grace is how long stopping may take.
func (d *daemon) grace() time.Duration { return time.Duration(d.config.Load().ShutdownTimeout) }

// newEndpoint prepares the endpoint of an address.
func (d *daemon) newEndpoint(option string, addr config.Addr, c *config.Config, routes http.Handler) *listen.Endpoint {
	o := listen.Options{
		Option: option, Addr: string(addr), Handler: routes, IdleTimeout: time.Duration(c.HTTPIdleTimeout),
		Logger: d.log, ErrorLog: observe.ServerErrors(d.log),
		Full: func() {
			d.metrics.TCPLimitReached()
			d.log.Warn("tcp connections are at their limit: those that wait for a request give way", "option", option,
				"limit", tcpLimit(d.config.Load()))
		},
	}
	if c.Certificate != nil {
		o.Certificate = func() *tls.Certificate { return d.config.Load().Certificate }
	}
	if option == background.SharedOption {
		o.Listen = func(ctx context.Context) (net.Listener, error) { return background.Listen(ctx, string(addr)) }
	}
	return listen.New(o)
}

// tcpLimit returns how many TCP connections an address of ours may have; 0: unlimited.
func tcpLimit(c *config.Config) (limit int) {
	for _, s := range c.Endpoints() {
		if s.MaxConnections == 0 {
			return 0
		}
		limit += 5 * s.MaxConnections // a stream, POSTs beside it, and a client that reconnects
	}
	return limit
}
