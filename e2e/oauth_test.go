//go:build all

package e2e

import (
	"context"
	"encoding/json"
	"fmt"
	"net"
	"net/http"
	"net/http/cookiejar"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/modelcontextprotocol/go-sdk/auth"
	"github.com/modelcontextprotocol/go-sdk/mcp"
	"github.com/modelcontextprotocol/go-sdk/oauthex"
	"golang.org/x/oauth2"

	"github.com/mcp-sse/mcp-sse/internal/ssetest"
)

// startIssuer starts clients/provider.mjs, and returns the URL of the issuer.
func startIssuer(t *testing.T) string {
	t.Helper()
	return startProgram(t, nil, node(t), "provider.mjs").url
}

// startProtected starts a gateway whose clients need tokens of the issuer, with the demo server
// at /jwt, at /opaque, whose tokens only introspection can check, and at /admin, which needs
// another scope. The page in the browser is the client pageClient of the issuer, "" for none. It returns the
// URL before these.
func startProtected(t *testing.T, issuer, pageClient string) (*gateway, string) {
	t.Helper()
	free, err := net.Listen("tcp", "127.0.0.1:0") // the resources have the port in their names
	ssetest.Must(t, err)
	addr := free.Addr().String()
	_ = free.Close()
	config, _ := json.Marshal(map[string]any{ // YAML too
		"public-url": "http://" + addr,
		"oauth": map[string]any{
			"issuer": issuer, "introspection-url": issuer + "/token/introspection", "client-id": "gateway", "client-secret": "secret",
			"page-client-id": pageClient,
		},
		"scopes":  []string{"mcp"},
		"servers": map[string]any{"jwt": map[string]any{}, "opaque": map[string]any{}, "admin": map[string]any{"scopes": []string{"admin"}}},
	})
	file := filepath.Join(t.TempDir(), "gw.json")
	ssetest.Must(t, os.WriteFile(file, config, 0o600))
	g := launch(t, "--config", file, "--addr", addr)
	g.admin = g.awaitMatch("the admin URL", &g.log, adminURL)
	return g, "http://" + addr
}

// The clients of the SDKs find the issuer, register, get a token and use it, without any
// configuration but the URL.
func TestOAuthFlow(t *testing.T) {
	t.Parallel()
	issuer := startIssuer(t)
	g, base := startProtected(t, issuer, "")
	for _, at := range []string{"/jwt/mcp", "/opaque/mcp", "/jwt/sse"} {
		for _, sdk := range []string{"sdk1", "client2", "client2-auto"} {
			for _, over := range []transport{overSSE, streamable} {
				t.Run(fmt.Sprintf("%s%s/%s", sdk, at, over), func(t *testing.T) {
					d := startScript(t, "run.mjs", "--client", sdk, "--url", base+at, "--transport", string(over), "--oauth")
					ssetest.Must(t, d.connect(within(t)))
					wantEcho(t, d)
				})
			}
		}
		t.Run("GoSDK"+at, func(t *testing.T) { // which has no flow over HTTP+SSE
			useGoSDK(t, &mcp.SSEClientTransport{Endpoint: base + at, HTTPClient: oauth2.NewClient(within(t), login(t, base+at))})
		})
	}
	if log := g.log.String(); !strings.Contains(log, `"principal":"oauth:alice"`) || strings.Contains(log, "eyJ") {
		t.Errorf("the log has no principal, or a token:\n%s", g.log.Tail())
	}
}

// A token for one server is none for another, nor does it have its scope.
func TestOAuthTokensAreForOneServer(t *testing.T) {
	t.Parallel()
	_, base := startProtected(t, startIssuer(t), "")
	issued, err := login(t, base+"/jwt/mcp").Token()
	ssetest.Must(t, err)
	token := issued.AccessToken
	for _, test := range []struct {
		path, token string
		status      int
		challenge   string
	}{
		{"/jwt/mcp", token, 200, ""},
		{"/jwt/sse", token, 200, ""},
		{"/jwt/mcp", "", 401, fmt.Sprintf(`Bearer realm="mcp-sse", resource_metadata="%s/.well-known/oauth-protected-resource/jwt/mcp", scope="mcp"`, base)},
		{"/opaque/mcp", token, 401, `error="invalid_token"`},
		{"/admin/mcp", token, 401, `scope="admin"`},
		{"/jwt/mcp?access_token=" + token, "", 400, `error="invalid_request"`},
	} {
		authorization := ""
		if test.token != "" {
			authorization = "Bearer " + test.token
		}
		res, body := post(t, base+test.path, "tools/list", "Authorization", authorization)
		if got := res.Header.Get("WWW-Authenticate"); res.StatusCode != test.status || !strings.Contains(got, test.challenge) {
			t.Errorf("%s: got %d %s %s, want %d %s", test.path, res.StatusCode, got, body, test.status, test.challenge)
		}
	}
}

// flow is what go-sdk needs of a user who logs in and consents.
func flow(t *testing.T) *auth.AuthorizationCodeHandler {
	t.Helper()
	const redirect = "http://127.0.0.1:9/callback"
	jar, _ := cookiejar.New(nil)
	browser := &http.Client{Jar: jar, CheckRedirect: func(r *http.Request, _ []*http.Request) error {
		if strings.HasPrefix(r.URL.String(), redirect) {
			return http.ErrUseLastResponse
		}
		return nil
	}}
	h, err := auth.NewAuthorizationCodeHandler(&auth.AuthorizationCodeHandlerConfig{
		RedirectURL: redirect,
		DynamicClientRegistrationConfig: &auth.DynamicClientRegistrationConfig{Metadata: &oauthex.ClientRegistrationMetadata{
			ClientName: "e2e", RedirectURIs: []string{redirect}, TokenEndpointAuthMethod: "none",
		}},
		AuthorizationCodeFetcher: func(ctx context.Context, args *auth.AuthorizationArgs) (*auth.AuthorizationResult, error) {
			r, _ := http.NewRequestWithContext(ctx, http.MethodGet, args.URL, nil)
			res, err := browser.Do(r)
			if err != nil {
				return nil, err
			}
			defer res.Body.Close()
			at, err := url.Parse(res.Header.Get("Location"))
			if err != nil || at.Query().Get("code") == "" {
				return nil, fmt.Errorf("the issuer answered %s %s", res.Status, at)
			}
			return &auth.AuthorizationResult{Code: at.Query().Get("code"), State: at.Query().Get("state"), Iss: at.Query().Get("iss")}, nil
		},
	})
	ssetest.Must(t, err)
	return h
}

// login lets the client of go-sdk do the flow over Streamable HTTP, and returns the source of
// its tokens.
func login(t *testing.T, url string) oauth2.TokenSource {
	t.Helper()
	h := flow(t)
	useGoSDK(t, &mcp.StreamableClientTransport{Endpoint: url, OAuthHandler: h})
	source, err := h.TokenSource(within(t))
	ssetest.Must(t, err)
	return source
}

func useGoSDK(t *testing.T, transport mcp.Transport) {
	t.Helper()
	session, err := mcp.NewClient(&mcp.Implementation{Name: "e2e", Version: "0"}, nil).Connect(within(t), transport, nil)
	ssetest.Must(t, err)
	defer session.Close()
	tools, err := session.ListTools(within(t), nil)
	if err != nil || !slices.ContainsFunc(tools.Tools, func(tool *mcp.Tool) bool { return tool.Name == "echo" }) {
		t.Errorf("tools: %v, %v", tools, err)
	}
}
