// Package client calls the REST API of the document daemon, and brings the daemon back
// when it is down, so that its callers need not know.
//
// Each call finds the daemon through the state directory (see package discovery). It
// tells two kinds of failure apart:
//
//   - The daemon says no: an answer with a status of 400 or more and an error. The call
//     returns it as an [*APIError]. The client never starts or kills a daemon for it.
//   - The daemon is down: nothing listens, the connection breaks, the daemon is
//     stopping, or it neither answers nor shows that it is healthy. The client kills a
//     daemon that hangs, starts a new one and repeats the request. If that does not work,
//     the call returns a [*DownError], which says why and what to do.
//
// Callers of one Client share one recovery. Recoveries of several processes exclude
// each other by a lock, so that all of them together start one daemon.
package client

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"path/filepath"
	"slices"
	"sync/atomic"
	"time"

	"golang.org/x/sync/singleflight"

	"github.com/mcp-sse/mcp-sse/docsearch/discovery"
)

// Options configure a Client. Only StateDir is required.
type Options struct {
	// StateDir is the state directory of the daemon, an absolute path.
	StateDir string
	// Command is the command line that starts a daemon for StateDir. It runs in a
	// session of its own, with its output appended to daemon.log in StateDir. The
	// default is this executable with the argument "daemon".
	Command []string
	// Token is sent as a bearer token, if not empty.
	Token string
	// NoStart has calls fail with a DownError when no healthy daemon runs. The client
	// then starts and kills none.
	NoStart bool
	// Logger logs what the client does to daemons. Nil discards the log.
	Logger *slog.Logger
	// StartTimeout bounds how long a daemon takes until it is healthy. 0 means 10 s.
	StartTimeout time.Duration
	// HangTimeout is how long a daemon may be silent. After that the client asks it for
	// its health, and takes it for hung if it is as long silent about that. 0 means 2 s.
	HangTimeout time.Duration
	// AnswerTimeout bounds how long a healthy daemon may take for an answer. 0 means
	// 60 s.
	AnswerTimeout time.Duration
}

// Client calls the daemon. Its methods may be called concurrently.
type Client struct {
	opts   Options
	log    *slog.Logger
	http   *http.Client
	life   context.Context    // ends with Close; recoveries, which outlive their callers, run in it
	end    context.CancelFunc // ends life
	flight singleflight.Group // the recovery that runs, if any
	child  *child             // the daemon that a recovery started and left unhealthy, or nil; owned by the flight

	known atomic.Pointer[discovery.Record] // the daemon that answered last, or nil
}

// New returns a Client. It does not look for a daemon yet. It fails if an option is
// wrong. The caller must call Close.
func New(o Options) (*Client, error) {
	if !filepath.IsAbs(o.StateDir) {
		return nil, fmt.Errorf("state directory %q is not an absolute path", o.StateDir)
	}
	if o.StartTimeout < 0 || o.HangTimeout < 0 || o.AnswerTimeout < 0 {
		return nil, errors.New("a timeout is negative")
	}
	o.StartTimeout = cmp.Or(o.StartTimeout, 10*time.Second)
	o.HangTimeout = cmp.Or(o.HangTimeout, 2*time.Second)
	o.AnswerTimeout = cmp.Or(o.AnswerTimeout, time.Minute)
	o.Command = slices.Clone(o.Command)
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	life, end := context.WithCancel(context.Background())
	return &Client{opts: o, log: o.Logger, http: newHTTP(o.HangTimeout), life: life, end: end}, nil
}

// newHTTP returns an HTTP client for the loopback interface: without proxies and
// redirects, which could take the token elsewhere.
func newHTTP(dialTimeout time.Duration) *http.Client {
	return &http.Client{
		Transport: &http.Transport{
			DialContext:         (&net.Dialer{Timeout: dialTimeout}).DialContext,
			MaxIdleConnsPerHost: 32,
			IdleConnTimeout:     90 * time.Second,
			DisableCompression:  true,
		},
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}
}

// Close ends a recovery that runs and closes idle connections. It leaves the daemon
// alone. Calls after Close start no daemon.
func (c *Client) Close() error {
	c.end()
	_, _, _ = c.flight.Do(flightKey, func() (any, error) { return nil, errClosed }) // waits for the one that runs
	c.http.CloseIdleConnections()
	return nil
}

// running returns the record of the daemon that runs, if one does. That takes two small
// files and no request: while its lock is held, its record and its port are its own.
func (c *Client) running() (discovery.Record, bool) {
	record, err := discovery.Read(c.opts.StateDir)
	if err != nil {
		return record, false
	}
	held, err := discovery.Held(c.opts.StateDir)
	return record, err == nil && held
}
