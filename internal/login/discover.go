package login

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/netip"
	"net/url"
	"slices"
	"strings"

	"github.com/modelcontextprotocol/go-sdk/oauthex"
	"golang.org/x/net/publicsuffix"

	"github.com/mcp-sse/mcp-sse/internal/clip"
	"github.com/mcp-sse/mcp-sse/internal/hosts"
	"github.com/mcp-sse/mcp-sse/internal/mcp"
)

// ErrNoLogin reports an MCP server that asks for no login.
var ErrNoLogin = errors.New("the server answers without a login, and names no issuer")

// plan is what a server wants.
type plan struct {
	server   *url.URL
	resource string // to send, whatever is asked; empty: none
	issuer   issuer
	noted    []string // scopes that the challenge or the metadata name
	isOld    bool     // it has no metadata (RFC 9728): MCP 2025-03-26
	// isGuessed says that the issuer has no metadata either: its addresses are those that MCP 2025-03-26 assumes.
	isGuessed bool
}

// issuer is the metadata of an issuer.
type issuer struct {
	oauthex.AuthServerMeta

	DeviceURL string `json:"device_authorization_endpoint,omitempty"`
}

// Canonical returns the URL of a server as its logins are kept by: without a user, a fragment and a default port. It
// fails for a URL to which no token may be sent.
func Canonical(address string) (*url.URL, error) {
	at, err := url.Parse(address)
	if err != nil || at.Host == "" {
		return nil, errors.New("want the URL of a server, such as https://mcp.example.com/mcp")
	}
	at.Scheme, at.Host = strings.ToLower(at.Scheme), strings.ToLower(at.Host)
	if at.Scheme != "https" && at.Scheme != "http" {
		return nil, fmt.Errorf("unknown scheme %.32s: want https", at.Scheme)
	}
	at.User, at.Fragment, at.RawFragment = nil, "", ""
	if !hosts.IsSecure(at) {
		return nil, errors.New("a login needs https, or http on a loopback address: its token would be read on the way")
	}
	if port := at.Port(); port == "443" && at.Scheme == "https" || port == "80" && at.Scheme == "http" {
		at.Host = strings.TrimSuffix(at.Host, ":"+port)
	}
	if at.Path == "" {
		at.Path = "/"
	}
	return at, nil
}

// sameSite reports whether two URLs belong to one owner, as far as names tell: their hosts are equal, or registered
// under one name.
func sameSite(a, b *url.URL) bool {
	if strings.EqualFold(a.Hostname(), b.Hostname()) {
		return true
	}
	siteOf := func(u *url.URL) string {
		if _, err := netip.ParseAddr(u.Hostname()); err == nil {
			return ""
		}
		site, _ := publicsuffix.EffectiveTLDPlusOne(strings.ToLower(u.Hostname()))
		return site
	}
	return siteOf(a) != "" && siteOf(a) == siteOf(b)
}

// discover finds out what the server wants: the issuer that a person has named, else the first one that the server
// names.
func discover(ctx context.Context, g *guard, server *url.URL, o Options) (*plan, error) {
	p, wanted := &plan{server: server}, o.Issuer
	got, err := ask(ctx, g, server, o.Header)
	if err != nil {
		return nil, err
	}
	if !got.isRefused && o.Challenge.Scheme != "" {
		got = reply{challenge: o.Challenge, isRefused: true}
	}
	issuerURL, err := p.readResource(ctx, g, got.challenge, wanted)
	if fault := got.fault(server); fault != nil && issuerURL == "" && wanted == "" {
		return nil, fault // metadata that are there may be of another path
	}
	switch {
	case err != nil:
		return nil, err
	case issuerURL == "" && !got.isRefused && wanted == "":
		return nil, ErrNoLogin
	case issuerURL == "":
		p.isOld = true
		issuerURL = cmp.Or(wanted, server.Scheme+"://"+server.Host)
		without := *server // a query may be a key
		without.RawQuery, without.ForceQuery = "", false
		p.resource = without.String()
	}
	if scope := got.challenge.Params["scope"]; scope != "" {
		p.noted = strings.Fields(scope)
	}
	return p, p.readIssuer(ctx, g, issuerURL)
}

// probe is the request that a server refuses with what it wants.
var probe = []byte(`{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"` + mcp.VersionNewest +
	`","capabilities":{},"clientInfo":{"name":"sse-server","version":"login"}}}`)

// reply is what a server says to a request without a token.
type reply struct {
	challenge oauthex.Challenge // may be empty
	isRefused bool              // it wants something that the request does not have
	// code and status are those of an answer that is none of MCP; zero: it is one.
	code   int
	status string
}

// fault returns what is wrong with the address of a server, by its answer; nil if that is one of MCP.
func (r reply) fault(server *url.URL) error {
	at := publicURL(server.String())
	switch {
	case r.code == 0:
		return nil
	case r.code == http.StatusForbidden:
		return fmt.Errorf("the server at %s refuses access (%s), and names no issuer: if it wants a key, serve it "+
			"with --header 'Authorization: Bearer KEY'", at, r.status)
	case r.code >= http.StatusInternalServerError:
		return fmt.Errorf("the server at %s does not work now (%s): try again later", at, r.status)
	case r.code < 300, r.code == http.StatusNotFound, r.code == http.StatusMethodNotAllowed, r.code == http.StatusGone:
		return fmt.Errorf("no MCP server at %s (%s): check the path, usually /mcp or /sse", at, r.status)
	}
	return fmt.Errorf("the server at %s takes no request without a login (%s), and names no issuer: check the address",
		at, r.status)
}

// ask sends the server a request without a token. A server that has no POST at its URL, as with HTTP+SSE, is asked with
// a GET.
func ask(ctx context.Context, g *guard, server *url.URL, header http.Header) (got reply, err error) {
	for _, method := range []string{http.MethodPost, http.MethodGet} {
		request, err := http.NewRequestWithContext(ctx, method, server.String(), nil)
		if err != nil {
			return reply{}, err
		}
		request.Header = header.Clone()
		if request.Header == nil {
			request.Header = make(http.Header)
		}
		request.Header.Del("Authorization")
		request.Header.Set("User-Agent", userAgent)
		request.Header.Set("Accept", "text/event-stream")
		if method == http.MethodPost {
			request.Body, request.ContentLength = io.NopCloser(bytes.NewReader(probe)), int64(len(probe))
			request.Header.Set("Content-Type", "application/json")
			request.Header.Set("Accept", "application/json, text/event-stream")
		}
		resp, err := g.askServer(ctx, request)
		if err != nil {
			return reply{}, fmt.Errorf("the server at %s cannot be asked: %w", server.Host, plain(err))
		}
		resp.Body.Close()
		isPage := strings.HasPrefix(resp.Header.Get("Content-Type"), "text/html")
		switch {
		case resp.StatusCode == http.StatusUnauthorized:
			return reply{challenge: challengeOf(resp.Header), isRefused: true}, nil
		case resp.StatusCode < 300 && !isPage:
			return reply{}, nil
		case got.code == 0: // that to the POST
			got.code, got.status = resp.StatusCode, plainStatus(resp)
		}
	}
	return got, nil
}

// plainStatus says which answer a server has given, in words that are not its own.
func plainStatus(resp *http.Response) string {
	if resp.StatusCode < 300 {
		return "a page for browsers"
	}
	return strings.TrimSpace(fmt.Sprint(resp.StatusCode, " ", http.StatusText(resp.StatusCode)))
}

// challengeOf returns the challenge of a response for a bearer token; empty for none that can be read.
func challengeOf(header http.Header) oauthex.Challenge {
	all, err := oauthex.ParseWWWAuthenticate(header.Values("WWW-Authenticate"))
	i := slices.IndexFunc(all, func(c oauthex.Challenge) bool { return c.Scheme == "bearer" })
	if err == nil && i >= 0 {
		return all[i]
	}
	return oauthex.Challenge{}
}

// readResource reads the metadata of the server (RFC 9728), sets what they say, and returns the issuer; empty if there
// are none.
func (p *plan) readResource(ctx context.Context, g *guard, challenge oauthex.Challenge, wanted string) (string, error) {
	addresses := slices.DeleteFunc(slices.Compact([]string{
		challenge.Params["resource_metadata"],
		wellKnown(p.server, "oauth-protected-resource", p.server.EscapedPath()),
		wellKnown(p.server, "oauth-protected-resource", ""),
	}), func(at string) bool { return at == "" })
	var problems []string
	for _, at := range addresses {
		var found oauthex.ProtectedResourceMetadata
		isThere, err := readJSON(ctx, g, at, &found)
		switch {
		case !isThere:
			continue
		case err != nil:
		case !covers(found.Resource, p.server):
			err = fmt.Errorf("they are of another resource, %.200q", found.Resource)
		case len(found.AuthorizationServers) == 0:
			err = errors.New("they name no authorization_servers")
		case wanted != "" && !slices.ContainsFunc(found.AuthorizationServers,
			func(one string) bool { return sameIssuer(one, wanted) }):
			return "", fmt.Errorf("the server takes tokens of %s, not of %s",
				clip.Long(strings.Join(found.AuthorizationServers, ", ")), wanted)
		default:
			p.resource, p.noted = found.Resource, found.ScopesSupported
			return cmp.Or(wanted, found.AuthorizationServers[0]), nil
		}
		problems = append(problems, fmt.Sprintf("%s: %v", publicURL(at), err))
	}
	if len(problems) > 0 {
		return "", fmt.Errorf("the server's metadata cannot be used: %s", strings.Join(problems, "; "))
	}
	return "", nil
}

// covers reports whether clients take a resource for that of a URL: it is its beginning.
func covers(resource string, at *url.URL) bool {
	to, err := url.Parse(resource)
	return err == nil && strings.EqualFold(to.Scheme, at.Scheme) &&
		strings.EqualFold(hosts.Address(to), hosts.Address(at)) &&
		strings.HasPrefix(strings.TrimSuffix(at.Path, "/")+"/", strings.TrimSuffix(to.Path, "/")+"/")
}

// wellKnown returns a URL of metadata of at: its path comes after the word (RFC 8414, RFC 9728).
func wellKnown(at *url.URL, word, path string) string {
	return at.Scheme + "://" + at.Host + "/.well-known/" + word + strings.TrimSuffix(path, "/")
}

// readIssuer reads the metadata of an issuer (RFC 8414, OpenID Connect discovery), or has those that clients of
// 2025-03-26 assume.
func (p *plan) readIssuer(ctx context.Context, g *guard, issuerURL string) error {
	of, err := url.Parse(issuerURL)
	if err != nil || !hosts.IsSecure(of) {
		return fmt.Errorf("the server names an issuer that has no https: %.200q", issuerURL)
	}
	path := strings.TrimSuffix(of.EscapedPath(), "/")
	addresses := []string{
		wellKnown(of, "oauth-authorization-server", path), wellKnown(of, "openid-configuration", path),
	}
	if path != "" {
		addresses = append(addresses, of.Scheme+"://"+of.Host+path+"/.well-known/openid-configuration")
	}
	var problems []string
	var silent *noAnswerError
	isSilent := true // nothing has answered
	for _, at := range addresses {
		var found issuer
		isThere, err := readJSON(ctx, g, at, &found)
		if !isThere && err == nil {
			continue
		}
		if err == nil {
			err = found.check(issuerURL, g.isConfigured)
		}
		if err == nil {
			p.issuer = found
			return nil
		}
		isSilent = isSilent && errors.As(err, &silent)
		problems = append(problems, fmt.Sprintf("%s: %v", publicURL(at), err))
	}
	switch {
	case len(problems) == len(addresses) && isSilent:
		return fmt.Errorf("%s does not answer: %w: try again later", publicURL(issuerURL), silent)
	case len(problems) > 0:
		return fmt.Errorf("the issuer's metadata cannot be used: %s", strings.Join(problems, "; "))
	case !p.isOld:
		return fmt.Errorf("the issuer %s has no metadata at %s", publicURL(issuerURL), strings.Join(addresses, ", "))
	}
	base := strings.TrimSuffix(issuerURL, "/")
	p.issuer.Issuer = issuerURL
	p.issuer.AuthorizationEndpoint, p.issuer.TokenEndpoint = base+"/authorize", base+"/token"
	p.issuer.RegistrationEndpoint, p.isGuessed = base+"/register", true
	return nil
}

// address is one that an issuer names, with its name in the metadata; empty: it has none.
type address struct{ name, at string }

// addresses returns those in the metadata to which something of a login goes.
func (i *issuer) addresses() []address {
	return []address{
		{"authorization_endpoint", i.AuthorizationEndpoint}, {"token_endpoint", i.TokenEndpoint},
		{"registration_endpoint", i.RegistrationEndpoint}, {"revocation_endpoint", i.RevocationEndpoint},
		{"device_authorization_endpoint", i.DeviceURL},
	}
}

// check returns an error for metadata that are not of an issuer, or with which no login is safe.
func (i *issuer) check(of string, isConfigured bool) error {
	if !sameIssuer(i.Issuer, of) {
		return fmt.Errorf("they are of another issuer, %.200q", i.Issuer)
	}
	for _, one := range i.addresses() {
		isNeeded := strings.HasPrefix(one.name, "authorization") || strings.HasPrefix(one.name, "token")
		if one.at == "" && !isNeeded {
			continue
		}
		if at, err := url.Parse(one.at); err != nil || !hosts.IsSecure(at) {
			return fmt.Errorf("%s has no https: %.200q", one.name, one.at)
		}
	}
	if !isConfigured && !slices.Contains(i.CodeChallengeMethodsSupported, "S256") {
		return errors.New("the issuer does not say that it has PKCE with S256")
	}
	return nil
}

// sameIssuer compares two names of issuers. One slash at the end is no difference: Auth0 and others write both.
func sameIssuer(a, b string) bool { return strings.TrimSuffix(a, "/") == strings.TrimSuffix(b, "/") }

// readJSON reads an object. isThere is false where the address has none: it answers 4xx, or with a page for browsers.
func readJSON(ctx context.Context, g *guard, at string, into any) (isThere bool, err error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, at, nil)
	if err != nil {
		return true, errors.New("it is no URL")
	}
	request.Header.Set("Accept", "application/json")
	request.Header.Set("User-Agent", userAgent)
	resp, err := g.reading().Do(request)
	if err != nil {
		return true, noAnswer(err)
	}
	defer resp.Body.Close()
	switch code := resp.StatusCode; {
	case code >= 400 && code < 500:
		return false, nil
	case code != http.StatusOK:
		return true, fmt.Errorf("it answered %d", code)
	}
	data, err := io.ReadAll(io.LimitReader(resp.Body, maxBody))
	if err != nil {
		return true, plain(err)
	}
	if strings.HasPrefix(strings.TrimSpace(string(data)), "<") { // a page for browsers at each path
		return false, nil
	}
	if json.Unmarshal(data, into) != nil {
		return true, errors.New("it has no JSON object")
	}
	return true, nil
}

// publicURL returns a URL for people: without a user and the query.
func publicURL(at string) string {
	u, err := url.Parse(at)
	if err != nil {
		return "a URL that cannot be read"
	}
	u.User, u.RawQuery, u.Fragment = nil, "", ""
	return clip.Long(u.String())
}
