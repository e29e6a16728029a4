package oauth

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"net/url"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/coreos/go-oidc/v3/oidc"
	"github.com/modelcontextprotocol/go-sdk/auth"
	"golang.org/x/sync/singleflight"
	"golang.org/x/time/rate"

	"github.com/mcp-sse/mcp-sse/internal/throttle"
)

const (
	maxCached   = 10_000           // tokens of which a check is remembered,
	cacheTime   = 30 * time.Second // for so long
	requestTime = 5 * time.Second  // of one request to the issuer, and of the pause when introspection fails
	maxAnswer   = 1 << 20          // of the issuer, in bytes
)

// algorithms are those that a public key checks: with HS256 everyone who knows that could sign.
var algorithms = []string{
	oidc.RS256, oidc.RS384, oidc.RS512, oidc.ES256, oidc.ES384, oidc.ES512, oidc.PS256, oidc.PS384, oidc.PS512, oidc.EdDSA,
}

// issuer checks the tokens of one authorization server.
type issuer struct {
	url, claim    string
	introspection Introspection
	client        *http.Client
	fetches       *rate.Limiter // of metadata and keys: everyone can make tokens with keys that are not known
	log           *slog.Logger
	now           func() time.Time
	verifier      atomic.Pointer[oidc.IDTokenVerifier] // nil: the keys are not found yet
	flight        singleflight.Group
	pause         atomic.Int64 // Unix nanoseconds until which introspection is not tried

	mu     sync.Mutex                   // guards what follows
	cached map[[sha256.Size]byte]*token // by the hash of the token
}

// newIssuer returns the issuer of options, or says which of them is wrong.
func newIssuer(o Options) (*issuer, error) {
	if err := checkURL(o.Issuer); err != nil {
		return nil, fmt.Errorf("oauth: Issuer: %w", err)
	}
	if in := o.Introspection; in != (Introspection{}) {
		if err := checkURL(in.URL); err != nil || in.ClientID == "" || in.Secret == "" {
			return nil, fmt.Errorf("oauth: Introspection: want a ClientID, a Secret and a URL: %w", cmp.Or(err, errors.New("issuers answer nobody they do not know")))
		}
	}
	transport := http.DefaultTransport.(*http.Transport).Clone()
	transport.MaxConnsPerHost = 64
	client := http.Client{Transport: transport, Timeout: requestTime, CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
	if o.Client != nil {
		client = *o.Client
	}
	client.Transport = &bounded{cmp.Or[http.RoundTripper](client.Transport, http.DefaultTransport), nil}
	return &issuer{
		url: o.Issuer, claim: cmp.Or(o.PrincipalClaim, "sub"), introspection: o.Introspection, client: &client,
		fetches: rate.NewLimiter(rate.Every(requestTime), 10), now: time.Now,
		log: throttle.NewLines().Logger(cmp.Or(o.Logger, slog.New(slog.DiscardHandler))), cached: make(map[[sha256.Size]byte]*token),
	}, nil
}

// errOften is for fetches over the limit.
var errOften = errors.New("fetched too often: the next time is in some seconds")

// bounded bounds the answers of an issuer, and how often they are fetched.
type bounded struct {
	http.RoundTripper
	fetches *rate.Limiter // nil: no bound
}

func (b *bounded) RoundTrip(r *http.Request) (*http.Response, error) {
	if b.fetches != nil && !b.fetches.Allow() {
		return nil, errOften
	}
	answer, err := b.RoundTripper.RoundTrip(r)
	if err == nil {
		answer.Body = http.MaxBytesReader(nil, answer.Body, maxAnswer)
	}
	return answer, err
}

// verify returns what a token says, if it is valid. It remembers that until the token expires,
// for cacheTime at most. Callers with the same token share one check.
func (i *issuer) verify(raw string) (*token, error) {
	key := sha256.Sum256([]byte(raw))
	i.mu.Lock()
	t := i.cached[key]
	i.mu.Unlock()
	if t != nil && i.now().Before(t.until) {
		return t, nil
	}
	checked, err, _ := i.flight.Do(string(key[:]), func() (any, error) {
		claims, err := i.read(raw)
		if err != nil {
			return nil, err
		}
		t, err := i.tokenOf(claims)
		if err == nil {
			i.remember(key, t)
		}
		return t, err
	})
	if err != nil {
		return nil, err
	}
	return checked.(*token), nil
}

// remember keeps a token. If there are too many, it forgets another one.
func (i *issuer) remember(key [sha256.Size]byte, t *token) {
	i.mu.Lock()
	defer i.mu.Unlock()
	for other := range i.cached {
		if len(i.cached) < maxCached {
			break
		}
		delete(i.cached, other)
	}
	i.cached[key] = t
}

// read returns the claims of a token: a JWT that the issuer has signed and that has an expiry,
// or any other of which introspection says that it is valid.
func (i *issuer) read(raw string) (claims map[string]any, err error) {
	if strings.Count(raw, ".") != 2 {
		return i.introspect(raw)
	}
	if i.verifier.Load() == nil {
		if _, err, _ = i.flight.Do("discover", func() (any, error) { return nil, i.discover() }); err != nil {
			return nil, i.unavailable(err)
		}
	}
	jwt, err := i.verifier.Load().Verify(context.Background(), raw)
	switch {
	case err != nil && strings.Contains(err.Error(), "fetching keys"): // go-oidc has no other sign of it
		return nil, i.unavailable(err)
	case err != nil:
		return nil, invalid("the token is not one that " + i.url + " has signed as its issuer, with a public key")
	case jwt.Expiry.IsZero():
		return nil, invalid("the token has no expiry")
	}
	err = jwt.Claims(&claims)
	return claims, err
}

// discover finds the keys of the issuer, by OpenID Connect Discovery or RFC 8414. It is one
// fetch of the limit: with one for each request it could fail halfway, again and again.
func (i *issuer) discover() error {
	if !i.fetches.Allow() {
		return errOften
	}
	ctx, cancel := context.WithTimeout(oidc.ClientContext(context.Background(), i.client), 2*requestTime)
	defer cancel()
	var found struct {
		Issuer string `json:"issuer"`
		Keys   string `json:"jwks_uri"`
	}
	provider, err := oidc.NewProvider(ctx, i.url)
	if err == nil {
		err = provider.Claims(&found)
	} else if meta, other := auth.GetAuthServerMetadata(ctx, i.url, i.client); meta != nil {
		found.Issuer, found.Keys, err = meta.Issuer, meta.JWKSURI, nil
	} else {
		err = errors.Join(err, other)
	}
	if err == nil {
		err = checkURL(found.Keys)
	}
	if err == nil {
		config := &oidc.Config{SkipClientIDCheck: true, SkipExpiryCheck: true, SupportedSigningAlgs: algorithms}
		client := *i.client
		client.Transport = &bounded{client.Transport, i.fetches}
		i.verifier.Store(oidc.NewVerifier(found.Issuer, oidc.NewRemoteKeySet(oidc.ClientContext(ctx, &client), found.Keys), config))
	}
	return err
}

// errRefused may be for one token alone.
var errRefused = errors.New("introspection refused the request")

// introspect asks the issuer for the claims of a token (RFC 7662). After a failure of the
// issuer it does not try again for a while, as many may wait.
func (i *issuer) introspect(raw string) (claims map[string]any, err error) {
	switch {
	case i.introspection.URL == "":
		return nil, invalid("the token is no JWT, and no other can be checked here")
	case i.now().UnixNano() < i.pause.Load():
		return nil, i.unavailable(errors.New("introspection has just failed"))
	default:
		if claims, err = i.ask(raw); err != nil {
			if !errors.Is(err, errRefused) {
				i.pause.Store(i.now().Add(requestTime).UnixNano())
			}
			return nil, i.unavailable(err)
		}
	}
	if named, given := claims["iss"]; claims["active"] != true || given && named != i.url {
		return nil, invalid("the token has expired, is revoked, or is from another issuer")
	}
	return claims, nil
}

func (i *issuer) ask(raw string) (claims map[string]any, err error) {
	form := url.Values{"token": {raw}, "token_type_hint": {"access_token"}}
	r, err := http.NewRequest(http.MethodPost, i.introspection.URL, strings.NewReader(form.Encode()))
	if err != nil {
		return nil, err
	}
	r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	r.Header.Set("Accept", "application/json")
	r.SetBasicAuth(url.QueryEscape(i.introspection.ClientID), url.QueryEscape(i.introspection.Secret)) // RFC 6749, section 2.3.1
	answer, err := i.client.Do(r)
	if err != nil {
		return nil, err
	}
	defer answer.Body.Close()
	switch status := answer.StatusCode; {
	case status >= 400 && status < 500 && status != http.StatusTooManyRequests:
		return nil, fmt.Errorf("%w: %d", errRefused, status)
	case status != http.StatusOK:
		return nil, fmt.Errorf("introspection answered %d", answer.StatusCode)
	}
	err = json.NewDecoder(answer.Body).Decode(&claims)
	return claims, err
}

// unavailable is the refusal of a token that cannot be checked. Its cause is for the log.
func (i *issuer) unavailable(cause error) error {
	text := cause.Error()
	i.log.Warn("tokens cannot be checked", "issuer", i.url, "err", text[:min(len(text), 512)])
	return refusal(http.StatusServiceUnavailable, "", "the token cannot be checked, as its issuer does not answer: try again later")
}
