package login

import (
	"cmp"
	"context"
	"encoding/json"
	"net/http"
	"net/url"
	"path"
	"slices"
	"strings"

	"github.com/modelcontextprotocol/go-sdk/oauthex"
	"golang.org/x/net/publicsuffix"

	"github.com/mcp-sse/mcp-sse/internal/hosts"
)

const (
	// DocumentPath is that of a Document below the page of its server.
	DocumentPath = "/client.json"
	// anyPort is where a browser comes back to a listener of this machine: an issuer takes each port (RFC 8252, 7.3).
	anyPort = "http://127.0.0.1" + callbackPath
	// documentAge is how long others may keep a document, in seconds.
	documentAge = "300"
)

// Document is the client id metadata document of the logins at one server: its URL is the client id, and issuers read
// there where these logins may come back. Each server has one of its own, so that what a person has once allowed at one
// issuer is not allowed to a login by another one.
type Document struct {
	// Page is the address below which the document is, such as PUBLIC-URL/login/NAME.
	Page string
	// OnThisMachine says that logins come back to a listener of the machine of the browser, and not to the page.
	OnThisMachine bool
}

// metadata is what a Document says.
type metadata struct {
	ClientID string `json:"client_id"`
	oauthex.ClientRegistrationMetadata
}

// URL returns the address of the document. It is empty if no issuer can read it there, as far as the address tells: it
// has no https, or its name is known in one network alone.
func (d Document) URL() string {
	at, err := url.Parse(d.Page)
	if err != nil || at.Scheme != "https" || at.User != nil || at.RawQuery != "" || at.Fragment != "" ||
		hosts.NamesInside(at) || !isInDNS(at.Hostname()) || at.Path != path.Clean(at.Path) {
		return ""
	}
	return d.Page + DocumentPath
}

// isInDNS reports whether a host is an address, or a name below a domain that is registered, unlike gw.internal.
func isInDNS(host string) bool {
	if strings.Trim(host, "0123456789.") == "" || strings.Contains(host, ":") {
		return true
	}
	suffix, isRegistered := publicsuffix.PublicSuffix(strings.ToLower(host))
	return strings.Contains(host, ".") && (isRegistered || strings.Contains(suffix, "."))
}

func (d Document) metadata() metadata {
	redirect, kind := d.Page+callbackPath, "web"
	if d.OnThisMachine {
		redirect, kind = anyPort, "native"
	}
	return metadata{d.URL(), oauthex.ClientRegistrationMetadata{
		RedirectURIs: []string{redirect}, TokenEndpointAuthMethod: "none",
		GrantTypes: []string{"authorization_code", "refresh_token"}, ResponseTypes: []string{"code"},
		ClientName: clientName, SoftwareID: clientName, ApplicationType: kind,
	}}
}

// ServeHTTP serves the document, to anybody.
func (d Document) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if r.Method != http.MethodGet && r.Method != http.MethodHead {
		w.Header().Set("Allow", "GET, HEAD")
		w.WriteHeader(http.StatusMethodNotAllowed)
		return
	}
	data, _ := json.Marshal(d.metadata()) // never fails
	w.Header().Set("Content-Type", "application/json")
	w.Header().Set("Cache-Control", "max-age="+documentAge)
	w.Header().Set("X-Content-Type-Options", "nosniff")
	_, _ = w.Write(data) // the issuer has left
}

// usesDocument reports whether the client of the login is that of a document. An issuer that registers clients too may
// be unable to read the document, such as where the gateway is not running, or is at an address of a private network: a
// client is registered if this program cannot read it either.
func (a *Attempt) usesDocument(ctx context.Context) bool {
	i, at := &a.plan.issuer, a.options.DocumentURL
	if at == "" || !i.ClientIDMetadataDocumentSupported {
		return false
	}
	if i.RegistrationEndpoint == "" {
		return true
	}
	var found metadata
	isThere, err := readJSON(ctx, a.guard, at, &found)
	return isThere && err == nil && found.ClientID == at &&
		slices.Contains(found.RedirectURIs, cmp.Or(a.options.Redirect, anyPort))
}

// ofDocument returns the client of a document.
func ofDocument(at string) Client { return Client{ID: at, How: "the client that " + at + " describes"} }
