package oauth

import (
	"bytes"
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"
	"sync/atomic"
	"time"

	"github.com/mcp-sse/mcp-sse/auth"

	"github.com/coreos/go-oidc/v3/oidc"
	lru "github.com/hashicorp/golang-lru/v2"
	sdkauth "github.com/modelcontextprotocol/go-sdk/auth"
	"golang.org/x/sync/singleflight"
	"golang.org/x/time/rate"

	"github.com/mcp-sse/mcp-sse/internal/hosts"
)

const (
	cacheSeconds = 30               // how long a valid token is not checked again,
	refusedTime  = 10 * time.Second // and one that is not valid
	freshTime    = 5 * time.Minute  // after which the keys of the issuer are asked for again
	keptTime     = time.Hour        // how long they are good while it does not answer
	skewSeconds  = 30               // how far the clocks of the issuer and of this machine may differ
	maxPrincipal = 256              // bytes
	requestTime  = 5 * time.Second  // of one request to the issuer
	maxRequests  = 64               // to the issuer at a time
	// Callers at a time with tokens for introspection that have not been valid here lately.
	maxWaiting = 1_000
	maxAnswer  = 1 << 20 // of the issuer, in bytes
)

// verification is that of JWTs. Their algorithms are those that a public key checks: with HS256
// everyone who knows that could sign. tokenOf checks the times.
var verification = &oidc.Config{SkipClientIDCheck: true, SkipExpiryCheck: true, SupportedSigningAlgs: []string{
	oidc.RS256, oidc.RS384, oidc.RS512, oidc.ES256, oidc.ES384, oidc.ES512, oidc.PS256, oidc.PS384, oidc.PS512,
	oidc.EdDSA,
}}

// issuer checks the tokens of one authorization server.
type issuer struct {
	url, claim    string
	introspection Introspection
	client        *http.Client
	keys          atomic.Pointer[keys] // never nil
	limit         *rate.Limiter        // of discoveries
	flight        singleflight.Group
	// Has one for each introspection of a token that has not been valid here lately: everyone can make
	// these.
	strangers chan struct{}
	waiting   atomic.Int32 // callers with such a token
	// valid and refused have the tokens that were checked last, by their hashes, also after
	// token.until: a token that was valid lately is no stranger's. They are apart because
	// everyone can fill refused.
	valid, refused *lru.Cache[hash, *token]
}

// hash is that of a token.
type hash = [sha256.Size]byte

// keys verify JWTs with the keys that the issuer had at a time, and with new ones.
type keys struct {
	verifier *oidc.IDTokenVerifier
	found    time.Time
}

// unansweredError reports that the issuer was asked for keys, and gave none.
type unansweredError struct{ error }

// verify returns what a JWT says. The error is an unansweredError if the issuer gave no keys
// with which to verify it.
func (k *keys) verify(raw string) (*oidc.IDToken, error) {
	var unanswered error
	jwt, err := k.verifier.Verify(context.WithValue(context.Background(), keySet{}, &unanswered), raw)
	if unanswered != nil {
		return nil, unansweredError{unanswered}
	}
	return jwt, err
}

// keySet asks an issuer for its keys. A verifier makes text of the errors of its key set: so
// this notes in its context that no keys came.
type keySet struct{ *oidc.RemoteKeySet }

// newKeySet returns the key set at a URL. Everyone can make tokens with unknown keys, so limit
// bounds how often it is asked for.
func newKeySet(at string, base http.RoundTripper, limit *rate.Limiter) keySet {
	client := newClient(keysOnly{base}, limit)
	return keySet{oidc.NewRemoteKeySet(oidc.ClientContext(context.Background(), client), at)}
}

func (k keySet) VerifySignature(ctx context.Context, jwt string) ([]byte, error) {
	payload, err := k.RemoteKeySet.VerifySignature(ctx, jwt)
	if _, ok := errors.AsType[*url.Error](err); ok { // of the http.Client
		*ctx.Value(keySet{}).(*error) = err
	}
	return payload, err
}

// keysOnly fails for answers that are no keys: so each way in which an issuer gives none is an
// error of the http.Client.
type keysOnly struct{ http.RoundTripper }

func (k keysOnly) RoundTrip(r *http.Request) (*http.Response, error) {
	answer, err := k.RoundTripper.RoundTrip(r)
	if err != nil {
		return nil, err
	}
	defer answer.Body.Close()
	body, err := io.ReadAll(io.LimitReader(answer.Body, maxAnswer))
	var set struct {
		Keys []json.RawMessage `json:"keys"`
	}
	switch {
	case answer.StatusCode != http.StatusOK:
		return nil, fmt.Errorf("asked for keys, %s answered %s", r.URL.Redacted(), answer.Status)
	case err != nil || json.Unmarshal(body, &set) != nil:
		return nil, fmt.Errorf("asked for keys, %s answered something else", r.URL.Redacted())
	}
	answer.Body = io.NopCloser(bytes.NewReader(body))
	return answer, nil
}

// token is what a token says.
type token struct {
	principal        string
	audience, scopes []string
	until            time.Time // when it must be checked again
	refusal          error     // why it is not valid
}

// newIssuer returns the issuer of options, or says which of them is wrong.
func newIssuer(o Options) (*issuer, error) {
	if _, err := checkURL(o.Issuer); err != nil {
		return nil, fmt.Errorf("oauth: Issuer: %w", err)
	}
	if in := o.Introspection; in != (Introspection{}) {
		if _, err := checkURL(in.URL); err != nil || in.ClientID == "" || in.Secret == "" {
			return nil, fmt.Errorf("oauth: Introspection: want a ClientID, a Secret and a URL: %w",
				cmp.Or(err, errors.New("issuers answer nobody they do not know")))
		}
	}
	if o.Transport == nil {
		own := http.DefaultTransport.(*http.Transport).Clone()
		own.MaxConnsPerHost, o.Transport = maxRequests, own
	}
	i := &issuer{
		url: o.Issuer, claim: cmp.Or(o.PrincipalClaim, "sub"), introspection: o.Introspection,
		client: newClient(o.Transport, nil), limit: newLimit(), strangers: make(chan struct{}, maxRequests/2),
	}
	i.valid, _ = lru.New[hash, *token](10_000) // fails only for a size below 1
	i.refused, _ = lru.New[hash, *token](1_000)
	i.keys.Store(&keys{})
	return i, nil
}

func newLimit() *rate.Limiter { return rate.NewLimiter(rate.Every(requestTime), 10) }

var errTooOften = errors.New("asked too often: the next time is in some seconds")

type roundTripper func(*http.Request) (*http.Response, error)

func (t roundTripper) RoundTrip(r *http.Request) (*http.Response, error) { return t(r) }

// newClient returns a client that asks safe URLs only, as often as limit says unless it is nil,
// follows no redirects, and bounds the answers.
func newClient(base http.RoundTripper, limit *rate.Limiter) *http.Client {
	ask := func(r *http.Request) (*http.Response, error) {
		switch {
		case !hosts.IsSecure(r.URL):
			return nil, errors.New("want https, or http on a loopback address")
		case limit != nil && !limit.Allow():
			return nil, errTooOften
		}
		answer, err := base.RoundTrip(r)
		if err == nil {
			answer.Body = http.MaxBytesReader(nil, answer.Body, maxAnswer)
		}
		return answer, err
	}
	stay := func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }
	return &http.Client{Transport: roundTripper(ask), CheckRedirect: stay, Timeout: requestTime}
}

// verify returns what a token says, if it is valid. It remembers that until the token expires,
// for cacheSeconds at most. Callers with the same token share one check.
func (i *issuer) verify(raw string) (*token, error) {
	key := sha256.Sum256([]byte(raw))
	known, _ := i.valid.Get(key)
	refused, _ := i.refused.Get(key)
	for _, t := range []*token{known, refused} {
		if t != nil && time.Now().Before(t.until) {
			return t, t.refusal
		}
	}
	if known == nil && !isJWT(raw) {
		defer i.waiting.Add(-1)
		if i.waiting.Add(1) > maxWaiting {
			return nil, unavailable(errTooOften)
		}
	}
	checked, err, _ := i.flight.Do(string(key[:]), func() (t any, _ error) {
		claims, err := i.read(raw, known != nil)
		if err == nil {
			t, err = i.tokenOf(claims)
		}
		if err == nil {
			i.valid.Add(key, t.(*token))
		} else if refused, ok := errors.AsType[*auth.Error](err); ok && refused.Status == http.StatusUnauthorized {
			i.valid.Remove(key)
			i.refused.Add(key, &token{until: time.Now().Add(refusedTime), refusal: err})
		}
		return t, err
	})
	t, _ := checked.(*token)
	return t, err
}

func isJWT(raw string) bool { return strings.Count(raw, ".") == 2 }

// read returns the claims of a token: a JWT that the issuer has signed and that has an expiry,
// or any other that introspection calls valid.
func (i *issuer) read(raw string, known bool) (claims map[string]any, _ error) {
	if !isJWT(raw) {
		return i.introspect(raw, known)
	}
	keys, err := i.current()
	if err != nil {
		return nil, unavailable(err)
	}
	jwt, err := keys.verify(raw)
	switch _, isUnanswered := errors.AsType[unansweredError](err); {
	case isUnanswered:
		return nil, unavailable(err)
	case err != nil || jwt.Claims(&claims) != nil || claims["iss"] != i.url: // go-oidc takes ISS too
		return nil, invalid("the token is not one that " + i.url + " has signed as its issuer, with a public key")
	case claims["exp"] == nil:
		return nil, invalid("the token has no expiry")
	}
	return claims, nil
}

// current returns the keys of the issuer. A key that the issuer has withdrawn is good until the issuer is
// asked again: a caller waits at most a second for that while there are older keys.
func (i *issuer) current() (*keys, error) {
	known := i.keys.Load()
	age := time.Since(known.found)
	if age < freshTime {
		return known, nil
	}
	var late <-chan time.Time // nil: there are no older keys
	if age < keptTime {
		late = time.After(time.Second)
	}
	select {
	case answer := <-i.flight.DoChan("discover", i.discover):
		if fresh, ok := answer.Val.(*keys); ok || late == nil {
			return fresh, answer.Err
		}
	case <-late:
	}
	return known, nil
}

// discover finds the keys of the issuer, by OpenID Connect Discovery or RFC 8414.
func (i *issuer) discover() (any, error) {
	if !i.limit.Allow() {
		return nil, errTooOften
	}
	at, err := i.findKeys(oidc.ClientContext(context.Background(), i.client))
	if err != nil {
		return nil, err
	}
	set := newKeySet(at, i.client.Transport, newLimit())
	found := &keys{oidc.NewVerifier(i.url, set, verification), time.Now()}
	const unknown = "eyJhbGciOiJFUzI1NiJ9.e30.AA" // makes go-oidc ask for the keys
	_, err = found.verify(unknown)
	if unanswered, ok := errors.AsType[unansweredError](err); ok {
		return nil, unanswered
	}
	i.keys.Store(found)
	return found, nil
}

// findKeys returns the URL of the issuer's keys.
func (i *issuer) findKeys(ctx context.Context) (string, error) {
	provider, err := oidc.NewProvider(ctx, i.url)
	if err == nil {
		var meta struct {
			JWKSURI string `json:"jwks_uri"`
		}
		err = provider.Claims(&meta)
		return meta.JWKSURI, err
	}
	meta, other := sdkauth.GetAuthServerMetadata(ctx, i.url, i.client)
	if meta == nil || meta.Issuer != i.url { // go-sdk ignores a slash at the end
		return "", errors.Join(err, other)
	}
	return meta.JWKSURI, nil
}

// introspect asks the issuer for the claims of a token (RFC 7662). Tokens that are not known
// leave half of the connections to those that are, and wait their turn.
func (i *issuer) introspect(raw string, known bool) (claims map[string]any, _ error) {
	if i.introspection.URL == "" {
		return nil, invalid("the token is not a JWT, and no other kind can be checked here")
	}
	if !known {
		select {
		case i.strangers <- struct{}{}:
			defer func() { <-i.strangers }()
		case <-time.After(requestTime):
			return nil, unavailable(errTooOften)
		}
	}
	form := url.Values{"token": {raw}, "token_type_hint": {"access_token"}}
	// The URL has been checked.
	r, _ := http.NewRequest(http.MethodPost, i.introspection.URL, strings.NewReader(form.Encode()))
	r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	r.Header.Set("Accept", "application/json")
	// RFC 6749, section 2.3.1.
	r.SetBasicAuth(url.QueryEscape(i.introspection.ClientID), url.QueryEscape(i.introspection.Secret))
	answer, err := i.client.Do(r)
	if err != nil {
		return nil, unavailable(err)
	}
	defer answer.Body.Close()
	if answer.StatusCode != http.StatusOK {
		return nil, unavailable(fmt.Errorf("introspection answered %d", answer.StatusCode))
	}
	if err := json.NewDecoder(answer.Body).Decode(&claims); err != nil {
		return nil, unavailable(err)
	}
	if named, given := claims["iss"]; claims["active"] != true || given && named != i.url {
		return nil, invalid("the token has expired, is revoked, or is from another issuer")
	}
	return claims, nil
}

// tokenOf returns the token with these claims, if it is valid now and has a principal.
func (i *issuer) tokenOf(claims map[string]any) (*token, error) {
	now := float64(time.Now().Unix())
	until := now + cacheSeconds
	expiry, expires := claims["exp"].(float64)
	if expires {
		until = min(until, expiry+skewSeconds)
	}
	begin, begins := claims["nbf"].(float64)
	principal, _ := claims[i.claim].(string)
	switch {
	case expires != (claims["exp"] != nil) || begins != (claims["nbf"] != nil):
		return nil, invalid("the token has a time that is not a number")
	case until <= now:
		return nil, &auth.Error{Status: http.StatusUnauthorized, Message: "the token has expired", Expired: true}
	case begin > now+skewSeconds:
		return nil, invalid("the token is not valid yet")
	case principal == "" || len(principal) > maxPrincipal ||
		strings.ContainsFunc(principal, func(c rune) bool { return c < ' ' || c == 0x7f }):
		return nil, invalid("the token has no usable claim " + i.claim)
	}
	scopes := strings.Fields(strings.Join(append(claimTexts(claims["scope"]), claimTexts(claims["scp"])...), " "))
	return &token{principal: principal, audience: claimTexts(claims["aud"]), scopes: scopes,
		until: time.Unix(int64(until), 0)}, nil
}

// claimTexts returns the texts of a claim: one, or an array of them.
func claimTexts(claim any) (all []string) {
	array, _ := claim.([]any)
	for _, one := range append(array, claim) {
		if text, ok := one.(string); ok {
			all = append(all, text)
		}
	}
	return all
}
