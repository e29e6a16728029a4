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

	"github.com/mcp-sse/mcp-sse/internal/clip"
	"github.com/mcp-sse/mcp-sse/internal/hosts"
	"github.com/mcp-sse/mcp-sse/internal/unreached"
	"github.com/mcp-sse/mcp-sse/jsonrpc"
	"github.com/mcp-sse/mcp-sse/metrics"
)

const (
	userAgent  = "mcp-sse"
	typeJSON   = "application/json"
	typeEvents = "text/event-stream"
)

// Headers of Streamable HTTP, in the canonical form of http.Header.
const (
	HeaderSession = "Mcp-Session-Id"
	HeaderVersion = "Mcp-Protocol-Version"
)

const (
	// CloseTimeout bounds the end of a session.
	CloseTimeout = 2 * time.Second
	// AliveTimeout bounds the question to a server whether it is still there. A server
	// that answers later is alive all the same.
	AliveTimeout = 5 * time.Second
)

// Endpoint is where a session sends its HTTP requests. It is immutable, and safe
// for concurrent use.
type Endpoint struct {
	URL    string // may hold a password or a key: see Place
	Client *http.Client
	Header http.Header // sent with each request
	// Authorize is [remote.Authorizer]; nil: Header has what authorizes.
	Authorize func(ctx context.Context, refused string) (header string, err error)
	// Advise is [remote.Adviser]; nil: nobody can be told what to do about a refusal.
	Advise func(ctx context.Context, resp *http.Response, asks bool) (again bool, full, public, link string)
	// IsStalled reports whether somebody is logged in, and the login cannot be renewed now; nil: that cannot be.
	IsStalled func() bool
	// Accepted is told of each success of a POST; nil: nobody wants to know. The DELETE of a session that the server
	// has refused says nothing.
	Accepted func()
	// AwaitLogin waits until somebody has logged in at the server, or ctx ends; nil: nobody can.
	AwaitLogin func(ctx context.Context) bool
	Name       string // of the server, for errors; empty: it has none
	Limit      int    // longest message that the server may send, in bytes
	Log        *slog.Logger
	Metrics    *metrics.Metrics
	// Values never ends, and has the values of the contexts of a session's requests.
	Values context.Context
}

// Do sends one request. Headers in extra replace those of the endpoint. The caller
// must close the response's body; the end of ctx ends the body too. Errors do not
// hold the URL, which may be a secret: see [Unreached].
//
// A request that the server refuses with 401 is sent once more if Authorize has another
// header: the server has not run it. Where Authorize has none, the response is a 401 too.
func (e *Endpoint) Do(ctx context.Context, method string, body []byte, extra http.Header) (*http.Response, error) {
	if e.Authorize == nil {
		return e.send(ctx, method, body, extra)
	}
	resp, err := e.authorized(ctx, method, body, extra)
	for range 2 { // the second time somebody has just logged in
		if err != nil || e.Advise == nil || !refusesAccess(resp) {
			break
		}
		isQuiet, _ := ctx.Value(quietKey{}).(bool)
		again, full, public, link := e.Advise(ctx, resp, method == http.MethodPost && !isQuiet)
		if !again {
			if full != "" {
				resp.Body = e.advised(resp, full, public, link)
			}
			break
		}
		Discard(resp)
		resp, err = e.authorized(ctx, method, body, extra)
	}
	if err == nil && e.Accepted != nil && method == http.MethodPost && resp.StatusCode < 300 {
		e.Accepted()
	}
	return resp, err
}

// advised returns the body of a response that refuses access, with what to do. The log has no link of a login.
func (e *Endpoint) advised(resp *http.Response, full, public, link string) unauthorized {
	body := unauthorized{resp.Body, e.Name, full, public, link, e.IsStalled != nil && e.IsStalled()}
	e.Log.Warn("no token for the server", "err", body.logged(full))
	return body
}

type quietKey struct{}

// Quietly returns a context for requests that are not those of a client: nobody is asked for a login on their account.
func Quietly(ctx context.Context) context.Context { return context.WithValue(ctx, quietKey{}, true) }

// authorized sends a request with the header of Authorize, and once more if the server refuses that.
func (e *Endpoint) authorized(
	ctx context.Context, method string, body []byte, extra http.Header,
) (*http.Response, error) {
	refused, resp := "", &http.Response{StatusCode: http.StatusUnauthorized, Body: http.NoBody}
	isSent := false
	for range 2 {
		header, err := e.Authorize(ctx, refused)
		if err != nil && ctx.Err() == nil { // else nothing can be sent
			e.Log.Warn("no token for the server", "err", err)
			break
		}
		if isSent && header == "" {
			break
		}
		isSent = true
		Discard(resp)
		with := http.Header{}
		if header != "" {
			with.Set("Authorization", header)
		}
		maps.Copy(with, extra)
		resp, err = e.send(ctx, method, body, with)
		if err != nil || resp.StatusCode != http.StatusUnauthorized {
			return resp, err
		}
		refused = header
	}
	if refused != "" || !isSent { // else nothing was sent that the server does not take
		resp.Body = unauthorized{ReadCloser: resp.Body, server: e.Name}
	}
	return resp, nil
}

// unauthorized is the body of a response that Authorize could not avert.
type unauthorized struct {
	io.ReadCloser
	server string // its name; empty: it has none
	// full and public say what to do, the one to those who may know the server's address; empty: nobody knows.
	full, public string
	// link is the address at which a person logs in, if full has it; else empty.
	link string
	// isStalled says that nobody has to log in: they say to call again later.
	isStalled bool
}

// isForAll reports whether all clients may know what to do.
func (u unauthorized) isForAll() bool { return u.full != "" && u.full == u.public }

// logged returns text, which says what to do, as the log has it: without the link of a login, with which a reader of
// the log could end the login in place of the person.
func (u unauthorized) logged(text string) string {
	if u.isForAll() || u.link != "" {
		return "the client was told where to log in"
	}
	return text
}

// NeedsPerson reports whether a response of Do refuses access, and a person can do something about that, or has to
// wait.
func NeedsPerson(resp *http.Response) bool {
	body, ok := resp.Body.(unauthorized)
	return ok && body.full != ""
}

// send is Do without Authorize.
func (e *Endpoint) send(ctx context.Context, method string, body []byte, extra http.Header) (*http.Response, error) {
	var content io.Reader
	if body != nil {
		content = bytes.NewReader(body)
	}
	var reached atomic.Bool // the user's http.Client may call the hooks from any goroutine
	traced := httptrace.WithClientTrace(ctx, &httptrace.ClientTrace{
		GetConn: func(string) { reached.Store(false) }, // net/http tries again: the server had closed the connection
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
		req.Header.Set("Accept", typeJSON+", "+typeEvents)
		req.Header.Set("Content-Type", typeJSON)
	case http.MethodGet:
		req.Header.Set("Accept", typeEvents)
		req.Header.Set("Cache-Control", "no-store")
	}
	maps.Copy(req.Header, extra)
	resp, err := e.Client.Do(req)
	if err != nil {
		e.Metrics.RemoteResponse(0)
		isUnreached := !reached.Load() && ctx.Err() == nil
		return nil, &requestError{method, e.Place(), withoutURL(err), isUnreached}
	}
	e.Metrics.RemoteResponse(resp.StatusCode)
	return resp, nil
}

// Repeatable adds to the headers of a POST that net/http may send it again, on another
// connection, if the one that it had was about to end. Nothing of that is sent.
func Repeatable(header http.Header) http.Header {
	header["Idempotency-Key"] = nil
	return header
}

// requestError is a request that got no response.
type requestError struct {
	method, place string
	err           error
	// unreached: there was no connection to send the request on, because nothing
	// listens there, the name is unknown, or TLS failed.
	unreached bool
}

// Error names the place, without what may be secret in the URL. Without a connection that is host and port.
func (e *requestError) Error() string {
	if why := unreached.At(addressOf(e.place), e.err); e.unreached && why != "" {
		return why
	}
	return e.method + " " + e.place + ": " + e.err.Error()
}

func (e *requestError) Unwrap() error { return e.err }

// Unreached reports whether Do failed because there was no connection to the
// server. The server has not seen the request.
func Unreached(err error) bool {
	of, ok := errors.AsType[*requestError](err)
	return ok && of.unreached
}

// withoutURL removes the request's URL, or that of a redirect, from an error of
// net/http.
func withoutURL(err error) error {
	of, ok := errors.AsType[*url.Error](err)
	switch {
	case !ok:
		return err
	case strings.HasPrefix(of.Err.Error(), "failed to parse Location header"): // net/http quotes it
		return errors.New("it redirects to an invalid URL")
	}
	return of.Err
}

// Deliver gives the messages of a stream that belongs to no request to push, which may have
// to wait for room. It returns why the stream ended; nil if push failed.
func (e *Endpoint) Deliver(push func(*jsonrpc.Message) error, from *EventReader) error {
	r := Reader{Endpoint: e, events: from, Other: push}
	return r.Rest()
}

// Undelivered counts a notification or a response that the server has not taken
// because of err.
func (e *Endpoint) Undelivered(m *jsonrpc.Message, err error) {
	e.Metrics.Dropped(metrics.DroppedUndelivered)
	e.Log.Debug("message not posted", "method", clip.Short(m.Method), "err", err)
}

// Discard reads the rest of a short response, so that net/http can use its
// connection again, and closes it.
func Discard(resp *http.Response) {
	if !IsStream(resp) { // a stream need not end
		_, _ = io.Copy(io.Discard, io.LimitReader(resp.Body, maxErrorBody))
	}
	resp.Body.Close()
}

// ValidHeader reports whether a header can be sent.
func ValidHeader(name string, values []string) bool {
	return httpguts.ValidHeaderFieldName(name) && !slices.ContainsFunc(values, func(v string) bool {
		return !httpguts.ValidHeaderFieldValue(v)
	})
}

// maxShown is the longest part of a path that PublicURL shows, in bytes.
const maxShown = 20

// PublicURL returns an address without what may be secret in it: user and password,
// the query, and long parts of the path, which hosted servers use as keys.
func PublicURL(address string) string {
	at, err := url.Parse(address)
	if err != nil {
		return "the server's URL"
	}
	parts := strings.Split(at.Path, "/")
	for i, part := range parts {
		if len(part) > maxShown {
			parts[i] = "..."
		}
	}
	return (&url.URL{Scheme: at.Scheme, Host: at.Host, Path: strings.Join(parts, "/")}).String()
}

// Place returns the endpoint's PublicURL, for errors and logs.
func (e *Endpoint) Place() string { return PublicURL(e.URL) }

// SameOrigin reports whether two URLs have the same scheme, host and port.
func SameOrigin(a, b *url.URL) bool {
	return a.Scheme == b.Scheme && strings.EqualFold(a.Hostname(), b.Hostname()) && hosts.Port(a) == hosts.Port(b)
}

// SameServer is SameOrigin, but the names of this machine are one host: a server that listens
// at one calls itself by another. A redirect must not use it: a program that listens at another
// name's address would get the credentials.
func SameServer(a, b *url.URL) bool {
	areLoopback := hosts.IsLoopback(a.Hostname()) && hosts.IsLoopback(b.Hostname())
	return SameOrigin(a, b) || a.Scheme == b.Scheme && areLoopback && hosts.Port(a) == hosts.Port(b)
}

// addressOf returns the host of a URL, as it is written there, and the port.
func addressOf(address string) string {
	at, err := url.Parse(address)
	if err != nil {
		return address
	}
	return hosts.Address(at)
}
