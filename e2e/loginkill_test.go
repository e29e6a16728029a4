//go:build all

package e2e

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"regexp"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/modelcontextprotocol/go-sdk/auth"
	"github.com/modelcontextprotocol/go-sdk/mcp"
	"github.com/modelcontextprotocol/go-sdk/oauthex"

	"github.com/mcp-sse/mcp-sse/internal/ssetest"
)

// rotating is a server of go-sdk behind its OAuth, with an issuer that takes each refresh token once, without grace, and
// can be stopped in the middle of a refresh.
type rotating struct {
	*httptest.Server
	stopped chan struct{} // gets one for each refresh that was stopped

	mu       sync.Mutex
	stopAt   string // "asked": before the refresh token is used up; "answering": in the middle of the answer; "": nowhere
	access   map[string]bool
	refresh  map[string]bool
	renewals int // refresh tokens that were used up
	secrets  []string
}

func startRotating(t *testing.T) *rotating {
	t.Helper()
	i := &rotating{stopped: make(chan struct{}, 8), access: map[string]bool{}, refresh: map[string]bool{}}
	server := mcp.NewServer(&mcp.Implementation{Name: "rotating", Version: "1"}, nil)
	type message struct {
		Message string `json:"message"`
	}
	mcp.AddTool(server, &mcp.Tool{Name: "echo"}, func(_ context.Context, _ *mcp.CallToolRequest, in message) (*mcp.CallToolResult, any, error) {
		return &mcp.CallToolResult{Content: []mcp.Content{&mcp.TextContent{Text: in.Message}}}, nil, nil
	})
	verify := func(_ context.Context, token string, _ *http.Request) (*auth.TokenInfo, error) {
		i.mu.Lock()
		defer i.mu.Unlock()
		if !i.access[token] {
			return nil, auth.ErrInvalidToken
		}
		return &auth.TokenInfo{Expiration: time.Now().Add(time.Hour), UserID: "alice"}, nil
	}
	routes := http.NewServeMux()
	i.Server = httptest.NewServer(routes)
	t.Cleanup(func() {
		i.CloseClientConnections()
		i.Close()
		for session := range server.Sessions() { // of gateways that were killed
			_ = session.Close()
		}
	})
	const metadata = "/.well-known/oauth-protected-resource/mcp"
	routes.Handle("/mcp", auth.RequireBearerToken(verify, &auth.RequireBearerTokenOptions{ResourceMetadataURL: i.URL + metadata})(
		mcp.NewStreamableHTTPHandler(func(*http.Request) *mcp.Server { return server }, nil)))
	routes.Handle(metadata, auth.ProtectedResourceMetadataHandler(&oauthex.ProtectedResourceMetadata{
		Resource: i.URL + "/mcp", AuthorizationServers: []string{i.URL}}))
	answer := func(w http.ResponseWriter, value any) {
		w.Header().Set("Content-Type", "application/json")
		_ = json.NewEncoder(w).Encode(value)
	}
	routes.HandleFunc("/.well-known/oauth-authorization-server", func(w http.ResponseWriter, _ *http.Request) {
		answer(w, map[string]any{"issuer": i.URL, "authorization_endpoint": i.URL + "/authorize", "token_endpoint": i.URL + "/token",
			"registration_endpoint": i.URL + "/register", "code_challenge_methods_supported": []string{"S256"}})
	})
	routes.HandleFunc("/register", func(w http.ResponseWriter, _ *http.Request) { answer(w, map[string]any{"client_id": "c"}) })
	routes.HandleFunc("/authorize", func(w http.ResponseWriter, r *http.Request) {
		back := url.Values{"code": {rand.Text()}, "state": {r.FormValue("state")}}
		http.Redirect(w, r, r.FormValue("redirect_uri")+"?"+back.Encode(), http.StatusFound)
	})
	routes.HandleFunc("/token", i.serveToken)
	return i
}

// stop has refreshes stop there from now on.
func (i *rotating) stop(at string) {
	i.mu.Lock()
	defer i.mu.Unlock()
	i.stopAt = at
}

// renewed returns how many refresh tokens were used up.
func (i *rotating) renewed() int {
	i.mu.Lock()
	defer i.mu.Unlock()
	return i.renewals
}

// forget has the issuer forget all access tokens, and all refresh tokens too if the logins are to end.
func (i *rotating) forget(ends bool) {
	i.mu.Lock()
	defer i.mu.Unlock()
	clear(i.access)
	if ends {
		clear(i.refresh)
	}
}

// seen returns the codes, verifiers and tokens that have passed.
func (i *rotating) seen() []string {
	i.mu.Lock()
	defer i.mu.Unlock()
	return slices.Clone(i.secrets)
}

func (i *rotating) serveToken(w http.ResponseWriter, r *http.Request) {
	was, isRefresh := r.FormValue("refresh_token"), r.FormValue("grant_type") == "refresh_token"
	i.mu.Lock()
	stopAt := i.stopAt
	i.mu.Unlock()
	wait := func() {
		i.stopped <- struct{}{}
		<-r.Context().Done() // the gateway is killed
	}
	if isRefresh && stopAt == "asked" {
		wait()
		return
	}
	i.mu.Lock()
	w.Header().Set("Content-Type", "application/json")
	if isRefresh && !i.refresh[was] {
		i.mu.Unlock()
		w.WriteHeader(http.StatusBadRequest)
		_, _ = io.WriteString(w, `{"error":"invalid_grant"}`)
		return
	}
	if isRefresh {
		delete(i.refresh, was)
		i.renewals++
	}
	access, fresh := rand.Text(), rand.Text()
	i.access[access], i.refresh[fresh] = true, true
	for _, one := range []string{r.FormValue("code"), r.FormValue("code_verifier"), was, access, fresh} {
		if one != "" {
			i.secrets = append(i.secrets, one)
		}
	}
	i.mu.Unlock()
	data, _ := json.Marshal(map[string]any{"access_token": access, "token_type": "Bearer", "expires_in": 3600, "refresh_token": fresh})
	if isRefresh && stopAt == "answering" {
		_, _ = w.Write(data[:len(data)-1])
		_ = http.NewResponseController(w).Flush()
		wait()
		return
	}
	_, _ = w.Write(data)
}

// connectSDK connects a client of go-sdk, and reads the tools.
func connectSDK(t *testing.T, at string) *mcp.ClientSession {
	t.Helper()
	session, err := mcp.NewClient(&mcp.Implementation{Name: "e2e", Version: "0"}, nil).
		Connect(within(t), &mcp.StreamableClientTransport{Endpoint: at}, nil)
	ssetest.Must(t, err)
	t.Cleanup(func() { _ = session.Close() })
	_, err = session.ListTools(within(t), nil)
	ssetest.Must(t, err)
	return session
}

// expireLogin has the access token of the only login expire, so that its next use is a refresh. It returns the refresh
// token.
func expireLogin(t *testing.T) (refresh string) {
	t.Helper()
	kept := changeLogin(t, func(kept map[string]any) { kept["expiry"] = time.Now().Add(-time.Minute) })
	return kept["refreshToken"].(string)
}

// changeLogin changes the file of the only login, and returns what it has then.
func changeLogin(t *testing.T, change func(kept map[string]any)) map[string]any {
	t.Helper()
	file, kept := keptLogin(t)
	change(kept)
	data, err := json.Marshal(kept)
	ssetest.Must(t, err)
	ssetest.Must(t, os.WriteFile(file, data, 0o600))
	return kept
}

// killInRefresh has a gateway refresh the login, and kills it where the issuer stops.
func killInRefresh(t *testing.T, issuer *rotating, at string) {
	t.Helper()
	g := startGateway(t, "--url", issuer.URL+"/mcp")
	session := connectSDK(t, g.url)
	text, _ := callEcho(t, session)
	ssetest.Want(t, "a call with the login", text, "hi")
	before := expireLogin(t)
	issuer.stop(at)
	ctx, cancel := context.WithCancel(within(t))
	var call sync.WaitGroup
	call.Go(func() {
		_, _ = session.CallTool(ctx, &mcp.CallToolParams{Name: "echo", Arguments: map[string]any{"message": "hi"}})
	})
	<-issuer.stopped
	g.kill()
	cancel()
	call.Wait()
	issuer.stop("")
	_, kept := keptLogin(t)
	ssetest.Want(t, "the refresh token that is kept", kept["refreshToken"].(string), before)
}

// A gateway that is killed while the issuer has not answered a refresh loses no login: the next one refreshes it.
func TestKillWhileTheIssuerHangs(t *testing.T) {
	t.Parallel()
	issuer := startRotating(t)
	logInAt(t, issuer.URL+"/mcp")
	killInRefresh(t, issuer, "asked")
	ssetest.Want(t, "refresh tokens that were used up", issuer.renewed(), 0)
	text, isError := callEcho(t, connectSDK(t, startGateway(t, "--url", issuer.URL+"/mcp").url))
	ssetest.Want(t, "a call at the next gateway fails", isError, false)
	ssetest.Want(t, "a call at the next gateway", text, "hi")
	ssetest.Want(t, "refresh tokens that were used up", issuer.renewed(), 1)
}

// missingLogin is what the start check says of a server at which nobody is logged in.
var missingLogin = regexp.MustCompile(`What to do: run in a terminal: (sse-server login \S+)\n`)

// A gateway that is killed between the answer of an issuer that rotates without grace and its own rename loses the login.
// The next one says so, with the command at its start and the link to clients, which have their tools.
func TestKillBetweenTheAnswerAndTheRename(t *testing.T) {
	t.Parallel()
	issuer := startRotating(t)
	server := issuer.URL + "/mcp"
	logInAt(t, server)
	killInRefresh(t, issuer, "answering")
	ssetest.Want(t, "refresh tokens that were used up", issuer.renewed(), 1)
	g := startGateway(t, "--url", server, "--start-check")
	ssetest.Want(t, "the command at the start", g.awaitMatch("the command", &g.out, missingLogin), "sse-server login "+server)
	ssetest.WantText(t, "the log", g.log.String(), "login ended by the issuer")
	ssetest.WantText(t, "/readyz", g.adminGet("/readyz"), "the server is waiting for a login")
	if _, kept := keptLogin(t); kept["ended"] == nil {
		t.Error("the login has not ended")
	}
	session := connectSDK(t, g.url)
	text, isError := callEcho(t, session)
	ssetest.Want(t, "a call without the login fails", isError, true)
	ssetest.WantText(t, "the last page", openLink(t, linkIn(t, text)), "You are logged in at "+server)
	for isError { // until the test is over
		text, isError = callEcho(t, session)
	}
	ssetest.Want(t, "the call after the login", text, "hi")
}
