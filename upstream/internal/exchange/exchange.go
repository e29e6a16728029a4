// Package exchange makes the HTTP requests of a session with a remote server, and
// says what a response means: its messages, its events, its refusals.
//
// All transports over HTTP use it. An [Endpoint] sends one request; a [Poster]
// posts messages in order; no error names what may be secret in a URL.
package exchange

import (
	"bytes"
	"context"
	"errors"
	"io"
	"log/slog"
	"maps"
	"net/http"
	"net/http/httptrace"
	"net/url"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	"golang.org/x/net/http/httpguts"

	"github.com/mcp-sse/mcp-sse/metrics"
)

// Media types of responses.
const (
	TypeJSON   = "application/json"
	TypeEvents = "text/event-stream"
)

const (
	userAgent = "mcp-sse"
	// ErrorBodyLimit bounds what is read of the body of a response that is an
	// error: enough for a JSON-RPC error with its data.
	ErrorBodyLimit = 64 << 10
)

// Headers of Streamable HTTP, in the form that http.Header wants.
const (
	HeaderSession = "Mcp-Session-Id"
	HeaderVersion = "Mcp-Protocol-Version"
	HeaderLastID  = "Last-Event-Id"
)

// Bounds of all sessions over HTTP.
const (
	// CloseTimeout bounds the end of a session.
	CloseTimeout = 2 * time.Second
	// AliveTimeout bounds the question whether a server is still there. A server
	// that is slow to answer it is.
	AliveTimeout = 5 * time.Second
)

// Endpoint is where a session sends its HTTP requests. It is immutable, and safe
// for concurrent use.
type Endpoint struct {
	URL     string // may hold a password or a key: see Place
	Client  *http.Client
	Header  http.Header // sent with each request
	Limit   int         // of a message's length
	Log     *slog.Logger
	Metrics *metrics.Metrics
}

// Do sends one request. Its headers are those of the endpoint, and over them
// extra. The response's body is the caller's to close; ctx ends it too. An error
// does not hold the URL, which may be a secret.
func (e *Endpoint) Do(ctx context.Context, method string, body []byte, extra http.Header) (*http.Response, error) {
	var content io.Reader
	if body != nil {
		content = bytes.NewReader(body)
	}
	var reached atomic.Bool // a transport of the user's may call it from anywhere
	traced := httptrace.WithClientTrace(ctx, &httptrace.ClientTrace{
		GetConn: func(string) { reached.Store(false) }, // another try: the server had closed the connection
		GotConn: func(httptrace.GotConnInfo) { reached.Store(true) },
	})
	req, err := http.NewRequestWithContext(traced, method, e.URL, content)
	if err != nil {
		return nil, &requestError{method: method, place: e.Place(), err: withoutURL(err)}
	}
	req.Header.Set("User-Agent", userAgent)
	maps.Copy(req.Header, e.Header)
	switch method {
	case http.MethodPost:
		req.Header.Set("Accept", TypeJSON+", "+TypeEvents)
		req.Header.Set("Content-Type", TypeJSON)
	case http.MethodGet:
		req.Header.Set("Accept", TypeEvents)
		req.Header.Set("Cache-Control", "no-store")
	}
	maps.Copy(req.Header, extra)
	resp, err := e.Client.Do(req)
	if err != nil {
		e.Metrics.RemoteResponse(0)
		unreached := !reached.Load() && ctx.Err() == nil
		return nil, &requestError{method, e.Place(), withoutURL(err), unreached}
	}
	e.Metrics.RemoteResponse(resp.StatusCode)
	return resp, nil
}

// requestError is a request that got no response.
type requestError struct {
	method, place string
	err           error
	// unreached: there was no connection to send it on, because nothing listens
	// there, the name is unknown, or TLS failed.
	unreached bool
}

// Error names the place, but not what may be secret in the URL.
func (e *requestError) Error() string { return e.method + " " + e.place + ": " + e.err.Error() }
func (e *requestError) Unwrap() error { return e.err }

// Unreached reports whether a request of Do failed because there was no connection
// to the server.
func Unreached(err error) bool {
	of, ok := errors.AsType[*requestError](err)
	return ok && of.unreached
}

// Place is the URL for errors and logs.
func (e *Endpoint) Place() string { return PublicURL(e.URL) }

// withoutURL returns an error of net/http without the URL in it, or that of a
// redirect.
func withoutURL(err error) error {
	of, ok := errors.AsType[*url.Error](err)
	switch {
	case !ok:
		return err
	case strings.HasPrefix(of.Err.Error(), "failed to parse Location header"): // net/http quotes it
		return errors.New("it redirects to what is no URL")
	}
	return of.Err
}

// ValidHeader reports whether a header can be sent.
func ValidHeader(name string, values []string) bool {
	return httpguts.ValidHeaderFieldName(name) && !slices.ContainsFunc(values, func(v string) bool {
		return !httpguts.ValidHeaderFieldValue(v)
	})
}
