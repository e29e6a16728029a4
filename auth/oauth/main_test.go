package oauth_test

import (
	"crypto"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"encoding/json"
	"maps"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/mcp-sse/mcp-sse/auth"

	"github.com/go-jose/go-jose/v4"
	"go.uber.org/goleak"

	"github.com/mcp-sse/mcp-sse/auth/oauth"
	"github.com/mcp-sse/mcp-sse/internal/pipetest"
	"github.com/mcp-sse/mcp-sse/internal/ssetest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

const (
	resource  = "https://gw.example.com/docs/mcp"
	alias     = "https://gw.example.com/docs/sse"
	issuerURL = "http://127.0.0.1:9/tenant"
)

// issuer is an authorization server of which tests decide everything.
type issuer struct {
	*pipetest.Server
	t *testing.T

	reload func(oauth.Options) // of what serve has started

	mu      sync.Mutex
	named   string                      // in the metadata
	keysAt  string                      // likewise
	broken  map[string]http.HandlerFunc // by the end of the path
	keys    map[string]*ecdsa.PrivateKey
	tokens  map[string]map[string]any // of introspection
	fetched map[string]int            // by the end of the path
}

// inFakeTime runs a test with an issuer in a synctest bubble.
func inFakeTime(t *testing.T, test func(t *testing.T, i *issuer)) {
	synctest.Test(t, func(t *testing.T) {
		i := &issuer{
			t: t, named: issuerURL, keysAt: "http://127.0.0.1:9/keys", keys: map[string]*ecdsa.PrivateKey{}, broken: map[string]http.HandlerFunc{},
			tokens: map[string]map[string]any{}, fetched: map[string]int{},
		}
		i.rotate("one")
		i.Server = pipetest.Serve(i, nil, nil)
		defer i.Stop()
		test(t, i)
	})
}

func (i *issuer) rotate(id string) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	ssetest.Must(i.t, err)
	i.mu.Lock()
	defer i.mu.Unlock()
	clear(i.keys)
	i.keys[id] = key
}

func (i *issuer) breaks(what string, how http.HandlerFunc) {
	i.mu.Lock()
	defer i.mu.Unlock()
	i.broken[what] = how
}

func (i *issuer) count(what string) int {
	i.mu.Lock()
	defer i.mu.Unlock()
	return i.fetched[what]
}

func (i *issuer) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	what := r.URL.Path[strings.LastIndex(r.URL.Path, "/")+1:]
	if strings.HasPrefix(r.URL.Path, "/.well-known/oauth-authorization-server") {
		what = "oauth-authorization-server"
	}
	i.mu.Lock()
	i.fetched[what]++
	broken := i.broken[what]
	i.mu.Unlock()
	if broken != nil {
		broken(w, r)
		return
	}
	i.mu.Lock()
	defer i.mu.Unlock()
	w.Header().Set("Content-Type", "application/json")
	var answer any
	switch what {
	case "openid-configuration", "oauth-authorization-server":
		answer = map[string]any{
			"issuer": i.named, "jwks_uri": i.keysAt, "authorization_endpoint": issuerURL + "/auth", "token_endpoint": issuerURL + "/token",
			"response_types_supported": []string{"code"}, "code_challenge_methods_supported": []string{"S256"},
		}
	case "keys", "new-keys":
		set := jose.JSONWebKeySet{}
		for id, key := range i.keys {
			set.Keys = append(set.Keys, jose.JSONWebKey{Key: key.Public(), KeyID: id, Algorithm: "ES256", Use: "sig"})
		}
		answer = set
	case "introspect":
		if id, secret, _ := r.BasicAuth(); id != "gateway" || secret != "s%26cret" {
			w.WriteHeader(http.StatusUnauthorized)
		}
		answer = map[string]any{"active": false}
		if claims := i.tokens[r.FormValue("token")]; claims != nil {
			answer = claims
		}
	default:
		w.WriteHeader(http.StatusNotFound)
	}
	_ = json.NewEncoder(w).Encode(answer)
}

// claims returns valid claims, changed by the pairs of names and values; a nil removes one.
func claims(change ...any) map[string]any {
	now := time.Now().Unix()
	c := map[string]any{"iss": issuerURL, "sub": "alice", "aud": resource, "exp": now + 300, "iat": now, "scope": "read write"}
	for n := 0; n < len(change); n += 2 {
		c[change[n].(string)] = change[n+1]
		if change[n+1] == nil {
			delete(c, change[n].(string))
		}
	}
	return c
}

// sign returns a JWT with the issuer's key.
func (i *issuer) sign(c map[string]any) string {
	i.mu.Lock()
	defer i.mu.Unlock()
	for id, key := range maps.All(i.keys) {
		return signWith(i.t, jose.ES256, key, id, c)
	}
	return ""
}

func signWith(t *testing.T, alg jose.SignatureAlgorithm, key any, id string, c map[string]any) string {
	t.Helper()
	signer, err := jose.NewSigner(jose.SigningKey{Algorithm: alg, Key: jose.JSONWebKey{Key: key, KeyID: id}}, nil)
	ssetest.Must(t, err)
	payload, _ := json.Marshal(c)
	signed, err := signer.Sign(payload)
	ssetest.Must(t, err)
	compact, err := signed.CompactSerialize()
	ssetest.Must(t, err)
	return compact
}

func (i *issuer) public() crypto.PublicKey {
	i.mu.Lock()
	defer i.mu.Unlock()
	for _, key := range i.keys {
		return key.Public()
	}
	return nil
}

// resource returns a Resource of the issuer with introspection.
func (i *issuer) resource(o oauth.Options) *oauth.Resource {
	i.t.Helper()
	if o.Resource == "" {
		o.Resource, o.Aliases = resource, []string{alias}
	}
	o.Issuer, o.Transport = issuerURL, i.Client.Transport
	o.Introspection = oauth.Introspection{URL: "http://127.0.0.1:9/introspect", ClientID: "gateway", Secret: "s&cret"}
	res, err := oauth.New(o)
	ssetest.Must(i.t, err)
	return res
}

// post is a POST to the resource with these Authorization headers.
func post(target string, authorization ...string) *http.Request {
	r := httptest.NewRequest(http.MethodPost, target, nil)
	r.Header["Authorization"] = authorization
	return r
}

// ask returns what becomes of a request with a token: the principal, or status and message.
func ask(res *oauth.Resource, token string) (string, *auth.Error) {
	principal, err := res.Authenticate(post("/docs/mcp", "Bearer "+token))
	if err == nil {
		return principal, nil
	}
	return "", err.(*auth.Error)
}

// wants checks what becomes of a request with a token: the status of its refusal, 0 for none.
func wants(t testing.TB, res *oauth.Resource, what, token string, status int) {
	t.Helper()
	if _, err := ask(res, token); (err == nil) != (status == 0) || err != nil && err.Status != status {
		t.Errorf("%s: got %+v, want %d", what, err, status)
	}
}

// revoke makes introspection say that a token is not active.
func (i *issuer) revoke(token string) {
	i.mu.Lock()
	defer i.mu.Unlock()
	delete(i.tokens, token)
}
