package main

import (
	"cmp"
	"context"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"time"

	systemd "github.com/coreos/go-systemd/v22/daemon"
	"github.com/fsnotify/fsnotify"

	"github.com/mcp-sse/mcp-sse/cmd/sse-server/internal/background"
	"github.com/mcp-sse/mcp-sse/cmd/sse-server/internal/config"
	"github.com/mcp-sse/mcp-sse/cmd/sse-server/internal/exit"
	"github.com/mcp-sse/mcp-sse/cmd/sse-server/internal/listen"
	"github.com/mcp-sse/mcp-sse/cmd/sse-server/internal/plaintext"
	"github.com/mcp-sse/mcp-sse/internal/forprogram"
)

// serve runs the daemon until a signal, or until a server of it fails.
func (m *Main) serve(d *daemon, c *config.Config) int {
	surviveReaders() // of stdout, such as head; what is written for people is not checked
	checkExposure := func(option, addr string) error { return c.CheckExposure(option, config.Addr(addr)) }
	if err := listen.Adopt(d.endpoints, m.Sockets, checkExposure, d.log); err != nil {
		return m.refuse(err)
	}
	if err := d.listen(); err != nil {
		fmt.Fprintf(m.Stderr, "sse-server: %v\n", err)
		return exit.Failure
	}
	d.forgetPrincipals(c)
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	gateways := d.gateways              // a reload replaces the map
	go d.reloadWhenAsked(ctx, m.hangup) // ends with ctx
	failed := make(chan error, len(d.endpoints))
	for _, e := range d.endpoints {
		go func() { failed <- e.Serve() }() // ends with the server's Shutdown or Close
	}
	if !c.StartCheck {
		d.gw.Start()
	}
	m.announce(d, c)
	notify(d.log, systemd.SdNotifyReady)
	var checking sync.WaitGroup
	if c.StartCheck {
		checking.Go(func() { m.check().Starts(ctx, gateways, c) }) // ends with ctx
	}

	unused := make(chan string, 1)
	if limit := time.Duration(c.ExitUnused); limit > 0 {
		go func() { // ends with ctx
			unused <- background.AwaitUnused(ctx, limit, d.isReachable, func() int {
				if c.Shared != "" {
					background.BoundLog(m.Stderr, d.log)
				}
				return d.connections()
			})
		}()
	}
	var npxEnds <-chan struct{}
	if m.isOfNPX() && c.Shared == "" {
		npxEnds = parentEnds(ctx)
	}
	code := exit.OK
	var slow func()
	select {
	case <-npxEnds:
		d.log.Info("stopping", "reason", parentEnded, "timeout", d.grace())
	case why := <-unused:
		d.log.Info("stopping", "reason", why, "timeout", d.grace())
	case sig := <-m.signals:
		d.log.Info("stopping", "signal", sig.String(), "timeout", d.grace())
		if !m.tellWaiting(d) {
			slow = func() { m.tellStopping("it has not ended yet", d.grace()) }
		}
	case err := <-failed:
		d.log.Error("server failed", "err", err)
		code = exit.Failure
	}
	notify(d.log, systemd.SdNotifyStopping)
	cancel()
	checking.Wait() // it starts nothing any more
	return m.stopWithin(d.log, d.grace(), d.shutDown, d.abort, slow, code)
}

// isOfNPX reports whether npx has started the program from its npm package: then the parent process is a shell, to
// which alone npm passes a SIGTERM.
func (m *Main) isOfNPX() bool {
	command, _ := m.LookupEnv("npm_command")
	script, _ := m.LookupEnv("npm_lifecycle_script")
	name, _, _ := strings.Cut(script, " ")
	return command == "exec" && strings.Trim(name, `'"`) == npmPackage // some versions of npm quote it
}

const npmPackage = "mcp-sse"

// tellWaiting says what the end waits for, if clients are connected, and that a second signal does not.
func (m *Main) tellWaiting(d *daemon) (told bool) {
	select {
	case d.turn <- struct{}{}:
		defer func() { <-d.turn }()
	default: // a reload runs
		return false
	}
	clients, requests := 0, 0
	for _, gw := range d.gateways {
		for _, c := range gw.Snapshot() {
			if c.Transport == "in-process" { // a view, whose client is counted there
				continue
			}
			clients++
			requests += c.InFlight
		}
	}
	if clients > 0 {
		connected, running := plaintext.Count(clients, "client"), plaintext.Count(requests, "request")
		m.tellStopping(fmt.Sprintf("%s connected, %s running", connected, running), d.grace())
	}
	return clients > 0
}

// tellStopping says why the program has not ended yet.
func (m *Main) tellStopping(why string, grace time.Duration) {
	fmt.Fprintf(m.live.Over(m.Stdout), "Stopping: %s; waiting for %v at most. The same signal again stops at once.\n",
		why, grace)
}

// slowStop is after how long a stop says for what it waits.
const slowStop = time.Second

// stopWithin calls end, which it gives the time grace, and returns code. A second signal calls
// abort, and stopWithin does not wait any more. slow, if it is not nil, is called if the end takes long.
func (m *Main) stopWithin(
	log *slog.Logger, grace time.Duration, end func(context.Context), abort, slow func(), code int,
) int {
	ctx, cancel := context.WithTimeout(context.Background(), grace)
	defer cancel()
	stopped := make(chan struct{})
	go func() {
		defer close(stopped)
		end(ctx)
	}()
	isSlow := time.NewTimer(cmp.Or(m.Silence, slowStop))
	defer isSlow.Stop()
	for {
		select {
		case <-stopped:
			log.Info("stopped")
			return code
		case <-isSlow.C:
			if slow != nil {
				slow()
			}
		case sig := <-m.signals:
			log.Warn("stopping at once", "signal", sig.String())
			abort()
			return exit.BySignal(sig)
		}
	}
}

// listen takes the addresses without a socket, and watches the files of the configuration if it
// is to.
func (d *daemon) listen() (err error) {
	for _, e := range d.endpoints {
		err := e.Listen(context.Background())
		if err != nil && e.Option != background.SharedOption {
			err = fmt.Errorf("%s: %w", d.config.Load().Place(e.Option), err)
		}
		if err != nil {
			return err
		}
	}
	if !d.config.Load().Watch {
		return nil
	}
	d.watcher, err = fsnotify.NewWatcher()
	if err != nil {
		return fmt.Errorf("%s: %w", d.config.Load().Place("watch"), err)
	}
	d.follow(d.config.Load())
	return nil
}

// isReachable reports whether clients can connect to the main address.
func (d *daemon) isReachable() bool {
	shared, is := d.endpoints[0].Listener().(*background.Listener)
	return !is || shared.IsReachable()
}

// shutDown ends the daemon in order: the main address accepts no more connections,
// readiness fails, the gateway finishes what is in flight and closes the
// streams, and the admin address, which tells how far that is, goes last. When
// ctx ends first, what is left is cut.
func (d *daemon) shutDown(ctx context.Context) {
	select {
	case d.turn <- struct{}{}: // for good: nothing is reloaded any more
	case <-ctx.Done():
	}
	mainEndpoint, closed := d.endpoints[0], make(chan error, 1)
	mainEndpoint.Stop(ctx)
	d.gw.Drain()
	// Shutdown returns when the last stream is gone, at the latest when ctx ends.
	go func() { closed <- mainEndpoint.Server.Shutdown(ctx) }()
	err := d.gw.Shutdown(ctx)
	if late := <-closed; err == nil {
		err = late // else the gateway has told what was cut
	}
	if err != nil {
		d.log.Warn("shutdown timeout, streams were cut", "err", err, "timeout", d.grace())
		if err := mainEndpoint.Close(); err != nil {
			d.log.Warn("close failed", "err", err)
		}
	}
	for _, admin := range d.endpoints[1:] {
		_ = admin.Close()
	}
	d.retiring.Wait()
}

// abort kills the processes of all servers at once.
func (d *daemon) abort() {
	forprogram.Abort(d.gw)
	for gw := range d.retired.Range {
		forprogram.Abort(gw)
	}
}
