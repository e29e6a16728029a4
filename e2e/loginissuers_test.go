//go:build all

package e2e

import (
	"net/http"
	"net/url"
	"os/exec"
	"strings"
	"sync"
	"testing"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/mcp-sse/mcp-sse/internal/ssetest"
)

// refreshAs asks the issuer of the only login for new tokens with a refresh token, as somebody would who has stolen it,
// and returns the status.
func refreshAs(t *testing.T, kept map[string]any, refresh string) int {
	t.Helper()
	resp, err := http.PostForm(kept["tokenUrl"].(string), url.Values{
		"grant_type": {"refresh_token"}, "refresh_token": {refresh}, "client_id": {kept["client"].(map[string]any)["id"].(string)},
	})
	ssetest.Must(t, err)
	resp.Body.Close()
	return resp.StatusCode
}

// At an issuer that takes each refresh token once, and ends the login when one comes twice, gateways that share a login
// use each once, however they meet. A refresh token that somebody else has used before ends the login, and no client
// loses the server. Logout ends the refresh token at the issuer.
func TestRotationAtARealIssuer(t *testing.T) {
	t.Parallel()
	issuer := startProgram(t, nil, node(t), "provider.mjs", "rotates")
	_, base := startProtected(t, issuer.url, "")
	server := base + "/jwt/mcp"
	logInAt(t, server)
	var sessions []*mcp.ClientSession
	for range 3 {
		sessions = append(sessions, connectSDK(t, startGateway(t, "--url", server).url))
	}
	var used []string
	for range 3 {
		used = append(used, expireLogin(t))
		var calls sync.WaitGroup
		for _, session := range sessions {
			calls.Go(func() {
				if text, isError := callEcho(t, session); text != "hi" || isError {
					t.Errorf("a call after the token has expired: %q, is an error: %v", text, isError)
				}
			})
		}
		calls.Wait()
		_, kept := keptLogin(t)
		ssetest.Want(t, "the refresh token is another", kept["refreshToken"].(string) == used[len(used)-1], false)
	}
	for _, refresh := range used { // its issue and its use
		ssetest.Want(t, "how often the issuer has seen a refresh token", strings.Count(issuer.log.String(), "secret "+refresh+"\n"), 2)
	}

	_, kept := keptLogin(t)
	ssetest.Want(t, "the answer to a refresh token that was used", refreshAs(t, kept, used[0]), http.StatusBadRequest)
	expireLogin(t)
	text, isError := callEcho(t, sessions[0])
	ssetest.Want(t, "a call after the end fails", isError, true)
	ssetest.WantText(t, "the last page", openLink(t, linkIn(t, text)), "You are logged in at "+server)
	for isError { // until the test is over
		text, isError = callEcho(t, sessions[0])
	}
	ssetest.Want(t, "a call after the next login", text, "hi")

	_, kept = keptLogin(t)
	logout := exec.Command(built(t, "sse-server"), "logout", server)
	logout.Env = ssetest.WithState(t)
	out, err := logout.CombinedOutput()
	ssetest.Must(t, err)
	ssetest.WantText(t, "what logout prints", string(out), "has ended the login")
	ssetest.Want(t, "the answer to a refresh token after logout", refreshAs(t, kept, kept["refreshToken"].(string)), http.StatusBadRequest)
}

// A person logs in at a server of the TypeScript SDK with its own OAuth in front. Its token is renewed when it has
// expired, and when the server refuses it.
func TestTypeScriptServerBehindItsOAuth(t *testing.T) {
	t.Parallel()
	issuer := startIssuer(t)
	server := startProgram(t, nil, node(t), "guarded.mjs", issuer).url
	ssetest.WantText(t, "what login prints", logInAt(t, server), "Scopes: mcp", "It is renewed as needed.")
	session := connectSDK(t, startGateway(t, "--url", server).url)
	want := func(when string) {
		t.Helper()
		text, isError := callEcho(t, session)
		ssetest.Want(t, "a call "+when+" fails", isError, false)
		ssetest.Want(t, "a call "+when, text, "hi")
	}
	want("with the login")
	before := expireLogin(t)
	want("after the token has expired")
	_, kept := keptLogin(t)
	ssetest.Want(t, "the refresh token is another", kept["refreshToken"].(string) == before, false)

	changeLogin(t, func(kept map[string]any) { kept["accessToken"] = "unknown" })
	want("with a token that the issuer does not know")
	_, kept = keptLogin(t)
	ssetest.Want(t, "the token is another", kept["accessToken"].(string) == "unknown", false)
}
