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
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"net/url"
	"path"
	"slices"
	"strings"

	"github.com/modelcontextprotocol/go-sdk/auth"
	"github.com/modelcontextprotocol/go-sdk/oauthex"

	"github.com/mcp-sse/mcp-sse/front"
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
	// found by OpenID Connect Discovery or RFC 8414 when the first token comes.
	Issuer string
	// Scopes are those that a token must have. Default none.
	Scopes []string
	// PrincipalClaim is the claim with the principal: a text that the issuer gives to one user
	// only, and that no user can change. Default "sub".
	PrincipalClaim string
	// Introspection checks tokens that are no JWT. Default: they are refused.
	Introspection Introspection
	// Client makes the requests to the issuer. Default: one that follows no redirects and
	// gives up after 5 s, as does one without a Timeout.
	Client *http.Client
	// Logger receives why tokens cannot be checked. Default nil: silent.
	Logger *slog.Logger
	// Beside is another resource of the issuer, whose keys and knowledge of tokens are used,
	// with all options after Scopes. Default nil.
	Beside *Resource
}

// Introspection is an endpoint of RFC 7662, and the credentials of this gateway there.
type Introspection struct{ URL, ClientID, Secret string }

// Resource is a protected resource. It is safe for concurrent use.
type Resource struct {
	urls   []string // Options.Resource and Options.Aliases
	scopes []string
	issuer *issuer
}

// New returns a Resource. It makes no requests yet, and fails if options are wrong.
func New(o Options) (*Resource, error) {
	s := &Resource{urls: append([]string{o.Resource}, o.Aliases...), scopes: slices.Clone(o.Scopes)}
	for _, u := range s.urls {
		if err := checkURL(u); err != nil {
			return nil, fmt.Errorf("oauth: Resource: %w", err)
		}
	}
	for _, scope := range s.scopes {
		if scope == "" || strings.ContainsFunc(scope, func(c rune) bool { return c <= ' ' || c > '~' || c == '"' || c == '\\' }) {
			return nil, fmt.Errorf("oauth: Scopes: %.64q is no scope (RFC 6749, section 3.3)", scope)
		}
	}
	if o.Beside != nil {
		s.issuer = o.Beside.issuer
		return s, nil
	}
	var err error
	s.issuer, err = newIssuer(o)
	return s, err
}

// checkURL returns an error if tokens, or what decides about them, are not safe at a URL.
func checkURL(text string) error {
	u, err := url.Parse(text)
	if err != nil || u.Host == "" || u.User != nil || strings.ContainsAny(text, "\"\\#? ") || !isSafe(u) {
		return fmt.Errorf("%.128q: want a URL such as https://gw.example.com/mcp, http only on a loopback address, without user, query and fragment", text)
	}
	return nil
}

// isSafe reports whether nobody on the way to a URL can read or change what is sent.
func isSafe(u *url.URL) bool {
	return u.Scheme == "https" || u.Scheme == "http" && front.IsLoopback(u.Host)
}

// Authenticate returns the principal of the token in a request, for gateway.Options. Its
// errors are of type *front.AuthError, with the challenge that tells clients where to get a
// token: 401 if it is missing or not valid, 403 if it lacks a scope, 400 if the request has
// several or one in the query, and 503 if the issuer cannot be asked.
func (s *Resource) Authenticate(r *http.Request) (principal string, err error) {
	raw, err := bearer(r)
	if err == nil {
		principal, err = s.check(raw)
	}
	if refused, ok := errors.AsType[*front.AuthError](err); ok {
		own := *refused // others may wait for the same check
		own.Challenge = strings.TrimPrefix(own.Challenge+", "+s.challenge(r), ", ")
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
	case !slices.ContainsFunc(s.urls, func(u string) bool { return oauthex.MatchesResource(t.audience, u) }):
		return "", invalid("the token is for another resource: its audience must be " + s.urls[0])
	}
	for _, scope := range s.scopes {
		if !slices.Contains(t.scopes, scope) {
			return "", refusal(http.StatusForbidden, "insufficient_scope", "the token lacks the scope "+scope)
		}
	}
	return t.principal, nil
}

// challenge returns where clients find the metadata of the resource that a request is for (RFC
// 9728, section 5.1), and the scopes: that whose last element comes last in the path.
func (s *Resource) challenge(r *http.Request) string {
	place := func(u string) int { return strings.LastIndex(r.URL.Path+"/", "/"+path.Base(u)+"/") }
	u, at := metadataURL(slices.MaxFunc(s.urls, func(a, b string) int { return cmp.Compare(place(a), place(b)) }))
	value := fmt.Sprintf(`resource_metadata="%s://%s%s"`, u.Scheme, u.Host, at)
	if len(s.scopes) > 0 {
		value += fmt.Sprintf(`, scope="%s"`, strings.Join(s.scopes, " "))
	}
	return value
}

// metadataURL returns the URL of a resource, and the path of its metadata (RFC 9728, section
// 3.1).
func metadataURL(resource string) (u *url.URL, at string) {
	u, _ = url.Parse(resource) // has been checked
	return u, "/.well-known/oauth-protected-resource" + strings.TrimSuffix(u.EscapedPath(), "/")
}

// Metadata returns the handlers of the metadata (RFC 9728) by their paths, where a program has
// to serve them at the root of the host, without authentication.
func (s *Resource) Metadata() map[string]http.Handler {
	handlers := make(map[string]http.Handler)
	for _, resource := range s.urls {
		_, at := metadataURL(resource)
		handlers[at] = auth.ProtectedResourceMetadataHandler(&oauthex.ProtectedResourceMetadata{
			Resource: resource, AuthorizationServers: []string{s.issuer.url}, ScopesSupported: s.scopes, BearerMethodsSupported: []string{"header"},
		})
	}
	return handlers
}

// refusal returns why a token is refused, without any of it: an error of RFC 6750, section 3.1.
func refusal(status int, code, message string) *front.AuthError {
	return &front.AuthError{Status: status, Message: message, Challenge: `error="` + code + `"`}
}

func invalid(message string) *front.AuthError {
	return refusal(http.StatusUnauthorized, "invalid_token", message)
}

// maxToken bounds a token, in bytes.
const maxToken = 16 << 10

// bearer returns the token in the Authorization header of a request.
func bearer(r *http.Request) (string, error) {
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
		return "", &front.AuthError{Message: "authentication required: send Authorization: Bearer <token>"}
	default:
		return token, nil
	}
	return "", refusal(http.StatusBadRequest, "invalid_request", wrong)
}
