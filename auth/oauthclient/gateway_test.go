package oauthclient_test

import (
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/mcp-sse/mcp-sse/auth/oauthclient"
	"github.com/mcp-sse/mcp-sse/gateway"
	"github.com/mcp-sse/mcp-sse/internal/ssetest"
	"github.com/mcp-sse/mcp-sse/upstream"
)

// world is a token endpoint, and a remote server that takes its tokens.
type world struct {
	endpoint, server *httptest.Server

	mu      sync.Mutex
	issued  int
	valid   map[string]string // the subject of each token that the server takes
	down    bool              // the endpoint gives none
	mean    bool              // the server takes none
	expired string            // the subject for which the endpoint gives none any more
	heads   []string          // the Authorization of each request to the server
	posted  string            // that of the last POST which the server has taken
	calls   []string          // the subjects whose calls the tool has run
}

func (w *world) token(rw http.ResponseWriter, r *http.Request) {
	w.mu.Lock()
	defer w.mu.Unlock()
	_ = r.ParseForm()
	subject := r.Form.Get("subject_token")
	rw.Header().Set("Content-Type", "application/json")
	if w.down || subject == "bad" || w.expired != "" && subject == w.expired {
		rw.WriteHeader(http.StatusBadRequest)
		fmt.Fprint(rw, `{"error":"invalid_grant","error_description":"token-0"}`)
		return
	}
	w.issued++
	token := fmt.Sprint("token-", w.issued)
	w.valid[token] = subject
	_ = json.NewEncoder(rw).Encode(map[string]any{"access_token": token, "expires_in": 3600})
}

// guard lets requests with a token to the server.
func (w *world) guard(next http.Handler) http.Handler {
	return http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) {
		w.mu.Lock()
		header := r.Header.Get("Authorization")
		_, ok := w.valid[strings.TrimPrefix(header, "Bearer ")]
		w.heads = append(w.heads, header)
		ok = ok && !w.mean
		if ok && r.Method == http.MethodPost {
			w.posted = header
		}
		w.mu.Unlock()
		if !ok {
			rw.WriteHeader(http.StatusUnauthorized)
			return
		}
		next.ServeHTTP(rw, r)
	})
}

// set changes what the endpoint and the server do.
func (w *world) set(do func()) {
	w.mu.Lock()
	defer w.mu.Unlock()
	do()
}

// newWorld starts the server over HTTP+SSE, or over Streamable HTTP.
func newWorld(t *testing.T, sse bool) *world {
	t.Helper()
	w := &world{valid: map[string]string{}}
	server := mcp.NewServer(&mcp.Implementation{Name: "guarded", Version: "1"}, nil)
	mcp.AddTool(server, &mcp.Tool{Name: "who"}, func(context.Context, *mcp.CallToolRequest, struct{}) (*mcp.CallToolResult, any, error) {
		w.mu.Lock()
		defer w.mu.Unlock()
		who := w.valid[strings.TrimPrefix(w.posted, "Bearer ")]
		w.calls = append(w.calls, who)
		return &mcp.CallToolResult{Content: []mcp.Content{&mcp.TextContent{Text: who}}}, nil, nil
	})
	get := func(*http.Request) *mcp.Server { return server }
	var handler http.Handler = mcp.NewStreamableHTTPHandler(get, nil)
	if sse {
		handler = mcp.NewSSEHandler(get, nil)
	}
	w.endpoint, w.server = httptest.NewServer(http.HandlerFunc(w.token)), httptest.NewServer(w.guard(handler))
	t.Cleanup(w.endpoint.Close)
	t.Cleanup(func() {
		w.server.Close()
		for session := range server.Sessions() { // those whose DELETE was refused or came late
			_ = session.Close()
		}
	})
	return w
}

// serve serves the server of w to clients, and returns the URL and the log.
func (w *world) serve(t *testing.T, c oauthclient.Config, opts gateway.Options) (string, *ssetest.Output) {
	t.Helper()
	var log ssetest.Output
	c.TokenURL, c.ClientID, c.ClientSecret = w.endpoint.URL, "gw", "s3cret"
	opts.Logger = slog.New(slog.NewTextHandler(&log, &slog.HandlerOptions{Level: slog.LevelDebug}))
	g, err := gateway.New(upstream.URL{Address: w.server.URL, Credentials: c, Name: "docs"}, opts)
	ssetest.Must(t, err)
	s := httptest.NewServer(g)
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
		defer cancel()
		_ = g.Shutdown(ctx)
		s.Close()
		for _, secret := range []string{"s3cret", "token-", "alices", "bobs"} {
			if strings.Contains(log.String(), secret) {
				t.Errorf("%q is in the log:\n%s", secret, log.String())
			}
		}
	})
	return s.URL, &log
}

// bearer sends a token.
type bearer struct {
	token func() string
	http.RoundTripper
}

func (b bearer) RoundTrip(r *http.Request) (*http.Response, error) {
	if token := b.token(); token != "" {
		r = r.Clone(r.Context())
		r.Header.Set("Authorization", "Bearer "+token)
	}
	return b.RoundTripper.RoundTrip(r)
}

// connect connects a client that sends a token, over Streamable HTTP or HTTP+SSE.
func connect(t *testing.T, url, token string, sse bool) (*mcp.ClientSession, error) {
	t.Helper()
	return connectWith(t, url, func() string { return token }, sse)
}

func connectWith(t *testing.T, url string, token func() string, sse bool) (*mcp.ClientSession, error) {
	t.Helper()
	client := &http.Client{Transport: bearer{token, &http.Transport{DisableKeepAlives: true}}}
	var transport mcp.Transport = &mcp.StreamableClientTransport{Endpoint: url + "/mcp", HTTPClient: client}
	if sse {
		transport = &mcp.SSEClientTransport{Endpoint: url + "/sse", HTTPClient: client}
	}
	s, err := mcp.NewClient(&mcp.Implementation{Name: "c", Version: "1"}, nil).Connect(t.Context(), transport, nil)
	if err == nil {
		t.Cleanup(func() { _ = s.Close() })
	}
	return s, err
}

func mustConnect(t *testing.T, url, token string, sse bool) *mcp.ClientSession {
	t.Helper()
	s, err := connect(t, url, token, sse)
	ssetest.Must(t, err)
	return s
}

// who calls the tool, and returns its answer.
func who(t *testing.T, s *mcp.ClientSession) (string, error) {
	t.Helper()
	result, err := s.CallTool(t.Context(), &mcp.CallToolParams{Name: "who"})
	if err != nil {
		return "", err
	}
	return result.Content[0].(*mcp.TextContent).Text, nil
}

// onAll runs a test with each transport of the client and of the server.
func onAll(t *testing.T, run func(t *testing.T, w *world, sse bool)) {
	for _, client := range []bool{false, true} {
		for _, server := range []bool{false, true} {
			t.Run(fmt.Sprintf("client sse %t, server sse %t", client, server), func(t *testing.T) {
				run(t, newWorld(t, server), client)
			})
		}
	}
}

// A token that the server refuses in the middle of a session is replaced, and the call runs
// once.
func TestRefusedOnce(t *testing.T) {
	onAll(t, func(t *testing.T, w *world, sse bool) {
		url, _ := w.serve(t, oauthclient.Config{}, gateway.Options{})
		s, other := mustConnect(t, url, "", sse), mustConnect(t, url, "", sse)
		for range 2 {
			_, err := who(t, s)
			ssetest.Must(t, err)
		}
		w.set(func() { clear(w.valid) })
		for _, each := range []*mcp.ClientSession{s, other} {
			if _, err := who(t, each); err != nil {
				t.Errorf("after the end of the token: %v", err)
			}
		}
		w.mu.Lock()
		defer w.mu.Unlock()
		if w.issued != 2 || len(w.calls) != 4 {
			t.Errorf("%d tokens, and the tool ran %d times, want 2 and 4", w.issued, len(w.calls))
		}
	})
}

// A client whose server refuses the second token too, or has none to give, learns which server
// needs to be authorized, and nothing else. The session goes on once it is.
func TestRefusedTwice(t *testing.T) {
	for logged, change := range map[string]func(w *world){
		"level=INFO": func(w *world) { w.mean = true },
		`msg="no token for the server" err="the token endpoint answered 400 \"invalid_grant\""`: func(w *world) { w.down = true; clear(w.valid) },
	} {
		onAll(t, func(t *testing.T, w *world, sse bool) {
			url, log := w.serve(t, oauthclient.Config{}, gateway.Options{})
			s := mustConnect(t, url, "", sse)
			_, err := who(t, s)
			ssetest.Must(t, err)
			w.set(func() { change(w) })
			_, err = who(t, s)
			if err == nil || !strings.Contains(err.Error(), `the server "docs" needs to be authorized`) || strings.Contains(err.Error(), "invalid_grant") {
				t.Errorf("got %v", err)
			}
			w.set(func() { w.mean, w.down = false, false })
			for began := time.Now(); err != nil && time.Since(began) < time.Minute; { // the endpoint may be asked again in 2 s
				_, err = who(t, s)
			}
			if err != nil {
				t.Errorf("after it: %v", err)
			}
			_ = s.Close()
			if !strings.Contains(log.String(), logged) || len(w.calls) != 2 {
				t.Errorf("the tool ran %d times, and the log has\n%s", len(w.calls), log.String())
			}
		})
	}
}

// A client that connects while there is no token learns why.
func TestNoTokenAtTheStart(t *testing.T) {
	for details, want := range map[gateway.ErrorDetails]string{
		gateway.ErrorDetailsSafe: `the server "docs" refused access: it needs other credentials`,
		gateway.ErrorDetailsFull: `the server "docs" needs to be authorized`,
	} {
		w := newWorld(t, false)
		w.down = true
		url, _ := w.serve(t, oauthclient.Config{}, gateway.Options{ErrorDetails: details, Name: "docs"})
		_, err := connect(t, url, "", false)
		if err == nil || !strings.Contains(err.Error(), want) || strings.Contains(err.Error(), "invalid_grant") || len(w.heads) > 0 {
			t.Errorf("%s: got %v, and %d requests to the server", details, err, len(w.heads))
		}
	}
}

// Each client acts with a token for its own, which the server never gets.
func TestTokenExchange(t *testing.T) {
	onAll(t, func(t *testing.T, w *world, sse bool) {
		url, _ := w.serve(t, oauthclient.Config{Grant: oauthclient.TokenExchange}, gateway.Options{ForwardHeaders: []string{"Authorization"}})
		for _, token := range []string{"alices", "bobs", "alices"} {
			s := mustConnect(t, url, token, sse)
			for range 2 {
				if got, err := who(t, s); got != token || err != nil {
					t.Errorf("%s: the server sees %q, %v", token, got, err)
				}
			}
		}
		w.mu.Lock()
		defer w.mu.Unlock()
		if slices.ContainsFunc(w.heads, func(h string) bool { return !strings.HasPrefix(h, "Bearer token-") }) {
			t.Errorf("the server got %q", w.heads)
		}
	})
}

// After the end of the token that opened the session, that of the newest request is exchanged.
func TestTokenExchangeOfTheNewestToken(t *testing.T) {
	onAll(t, func(t *testing.T, w *world, sse bool) {
		url, _ := w.serve(t, oauthclient.Config{Grant: oauthclient.TokenExchange}, gateway.Options{
			ForwardHeaders: []string{"Authorization"}, Reauthenticate: true,
			Authenticate: func(*http.Request) (string, error) { return "alice", nil },
		})
		var token atomic.Value
		token.Store("alices")
		s, err := connectWith(t, url, func() string { return token.Load().(string) }, sse)
		ssetest.Must(t, err)
		w.set(func() { w.expired = "alices"; clear(w.valid) })
		token.Store("alices-next")
		for range 2 {
			if got, err := who(t, s); got != "alices-next" || err != nil {
				t.Errorf("the server sees %q, %v", got, err)
			}
		}
	})
}

// A client whose token is no good, or that has none, does not get that of another.
func TestTokenExchangeFails(t *testing.T) {
	w := newWorld(t, false)
	url, _ := w.serve(t, oauthclient.Config{Grant: oauthclient.TokenExchange}, gateway.Options{ForwardHeaders: []string{"Authorization"}})
	for _, token := range []string{"", "bad"} {
		if _, err := connect(t, url, token, false); err == nil || !strings.Contains(err.Error(), "needs to be authorized") {
			t.Errorf("%q: got %v", token, err)
		}
	}
	if len(w.heads) > 0 {
		t.Errorf("the server got %q", w.heads)
	}
}
