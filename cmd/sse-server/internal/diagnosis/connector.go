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

// asStranger sends an initialize without a token, as a connector does first. The caller closes the body.
func (r *run) asStranger(ctx context.Context, at *url.URL) (*http.Response, error) {
	given := r.Header
	defer func() { r.Header = given }()
	r.Header = given.Clone()
	r.Header.Del("Authorization")
	return r.send(ctx, http.MethodPost, at.String(), initializeOfConnector,
		map[string]string{"Accept": "application/json, text/event-stream"})
}

// challenges checks that a 401 says where to log in.
func (r *run) challenges(ctx context.Context) (string, error) {
	if r.at == nil {
		return "", untried("there is no URL")
	}
	response, err := r.asStranger(ctx, r.at)
	if err != nil {
		return "", err
	}
	response.Body.Close()
	r.connector.status = response.StatusCode
	if response.StatusCode != http.StatusUnauthorized {
		return fmt.Sprintf("no login is asked for: HTTP %d without a token", response.StatusCode), nil
	}
	r.connector.challenge = challengeIn(response)
	switch c := r.connector.challenge; {
	case c.Scheme != "bearer":
		return "", &fault{"the 401 has no WWW-Authenticate: Bearer", "have the server, or the proxy in front of it, " +
			"send WWW-Authenticate: Bearer resource_metadata=\"URL\""}
	case c.Params["resource_metadata"] == "":
		return "", &fault{"WWW-Authenticate has no resource_metadata",
			"have the server name the URL of its metadata there"}
	}
	return "names " + r.connector.challenge.Params["resource_metadata"], nil
}

// isLocked reports whether the server asks for a login.
func (r *run) isLocked() bool { return r.at != nil && r.connector.status == http.StatusUnauthorized }

// metadataAtPath reads the metadata where RFC 9728 has those of a URL with a path.
func (r *run) metadataAtPath(ctx context.Context) (string, error) {
	return r.resourceAt(ctx, wellKnown(r.at, "oauth-protected-resource", r.at.EscapedPath()))
}

// metadataAtRoot reads them where clients look that do not know the other place.
func (r *run) metadataAtRoot(ctx context.Context) (string, error) {
	return r.resourceAt(ctx, wellKnown(r.at, "oauth-protected-resource", ""))
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
	if r.connector.resource != r.at.String() {
		return "", &fault{fmt.Sprintf("the resource is %s, and the URL is %s", r.connector.resource, r.at.Redacted()),
			"enter the resource as the URL of the connector, or have the server name that URL"}
	}
	return "it is the URL", nil
}

// hasJWT reports whether the user has given a token that says for whom it is.
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
		wanted = r.at.String()
	}
	if all := r.audiences(); !slices.Contains(all, wanted) {
		return "", &fault{fmt.Sprintf("the token is for %s, and the resource is %s", strings.Join(all, ", "), wanted),
			"have the issuer take the parameter resource as aud, or give it that resource as the audience"}
	}
	return "aud is the resource", nil
}

// takesSlash checks that the URL with a slash at its end, or without the one that it has, is answered alike: connectors
// add and remove it.
func (r *run) takesSlash(ctx context.Context) (string, error) {
	if r.at == nil || r.connector.status == 0 {
		return "", untried("the server has not answered an initialize")
	}
	other := *r.at
	if other.RawPath = ""; strings.HasSuffix(other.Path, "/") {
		other.Path = strings.TrimSuffix(other.Path, "/")
	} else {
		other.Path += "/"
	}
	response, err := r.asStranger(ctx, &other)
	if err != nil {
		return "", err
	}
	response.Body.Close()
	if response.StatusCode != r.connector.status {
		return "", &fault{fmt.Sprintf("%s answers HTTP %d, and the URL HTTP %d", other.Path, response.StatusCode,
			r.connector.status), "have the proxy, or the server, take both, without a redirect"}
	}
	return other.Path + " is answered alike", nil
}
