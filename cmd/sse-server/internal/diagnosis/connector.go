package diagnosis

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strings"

	"github.com/modelcontextprotocol/go-sdk/oauthex"

	"github.com/mcp-sse/mcp-sse/internal/hosts"
)

// connectorSteps follow for Options.Connector, whatever the others have found: each names one thing that keeps a
// connector from the server.
var connectorSteps = []step{
	{name: "connector: address", try: (*run).isPublic, reads: true},
	{name: "connector: WWW-Authenticate", try: (*run).challenges},
	{name: connectorAtPath, when: (*run).isLocked, try: (*run).metadataAtPath},
	{name: "connector: metadata at the root", when: (*run).isLocked, try: (*run).metadataAtRoot},
	{name: "connector: resource", after: connectorAtPath, try: (*run).namesItself, reads: true},
	{name: "connector: audience", when: (*run).hasJWT, try: (*run).isAudience, reads: true},
	{name: "connector: a slash at the end", try: (*run).takesSlash},
}

const connectorAtPath = "connector: metadata at the path"

// connector is what has been found for a connector.
type connector struct {
	status    int               // of an initialize without a token; 0: it has not been answered
	challenge oauthex.Challenge // of a 401 to that
	resource  string            // in the metadata at the path
}

// isPublic checks the address: connectors reach public ones, at port 443 alone.
func (r *run) isPublic(context.Context) (string, error) {
	if r.at == nil {
		return "", untried("there is no URL")
	}
	switch port := hosts.Port(r.at); {
	case r.at.Scheme != "https":
		return "", &fault{"it has no https: " + r.Connector + " connects to https alone",
			"put a proxy with a certificate in front of the server"}
	case port != "443":
		return "", &fault{fmt.Sprintf("it is at port %s: %s connects to port 443 alone", port, r.Connector),
			"serve it at port 443, with a proxy or a tunnel"}
	case r.isInside || hosts.NamesInside(r.at):
		return "", &fault{"it is at an address of this machine or network, which " + r.Connector + " does not reach",
			"give the server a public address, with a proxy or a tunnel"}
	}
	return "https at port 443", nil
}

const initializeOfConnector = `{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-11-25",` +
	`"capabilities":{},"clientInfo":{"name":"sse-server check","version":"1"}}}`

// stranger is what a server has answered to a request of nobody.
type stranger struct {
	status    int
	isPage    bool // a web page is there
	challenge oauthex.Challenge
}

// asStranger sends an initialize as a connector does first: with none of the headers that the user has given but Host,
// and without the password of the URL. A server that has only HTTP+SSE gets its GET. A session that opens is ended.
func (r *run) asStranger(ctx context.Context, at *url.URL) (stranger, error) {
	given := r.Header
	defer func() { r.Header = given }()
	r.Header = http.Header{}
	if host := given.Get("Host"); host != "" {
		r.Header.Set("Host", host)
	}
	address := withoutUser(at)
	method, body, accept := http.MethodPost, initializeOfConnector, "application/json, text/event-stream"
	if r.worked(sseEndpoint) && !r.worked(streamableInitialize) {
		method, body, accept = http.MethodGet, "", "text/event-stream"
	}
	response, err := r.send(ctx, method, address, body, map[string]string{"Accept": accept})
	if err != nil {
		return stranger{}, err
	}
	response.Body.Close()
	if id := response.Header.Get("Mcp-Session-Id"); id != "" {
		s := openSession{id: id, version: "2025-11-25"}
		if ended, err := r.send(ctx, http.MethodDelete, address, "", s.header()); err == nil {
			ended.Body.Close()
		}
	}
	return stranger{response.StatusCode, strings.HasPrefix(response.Header.Get("Content-Type"), "text/html"),
		challengeIn(response)}, nil
}

// withoutUser returns a URL without the user and password in it, which no connector has.
func withoutUser(at *url.URL) string {
	public := *at
	public.User = nil
	return public.String()
}

// challenges checks that the server takes a request without a token, or answers 401 and says where to log in:
// connectors begin a login at no other answer.
func (r *run) challenges(ctx context.Context) (string, error) {
	if r.at == nil {
		return "", untried("there is no URL")
	}
	answer, err := r.asStranger(ctx, r.at)
	if err != nil {
		return "", err
	}
	r.connector.status, r.connector.challenge = answer.status, answer.challenge
	switch isTaken := answer.status >= 200 && answer.status < 300; {
	case isTaken && !answer.isPage:
		return fmt.Sprintf("no login is asked for: HTTP %d without a token", answer.status), nil
	case isTaken:
		return "", &fault{"without a token there is a web page, and no 401 with a challenge", sendChallenge}
	case answer.status != http.StatusUnauthorized:
		what := fmt.Sprintf("without a token it answers HTTP %d, and not 401 with a challenge", answer.status)
		return "", &fault{what, sendChallenge}
	case answer.challenge.Scheme != "bearer":
		return "", &fault{"the 401 has no WWW-Authenticate: Bearer", "have the server, or the proxy in front of it, " +
			"send WWW-Authenticate: Bearer resource_metadata=\"URL\""}
	case answer.challenge.Params["resource_metadata"] == "":
		return "", &fault{"WWW-Authenticate has no resource_metadata",
			"have the server name the URL of its metadata there"}
	}
	return "names " + answer.challenge.Params["resource_metadata"], nil
}

const sendChallenge = "have the server, or the proxy in front of it, take the request, or answer 401 with " +
	"WWW-Authenticate: Bearer resource_metadata=\"URL\""

// isLocked reports whether the server asks for a login.
func (r *run) isLocked() bool { return r.at != nil && r.connector.status == http.StatusUnauthorized }

// metadataAtPath reads the metadata where RFC 9728 has those of a URL with a path.
func (r *run) metadataAtPath(ctx context.Context) (string, error) {
	return r.resourceAt(ctx, wellKnown(r.at, "oauth-protected-resource", r.at.EscapedPath()))
}

// metadataAtRoot reads them where clients look last, which need none there that have found others: those of several
// servers cannot all be there.
func (r *run) metadataAtRoot(ctx context.Context) (string, error) {
	detail, err := r.resourceAt(ctx, wellKnown(r.at, "oauth-protected-resource", ""))
	isNamed := r.connector.challenge.Params["resource_metadata"] != ""
	if isFault(err) && (isNamed || r.worked(connectorAtPath)) {
		return "", missing(err.Error() + "; clients need none there")
	}
	return detail, err
}

// resourceAt reads the metadata of the server at one place, which must name the same resource as the place before.
func (r *run) resourceAt(ctx context.Context, at string) (string, error) {
	r.asks.Store(true)
	data, why := r.metadata(ctx, at)
	if why != "" {
		return "", &fault{fmt.Sprintf("%s: %s", at, why),
			"have the server, or the proxy in front of it, serve that path"}
	}
	var found oauthex.ProtectedResourceMetadata
	if json.Unmarshal(data, &found) != nil || found.Resource == "" || len(found.AuthorizationServers) == 0 {
		return "", &fault{at + " has no resource or no authorization_servers", "have the server name both there"}
	}
	if r.connector.resource == "" {
		r.connector.resource = found.Resource
	}
	if found.Resource != r.connector.resource {
		return "", &fault{fmt.Sprintf("%s names another resource than the metadata at the path: %s", at,
			found.Resource),
			"serve the same metadata at both paths"}
	}
	return "found at " + at, nil
}

// namesItself checks that the resource is the URL itself: connectors ask for tokens of it.
func (r *run) namesItself(context.Context) (string, error) {
	if r.connector.resource != withoutUser(r.at) {
		return "", &fault{fmt.Sprintf("the resource is %s, and the URL is %s", r.connector.resource, r.at.Redacted()),
			"enter the resource as the URL of the connector, or have the server name that URL"}
	}
	return "it is the URL", nil
}

// hasJWT reports whether the token that the user has given has an audience.
func (r *run) hasJWT() bool { return r.audiences() != nil }

// audiences returns the aud of the token that the user has given; nil if it has none that can be read.
func (r *run) audiences() []string {
	_, token, _ := strings.Cut(r.Header.Get("Authorization"), " ")
	parts := strings.Split(token, ".")
	if len(parts) != 3 {
		return nil
	}
	payload, err := base64.RawURLEncoding.DecodeString(strings.TrimRight(parts[1], "="))
	if err != nil {
		return nil
	}
	raw := member(payload, "aud")
	if one := text(raw); one != "" {
		return []string{one}
	}
	var all []string
	_ = json.Unmarshal(raw, &all)
	return all
}

// isAudience checks that the token that was given is for the resource.
func (r *run) isAudience(context.Context) (string, error) {
	wanted := r.connector.resource
	if wanted == "" {
		wanted = withoutUser(r.at)
	}
	if all := r.audiences(); !slices.Contains(all, wanted) {
		return "", &fault{fmt.Sprintf("the token is for %s, and the resource is %s", strings.Join(all, ", "), wanted),
			"have the issuer take the parameter resource as aud, or give it that resource as the audience"}
	}
	return "aud is the resource", nil
}

// takesSlash tells whether the URL with a slash at its end, or without the one that it has, is answered alike: people
// who enter the URL add and leave out the slash.
func (r *run) takesSlash(ctx context.Context) (string, error) {
	if r.at == nil || r.connector.status == 0 {
		return "", untried("the server has not answered an initialize")
	}
	if r.at.Path == "" || r.at.Path == "/" { // the same request
		return "the URL has no path", nil
	}
	other, escaped := *r.at, r.at.EscapedPath()
	without, hasSlash := strings.CutSuffix(escaped, "/")
	if other.RawPath = without; !hasSlash {
		other.RawPath = escaped + "/"
	}
	other.Path, _ = url.PathUnescape(other.RawPath) // EscapedPath is valid
	answer, err := r.asStranger(ctx, &other)
	if err != nil {
		return "", err
	}
	if answer.status != r.connector.status {
		return "", missing(fmt.Sprintf("%s answers HTTP %d, and the URL HTTP %d: enter the URL as it is", other.Path,
			answer.status, r.connector.status))
	}
	return other.Path + " is answered alike", nil
}
