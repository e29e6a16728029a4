package config

import (
	"os"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/mcp-sse/mcp-sse/auth/oauthclient"
	"github.com/mcp-sse/mcp-sse/cmd/sse-server/internal/clitest"
	"github.com/mcp-sse/mcp-sse/gateway"
)

const oauthFile = `
servers:
  docs:
    url: https://mcp.example/mcp
    oauth-client:
      token-url: https://${IDP}/token
      client-id: gw
      client-secret: ${file:SECRET}
      scopes: read  write
      resource: https://mcp.example/mcp
`

func TestOAuthClient(t *testing.T) {
	path := clitest.WriteFile(t, "secret", secret+"\n")
	file := clitest.WriteFile(t, "gw.yaml", strings.ReplaceAll(oauthFile, "SECRET", path))
	load := func() *Config { return mustLoad(t, map[string]string{"IDP": "idp.example"}, "-c", file) }
	c := load()
	want := oauthclient.Config{
		TokenURL: "https://idp.example/token", ClientID: "gw", ClientSecret: secret, Scopes: []string{"read", "write"}, Resource: "https://mcp.example/mcp",
	}
	s := c.Servers[0]
	if !reflect.DeepEqual(s.remote.Credentials, want) || s.remote.Name != "docs" || len(c.Warnings) > 0 {
		t.Errorf("got %+v for %s, and %q", s.remote.Credentials, s.remote.Name, c.Warnings)
	}
	if c.Gateway(s, gateway.Options{}).ForwardHeaders != nil || !reflect.DeepEqual(s.Upstream(), load().Servers[0].Upstream()) {
		t.Error("a reload of the same file makes another server")
	}
	hash := c.Hash()
	if err := os.WriteFile(path, []byte("other"), 0o600); err != nil {
		t.Fatal(err)
	}
	if c = load(); c.Hash() != hash || reflect.DeepEqual(c.Servers[0].Upstream(), s.Upstream()) {
		t.Error("another secret counts for the hash, or not for the server")
	}
}

func TestTokenExchange(t *testing.T) {
	file := clitest.WriteFile(t, "gw.yaml", "public-url: https://gw\noauth: {issuer: https://i}\nurl: https://a\nforward-header: [X-A]\noauth-client: {token-url: https://b, client-id: c, grant: token-exchange}\n")
	c := mustLoad(t, nil, "-c", file)
	if got := c.Gateway(&c.Server, gateway.Options{}).ForwardHeaders; !slices.Equal(got, []string{"X-A", "Authorization"}) || len(c.ForwardHeader) != 1 {
		t.Errorf("forwards %q", got)
	}
}

func TestOAuthClientRefusals(t *testing.T) {
	tokens := clitest.WriteFile(t, "tokens", "alice:0123456789abcdef\n")
	const rest = "token-url: https://b, client-id: c, "
	for text, want := range map[string]string{
		"oauth-client: {issuer: x}":                                                           `unknown key "issuer", want one of audience, client-id,`,
		"oauth-client: {client-id: " + secret + "}":                                           "token-url: want the URL",
		"oauth-client: {token-url: http://b, client-id: c}":                                   "token-url: want the URL of the token endpoint, with https://",
		"oauth-client: [a]":                                                                   "want a mapping such as {token-url: https://…}",
		"oauth-client: {token-url: '${NOT_SET}'}":                                             "token-url: the environment variable NOT_SET is not set",
		"oauth-client: {" + rest + "grant: password}":                                         "grant: want client-credentials, refresh-token or token-exchange",
		"oauth-client: {" + rest + "grant: token-exchange}":                                   "grant: want oauth too",
		"oauth-client: {" + rest + "grant: refresh-token}":                                    "refresh-token-file: want",
		"sessions: shared\noauth-client: {" + rest + "grant: token-exchange}":                 "grant: clients with a token each cannot share a session",
		"forward-header: authorization\noauth-client: {" + rest + "}":                         "contradicts",
		"header: {Authorization: x}\noauth-client: {" + rest + "}":                            "Authorization contradicts the credentials",
		"auth-tokens-file: " + tokens + "\noauth-client: {" + rest + "grant: token-exchange}": "grant: the token endpoint does not know the tokens of",
	} {
		wantRefusal(t, nil, want, "-c", clitest.WriteFile(t, "gw.yaml", "url: https://a\n"+text+"\n"))
	}
	wantRefusal(t, nil, "has no effect without a url to serve", "-c", clitest.WriteFile(t, "gw.yaml", "command: [x]\noauth-client: {"+rest+"}\n"))
	wantRefusal(t, nil, "it is a key of the file", "--oauth-client", "a=b")
	c := mustLoad(t, nil, "-c", clitest.WriteFile(t, "gw.yaml", "url: http://a\noauth-client: {token-url: https://b, client-id: c}\n"))
	if len(c.Warnings) != 1 || !strings.Contains(c.Warnings[0], "plain text") {
		t.Errorf("warned %q", c.Warnings)
	}
}
