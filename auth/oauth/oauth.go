// Package oauth makes a gateway an OAuth 2.1 resource server, as the authorization of MCP
// (2025-06-18 to 2026-07-28, basic/authorization) describes it: clients learn from the
// gateway who issues tokens, get one there, and send it with each request.
//
//	res, err := oauth.New(oauth.Options{Resource: "https://gw.example.com/mcp", Issuer: "https://login.example.com"})
//	gw, err := gateway.New(up, gateway.Options{Authenticate: res.Authenticate, Reauthenticate: true})
//	for path, handler := range res.Metadata() {
//		mux.Handle(path, handler)
//	}
//
// It issues no tokens and registers no clients.
package oauth

import (
	"cmp"
	"crypto/sha256"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"path"
	"slices"
	"strings"

	"github.com/mcp-sse/mcp-sse/auth"

	sdkauth "github.com/modelcontextprotocol/go-sdk/auth"
	"github.com/modelcontextprotocol/go-sdk/oauthex"

	"github.com/mcp-sse/mcp-sse/internal/hosts"
)

// Options configure a Resource. URLs have the scheme https, or http on a loopback address.
type Options struct {
	// Resource is the URL of the endpoint exactly as users type it, path included: the
	// audience that tokens must have (RFC 8707).
	Resource string
	// Aliases are other URLs of the endpoint, such as that with /sse, whose last elements
	// differ. Each has metadata of its own; tokens may be for any of them. Default none.
	Aliases []string
	// Issuer is the URL of the authorization server exactly as it names itself. Its keys are
	// found by OpenID Connect Discovery or RFC 8414 when the first token comes, and anew after
	// five minutes. While it does not answer, they are good for an hour.
	Issuer string
	// Scopes are those that a token must have. Default none.
	Scopes []string
	// Supported are scopes that a token may have beside Scopes: parts of what is served need them, and Scopes tells
	// which of them a token has. Clients are told of them as of Scopes, so that they ask for both. Default none.
	Supported []string
	// PrincipalClaim is the claim with the principal: a text that the issuer gives to one user
	// only, and that no user can change. Default "sub".
	PrincipalClaim string
	// Introspection checks tokens that are not JWTs. Default: they are refused.
	Introspection Introspection
	// Transport makes the requests to the issuer. Default: that of net/http, with its proxies
	// and at most 64 connections.
	Transport http.RoundTripper
}

// Introspection is an endpoint of RFC 7662, and the credentials of this gateway there.
type Introspection struct{ URL, ClientID, Secret string }

// Resource is a protected resource. It is safe for concurrent use.
type Resource struct {
	addresses []address // Options.Resource and Options.Aliases
	scopes    []string
	supported []string // Options.Scopes and Options.Supported
	issuer    *issuer
}

// address is a URL of a resource, its last element between slashes, the path of its metadata
// (RFC 9728, section 3.1), and what challenges tell of it (section 5.1).
type address struct{ url, end, metadata, challenge string }

// New returns a Resource. It makes no requests yet, and fails if options are wrong.
func New(o Options) (s *Resource, err error) {
	s = &Resource{scopes: slices.Clone(o.Scopes), supported: slices.Concat(o.Scopes, o.Supported)}
	for _, text := range append([]string{o.Resource}, o.Aliases...) {
		u, err := checkURL(text)
		if err != nil {
			return nil, fmt.Errorf("oauth: Resource: %w", err)
		}
		a := address{url: text, end: "/" + path.Base(text) + "/"}
		a.metadata = "/.well-known/oauth-protected-resource" + strings.TrimSuffix(u.EscapedPath(), "/")
		a.challenge = fmt.Sprintf(`resource_metadata="%s://%s%s"`, u.Scheme, u.Host, a.metadata)
		if len(s.supported) > 0 {
			a.challenge += fmt.Sprintf(`, scope="%s"`, strings.Join(s.supported, " "))
		}
		s.addresses = append(s.addresses, a)
	}
	s.issuer, err = newIssuer(o)
	return s, err
}

// checkURL returns an error if tokens, or what decides about them, are not safe at a URL. It does
// not have the URL, in which there may be a secret.
func checkURL(text string) (*url.URL, error) {
	u, err := url.Parse(text)
	if err != nil || u.User != nil || strings.ContainsAny(text, "\"\\#? ") || !hosts.IsSecure(u) {
		return nil, errors.New("want a URL such as https://gw.example.com/mcp, " +
			"http only on a loopback address, without user, query and fragment")
	}
	return u, nil
}

// Authenticate returns the principal of the token in a request, for gateway.Options. Its
// errors are of type *auth.Error, with the challenge that tells clients where to get a
// token: 401 if it is missing or not valid, 403 if it lacks a scope, 400 if the request has
// several or one in the query, and 503 if the issuer cannot be asked.
func (s *Resource) Authenticate(r *http.Request) (principal string, err error) {
	raw, err := bearerToken(r)
	if err == nil {
		principal, err = s.check(raw)
	}
	if refused, ok := errors.AsType[*auth.Error](err); ok {
		own := *refused // others may wait for the same check
		own.Challenge = s.challenge(r, own.Status)
		return "", &own
	}
	return principal, err
}

// check returns the principal of a token for this resource.
func (s *Resource) check(raw string) (string, error) {
	t, err := s.issuer.verify(raw)
	switch {
	case err != nil:
		return "", err
	case !s.isFor(t):
		return "", invalid("the token is for another resource: its audience must be " + s.addresses[0].url)
	}
	for _, scope := range s.scopes {
		if !slices.Contains(t.scopes, scope) {
			return "", &auth.Error{Status: http.StatusForbidden, Message: "the token lacks the scope " + scope}
		}
	}
	return t.principal, nil
}

// isFor reports whether the resource is the audience of a token.
func (s *Resource) isFor(t *token) bool {
	return slices.ContainsFunc(s.addresses, func(a address) bool { return oauthex.MatchesResource(t.audience, a.url) })
}

// Scopes returns the scopes of the token in an Authorization header, as they were when it was valid last. It asks
// nobody and does not wait: it reports false for a token that Authenticate has not let in, or that it has forgotten
// since, as thousands came.
func (s *Resource) Scopes(authorization string) (scopes []string, ok bool) {
	r := &http.Request{Header: http.Header{"Authorization": {authorization}}, URL: new(url.URL)}
	raw, err := bearerToken(r)
	if err != nil {
		return nil, false
	}
	t, ok := s.issuer.valid.Get(sha256.Sum256([]byte(raw)))
	if !ok || !s.isFor(t) {
		return nil, false
	}
	return slices.Clone(t.scopes), true
}

// Inherit takes over the keys of the issuer and the tokens that before knows, also for before itself, if both have the
// same Issuer, PrincipalClaim and Introspection; Transport is that of before then. Call it before s is used.
func (s *Resource) Inherit(before *Resource) {
	a, b := s.issuer, before.issuer
	if a.url == b.url && a.claim == b.claim && a.introspection == b.introspection {
		s.issuer = b
	}
}

// codes are the errors of RFC 6750, section 3.1.
var codes = map[int]string{
	http.StatusBadRequest: "invalid_request", http.StatusUnauthorized: "invalid_token",
	http.StatusForbidden: "insufficient_scope",
}

// challenge returns what a refusal tells clients: the error, where they find the metadata of the
// address that the request is for, and the scopes. The address is that whose last element
// comes last in the path.
func (s *Resource) challenge(r *http.Request, status int) string {
	place := func(a address) int { return strings.LastIndex(r.URL.Path+"/", a.end) }
	value := slices.MaxFunc(s.addresses, func(a, b address) int { return cmp.Compare(place(a), place(b)) }).challenge
	if code := codes[status]; code != "" {
		value = fmt.Sprintf(`error="%s", %s`, code, value)
	}
	return value
}

// Metadata returns the handlers of the metadata (RFC 9728) by their paths, where a program has
// to serve them at the root of the host, without authentication.
func (s *Resource) Metadata() map[string]http.Handler {
	handlers := make(map[string]http.Handler)
	for _, a := range s.addresses {
		get := sdkauth.ProtectedResourceMetadataHandler(&oauthex.ProtectedResourceMetadata{
			Resource: a.url, AuthorizationServers: []string{s.issuer.url}, ScopesSupported: s.supported,
			BearerMethodsSupported: []string{"header"},
		})
		handlers[a.metadata] = http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if r.Method == http.MethodHead { // net/http leaves out the body
				r = r.Clone(r.Context())
				r.Method = http.MethodGet
			}
			get.ServeHTTP(w, r)
		})
	}
	return handlers
}

// invalid returns why a token is refused, without any of it.
func invalid(message string) error {
	return &auth.Error{Status: http.StatusUnauthorized, Message: message}
}

// unavailable returns the refusal of a token that cannot be checked. The log has the cause.
func unavailable(cause error) error {
	const message = "the token cannot be checked, as its issuer does not answer: try again later"
	return &auth.Error{Status: http.StatusServiceUnavailable, Message: message, Cause: cause}
}

// maxToken bounds a token, in bytes.
const maxToken = 16 << 10

// bearerToken returns the token in the Authorization header of a request.
func bearerToken(r *http.Request) (string, error) {
	headers, wrong := r.Header["Authorization"], ""
	scheme, token, _ := strings.Cut(strings.Join(headers, ""), " ")
	token = strings.TrimSpace(token)
	switch {
	case r.URL.RawQuery != "" && r.URL.Query().Has("access_token"):
		wrong = "send the token as Authorization: Bearer <token>, not in the URL, which logs show"
	case len(headers) > 1:
		wrong = "there are several Authorization headers: send one"
	case len(token) > maxToken:
		wrong = fmt.Sprintf("the token is over %d bytes", maxToken)
	case !strings.EqualFold(scheme, "Bearer") || token == "":
		return "", &auth.Error{Message: "authentication required: send Authorization: Bearer <token>"}
	default:
		return token, nil
	}
	return "", &auth.Error{Status: http.StatusBadRequest, Message: wrong}
}
