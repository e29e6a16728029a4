package config

import (
	"net/http"
	"net/http/httptest"
	"reflect"
	"strings"
	"testing"

	"github.com/mcp-sse/mcp-sse/cmd/sse-server/internal/clitest"
	"github.com/mcp-sse/mcp-sse/gateway"
	"github.com/mcp-sse/mcp-sse/internal/ssetest"
)

const protectedFile = `public-url: https://gw.example.com/
prefix: /tools
scopes: [mcp]
oauth:
  issuer: https://login.example.com
  introspection-url: https://login.example.com/introspect
  client-id: gateway
  client-secret: ${SECRET}
servers:
  docs: {}
  files: {scopes: [mcp, files]}
`

func TestOAuth(t *testing.T) {
	path := clitest.WriteFile(t, "gw.yaml", protectedFile)
	c := mustLoad(t, map[string]string{"SECRET": secret}, "-c", path, "--addr", "0.0.0.0:0")
	for n, scopes := range []string{`["mcp"]`, `["mcp","files"]`} {
		for _, end := range []string{"/mcp", "/sse"} {
			at, w := "/tools/"+c.Servers[n].Name+end, httptest.NewRecorder()
			path := "/.well-known/oauth-protected-resource" + at
			c.Metadata[path].ServeHTTP(w, httptest.NewRequest(http.MethodGet, path, nil))
			for _, want := range []string{`"resource":"https://gw.example.com` + at + `"`, `"authorization_servers":["https://login.example.com"]`, `"scopes_supported":` + scopes} {
				if !strings.Contains(w.Body.String(), want) {
					t.Errorf("%s: got %s, want %s", path, w.Body, want)
				}
			}
		}
	}
	other := mustLoad(t, map[string]string{"SECRET": "other"}, "-c", path)
	if c.Addr = other.Addr; c.Hash() != other.Hash() {
		t.Error("the hash tells of the secret")
	}
	same := mustLoad(t, map[string]string{"SECRET": secret}, "-c", path)
	for next, want := range map[*Config]bool{same: true, other: false} { // keys and tokens outlive a reload
		if next.KeepResources(c); (next.Servers[1].resource == c.Servers[1].resource) != want || next.Servers[0].resource == next.Servers[1].resource {
			t.Errorf("a reload keeps what is the same: want %t", want)
		}
	}
	if len(c.Warnings) > 0 {
		t.Errorf("warnings: %q", c.Warnings)
	}
	wantRefusal(t, nil, "oauth: client-secret: the environment variable SECRET is not set", "-c", path)
	wantRefusal(t, map[string]string{"SECRET": secret}, "admin-addr: other machines may reach", "-c", path, "--admin-addr", "0.0.0.0:0")
	wantRefusal(t, nil, "--auth-tokens-file, oauth in the file, or --insecure", "--addr", "0.0.0.0:0")
	wantRefusal(t, nil, "unknown flag --oauth: it is a key of the file", "--oauth", "https://login.example.com")
}

// The page of each server logs in for its own resource, with a client of its own.
func TestLoginOfThePage(t *testing.T) {
	env := map[string]string{"SECRET": secret}
	c := mustLoad(t, env, "-c", clitest.WriteFile(t, "gw.yaml", strings.Replace(protectedFile, "  client-id:", "  page-client-id: page\n  client-id:", 1)))
	got := c.Gateway(c.Servers[1], gateway.Options{}).PageLogin
	want := &gateway.PageLogin{Issuer: "https://login.example.com", ClientID: "page", Resource: "https://gw.example.com/tools/files/mcp", Scopes: []string{"mcp", "files"}}
	if !reflect.DeepEqual(got, want) {
		t.Errorf("got %+v, want %+v", got, want)
	}
	c = mustLoad(t, env, "-c", clitest.WriteFile(t, "gw.yaml", protectedFile))
	if got := c.Gateway(c.Servers[1], gateway.Options{}).PageLogin; got != nil {
		t.Errorf("without page-client-id: got %+v", got)
	}
}

func TestOAuthFaults(t *testing.T) {
	const good = "public-url: https://gw.example.com\noauth: {issuer: https://login.example.com}\n"
	for content, want := range map[string]string{
		"oauth: {issuer: https://login.example.com}\n":                                    "gw.yaml:1:8: oauth: want public-url too",
		"oauth: {scope: a}\n":                                                             "gw.yaml:1:8: oauth: unknown key \"scope\"",
		"public-url: gw.example.com\n":                                                    "gw.yaml:1:13: public-url: want the address that users type",
		"public-url: https://gw.example.com?a=b\n":                                        "gw.yaml:1:13: public-url: want the address that users type",
		"oauth: {isuer: https://login.example.com}\n":                                     `gw.yaml:1:8: oauth: unknown key "isuer", want one of client-id,`,
		"oauth: https://login.example.com\n":                                              `want a mapping`,
		good + "servers: {a: {oauth: {issuer: x}}}\n":                                     `unknown key "oauth" in servers.a`,
		good + "url: https://a\nforward-header: {authorization: X-B}\n":                   "forward-header: Authorization: the remote server would get the tokens of ",
		good + "url: https://a\nforward-header: [authorization]\n":                        "forward-header: Authorization: the remote server would get the tokens of ",
		"public-url: http://gw.example.com\noauth: {issuer: https://login.example.com}\n": `gw.yaml: public-url: want a URL such as https:`,
		"servers: {a: {scopes: [b]}}\n":                                                   "gw.yaml:1:23: scopes: has no effect without an issuer",
		"public-url: https://gw.example.com\noauth: {issuer: login}\n":                    `gw.yaml: oauth: issuer: want a URL`,
		"public-url: https://gw.example.com\noauth: {issuer: https://login.example.com, introspection-url: https://x}\n": "gw.yaml: oauth: introspection-url: want a client-id, a client-secret and a URL",
	} {
		wantRefusal(t, nil, want, "-c", clitest.WriteFile(t, "gw.yaml", content))
	}
}

// The name that users type is allowed as the Host, and excludes no other.
func TestThePublicHostIsAllowed(t *testing.T) {
	path := clitest.WriteFile(t, "gw.yaml", "public-url: https://gw.example.com:8443/x\noauth: {issuer: https://login.example.com}\ncommand: [server]\n")
	c := mustLoad(t, nil, "-c", path)
	o := c.Gateway(c.Each()[0], gateway.Options{})
	ssetest.Want(t, "PublicHost", o.PublicHost, "gw.example.com")
	ssetest.Want(t, "AllowedHosts", len(o.AllowedHosts), 0)
}
