package httpcheck

import (
	"cmp"
	"context"
	"fmt"
	"log/slog"
	"net/http"
	"net/netip"
	"path"
	"strings"
	"time"

	"github.com/mcp-sse/mcp-sse/internal/httpanswer"
	"github.com/mcp-sse/mcp-sse/metrics"
)

// Options configure a transport. The zero value gives the defaults.
type Options struct {
	// HeartbeatInterval is the longest silence on a stream. Default 15 s; negative: no
	// heartbeats.
	HeartbeatInterval time.Duration
	// ConnectionTimeout closes a connection that has had no POST and no request in flight for
	// this long. 0: the transport's own.
	ConnectionTimeout time.Duration
	// WriteTimeout bounds how long a client may take to read 64 KiB. Default 10 s.
	WriteTimeout time.Duration
	// ReadTimeout bounds the reading of one POST body. Default 10 s.
	ReadTimeout time.Duration
	// ReconnectDelay is the retry hint of streams. Default 1 s.
	ReconnectDelay time.Duration
	// MaxMessageBytes bounds a POST body. Default 4 MiB.
	MaxMessageBytes int64

	// TrustedProxies, AllowedOrigins, AllowedHosts, PublicHost, Authenticate and Reauthenticate are as in
	// gateway.Options.
	TrustedProxies []netip.Prefix
	AllowedOrigins []string
	AllowedHosts   []string
	PublicHost     string
	Authenticate   func(*http.Request) (principal string, err error)
	Reauthenticate bool
	// LocalOnly reports whether a request that a proxy has brought is refused now: what it would get is for those on
	// this machine. nil: none is.
	LocalOnly func() bool
	// PassRequest gives a Connection's Client and each message the values of the context
	// of their HTTP request, with a peer that has the headers named in RequestHeaders.
	PassRequest    bool
	RequestHeaders []string
	// RequestContext returns the context whose values are passed on, in place of the
	// request's own; an error refuses the request with 404 and its text. nil: the request's
	// own.
	RequestContext func(*http.Request) (context.Context, error)
	// ForwardHeaders are the names of the headers of the request that opens a Connection
	// which its Client keeps. Default none.
	ForwardHeaders []string

	// Cluster is the replicas that serve Server, the name of the server; nil: there is only
	// this process.
	Cluster Cluster
	Server  string

	// Logger receives the logs; nil: silent.
	Logger *slog.Logger
	// Metrics counts; nil: nothing is counted.
	Metrics *metrics.Metrics
}

// WithDefaults returns the options with their defaults.
func (o Options) WithDefaults() Options {
	o.HeartbeatInterval = cmp.Or(o.HeartbeatInterval, 15*time.Second)
	o.WriteTimeout = cmp.Or(o.WriteTimeout, httpanswer.DefaultTimeout)
	o.ReadTimeout = cmp.Or(o.ReadTimeout, 10*time.Second)
	o.ReconnectDelay = cmp.Or(o.ReconnectDelay, time.Second)
	o.MaxMessageBytes = cmp.Or(o.MaxMessageBytes, 4<<20)
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	return o
}

// CheckPrefix reports why p cannot be put before routes: it is compared with the path
// of requests as it stands, so it must be clean, and hold nothing that is escaped.
func CheckPrefix(p string) error {
	if p != "" && (!SafePath(p) || strings.Contains(p, "%") || p == "/" || path.Clean(p) != p) {
		return fmt.Errorf(`prefix %q: must be empty or a path like "/tools", without a slash at the end`, p)
	}
	return nil
}
