package oauth_test

import (
	"cmp"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/mcp-sse/mcp-sse/auth"

	"github.com/go-jose/go-jose/v4"

	"github.com/mcp-sse/mcp-sse/auth/oauth"
	"github.com/mcp-sse/mcp-sse/internal/ssetest"
)

const where = `resource_metadata="https://gw.example.com/.well-known/oauth-protected-resource/docs/mcp", scope="read"`

func TestTokens(t *testing.T) {
	inFakeTime(t, func(t *testing.T, i *issuer) {
		res := i.resource(oauth.Options{Scopes: []string{"read"}})
		other, _ := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
		public, _ := x509.MarshalPKIXPublicKey(i.public())
		now := time.Now().Unix()
		unsigned := func(header string) string {
			payload, _ := json.Marshal(claims())
			enc := base64.RawURLEncoding
			return enc.EncodeToString([]byte(header)) + "." + enc.EncodeToString(payload) + "."
		}
		good := i.sign(claims())
		for _, test := range []struct {
			name, token string
			status      int
			message     string
		}{
			{"good", good, 0, ""},
			{"several audiences", i.sign(claims("aud", []string{"x", resource})), 0, ""},
			{"audience is the alias", i.sign(claims("aud", alias)), 0, ""},
			{"scopes in scp", i.sign(claims("scope", nil, "scp", []string{"read"})), 0, ""},
			{"expired within the skew", i.sign(claims("exp", now-29)), 0, ""},
			{"not valid yet, within the skew", i.sign(claims("nbf", now+29)), 0, ""},

			{"expired", i.sign(claims("exp", now-31)), 401, "the token has expired"},
			{"expired far off", i.sign(claims("exp", -1e300)), 401, "the token has expired"},
			{"not valid yet", i.sign(claims("nbf", now+31)), 401, "the token is not valid yet"},
			{"no expiry", i.sign(claims("exp", nil)), 401, "the token has no expiry"},
			{"wrong audience", i.sign(claims("aud", "https://gw.example.com/other/mcp")), 401, "its audience must be " + resource},
			{"audience above", i.sign(claims("aud", "https://gw.example.com")), 401, "its audience must be " + resource},
			{"no audience", i.sign(claims("aud", nil)), 401, "its audience must be " + resource},
			{"wrong issuer", i.sign(claims("iss", "http://127.0.0.1:9/other")), 401, "not one that " + issuerURL + " has signed"},
			{"no issuer", i.sign(claims("iss", nil)), 401, "not one that"},
			{"no principal", i.sign(claims("sub", nil)), 401, "no usable claim sub"},
			{"principal with a newline", i.sign(claims("sub", "a\nb")), 401, "no usable claim sub"},
			{"lacks the scope", i.sign(claims("scope", "readwrite write")), 403, "the token lacks the scope read"},
			{"alg none", unsigned(`{"alg":"none"}`), 401, "not one that"},
			{"alg None", unsigned(`{"alg":"None","kid":"one"}`), 401, "not one that"},
			{"HS256 with the public key", signWith(t, jose.HS256, public, "one", claims()), 401, "not one that"},
			{"another key under a known id", signWith(t, jose.ES256, other, "one", claims()), 401, "not one that"},
			{"unknown key", signWith(t, jose.ES256, other, "two", claims()), 401, "not one that"},
			{"changed", good[:len(good)-8] + "AAAAAAAA", 401, "not one that"},
			{"two dots", "..", 401, "not one that"},
			{"opaque and unknown", "xyz", 401, "has expired, is revoked"},
			{"alg fetching keys", unsigned(`{"alg":"fetching keys"}`), 401, "not one that"},
			{"expiry as text", i.sign(claims("exp", "1")), 401, "a time that is not a number"},
			{"expiry in capitals", i.sign(claims("exp", nil, "EXP", now+300)), 401, "the token has no expiry"},
			{"issuer in capitals", i.sign(claims("iss", nil, "ISS", issuerURL)), 401, "not one that"},
			{"begin as text", i.sign(claims("nbf", "1")), 401, "a time that is not a number"},
			{"audience in a text", i.sign(claims("aud", []string{"x " + resource})), 401, "its audience must be " + resource},
			{"100 KB", strings.Repeat("x", 100<<10), 400, "the token is over 16384 bytes"},
		} {
			principal, err := ask(res, test.token)
			if test.status == 0 {
				if principal != "alice" || err != nil {
					t.Errorf("%s: got %q, %v", test.name, principal, err)
				}
				continue
			}
			want := `error="` + map[int]string{400: "invalid_request", 401: "invalid_token", 403: "insufficient_scope"}[test.status] + `", ` + where
			if err == nil || err.Status != test.status || !strings.Contains(err.Message, test.message) || err.Challenge != want || strings.Contains(err.Error(), "eyJ") {
				t.Errorf("%s: got %q, %+v, want %d %q %s", test.name, principal, err, test.status, test.message, want)
			}
		}
	})
}

func TestRequests(t *testing.T) {
	inFakeTime(t, func(t *testing.T, i *issuer) {
		res := i.resource(oauth.Options{})
		good := "Bearer " + i.sign(claims())
		for _, test := range []struct {
			r       *http.Request
			status  int
			message string
		}{
			{post("/docs/mcp?x=access_token", good), 0, ""},
			{post("/docs/mcp", strings.Replace(good, "Bearer ", "bearer   ", 1)+" "), 0, ""},
			{post("/docs/mcp"), 401, "send Authorization"},
			{post("/docs/mcp", "Bearer "), 401, "send Authorization"},
			{post("/docs/mcp", "Basic eDp5"), 401, "send Authorization"},
			{post("/docs/mcp", good, good), 400, "several Authorization headers"},
			{post("/docs/mcp", good, "Basic eDp5"), 400, "several Authorization headers"},
			{post("/docs/mcp?access_token=x"), 400, "not in the URL"},
			{post("/docs/mcp?access_token=x", good), 400, "not in the URL"},
		} {
			principal, err := res.Authenticate(test.r)
			if test.status == 0 {
				if principal != "alice" || err != nil {
					t.Errorf("%q: got %q, %v", test.r.Header, principal, err)
				}
				continue
			}
			refused, _ := errors.AsType[*auth.Error](err)
			if refused == nil || cmp.Or(refused.Status, 401) != test.status || !strings.Contains(refused.Message, test.message) ||
				strings.Contains(refused.Challenge, "error") != (test.status == 400) {
				t.Errorf("%s %.30q: got %+v, want %d %q", test.r.URL, test.r.Header, refused, test.status, test.message)
			}
		}
	})
}

func TestMetadata(t *testing.T) {
	inFakeTime(t, func(t *testing.T, i *issuer) {
		res := i.resource(oauth.Options{Scopes: []string{"read"}})
		for path, want := range map[string]string{"/docs/mcp": resource, "/docs/sse": alias, "/docs/sse/0.x.y/message": alias, "/elsewhere": resource} {
			_, err := res.Authenticate(post(path))
			refused, _ := errors.AsType[*auth.Error](err)
			at, _, _ := strings.Cut(strings.TrimPrefix(refused.Challenge, `resource_metadata="https://gw.example.com`), `"`)
			h := res.Metadata()[at]
			if h == nil {
				t.Fatalf("%s: the challenge %s names no metadata", path, refused.Challenge)
			}
			w := httptest.NewRecorder()
			if h.ServeHTTP(w, httptest.NewRequest(http.MethodHead, at, nil)); w.Code != http.StatusOK {
				t.Errorf("HEAD: got %d", w.Code)
			}
			w = httptest.NewRecorder()
			h.ServeHTTP(w, httptest.NewRequest(http.MethodGet, at, nil))
			var got struct {
				Resource string
				Servers  []string `json:"authorization_servers"`
				Scopes   []string `json:"scopes_supported"`
			}
			if err := json.Unmarshal(w.Body.Bytes(), &got); err != nil || got.Resource != want || !slices.Equal(got.Servers, []string{issuerURL}) || !slices.Equal(got.Scopes, []string{"read"}) {
				t.Errorf("%s: got %s, %v", path, w.Body, err)
			}
		}
		below := i.resource(oauth.Options{Resource: "https://gw.example.com/sse/mcp", Aliases: []string{"https://gw.example.com/sse/sse"}})
		for _, path := range []string{"/sse/mcp", "/sse/sse"} { // the address that was asked, whatever the prefix
			_, err := below.Authenticate(post(path))
			refused, _ := errors.AsType[*auth.Error](err)
			ssetest.WantText(t, path, refused.Challenge, `oauth-protected-resource`+path+`"`)
		}
		other := i.resource(oauth.Options{Resource: "https://gw.example.com/"})
		if _, err := ask(other, i.sign(claims())); err == nil {
			t.Error("a token for one resource is good for another")
		}
		if p, err := ask(other, i.sign(claims("aud", "https://gw.example.com"))); p != "alice" {
			t.Error(err)
		}
		if other.Metadata()["/.well-known/oauth-protected-resource"] == nil {
			t.Errorf("paths: %v", other.Metadata())
		}
	})
}

func TestOptions(t *testing.T) {
	good := oauth.Options{Resource: resource, Issuer: issuerURL}
	for name, change := range map[string]func(o *oauth.Options){
		"Resource":      func(o *oauth.Options) { o.Resource = "http://gw.example.com/mcp" },
		"Issuer":        func(o *oauth.Options) { o.Issuer = "login.example.com" },
		"Introspection": func(o *oauth.Options) { o.Introspection.URL = "https://login.example.com/introspect" },
		"Introspection: want a ClientID, a Secret and a URL": func(o *oauth.Options) { // the secret is not shown
			o.Introspection = oauth.Introspection{URL: "https://a:hunter2@login.example.com", ClientID: "a", Secret: "b"}
		},
	} {
		o := good
		change(&o)
		if _, err := oauth.New(o); err == nil || !strings.Contains(err.Error(), "oauth: "+name+": ") || strings.Contains(err.Error(), "hunter2") {
			t.Errorf("%s: got %v", name, err)
		}
	}
	if _, err := oauth.New(good); err != nil {
		t.Error(err)
	}
}

func TestDiscovery(t *testing.T) {
	for name, test := range map[string]struct {
		set    func(i *issuer)
		status int
		cause  string
	}{
		"RFC 8414 alone": {func(i *issuer) { i.breaks("openid-configuration", http.NotFound) }, 0, ""},
		"another issuer": {func(i *issuer) { i.named = "http://127.0.0.1:9/evil" }, 503, "http://127.0.0.1:9/evil"},
		"down": {func(i *issuer) {
			i.breaks("openid-configuration", fail)
			i.breaks("oauth-authorization-server", fail)
		}, 503, "500"},
		"slow": {func(i *issuer) {
			i.breaks("openid-configuration", slow)
			i.breaks("oauth-authorization-server", slow)
		}, 503, "Timeout"},
		"huge": {func(i *issuer) {
			i.breaks("openid-configuration", huge)
			i.breaks("oauth-authorization-server", huge)
		}, 503, "too large"},
		"no JSON": {func(i *issuer) {
			i.breaks("openid-configuration", func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write([]byte("<html>")) })
			i.breaks("oauth-authorization-server", http.NotFound)
		}, 503, "decode"},
	} {
		t.Run(name, func(t *testing.T) {
			inFakeTime(t, func(t *testing.T, i *issuer) {
				res, token := i.resource(oauth.Options{}), i.sign(claims())
				test.set(i)
				began := time.Now()
				_, err := ask(res, token)
				if d := time.Since(began); d > 10*time.Second {
					t.Errorf("took %s", d)
				}
				if test.status == 0 && err != nil || test.status != 0 && (err == nil || err.Status != test.status || !strings.Contains(err.Error(), test.cause)) {
					t.Errorf("got %+v", err)
				}
				i.mu.Lock()
				i.named = issuerURL
				clear(i.broken)
				i.mu.Unlock()
				time.Sleep(10 * time.Second)
				wants(t, res, "afterwards", token, 0)
			})
		})
	}
}

// Clients that go on to ask while the issuer is down do not keep it from being found later.
func TestDiscoveryUnderLoad(t *testing.T) {
	inFakeTime(t, func(t *testing.T, i *issuer) {
		res, token := i.resource(oauth.Options{}), i.sign(claims())
		i.breaks("openid-configuration", http.NotFound)
		i.breaks("oauth-authorization-server", fail)
		for range 200 {
			wants(t, res, "while the issuer is down", token, 503)
			time.Sleep(100 * time.Millisecond)
		}
		if n := i.count("openid-configuration"); n > 20 {
			t.Errorf("metadata was fetched %d times", n)
		}
		i.breaks("oauth-authorization-server", nil)
		for range 150 {
			time.Sleep(100 * time.Millisecond)
			_, _ = ask(res, token)
		}
		wants(t, res, "15 s later", token, 0)
	})
}

func fail(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusInternalServerError) }

func slow(_ http.ResponseWriter, r *http.Request) {
	_, _ = io.Copy(io.Discard, r.Body) // else net/http does not notice that the client is gone
	select {
	case <-r.Context().Done():
	case <-time.After(time.Minute):
	}
}

func huge(w http.ResponseWriter, _ *http.Request) {
	for range 2 << 10 {
		if _, err := w.Write([]byte(strings.Repeat(" ", 1<<10))); err != nil {
			return
		}
	}
}

func TestKeysAreNotThere(t *testing.T) {
	for name, broken := range map[string]http.HandlerFunc{
		"down": fail,
		"slow": slow,
		"huge": huge,
	} {
		t.Run(name, func(t *testing.T) {
			inFakeTime(t, func(t *testing.T, i *issuer) {
				res := i.resource(oauth.Options{})
				i.breaks("keys", broken)
				began := time.Now()
				_, err := ask(res, i.sign(claims()))
				if err == nil || err.Status != 503 || err.Challenge == "" || time.Since(began) > 10*time.Second {
					t.Errorf("got %+v after %s", err, time.Since(began))
				}
				i.breaks("keys", nil)
				synctest.Wait() // go-oidc has told of its failure before it forgets that
				wants(t, res, "afterwards", i.sign(claims()), 0)
				i.breaks("keys", broken)
				wants(t, res, "with known keys", i.sign(claims("sub", "bob")), 0)
			})
		})
	}
}

// When keys change under load, every token of the new one is good at once, and they are
// fetched once. Unknown keys cannot make the gateway fetch without end.
func TestKeysRotate(t *testing.T) {
	inFakeTime(t, func(t *testing.T, i *issuer) {
		res := i.resource(oauth.Options{})
		wants(t, res, "the token", i.sign(claims()), 0)
		synctest.Wait() // go-oidc has the keys before it forgets that it asked for them
		i.rotate("two")
		var wg sync.WaitGroup
		for range 50 {
			token := i.sign(claims("jti", rand.Text()))
			wg.Go(func() {
				wants(t, res, "the token", token, 0)
			})
		}
		wg.Wait()
		if n := i.count("keys"); n > 10 {
			t.Errorf("keys were fetched %d times", n)
		}
		stranger, _ := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
		for range 100 {
			_, _ = ask(res, signWith(t, jose.ES256, stranger, rand.Text(), claims()))
		}
		if n := i.count("keys"); n > 10 {
			t.Errorf("unknown keys: keys were fetched %d times", n)
		}
		i.rotate("three")
		time.Sleep(5 * time.Second)
		wants(t, res, "afterwards", i.sign(claims()), 0)
	})
}

func TestIntrospection(t *testing.T) {
	inFakeTime(t, func(t *testing.T, i *issuer) {
		res := i.resource(oauth.Options{Scopes: []string{"read"}, PrincipalClaim: "username"})
		now := time.Now().Unix()
		i.tokens = map[string]map[string]any{
			"good":     claims("active", true, "username", "alice", "exp", nil),
			"short":    claims("active", true, "username", "bob", "exp", now-20),
			"other":    claims("active", true, "username", "bob", "aud", "https://other.example.com"),
			"nobody":   claims("active", true, "username", "bob", "aud", nil),
			"foreign":  claims("active", true, "username", "bob", "iss", "https://evil.example.com"),
			"inactive": claims("active", "true", "username", "bob"),
			"expired":  claims("active", true, "username", "bob", "exp", now-31),
			"poor":     claims("active", true, "username", "bob", "scope", "write"),
		}
		for token, status := range map[string]int{"good": 0, "short": 0, "other": 401, "nobody": 401, "foreign": 401, "inactive": 401, "expired": 401, "poor": 403} {
			wants(t, res, token, token, status)
		}
		asked := i.count("introspect")
		for range 3 {
			wants(t, res, "the token", "good", 0)
		}
		ssetest.Want(t, "questions about a known token", i.count("introspect"), asked)
		time.Sleep(11 * time.Second)
		if _, err := ask(res, "short"); err == nil { // it expired while it was known
			t.Error("an expired token is good")
		}
		i.breaks("introspect", fail)
		wants(t, res, "a known token while introspection is down", "good", 0)
		wants(t, res, "an unknown token", "unknown", 503)
		time.Sleep(20 * time.Second)
		wants(t, res, "after 30 s", "good", 503)
		i.breaks("introspect", nil)
		wants(t, res, "afterwards", "good", 0)
		i.revoke("good")
		time.Sleep(30 * time.Second)
		wants(t, res, "revoked", "good", 401)
	})
}

// Clients are told the scopes that a token may have beside the scopes that it must have; no token needs the former. The
// resource knows the scopes of a token that it has let in without asking the issuer, and a resource that takes the place
// of another one inherits them.
func TestScopesOfATokenThatIsKnown(t *testing.T) {
	inFakeTime(t, func(t *testing.T, i *issuer) {
		o := oauth.Options{Scopes: []string{"read"}, Supported: []string{"write"}}
		res := i.resource(o)
		i.tokens = map[string]map[string]any{
			"plain": claims("active", true, "scope", "read"), "more": claims("active", true, "scope", "read write x"),
			"other": claims("active", true, "aud", "https://other.example.com", "scope", "read write"),
		}
		scopes := func(res *oauth.Resource) (all []string) {
			for _, token := range []string{"plain", "more", "other", "unknown"} {
				has, ok := res.Scopes("Bearer " + token)
				all = append(all, fmt.Sprint(token, has, ok))
			}
			return append(all, fmt.Sprint(res.Scopes("more")))
		}
		none := []string{"plain[] false", "more[] false", "other[] false", "unknown[] false", "[] false"}
		ssetest.WantLines(t, scopes(res), none)
		for token, status := range map[string]int{"plain": 0, "more": 0, "other": 401, "unknown": 401} {
			wants(t, res, token, token, status)
		}
		known := []string{"plain[read] true", "more[read write x] true", "other[] false", "unknown[] false", "[] false"}
		asked := i.count("introspect")
		ssetest.WantLines(t, scopes(res), known)
		time.Sleep(time.Minute)
		ssetest.WantLines(t, scopes(res), known)
		_, refusal := ask(res, "")
		ssetest.WantText(t, "the challenge", refusal.Challenge, `scope="read write"`)
		for path, handler := range res.Metadata() {
			w := httptest.NewRecorder()
			handler.ServeHTTP(w, httptest.NewRequest(http.MethodGet, path, nil))
			ssetest.WantText(t, "the metadata", w.Body.String(), `"scopes_supported":["read","write"]`)
		}
		next, another := i.resource(oauth.Options{Scopes: []string{"x"}}), i.resource(oauth.Options{PrincipalClaim: "username"})
		next.Inherit(res)
		another.Inherit(res)
		ssetest.WantLines(t, scopes(next), known)
		ssetest.WantLines(t, scopes(another), none)
		ssetest.Want(t, "questions", i.count("introspect"), asked)
	})
}
