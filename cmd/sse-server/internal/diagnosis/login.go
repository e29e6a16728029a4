package diagnosis

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strings"

	"github.com/modelcontextprotocol/go-sdk/oauthex"

	"github.com/mcp-sse/mcp-sse/internal/hosts"
)

// insufficientScope is the error of RFC 6750 for a token that is valid and not enough.
const insufficientScope = "insufficient_scope"

// isAuthenticated says whether the first request was refused for want of a token. Others may be later.
func (r *run) isAuthenticated(context.Context) (string, error) {
	switch code := r.first.StatusCode; {
	case code == http.StatusUnauthorized || code == http.StatusForbidden:
		return "", r.refused(r.first.again())
	case code >= http.StatusMultipleChoices && code != http.StatusBadRequest:
		return "", untried(fmt.Sprintf("there was only HTTP %d", code))
	case strings.HasPrefix(r.first.Header.Get("Content-Type"), "text/html"):
		return "", untried("there was only a web page")
	}
	switch {
	case r.Login != "":
		return "the login of this user is not refused", nil
	case r.Header.Get("Authorization") != "":
		return "the Authorization that was given is not refused", nil
	}
	return "none is asked for", nil
}

// challengeIn returns the challenge of a response, that for a bearer token if there are several. It is
// empty if there is none that can be read.
func challengeIn(response *http.Response) oauthex.Challenge {
	all, err := oauthex.ParseWWWAuthenticate(response.Header.Values("WWW-Authenticate"))
	if err != nil || len(all) == 0 {
		return oauthex.Challenge{}
	}
	bearer := slices.IndexFunc(all, func(c oauthex.Challenge) bool { return c.Scheme == "bearer" })
	return all[max(bearer, 0)]
}

// unauthorized returns the fault of a response that asks for a token, or for another one.
func (r *run) unauthorized(status string, response *http.Response) error {
	challenge := challengeIn(response)
	r.challenge = &challenge
	given, scope := r.Header.Get("Authorization"), challenge.Params["scope"]
	if told := challenge.Params["error_description"]; told != "" && !strings.Contains(status, told) {
		status += ": " + told
	}
	if challenge.Scheme == "" {
		status += "; it has no WWW-Authenticate that can be read, so clients do not learn how to log in"
	}
	switch scheme, _, hasScheme := strings.Cut(strings.ToLower(given), " "); {
	case challenge.Params["error"] == insufficientScope && scope != "":
		return &fault{status, fmt.Sprintf("the token is valid and lacks a scope: get one with %q", scope)}
	case challenge.Params["error"] == insufficientScope:
		return &fault{status, "the token is valid and lacks a scope: get one with more"}
	case r.LoginProblem != "":
		return &fault{status, r.LoginProblem}
	case r.Login != "":
		return &fault{status, "the login of this user is not accepted: run in a terminal: " + r.LoginCommand}
	case given != "" && !hasScheme: // what is given is the secret itself
		return &fault{status, "the Authorization that was given has no scheme: write Bearer before the token"}
	case given != "" && challenge.Scheme != "" && scheme != challenge.Scheme:
		return &fault{status, fmt.Sprintf("the Authorization that was given is %s, and the server asks for %s", scheme,
			challenge.Scheme)}
	case given != "":
		return &fault{status, "the token is not accepted: get another one"}
	case challenge.Scheme == "basic":
		return &fault{status, "the token is missing: give user and password: --header 'Authorization: Basic BASE64', " +
			"in the client as its headers"}
	case challenge.Scheme == "bearer" && r.LoginCommand != "":
		return &fault{status, "run in a terminal: " + r.LoginCommand + "; or give a token: " +
			"--header 'Authorization: Bearer TOKEN'"}
	}
	return &fault{status, "give a token: --header 'Authorization: Bearer TOKEN', or the header that the server " +
		"wants, in the client as its headers; or let the client log in, if the steps below find out where"}
}

// wellKnown returns a URL of metadata of at: its path comes after the word, as RFC 8414 has it.
func wellKnown(at *url.URL, word, path string) string {
	return at.Scheme + "://" + at.Host + "/.well-known/" + word + strings.TrimSuffix(path, "/")
}

// readResource reads who gives tokens for the server (RFC 9728).
func (r *run) readResource(ctx context.Context) (string, error) {
	named := r.challenge.Params["resource_metadata"]
	addresses := []string{named}
	if named == "" {
		addresses = slices.Compact([]string{
			wellKnown(r.at, "oauth-protected-resource", r.at.EscapedPath()),
			wellKnown(r.at, "oauth-protected-resource", ""),
		})
	}
	at, data, tried := r.firstMetadata(ctx, addresses)
	switch {
	case at == "" && named != "":
		return "", &fault{"not found where WWW-Authenticate says: " + tried,
			"have the server, or the proxy in front of it, serve that path"}
	case at == "": // clients of MCP 2025-03-26 look for an issuer there
		r.issuer = r.at.Scheme + "://" + r.at.Host
		return "", missing("WWW-Authenticate names none, and none were found: " + tried)
	}
	var found oauthex.ProtectedResourceMetadata
	if err := json.Unmarshal(data, &found); err != nil || len(found.AuthorizationServers) == 0 {
		return "", &fault{at + " names no authorization_servers", "have the server name its issuer there"}
	}
	r.issuer = found.AuthorizationServers[0]
	if !covers(found.Resource, r.at) {
		return "", &fault{fmt.Sprintf("%s is of another resource, %s: clients do not log in", at,
			cmp.Or(found.Resource, "which it does not name")),
			"use that URL in the client, or have the server know its public URL: public-url"}
	}
	return fmt.Sprintf("found at %s: tokens come from %s", at, strings.Join(found.AuthorizationServers, ", ")), nil
}

// covers reports whether clients take a resource for that of a URL: it is its beginning.
func covers(resource string, at *url.URL) bool {
	to, err := url.Parse(resource)
	return err == nil && to.Scheme == at.Scheme && strings.EqualFold(to.Host, at.Host) &&
		strings.HasPrefix(strings.TrimSuffix(at.Path, "/")+"/", strings.TrimSuffix(to.Path, "/")+"/")
}

func (r *run) hasIssuer() bool { return r.issuer != "" }

// readIssuer reads how tokens are got (RFC 8414, OpenID Connect discovery).
func (r *run) readIssuer(ctx context.Context) (string, error) {
	of, err := url.Parse(r.issuer)
	if err != nil || of.Host == "" {
		return "", &fault{"the issuer is not a URL: " + r.issuer, "have the server name its issuer"}
	}
	path := strings.TrimSuffix(of.EscapedPath(), "/")
	addresses := []string{wellKnown(of, "oauth-authorization-server", path),
		wellKnown(of, "openid-configuration", path)}
	if path != "" {
		addresses = append(addresses, of.Scheme+"://"+of.Host+path+"/.well-known/openid-configuration")
	}
	at, data, tried := r.firstMetadata(ctx, addresses)
	switch {
	case at == "" && r.worked("OAuth: resource metadata"):
		return "", &fault{"not found: " + tried,
			"see whether the issuer runs, is reached from here, and serves one of them"}
	case at == "":
		return "", missing("nor are there any of an issuer: " + tried + ". A token has to be given by hand")
	}
	var found oauthex.AuthServerMeta
	_ = json.Unmarshal(data, &found) // what is missing is empty
	how := "clients need a client id that is registered there"
	if found.RegistrationEndpoint != "" || found.ClientIDMetadataDocumentSupported {
		how = "clients register themselves"
	}
	switch {
	case strings.TrimSuffix(found.Issuer, "/") != strings.TrimSuffix(r.issuer, "/"):
		return "", &fault{fmt.Sprintf("%s is of another issuer, %s: clients stop there", at,
			cmp.Or(found.Issuer, "which it does not name")), "have the server name the issuer as it calls itself"}
	case found.AuthorizationEndpoint == "" || found.TokenEndpoint == "":
		return "", &fault{at + " names no authorization_endpoint or no token_endpoint",
			"see the documentation of the issuer: clients need both"}
	case !slices.Contains(found.CodeChallengeMethodsSupported, "S256"):
		return "", &fault{at + " does not have S256 among code_challenge_methods_supported: clients stop there",
			"switch PKCE on at the issuer"}
	}
	return fmt.Sprintf("found at %s: %s", at, how), nil
}

// firstMetadata returns the first of some addresses that has an object, with it, and what the others
// answered.
func (r *run) firstMetadata(ctx context.Context, addresses []string) (at string, data []byte, tried string) {
	var all []string
	for _, address := range addresses {
		data, why := r.metadata(ctx, address)
		if why == "" {
			return address, data, ""
		}
		all = append(all, fmt.Sprintf("%s (%s)", address, why))
	}
	return "", nil, strings.Join(all, ", ")
}

// metadata reads an object, or says why there is none. Others than the server at the URL may be asked:
// they get no header of the user, and a server elsewhere cannot have addresses inside asked.
func (r *run) metadata(ctx context.Context, address string) (data []byte, why string) {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, address, nil)
	if err != nil {
		return nil, "no URL"
	}
	request.Header.Set("Accept", "application/json")
	client := &http.Client{Transport: r.transport}
	if !r.isInside {
		if hosts.NamesInside(request.URL) {
			return nil, errInside.Error()
		}
		client = r.outside(request.URL)
		defer client.CloseIdleConnections()
	}
	response, err := client.Do(request)
	switch {
	case errors.Is(err, errInside):
		return nil, errInside.Error()
	case err != nil:
		return nil, "no answer"
	}
	defer response.Body.Close()
	if response.StatusCode != http.StatusOK {
		return nil, fmt.Sprintf("HTTP %d", response.StatusCode)
	}
	if data, err = readAll(response.Body); err != nil {
		return nil, err.Error()
	}
	var object map[string]json.RawMessage
	if json.Unmarshal(data, &object) != nil {
		return nil, "no JSON object"
	}
	return data, ""
}
