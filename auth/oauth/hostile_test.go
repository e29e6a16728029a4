package oauth_test

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"io"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/mcp-sse/mcp-sse/auth"

	"github.com/go-jose/go-jose/v4"

	"github.com/mcp-sse/mcp-sse/auth/oauth"
	"github.com/mcp-sse/mcp-sse/internal/pipetest"
	"github.com/mcp-sse/mcp-sse/internal/ssetest"
)

// A token that the issuer cannot stomach is the fault of one client alone.
func TestOneBadTokenStopsNobody(t *testing.T) {
	inFakeTime(t, func(t *testing.T, i *issuer) {
		res := i.resource(oauth.Options{})
		i.tokens["good"] = claims("active", true)
		for _, broken := range []http.HandlerFunc{fail, slow, func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusBadRequest) }} {
			i.breaks("introspect", broken)
			wants(t, res, "the token", "bad", 503)
			i.breaks("introspect", nil)
			wants(t, res, "another client's token", "good", 0)
			time.Sleep(30 * time.Second) // it is remembered
		}
	})
}

// Strangers who send made-up tokens leave connections for the tokens that are known.
func TestStrangersLeaveRoom(t *testing.T) {
	inFakeTime(t, func(t *testing.T, i *issuer) {
		i.Client.Transport.(*http.Transport).MaxConnsPerHost = 64
		res := i.resource(oauth.Options{})
		i.tokens["good"] = claims("active", true, "exp", nil)
		wants(t, res, "the token", "good", 0)
		time.Sleep(31 * time.Second) // it must be checked again
		i.breaks("introspect", func(w http.ResponseWriter, r *http.Request) {
			if r.FormValue("token") != "good" {
				slow(w, r)
				return
			}
			_, _ = io.WriteString(w, `{"active":true,"sub":"alice","aud":"`+resource+`"}`)
		})
		var all sync.WaitGroup
		for range 100 {
			all.Go(func() { _, _ = ask(res, rand.Text()) })
		}
		synctest.Wait()
		wants(t, res, "the token", "good", 0)
		all.Wait()
	})
}

// Tokens that are not known wait their turn at the issuer, for a bounded time.
func TestStrangersWaitTheirTurn(t *testing.T) {
	inFakeTime(t, func(t *testing.T, i *issuer) {
		res := i.resource(oauth.Options{})
		i.breaks("introspect", func(w http.ResponseWriter, _ *http.Request) {
			time.Sleep(time.Second)
			_, _ = io.WriteString(w, `{"active":true,"sub":"alice","aud":"`+resource+`"}`)
		})
		var all sync.WaitGroup
		for range 100 {
			all.Go(func() {
				wants(t, res, "the token", rand.Text(), 0)
			})
		}
		all.Wait()
		i.breaks("introspect", slow)
		began := time.Now()
		for range 200 {
			all.Go(func() {
				if _, err := ask(res, rand.Text()); err == nil || err.Status != 503 || time.Since(began) > 10*time.Second {
					t.Errorf("got %+v after %s", err, time.Since(began))
				}
			})
		}
		all.Wait()
	})
}

// Not all may wait: those beyond a bound hear at once that they shall come again.
func TestStrangersWhoWaitAreBounded(t *testing.T) {
	for name, token := range map[string]func() string{"many tokens": rand.Text, "one token": func() string { return "same" }} {
		inFakeTime(t, func(t *testing.T, i *issuer) {
			res := i.resource(oauth.Options{})
			i.breaks("introspect", slow)
			var all sync.WaitGroup
			var atOnce atomic.Int32
			began := time.Now()
			for range 1_100 {
				all.Go(func() {
					if _, err := ask(res, token()); err != nil && err.Status == 503 && time.Since(began) == 0 {
						atOnce.Add(1)
					}
				})
			}
			synctest.Wait()
			ssetest.Want(t, name+": refused at once", atOnce.Load(), 100)
			wants(t, res, name+": a JWT", i.sign(claims()), 0)
			all.Wait()
			i.breaks("introspect", nil)
			wants(t, res, name+": afterwards", rand.Text(), 401)
		})
	}
}

// A token that was valid once is one of a stranger since it has been refused.
func TestRevokedTokensWaitTheirTurn(t *testing.T) {
	inFakeTime(t, func(t *testing.T, i *issuer) {
		res := i.resource(oauth.Options{})
		i.tokens["old"] = claims("active", true)
		_, _ = ask(res, "old")
		i.revoke("old")
		time.Sleep(30 * time.Second)
		wants(t, res, "the token", "old", 401)
		time.Sleep(10 * time.Second)
		i.breaks("introspect", slow)
		var all sync.WaitGroup
		for range 32 {
			all.Go(func() { _, _ = ask(res, rand.Text()) })
		}
		synctest.Wait()
		before := i.count("introspect")
		all.Go(func() { _, _ = ask(res, "old") })
		synctest.Wait()
		ssetest.Want(t, "questions before others", i.count("introspect")-before, 0)
		all.Wait()
	})
}

// A client that repeats an invalid token does not make the gateway ask the issuer each time.
func TestRefusalsAreRemembered(t *testing.T) {
	inFakeTime(t, func(t *testing.T, i *issuer) {
		res := i.resource(oauth.Options{})
		for range 10 {
			wants(t, res, "the token", "bad", 401)
		}
		ssetest.Want(t, "questions", i.count("introspect"), 1)
		i.tokens["bad"] = claims("active", true)
		time.Sleep(10 * time.Second)
		wants(t, res, "once it is valid", "bad", 0)
	})
}

// A flood of tokens that are not valid pushes out none that is.
func TestManyTokens(t *testing.T) {
	inFakeTime(t, func(t *testing.T, i *issuer) {
		res := i.resource(oauth.Options{})
		i.tokens["good"] = claims("active", true)
		_, _ = ask(res, "good")
		for range 2_100 {
			_, _ = ask(res, rand.Text())
		}
		ssetest.Want(t, "tokens that are remembered as valid", oauth.Valid(res), 1)
		i.breaks("introspect", fail)
		wants(t, res, "the token", "good", 0)
	})
}

// Azure AD B2C has a query in the URL of its keys. Keys that everyone on the way could replace
// decide about no token.
func TestWhereKeysAre(t *testing.T) {
	for at, status := range map[string]int{"http://127.0.0.1:9/keys?p=policy": 0, "http://login.example.com/keys": 503} {
		inFakeTime(t, func(t *testing.T, i *issuer) {
			i.keysAt = at
			_, err := ask(i.resource(oauth.Options{}), i.sign(claims()))
			if (err == nil) != (status == 0) || err != nil && (err.Status != status || i.count("keys") > 0) {
				t.Errorf("%s: got %+v", at, err)
			}
		})
	}
}

// ends returns a channel that gets how long a stream has lasted when it is over.
func ends(t *testing.T, res *http.Response) <-chan time.Duration {
	t.Helper()
	if res.StatusCode != http.StatusOK {
		text, _ := io.ReadAll(res.Body)
		t.Fatalf("%s %s", res.Status, text)
	}
	over, began := make(chan time.Duration, 1), time.Now()
	go func() { // ends with the stream
		_, _ = io.Copy(io.Discard, res.Body)
		_ = res.Body.Close()
		over <- time.Since(began)
	}()
	return over
}

// open opens a stream over HTTP+SSE with a token.
func open(t *testing.T, srv *pipetest.Server, token string) <-chan time.Duration {
	t.Helper()
	return ends(t, do(t, srv, http.MethodGet, "/docs/sse", token, ""))
}

// Slow introspection of many tokens does not keep other streams open beyond their time.
func TestLeasesWhileIntrospectionIsSlow(t *testing.T) {
	inFakeTime(t, func(t *testing.T, i *issuer) {
		srv, _, stop := i.serve(oauth.Options{})
		defer stop()
		for n := range 400 {
			name := "opaque" + string(rune('a'+n/26)) + string(rune('a'+n%26))
			i.tokens[name] = claims("active", true, "exp", nil, "sub", name)
			open(t, srv, name)
		}
		over := open(t, srv, i.sign(claims("exp", time.Now().Unix()+60)))
		i.breaks("introspect", func(w http.ResponseWriter, r *http.Request) {
			_, _ = io.Copy(io.Discard, r.Body) // else the context does not end
			select {
			case <-r.Context().Done():
			case <-time.After(4 * time.Second):
				_, _ = io.WriteString(w, `{"active":true,"sub":"x","aud":"`+resource+`"}`)
			}
		})
		if d := <-over; d > 2*time.Minute {
			t.Errorf("a stream ended after %s, its token after 60 s", d)
		}
	})
}

// A stream survives one introspection that fails, and no lasting failure.
func TestLeaseOutlivesOneFailure(t *testing.T) {
	inFakeTime(t, func(t *testing.T, i *issuer) {
		srv, _, stop := i.serve(oauth.Options{})
		defer stop()
		i.tokens["opaque"] = claims("active", true, "exp", nil)
		over := open(t, srv, "opaque")
		failures := 1
		i.breaks("introspect", func(w http.ResponseWriter, r *http.Request) {
			failures--
			i.breaks("introspect", nil)
			fail(w, r)
		})
		select {
		case d := <-over:
			t.Fatalf("the stream ended after %s", d)
		case <-time.After(10 * time.Minute):
		}
		if failures != 0 {
			t.Fatal("nothing failed")
		}
		i.breaks("introspect", fail)
		if d := <-over; d > 11*time.Minute {
			t.Errorf("the stream ended %s after introspection", d-10*time.Minute)
		}
	})
}

// A client without sessions whose token is revoked loses its stream although another one of the
// same user goes on.
func TestRevokedTokenBesideAnother(t *testing.T) {
	inFakeTime(t, func(t *testing.T, i *issuer) {
		srv, _, stop := i.serve(oauth.Options{})
		defer stop()
		i.tokens["old"] = claims("active", true, "exp", nil)
		i.tokens["new"] = claims("active", true, "exp", nil)
		modern := func(token, method string) *http.Response {
			return do(t, srv, http.MethodPost, "/docs/mcp", token, `{"jsonrpc":"2.0","id":1,"method":"`+method+`","params":{"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{},"io.modelcontextprotocol/clientInfo":{"name":"t","version":"1"}},"notifications":{"toolsListChanged":true}}}`,
				"Mcp-Protocol-Version", "2026-07-28", "Mcp-Method", method)
		}
		over := ends(t, modern("old", "subscriptions/listen"))
		i.revoke("old")
		for range 20 {
			res := modern("new", "tools/list")
			if _ = res.Body.Close(); res.StatusCode != 200 {
				t.Fatal(res.Status)
			}
			time.Sleep(5 * time.Second)
		}
		if d := <-over; d > time.Minute {
			t.Errorf("the stream ended after %s", d)
		}
	})
}

// A reload counts for streams that are open, too: here it asks for a scope that their token lacks.
func TestOpenStreamsFollowTheConfiguration(t *testing.T) {
	inFakeTime(t, func(t *testing.T, i *issuer) {
		srv, log, stop := i.serve(oauth.Options{})
		defer stop()
		over := open(t, srv, i.sign(claims()))
		i.reload(oauth.Options{Scopes: []string{"read"}})
		time.Sleep(time.Minute)
		if len(over) > 0 {
			t.Fatalf("the stream ended although its token has the scope: %s", log)
		}
		i.reload(oauth.Options{Scopes: []string{"admin"}})
		if d := <-over; d > 70*time.Second || !strings.Contains(log.String(), "reason=revoked") {
			t.Errorf("the stream ended after %s: %s", d, log)
		}
	})
}

// A key that the issuer has withdrawn is good for minutes, and keys are found where the metadata
// says by then, whatever strangers send.
func TestWithdrawnKey(t *testing.T) {
	for _, strangers := range []int{0, 1} {
		inFakeTime(t, func(t *testing.T, i *issuer) {
			res := i.resource(oauth.Options{})
			exp := time.Now().Add(time.Hour).Unix()
			known, unknown := i.sign(claims("exp", exp)), i.sign(claims("exp", exp, "sub", "bob"))
			wants(t, res, "the token", known, 0)
			i.rotate("two")
			i.breaks("keys", http.NotFound)
			i.mu.Lock()
			i.keysAt = "http://127.0.0.1:9/new-keys"
			i.mu.Unlock()
			stranger, _ := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
			for range 60 {
				time.Sleep(5 * time.Second)
				for range strangers {
					_, _ = ask(res, signWith(t, jose.ES256, stranger, rand.Text(), claims()))
				}
			}
			time.Sleep(time.Second)
			for _, token := range []string{known, unknown} {
				wants(t, res, "the withdrawn key", token, 401)
			}
			wants(t, res, "the new key", i.sign(claims()), 0)
		})
	}
}

// A stream ends soon after its key was withdrawn, also if no token of the new one comes.
func TestStreamEndsWithItsKey(t *testing.T) {
	inFakeTime(t, func(t *testing.T, i *issuer) {
		srv, log, stop := i.serve(oauth.Options{})
		defer stop()
		over := open(t, srv, i.sign(claims("exp", time.Now().Add(time.Hour).Unix())))
		i.rotate("two")
		if d := <-over; d > 6*time.Minute || !strings.Contains(log.String(), "reason=revoked") {
			t.Errorf("the stream ended after %s: %s", d, log)
		}
	})
}

// While the issuer does not answer, or with nonsense, the keys of before are good for an hour,
// and nobody waits long for others.
func TestKeysOutliveTheIssuer(t *testing.T) {
	html := func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, "<html>") }
	for name, broken := range map[string]http.HandlerFunc{"down": fail, "slow": slow, "html": html} {
		for _, what := range [][]string{{"openid-configuration", "oauth-authorization-server"}, {"keys"}} {
			inFakeTime(t, func(t *testing.T, i *issuer) {
				res := i.resource(oauth.Options{})
				good := func() *auth.Error {
					began := time.Now()
					_, err := ask(res, i.sign(claims("jti", rand.Text())))
					if d := time.Since(began); d > time.Second && err == nil {
						t.Errorf("%s %s: took %s", what[0], name, d)
					}
					return err
				}
				if err := good(); err != nil {
					t.Fatalf("got %+v", err)
				}
				for _, each := range what {
					i.breaks(each, broken)
				}
				for range 59 {
					time.Sleep(time.Minute)
					if err := good(); err != nil {
						t.Fatalf("%s %s: got %+v", what[0], name, err)
					}
				}
				time.Sleep(time.Minute)
				if err := good(); err == nil || err.Status != 503 {
					t.Errorf("%s %s: after an hour: got %+v", what[0], name, err)
				}
				i.mu.Lock()
				clear(i.broken)
				i.mu.Unlock()
				time.Sleep(time.Minute)
				if err := good(); err != nil {
					t.Errorf("%s %s: afterwards: got %+v", what[0], name, err)
				}
			})
		}
	}
}
