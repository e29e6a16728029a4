// Package issuer is an OAuth issuer whose person agrees to all, with the server that wants its tokens.
package issuer

import (
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"net"
	"net/http"
	"net/url"
	"strings"
	"sync"
	"time"
)

// Issuer is an OAuth issuer whose person agrees to all, before a server at /mcp that wants its tokens. A refresh token
// is good once.
type Issuer struct {
	URL  string
	http *http.Server

	mu       sync.Mutex // guards what follows
	server   http.Handler
	isClosed bool // it registers no clients
	clients  map[string]bool
	codes    map[string]string // with their challenges
	access   map[string]bool
	refresh  map[string]bool
	seen     Seen
}

// Seen is what an Issuer has seen.
type Seen struct {
	Logins    int // codes that were exchanged
	Refreshes int
}

// Start serves an issuer before a server, on a free port. The caller must call Close.
func Start(server http.Handler) (*Issuer, error) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	i := &Issuer{
		URL: "http://" + listener.Addr().String(), server: server,
		clients: map[string]bool{}, codes: map[string]string{}, access: map[string]bool{}, refresh: map[string]bool{},
	}
	routes := http.NewServeMux()
	routes.HandleFunc("GET /.well-known/oauth-protected-resource/mcp", i.describeServer)
	routes.HandleFunc("GET /.well-known/oauth-authorization-server", i.describe)
	routes.HandleFunc("POST /register", i.register)
	routes.HandleFunc("GET /authorize", i.authorize)
	routes.HandleFunc("POST /token", i.token)
	routes.HandleFunc("/mcp", i.serve)
	i.http = &http.Server{Handler: routes, ReadHeaderTimeout: time.Minute}
	go func() { _ = i.http.Serve(listener) }() // ends with Close
	return i, nil
}

// Close ends it.
func (i *Issuer) Close() { _ = i.http.Close() }

// Serve replaces the server.
func (i *Issuer) Serve(server http.Handler) { i.change(func() { i.server = server }) }

// RegisterNobody has it register no clients any more.
func (i *Issuer) RegisterNobody() { i.change(func() { i.isClosed = true }) }

// ForgetClients has it know none of those that it has registered.
func (i *Issuer) ForgetClients() { i.change(func() { clear(i.clients) }) }

// EndTokens ends all access tokens; refresh tokens stay.
func (i *Issuer) EndTokens() { i.change(func() { clear(i.access) }) }

// EndLogins ends all logins.
func (i *Issuer) EndLogins() {
	i.change(func() {
		clear(i.access)
		clear(i.refresh)
	})
}

// Saw returns what it has seen since it was last asked.
func (i *Issuer) Saw() (s Seen) {
	i.change(func() { s, i.seen = i.seen, Seen{} })
	return s
}

// change changes it while it serves.
func (i *Issuer) change(do func()) {
	i.mu.Lock()
	defer i.mu.Unlock()
	do()
}

func (i *Issuer) describeServer(w http.ResponseWriter, _ *http.Request) {
	answerJSON(w, http.StatusOK, map[string]any{"resource": i.URL + "/mcp", "authorization_servers": []string{i.URL}})
}

func (i *Issuer) describe(w http.ResponseWriter, _ *http.Request) {
	i.mu.Lock()
	defer i.mu.Unlock()
	d := map[string]any{
		"issuer": i.URL, "authorization_endpoint": i.URL + "/authorize", "token_endpoint": i.URL + "/token",
		"response_types_supported":         []string{"code"},
		"grant_types_supported":            []string{"authorization_code", "refresh_token"},
		"code_challenge_methods_supported": []string{"S256"}, "token_endpoint_auth_methods_supported": []string{"none"},
	}
	if !i.isClosed {
		d["registration_endpoint"] = i.URL + "/register"
	}
	answerJSON(w, http.StatusOK, d)
}

func (i *Issuer) register(w http.ResponseWriter, r *http.Request) {
	var client map[string]any
	if json.NewDecoder(http.MaxBytesReader(w, r.Body, 1<<20)).Decode(&client) != nil {
		answerJSON(w, http.StatusBadRequest, map[string]any{"error": "invalid_client_metadata"})
		return
	}
	id := rand.Text()
	i.change(func() { i.clients[id] = true })
	client["client_id"], client["token_endpoint_auth_method"] = id, "none"
	answerJSON(w, http.StatusCreated, client)
}

// authorize sends the browser back with a code.
func (i *Issuer) authorize(w http.ResponseWriter, r *http.Request) {
	query := r.URL.Query()
	back, err := url.Parse(query.Get("redirect_uri"))
	code, known := rand.Text(), false
	i.change(func() {
		if known = i.clients[query.Get("client_id")]; known {
			i.codes[code] = query.Get("code_challenge")
		}
	})
	if err != nil || !known {
		http.Error(w, "this client is not known", http.StatusBadRequest)
		return
	}
	answer := back.Query()
	answer.Set("code", code)
	answer.Set("state", query.Get("state"))
	back.RawQuery = answer.Encode()
	http.Redirect(w, r, back.String(), http.StatusFound)
}

// token exchanges a code or a refresh token.
func (i *Issuer) token(w http.ResponseWriter, r *http.Request) {
	i.mu.Lock()
	defer i.mu.Unlock()
	refuse := func(why string) { answerJSON(w, http.StatusBadRequest, map[string]any{"error": why}) }
	if !i.clients[r.PostFormValue("client_id")] {
		refuse("invalid_client")
		return
	}
	switch r.PostFormValue("grant_type") {
	case "authorization_code":
		digest := sha256.Sum256([]byte(r.PostFormValue("code_verifier")))
		challenge, known := i.codes[r.PostFormValue("code")]
		if !known || challenge != base64.RawURLEncoding.EncodeToString(digest[:]) {
			refuse("invalid_grant")
			return
		}
		delete(i.codes, r.PostFormValue("code"))
		i.seen.Logins++
	case "refresh_token":
		if !i.refresh[r.PostFormValue("refresh_token")] {
			refuse("invalid_grant")
			return
		}
		delete(i.refresh, r.PostFormValue("refresh_token"))
		i.seen.Refreshes++
	default:
		refuse("unsupported_grant_type")
		return
	}
	access, refresh := rand.Text(), rand.Text()
	i.access[access], i.refresh[refresh] = true, true
	answerJSON(w, http.StatusOK, map[string]any{
		"access_token": access, "refresh_token": refresh, "token_type": "Bearer", "expires_in": 3600,
	})
}

// serve passes on to the server what has a token.
func (i *Issuer) serve(w http.ResponseWriter, r *http.Request) {
	i.mu.Lock()
	known := i.access[strings.TrimPrefix(r.Header.Get("Authorization"), "Bearer ")]
	server := i.server
	i.mu.Unlock()
	if !known {
		w.Header().Set("WWW-Authenticate", `Bearer resource_metadata="`+i.URL+`/.well-known/oauth-protected-resource/mcp"`)
		answerJSON(w, http.StatusUnauthorized, map[string]any{"error": "invalid_token"})
		return
	}
	server.ServeHTTP(w, r)
}

func answerJSON(w http.ResponseWriter, status int, value any) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	_ = json.NewEncoder(w).Encode(value) // a client that is gone needs no answer
}
