// Package daemon is the document daemon: a REST service on the loopback interface that
// indexes folders and searches them.
//
// One daemon runs for each state directory. It holds the lock there from before it
// opens the index until after it has closed it, and publishes its address beside the
// lock. The package api describes requests and responses.
//
//	Run ─▶ lock ─▶ index ─▶ folders ─▶ listen ─▶ publish ─▶ serve … ─▶ end in reverse
package daemon

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"path/filepath"
	"strconv"
	"time"

	"golang.org/x/net/netutil"

	"github.com/mcp-sse/mcp-sse/docsearch/api"
	"github.com/mcp-sse/mcp-sse/docsearch/crawl"
	"github.com/mcp-sse/mcp-sse/docsearch/daemon/internal/folders"
	"github.com/mcp-sse/mcp-sse/docsearch/discovery"
	"github.com/mcp-sse/mcp-sse/docsearch/extract"
	"github.com/mcp-sse/mcp-sse/docsearch/index"
)

// DefaultAddr is where a daemon listens unless it is told otherwise.
const DefaultAddr = "127.0.0.1:3002"

const (
	ports        = 100              // tried, from the one of Addr on
	checkTime    = time.Second      // between two looks at the lock, the record, the idle time and the memory
	maxRebuilds  = 3                // of the index in a row; more mean that the disk is broken
	rebuildTime  = time.Minute      // after which an index counts as good
	drainTime    = 5 * time.Second  // for requests in flight when the daemon ends
	maxBody      = 128 << 10        // bytes of a request
	maxNames     = 100              // folders of a search, and concepts and terms
	maxConns     = 512              // connections; more wait until one closes
	maxSearches  = 256              // that run or wait for the index; more are refused
	headTime     = 2 * time.Second  // for a client to send the head of a request
	bodyTime     = 5 * time.Second  // and all of it
	idleTime     = 60 * time.Second // of a connection without a request
	responseTime = time.Minute
)

// Options configure a Daemon. StateDir is needed.
type Options struct {
	StateDir    string
	Addr        string         // loopback host and port; DefaultAddr if empty. If the port is taken, the next free one
	Folders     []string       // absolute paths, beside those that the index knows
	Token       string         // clients must send it; if empty, all local programs are served
	IdleTimeout time.Duration  // the daemon ends after this time without a request, once all is indexed; 0: never
	Embedder    index.Embedder // nil: searches use words only
	// Former returns the Embedder of a model whose vectors the index has; nil: it is not known.
	Former     func(model string) index.Embedder
	ModelFault string          // why there is no Embedder although one was asked for, for the status
	Language   string          // of index.Languages; "": English
	Extract    extract.Options // its Worker reads PDFs
	Crawl      crawl.Options
	Version    string
	Logger     *slog.Logger // nil: no log
}

// Daemon is a document daemon. Create it with New, and call Run once.
type Daemon struct {
	opts     Options
	log      *slog.Logger
	lock     *discovery.Lock
	started  time.Time
	searches failures
}

// New checks the options and takes the lock of the state directory. It fails with an
// error that wraps discovery.ErrHeld if a daemon runs there already. After New, the
// caller must call Run, which gives the lock back.
func New(opts Options) (*Daemon, error) {
	if opts.Addr == "" {
		opts.Addr = DefaultAddr
	}
	if err := checkAddr(opts.Addr); err != nil {
		return nil, err
	}
	d := &Daemon{opts: opts, log: opts.Logger, started: time.Now()}
	if d.log == nil {
		d.log = slog.New(slog.DiscardHandler)
	}
	lock, err := discovery.Acquire(opts.StateDir)
	if err != nil {
		return nil, err
	}
	d.lock = lock
	return d, nil
}

// checkAddr refuses addresses that other machines can reach.
func checkAddr(addr string) error {
	host, port, err := net.SplitHostPort(addr)
	if err != nil {
		return fmt.Errorf("address %q: %w; write it as 127.0.0.1:3002", addr, err)
	}
	if ip := net.ParseIP(host); host != "localhost" && (ip == nil || !ip.IsLoopback()) {
		return fmt.Errorf("address %q: the daemon serves this machine only; use 127.0.0.1, [::1] or localhost", addr)
	}
	if _, err := strconv.ParseUint(port, 10, 16); err != nil {
		return fmt.Errorf("address %q: the port is not a number from 0 to 65535", addr)
	}
	return nil
}

// Run serves until ctx ends or the idle timeout has passed, finishes the requests in
// flight, and gives the lock back. An index that cannot be read is checked, opened again,
// and made anew where it is damaged, up to three times in a row.
func (d *Daemon) Run(ctx context.Context) error {
	for damaged := 0; ; {
		began := time.Now()
		err := d.serve(ctx)
		if time.Since(began) > rebuildTime {
			damaged = 0
		}
		damaged++
		if errors.Is(err, index.ErrCorrupt) && ctx.Err() == nil && damaged <= maxRebuilds {
			d.log.Warn("the index cannot be read, and is checked and opened again", "err", err)
			continue
		}
		return errors.Join(err, d.lock.Release())
	}
}

// serve runs the daemon over an open index. It returns nil when the daemon shall end,
// and index.ErrCorrupt when the index cannot be read; the next index.Open moves aside what
// is damaged.
func (d *Daemon) serve(ctx context.Context) (err error) {
	x, err := index.Open(ctx, filepath.Join(d.opts.StateDir, "index"), index.Options{Embedder: d.opts.Embedder,
		Former: d.opts.Former, Language: d.opts.Language, Logger: d.log})
	if err != nil {
		return fmt.Errorf("open the index: %w", err)
	}
	defer func() { err = errors.Join(err, x.Close()) }()
	if why := x.Rebuilt(); why != "" {
		d.log.Warn("the index could not be read and is made anew", "reason", why)
	}
	set, err := folders.Open(ctx, folders.Options{
		StateDir: d.opts.StateDir, Index: x, Extractor: extract.New(d.opts.Extract), Crawl: d.opts.Crawl, Logger: d.log,
	})
	if err != nil {
		return err
	}
	defer set.Close()
	for _, path := range d.opts.Folders {
		if _, err := set.Add(path); err != nil {
			return err
		}
	}
	return d.listen(ctx, newService(d, x, set))
}

// listen serves HTTP until something ends it.
func (d *Daemon) listen(ctx context.Context, s *service) error {
	listener, err := listenNear(d.opts.Addr)
	if err != nil {
		return fmt.Errorf("listen: %w", err)
	}
	server := &http.Server{
		Handler:           s,
		ReadHeaderTimeout: headTime,
		ReadTimeout:       bodyTime,
		WriteTimeout:      responseTime,
		IdleTimeout:       idleTime,
		MaxHeaderBytes:    64 << 10,
		ErrorLog:          slog.NewLogLogger(d.log.Handler(), slog.LevelDebug),
	}
	served := make(chan error, 1)
	// Ends with Shutdown or Close below.
	go func() { served <- server.Serve(netutil.LimitListener(listener, maxConns)) }()
	record := discovery.NewRecord(listener.Addr().String(), d.opts.Version)
	if err := d.lock.Publish(record); err != nil {
		_ = server.Close()
		<-served
		return fmt.Errorf("publish the address: %w", err)
	}
	d.log.Info("serving", "addr", listener.Addr().String(), "stateDir", d.opts.StateDir)
	err = d.wait(ctx, s, served, record)
	drain, cancel := context.WithTimeout(context.WithoutCancel(ctx), drainTime)
	defer cancel()
	if server.Shutdown(drain) != nil {
		_ = server.Close()
	}
	d.log.Info("stopped")
	return err
}

// wait returns when the daemon shall end, nil for an end that was asked for.
func (d *Daemon) wait(ctx context.Context, s *service, served <-chan error, record discovery.Record) error {
	tick := time.NewTicker(checkTime)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return nil
		case err := <-served:
			return fmt.Errorf("serve: %w", err)
		case err := <-s.folders.Failed():
			return cmp.Or(d.lost(record), err)
		case <-tick.C:
			s.index.Release()
			if err := d.lost(record); err != nil {
				return err
			}
			if d.isIdle(s) {
				d.log.Info("no requests, stopping", "idleTimeout", d.opts.IdleTimeout.String())
				return nil
			}
		}
	}
}

// lost returns discovery.ErrLost if the state directory is not the daemon's any more.
func (d *Daemon) lost(record discovery.Record) error {
	err := d.lock.Check(record)
	if errors.Is(err, discovery.ErrLost) {
		return err
	}
	if err != nil {
		d.log.Warn("clients cannot find the daemon", "err", err)
	}
	return nil
}

// isIdle reports whether the idle timeout has passed and nothing is left to index.
func (d *Daemon) isIdle(s *service) bool {
	if d.opts.IdleTimeout <= 0 || s.idleFor() < d.opts.IdleTimeout {
		return false
	}
	status, _, _ := s.status()
	return status != api.StatusIndexing
}

// listenNear listens at addr, or at the next free port.
func listenNear(addr string) (listener net.Listener, err error) {
	host, port, _ := net.SplitHostPort(addr) // checked by New
	first, _ := strconv.Atoi(port)
	for n := first; n < first+ports && n < 1<<16; n++ {
		listener, err = net.Listen("tcp", net.JoinHostPort(host, strconv.Itoa(n)))
		if err == nil {
			return listener, nil
		}
	}
	return nil, fmt.Errorf("the %d ports from %s on are taken: %w", ports, port, err)
}
