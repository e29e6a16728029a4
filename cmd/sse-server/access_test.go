package main

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/go-jose/go-jose/v4"

	"github.com/mcp-sse/mcp-sse/cmd/sse-server/internal/clitest"
	"github.com/mcp-sse/mcp-sse/internal/ssetest"
)

// startIssuer starts an issuer of JWTs, and returns its URL and a function that signs one for
// a resource.
func startIssuer(t *testing.T) (url string, sign func(resource string) string) {
	t.Helper()
	key := clitest.Must(ecdsa.GenerateKey(elliptic.P256(), rand.Reader))
	signer := clitest.Must(jose.NewSigner(jose.SigningKey{Algorithm: jose.ES256, Key: key}, nil))
	var srv *httptest.Server
	srv = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		var answer any = jose.JSONWebKeySet{Keys: []jose.JSONWebKey{{Key: key.Public()}}}
		if r.URL.Path != "/keys" {
			answer = map[string]string{"issuer": srv.URL, "jwks_uri": srv.URL + "/keys"}
		}
		w.Header().Set("Content-Type", "application/json")
		_ = json.NewEncoder(w).Encode(answer)
	}))
	srv.Config.SetKeepAlivesEnabled(false)
	t.Cleanup(srv.Close)
	return srv.URL, func(resource string) string {
		claims, _ := json.Marshal(map[string]any{"iss": srv.URL, "sub": "alice", "aud": resource, "exp": time.Now().Unix() + 600})
		signed := clitest.Must(signer.Sign(claims))
		token, _ := signed.CompactSerialize()
		return token
	}
}

func TestOAuth(t *testing.T) {
	t.Parallel()
	const static, base = "static-0123456789abcdef", "public-url: https://gw.example.com\noauth: {issuer: ISSUER}\n"
	issuer, sign := startIssuer(t)
	withIssuer := strings.ReplaceAll(base, "ISSUER", issuer)
	l := startLive(t, "servers: {a: {}, b: {}}\n")
	nobody, err := tryConnect(t, l.server("a"), "")
	ssetest.Must(t, err)
	sum := sha256.Sum256([]byte(static))
	l.write(t, "tokens", fmt.Sprintf("ops:sha256:%x\n", sum))
	l.write(t, "gw.yaml", withIssuer+"auth-tokens-file: {DIR}/tokens\nservers: {a: {}, b: {scopes: [x]}}\n")
	l.wantReload(t)
	_ = nobody.Wait()
	l.log.await(t, 1, "reason=revoked")

	token := sign("https://gw.example.com/a/mcp")
	for _, test := range []struct{ server, token, want string }{
		{"b", token, "its audience must be https://gw.example.com/b/mcp"},
		{"b", sign("https://gw.example.com/b/sse"), "the token lacks the scope x"},
		{"a", fmt.Sprintf("%x", sum), "the token is not a JWT"},
		{"a", "", "send Authorization: Bearer"},
	} {
		if _, body := ask(t, l.client, http.MethodPost, l.server(test.server), test.token); !strings.Contains(body, test.want) {
			t.Errorf("%s: got %s, want %s", test.server, body, test.want)
		}
	}
	at := strings.TrimSuffix(l.server("b"), "/b/mcp") + "/.well-known/oauth-protected-resource/b/mcp"
	wantStatus(t, l.client, at, "", http.StatusOK, `"resource":"https://gw.example.com/b/mcp"`, `"scopes_supported":["x"]`)
	wantStatus(t, l.client, at+"x", "", http.StatusNotFound)
	if code, _ := l.reload(t, token); code != http.StatusUnauthorized {
		t.Errorf("a token of the issuer makes an operator: got %d", code)
	}
	alice, err := tryConnect(t, l.server("a"), token)
	ssetest.Must(t, err)
	ops, err := tryConnect(t, l.server("b"), static)
	ssetest.Must(t, err)
	reload := func(content string) {
		t.Helper()
		l.write(t, "gw.yaml", content)
		if code, body := l.reload(t, static); code != http.StatusOK {
			t.Fatalf("reload: got %d %s", code, body)
		}
	}
	reload(withIssuer + "auth-tokens-file: {DIR}/tokens\nmax-connections: 7\nservers: {a: {}, b: {}}\n")
	echo(t, alice)
	echo(t, ops)
	other, signOther := startIssuer(t)
	reload(strings.ReplaceAll(base, "ISSUER", other) + "auth-tokens-file: {DIR}/tokens\nservers: {a: {}, b: {}}\n")
	l.log.await(t, 2, "reason=revoked") // the alice of another issuer is somebody else
	_, err = tryConnect(t, l.server("a"), signOther("https://gw.example.com/a/mcp"))
	ssetest.Must(t, err)
	echo(t, ops)
	reload("auth-tokens-file: {DIR}/tokens\nservers: {a: {}, b: {}}\n")
	l.log.await(t, 3, "reason=revoked")
	echo(t, ops)
	if log := l.log.String(); !strings.Contains(log, "principal=oauth:alice") || strings.Contains(log, "eyJ") {
		t.Errorf("the log has no principal, or a token:\n%s", log)
	}
}

// Where strangers reach the main address, its routes for operators need a token of the file.
func TestOAuthMakesNoOperators(t *testing.T) {
	t.Parallel()
	issuer, sign := startIssuer(t)
	l := &live{dir: t.TempDir(), client: newClient(t, &http.Transport{})}
	l.write(t, "gw.yaml", "public-url: https://gw.example.com\noauth: {issuer: "+issuer+"}\n")
	p := start(t, "--config", filepath.Join(l.dir, "gw.yaml"), "--addr", "127.0.0.1:0")
	for _, token := range []string{"", sign("https://gw.example.com/mcp")} {
		wantStatus(t, l.client, strings.TrimSuffix(p.url, "/mcp")+"/metrics", token, http.StatusUnauthorized, "operators need a token")
	}
}
