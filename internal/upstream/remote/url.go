// Package remote reaches MCP servers over HTTP: at a [URL], whose transport it finds
// out, or in process, as an http.Handler.
//
// A request that fails as HTTP gets an error response, with data that says why
// (docs/reference/errors.md). The session ends when the server has forgotten it,
// cannot be reached, or fails again at a ping. A response that breaks off is resumed from its last
// event if events have ids. No request is ever posted twice, but with other credentials
// after a 401.
package remote

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"net/http/cookiejar"
	"net/url"
	"strings"

	"github.com/mcp-sse/mcp-sse/internal/asker"
	"github.com/mcp-sse/mcp-sse/internal/buffer"
	"github.com/mcp-sse/mcp-sse/internal/caller"
	"github.com/mcp-sse/mcp-sse/internal/login"
	"github.com/mcp-sse/mcp-sse/internal/mcp"
	"github.com/mcp-sse/mcp-sse/internal/upstream/exchange"
	"github.com/mcp-sse/mcp-sse/internal/upstream/inprocess"
	"github.com/mcp-sse/mcp-sse/internal/upstream/standin"
	"github.com/mcp-sse/mcp-sse/internal/upstream/statelessserver"
	"github.com/mcp-sse/mcp-sse/internal/upstream/streamable"
	"github.com/mcp-sse/mcp-sse/jsonrpc"
	"github.com/mcp-sse/mcp-sse/metrics"
)

// Transports of a URL, which Dial then does not probe for.
const (
	// TransportStreamable is Streamable HTTP with a handshake: MCP 2025-03-26 to
	// 2025-11-25.
	TransportStreamable = "streamable"
	// TransportStateless is Streamable HTTP without one: MCP 2026-07-28.
	TransportStateless = "stateless"
	// TransportSSE is HTTP+SSE: MCP 2024-11-05.
	TransportSSE = "sse"
)

var _ jsonrpc.Dialer = URL{}

// URL is an upstream.URL, which says what the fields mean that are not explained here, and what a gateway and its
// program need of it besides.
type URL struct {
	Address         string
	Header          http.Header
	Credentials     Credentials
	Name            string
	Transport       string
	Client          *http.Client
	MaxMessageBytes int
	Logger          *slog.Logger

	// Rename has the names by which the server gets headers of WithHeader, by the names that clients have, both in
	// their canonical form. An Authorization that a client has sent so wins over Credentials.
	Rename map[string]string
	// Metrics counts responses. nil: nothing is counted.
	Metrics *metrics.Metrics

	site  *site  // nil: nothing is shared
	notes *notes // of the session that is dialled; nil: there are none
	// isOfOne says that Credentials are those of one principal: no other session uses what they authorize.
	isOfOne bool
}

// Observed returns a copy of u that logs to l and counts in m if u has no Logger and
// no Metrics of its own. The sessions of the copy, and of its copies, share the HTTP
// client and what they find out about the server.
func (u URL) Observed(l *slog.Logger, m *metrics.Metrics) jsonrpc.Dialer {
	if u.Logger == nil {
		u.Logger = l
	}
	if u.Metrics == nil {
		u.Metrics = m
	}
	if u.site == nil {
		u.site = newSite()
	}
	return u
}

// Excuse says what keeps a server from answering, as far as a session of u or a copy can see it. It quotes
// nothing. The text continues a sentence. It is empty if nothing is known, or unless Observed made u.
func (u URL) Excuse() string {
	if u.site == nil || u.site.waiting.Load() <= 0 { // for a moment -1: a dial may end before it is counted
		return ""
	}
	return "; it was asked for HTTP+SSE, and no endpoint event has come by GET"
}

// Place returns the address without what may be secret in it: user and password, the
// query, and long parts of the path, which hosted servers use as keys.
func (u URL) Place() string { return exchange.PublicURL(u.Address) }

// Check reports what is wrong with u, without asking the server.
func (u URL) Check() error {
	at, err := url.Parse(u.Address)
	_, _, noPort := net.SplitHostPort(u.Address)
	switch {
	case err == nil && at.Scheme != "http" && at.Scheme != "https",
		err != nil && noPort == nil && !strings.Contains(u.Address, "://"): // such as 127.0.0.1:80
		return errors.New("the address of the server must begin with http:// or https://")
	case err != nil: // it may quote a password with a slash in it as the port
		return errors.New("the address of the server is not a URL: write it as http://HOST:PORT/mcp")
	case at.Hostname() == "":
		return errors.New("the address of the server names no host")
	case at.Fragment != "": // most likely the rest of a password with a # in it
		return errors.New("the address of the server has a #, which must be written as %23")
	}
	switch u.Transport {
	case "", TransportStreamable, TransportStateless, TransportSSE:
	default:
		return fmt.Errorf("there is no transport %.64q: it is %q, %q or %q, or is found out", u.Transport,
			TransportStreamable, TransportStateless, TransportSSE)
	}
	if u.Client != nil && u.Client.Timeout != 0 {
		return errors.New("the HTTP client has a Timeout, which would end streams: leave it at 0")
	}
	if u.Credentials != nil && u.Header.Get("Authorization") != "" {
		return errors.New("a header Authorization contradicts the credentials")
	}
	for name, values := range u.Header {
		if !exchange.ValidHeader(name, values) {
			return fmt.Errorf("the header %.64q has a name or value that cannot be sent", name)
		}
	}
	return nil
}

// Dial opens a session, as upstream.URL says.
func (u URL) Dial(ctx context.Context) (jsonrpc.Conn, error) {
	if err := u.Check(); err != nil {
		return nil, err
	}
	if u.site == nil {
		u.site = newSite()
	}
	u = u.forPrincipal(ctx)
	u.notes = u.newNotes(ctx)
	x, release := u.exchange(ctx)
	c, err := u.connectOrStandIn(ctx, x)
	if err != nil {
		release()
		return nil, err
	}
	return &releasing{Attributed: c, release: release, notes: u.notes, watch: u.loginWatch(ctx)}, nil
}

// connectOrStandIn opens a session with the server, or one in its place.
func (u URL) connectOrStandIn(ctx context.Context, x *exchange.Endpoint) (jsonrpc.Attributed, error) {
	if u.site.toolsNeedLogin() {
		if stand := u.standIn(ctx)(); stand != nil {
			return stand, nil
		}
	}
	c, err := u.connect(exchange.Quietly(asker.Opening(ctx)), x)
	if denied, ok := errors.AsType[*exchange.AccessError](err); ok && denied.NeedsPerson {
		if stand := u.standIn(ctx)(); stand != nil {
			return stand, nil
		}
	}
	return c, err
}

// loginWatch returns what notices that a session needs a login; nil if there may be no session in its place then.
func (u URL) loginWatch(ctx context.Context) *loginWatch {
	if !u.mayStandIn(ctx) {
		return nil
	}
	login := u.Credentials.(standin.Asker)
	isHindered := func() bool { _, is := login.Hindered(); return is }
	return &loginWatch{loggedIn: func() bool { return !standin.IsNeeded(login) }, isHindered: isHindered,
		noteToolsNeedLogin: u.site.noteToolsNeedLogin, asked: make(map[jsonrpc.ID]string)}
}

// IsPerPrincipal reports whether each principal of the gateway has credentials of its own, so that no session may be
// for clients of several.
func (u URL) IsPerPrincipal() bool {
	own, ok := u.Credentials.(login.Credentials)
	return ok && own.IsPerPrincipal()
}

// forPrincipal returns u with the credentials of the principal that causes the session alone; with those of nobody if
// no client does.
func (u URL) forPrincipal(ctx context.Context) URL {
	if !u.IsPerPrincipal() {
		return u
	}
	var principal string
	var client login.Asker
	if a := asker.FromContext(ctx); a != nil {
		principal, client = a.Principal, login.Asker{Name: a.UserAgent, Connection: a.Connection}
	}
	u.Credentials, u.isOfOne = u.Credentials.(login.Credentials).For(principal, client), true
	return u
}

// standIn returns what opens a session in the place of one with a server that needs a login. It opens none, and returns
// nil, if there is a login that requests can use, if no client has caused the dialling, or nobody can be asked.
func (u URL) standIn(ctx context.Context) func() jsonrpc.Attributed {
	if !u.mayStandIn(ctx) {
		return func() jsonrpc.Attributed { return nil }
	}
	login := u.Credentials.(standin.Asker)
	return func() jsonrpc.Attributed {
		if !standin.IsNeeded(login) {
			return nil
		}
		u.notes.stop() // it is not the server that speaks
		return standin.New(login, u.notes.recall)
	}
}

// mayStandIn reports whether there may be a session in the place of one with the server: a client has caused the
// dialling, and somebody can be asked for a login.
func (u URL) mayStandIn(ctx context.Context) bool {
	_, ok := u.Credentials.(standin.Asker)
	return ok && u.mayAsk(ctx) && !u.hasOwnCredentials(ctx)
}

// hasOwnCredentials reports whether the client has an Authorization of its own for the server: no login is used then.
func (u URL) hasOwnCredentials(ctx context.Context) bool {
	for name := range headerFrom(ctx) {
		if u.Rename[name] == "Authorization" {
			return true
		}
	}
	return false
}

// mayAsk reports whether a client has caused the dialling, and may get the link of a login. A client whose requests
// come by a proxy that nobody has named may not, where links are for browsers on this machine.
func (u URL) mayAsk(ctx context.Context) bool {
	return asker.FromContext(ctx) != nil && !u.isFromProxy(ctx)
}

// isFromProxy reports whether a proxy has brought the client of a session whose login is for this machine alone.
func (u URL) isFromProxy(ctx context.Context) bool {
	a := asker.FromContext(ctx)
	return a != nil && a.Proxied && u.PageLogin() != nil
}

// withholdLogin has a session go on without the login, also if that is made while a request waits: such a client is
// refused as soon as somebody is logged in, and a request of before must not get more.
func (u URL) withholdLogin(x *exchange.Endpoint) {
	x.Authorize, x.AwaitLogin = func(context.Context, string) (string, error) { return "", nil }, nil
	x.Accepted = nil // what the server takes without the login says nothing of it
	if advise := x.Advise; advise != nil {
		x.Advise = func(ctx context.Context, resp *http.Response, asks bool) (again bool, full, public, link string) {
			_, full, public, _ = advise(ctx, resp, false)
			return false, full, public, ""
		}
	}
}

// exchange returns the endpoint for one session. The caller must call release at the
// end of the session.
func (u URL) exchange(ctx context.Context) (x *exchange.Endpoint, release func()) {
	x = &exchange.Endpoint{URL: u.Address, Header: make(http.Header), Limit: u.MaxMessageBytes, Log: u.Logger,
		Metrics: u.Metrics, Values: caller.Values(ctx)}
	if !u.mayAsk(ctx) { // nobody is asked for a login
		x.Values = exchange.Quietly(x.Values)
	}
	for name, values := range u.Header {
		x.Header[http.CanonicalHeaderKey(name)] = values
	}
	for name, values := range headerFrom(ctx) {
		if to := u.Rename[name]; to != "" {
			name = to
		}
		x.Header[name] = values
	}
	if x.Limit <= 0 {
		x.Limit = buffer.MaxMessageBytes
	}
	if x.Log == nil {
		x.Log = slog.New(slog.DiscardHandler)
	}
	x.Log = u.site.lines.Logger(x.Log)
	if u.Credentials != nil && !u.hasOwnCredentials(ctx) {
		if u.isOfOne {
			x.Authorize = u.Credentials.Authorizer(nil, x.Log)
		} else {
			x.Authorize = u.site.authorizer(u.Credentials, clientFrom(ctx), x.Log)
		}
		if adviser, ok := u.Credentials.(Adviser); ok {
			x.Advise = adviser.Advise
		}
		if login, ok := u.Credentials.(loginNeeder); ok {
			x.Accepted, x.AwaitLogin, x.IsStalled = login.Accepted, login.AwaitLogin, login.IsStalled
		}
		if u.isFromProxy(ctx) {
			u.withholdLogin(x)
		}
		x.Header.Del("Authorization")
	}
	if u.Name != "" {
		x.Name = fmt.Sprintf(" %q", u.Name)
	}
	x.Client, release = u.site.client(u.Client)
	// The cookies of a load balancer keep the session at one server; they are of no other session.
	if x.Client.Jar == nil {
		client := *x.Client
		client.Jar, _ = cookiejar.New(nil) // never fails
		x.Client = &client
	}
	return x, release
}

// Credentials are upstream.Credentials.
type Credentials interface {
	// Authorizer returns what authorizes the requests of sessions. client returns the header Authorization of the
	// client that causes the session, or a newer one of its, which the server does not get; nil for the sessions
	// without one, which share an Authorizer. Log receives warnings.
	Authorizer(client func() string, log *slog.Logger) Authorizer
}

// Adviser is Credentials that a person can do something about.
type Adviser interface {
	// Advise says what to do about a response that refuses access: again, because there are credentials now; or what
	// a person can do, for those who may know the server's address, and for all. The texts are empty if it does not
	// know. link is the address that a person visits, if the texts have one. asks says that a client is answered.
	Advise(ctx context.Context, resp *http.Response, asks bool) (again bool, full, public, link string)
}

// loginNeeder is Credentials of a person, who may have to log in.
type loginNeeder interface {
	// Accepted is told that the server has answered a request with success: it asks for no login now.
	Accepted()
	LoginNeeded() (command string, is bool)
	// AwaitLogin waits until somebody has logged in, or ctx ends, and reports whether somebody has.
	AwaitLogin(ctx context.Context) bool
	// IsStalled reports whether somebody is logged in, and the login cannot be renewed now.
	IsStalled() bool
}

// LoginNeeded reports whether the server waits for a person who logs in. command is what the person types, which not
// all may know.
func (u URL) LoginNeeded() (command string, is bool) {
	if login, ok := u.Credentials.(loginNeeder); ok {
		return login.LoginNeeded()
	}
	return "", false
}

// PageLogin are Credentials of a person who may log in from a page of the gateway.
type PageLogin interface {
	// BeginsAtPage reports whether a page may begin a login here.
	BeginsAtPage() bool
	// BeginAtPage begins a login, and returns the link to it. The browser comes back to the page after it.
	BeginAtPage(ctx context.Context, page string) (link string, err error)
}

// PageLogin returns what begins a login from a page; nil if none may begin there.
func (u URL) PageLogin() PageLogin {
	if login, ok := u.Credentials.(PageLogin); ok && login.BeginsAtPage() {
		return login
	}
	return nil
}

// Authorizer is an upstream.Authorizer.
type Authorizer = func(ctx context.Context, refused string) (header string, err error)

// clientFrom returns a function that returns the Authorization of the client that causes the session, or a newer one
// that it has sent since, as the first may expire; nil if it has none.
func clientFrom(ctx context.Context) func() string {
	first := headerFrom(ctx).Get("Authorization")
	if first == "" {
		return nil
	}
	newest := asker.FromContext(ctx).Credentials
	if newest == nil {
		return func() string { return first }
	}
	return func() string { return cmp.Or(newest(), first) }
}

// headerFrom returns the headers of the client that causes the session; nil if there is none. Dial sends them with each
// request, in place of headers with the same name. An operator has named each of them, and others of a client are never
// sent: a token is for the server that it was issued for (MCP 2025-11-25, security best practices, token passthrough).
func headerFrom(ctx context.Context) http.Header {
	a := asker.FromContext(ctx)
	if a == nil {
		return nil
	}
	named := make(http.Header, len(a.Header))
	for name, values := range a.Header {
		named[http.CanonicalHeaderKey(name)] = values
	}
	return named
}

// connect opens a session over the transport that the URL names, that was found
// before, or that the server answers.
func (u URL) connect(ctx context.Context, x *exchange.Endpoint) (jsonrpc.Attributed, error) {
	kind := u.Transport
	if kind == "" {
		kind = u.site.recall()
	}
	switch {
	case u.Transport == TransportStreamable && !u.mayStandIn(ctx):
		return streamable.New(x), nil
	case kind == TransportStreamable:
		known := undecidedOf{asked: false, isStreamable: u.Transport == TransportStreamable}
		return newUndecided(x, u.site, known, u.standIn(ctx)), nil
	case kind == TransportSSE:
		c, err := u.site.dialSSE(ctx, x)
		if err == nil {
			return c, nil
		}
		if u.Transport != "" {
			return nil, err
		}
	}
	ask := statelessserver.Probe
	if kind == TransportStateless {
		ask = statelessserver.Discover
	}
	found, err := ask(ctx, x)
	switch {
	case err != nil && kind != TransportStateless && errors.Is(err, statelessserver.ErrNoEvidence):
		return newUndecided(x, u.site, undecidedOf{}, u.standIn(ctx)), nil // initialize shows whether the server works
	case err != nil:
		return nil, err
	case found != nil:
		u.site.remember(TransportStateless)
		return statelessserver.New(x, found), nil
	case u.Transport == TransportStateless:
		return nil, fmt.Errorf("%s: the server does not speak MCP %s: set another transport, or none",
			x.Place(), mcp.VersionStateless)
	}
	return newUndecided(x, u.site, undecidedOf{asked: true}, u.standIn(ctx)), nil
}

// handlerAddress is the URL of a handler in process. No host can have this name
// (RFC 6761).
const handlerAddress = "http://handler.invalid/mcp"

// HTTPHandler reaches a server that is an http.Handler of this program, as upstream.HTTPHandler says.
func HTTPHandler(h http.Handler) jsonrpc.Dialer {
	return URL{Address: handlerAddress, Client: &http.Client{Transport: inprocess.Transport{Handler: h}},
		site: newSite()}
}
