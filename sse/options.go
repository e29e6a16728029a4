package sse

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"net/netip"
	"path"
	"strings"
	"time"

	"github.com/mcp-sse/mcp-sse/connstate"
	"github.com/mcp-sse/mcp-sse/metrics"
)

// Options configure a Handler. The zero value gives the defaults.
type Options struct {
	// Prefix is put before the routes and before the path in the endpoint
	// event: "" or "/mcp". Default none.
	Prefix string
	// TrustForwardedPrefix puts X-Forwarded-Prefix before the endpoint's path.
	TrustForwardedPrefix bool
	// Quiet withholds the connection event and the announcement.
	Quiet bool
	// Dialect decides the names of the events with responses for all clients;
	// "" leaves it to each client. See connstate.Dialect.
	Dialect connstate.Dialect

	// HeartbeatInterval is the longest silence. Default 15 s; negative: no
	// heartbeats.
	HeartbeatInterval time.Duration
	// ConnectionTimeout closes a connection without POST and without request
	// in flight. 0: never.
	ConnectionTimeout time.Duration
	// WriteTimeout bounds how long a client may take to read 64 KiB. Default 10 s.
	WriteTimeout time.Duration
	// ReadTimeout bounds the reading of one POST body. Default 10 s.
	ReadTimeout time.Duration
	// ReconnectDelay is the retry hint. Default 1 s.
	ReconnectDelay time.Duration
	// MaxMessageBytes bounds a POST body. Default 4 MiB.
	MaxMessageBytes int64

	// TrustedProxies, AllowedOrigins, AllowedHosts, CORS and Authenticate are
	// as in gateway.Options.
	TrustedProxies []netip.Prefix
	AllowedOrigins []string
	AllowedHosts   []string
	CORS           bool
	Authenticate   func(*http.Request) (principal string, err error)
	// SinglePath serves the stream and the messages at one path: any at which the
	// Handler is called. The endpoint is that path, with the connection's id in the
	// query. Prefix must be empty then.
	SinglePath bool
	// PassRequest gives a Connection's Client and each message the values of the context
	// of their HTTP request, with a peer that has the headers named in RequestHeaders.
	PassRequest    bool
	RequestHeaders []string
	// RequestContext returns the context whose values are passed on, in place of the
	// request's own; an error refuses the request with 404 and its text. nil: the request's
	// own.
	RequestContext func(*http.Request) (context.Context, error)
	// ForwardHeaders are the names of the headers of a GET that its Connection
	// keeps in its Client. Default none.
	ForwardHeaders []string

	// Logger receives the logs; nil: silent.
	Logger *slog.Logger
	// Metrics counts; nil: nothing is counted.
	Metrics *metrics.Metrics
}

func (o Options) withDefaults() (Options, error) {
	o.HeartbeatInterval = cmp.Or(o.HeartbeatInterval, 15*time.Second)
	o.WriteTimeout = cmp.Or(o.WriteTimeout, 10*time.Second)
	o.ReadTimeout = cmp.Or(o.ReadTimeout, 10*time.Second)
	o.ReconnectDelay = cmp.Or(o.ReconnectDelay, time.Second)
	o.MaxMessageBytes = cmp.Or(o.MaxMessageBytes, 4<<20)
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	return o, errors.Join(CheckPrefix(o.Prefix), checkDialect(string(o.Dialect)))
}

// CheckPrefix reports why p cannot be Options.Prefix: it is compared with the path
// of requests as it stands, so it must be clean, and hold nothing that is escaped.
func CheckPrefix(p string) error {
	if p != "" && (!safePath(p) || strings.Contains(p, "%") || p == "/" || path.Clean(p) != p) {
		return fmt.Errorf(`prefix %q: must be empty or a path like "/mcp", without a slash at the end`, p)
	}
	return nil
}

func checkDialect(d string) error {
	switch d {
	case "", connstate.EventMessage, connstate.EventResponse:
		return nil
	}
	return fmt.Errorf("event %q: must be %q or %q", d, connstate.EventMessage, connstate.EventResponse)
}
