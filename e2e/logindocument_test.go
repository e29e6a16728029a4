//go:build all

package e2e

import (
	"fmt"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"os"
	"path/filepath"
	"testing"

	"github.com/mcp-sse/mcp-sse/internal/ssetest"
)

// oidc-provider registers no clients, and reads the client id metadata documents of a gateway. A principal logs in as the
// client of the page, and a person with the command as that of a server for all, whose login is renewed as that.
func TestDocumentsAtARealIssuer(t *testing.T) {
	t.Parallel()
	gatewayAt := make(chan *url.URL, 1) // the issuer has to know an address of the gateway before that runs
	proxy := httptest.NewServer(&httputil.ReverseProxy{Rewrite: func(r *httputil.ProxyRequest) {
		at := <-gatewayAt
		gatewayAt <- at
		r.SetURL(at)
		r.Out.Host = r.In.Host
	}})
	t.Cleanup(proxy.Close)
	issuer := startProgram(t, nil, node(t), "provider.mjs", "documents="+proxy.URL).url
	_, base := startProtected(t, issuer, "")
	file := filepath.Join(t.TempDir(), "gw.yaml")
	ssetest.Must(t, os.WriteFile(file, fmt.Appendf(nil, "public-url: https://%s\nauth-tokens-file: %s\nservers:\n"+
		"  notes: {url: %[3]q, login: per-principal}\n  mail: {url: %[3]q, login: shared}\n",
		publicHost, writeTokensOfTwo(t), base+"/jwt/mcp"), 0o600))
	g := startGateway(t, "--config", file)
	at := localURL(t, g)
	gatewayAt <- &url.URL{Scheme: at.Scheme, Host: at.Host}
	logInByPage(t, g, "alice")
	wantWorks(t, g, "alice")

	const document = "https://" + publicHost + "/login/mail/client.json"
	printed := logInWith(t, base+"/jwt/mcp", "mail", "--config", file)
	ssetest.WantText(t, "what login prints", printed, "as the client that "+document+" describes.", "It is renewed as needed.")
	mail := connectTo(t, g, "bob", "https://"+publicHost+"/mail/mcp")
	for range 2 {
		text, isError := callEcho(t, mail)
		ssetest.Want(t, "a call with the login for all", text, "hi")
		ssetest.Want(t, "a call with the login for all fails", isError, false)
		_, kept := keptLogin(t)
		ssetest.Want(t, "client", kept["client"].(map[string]any)["id"].(string), document)
		expireLogin(t)
	}
}
