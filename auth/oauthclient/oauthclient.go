// Package oauthclient gets the gateway its tokens for a remote MCP server from an OAuth 2.0
// token endpoint. A [Config] is the Credentials of an upstream.URL.
package oauthclient

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"net/url"
	"os"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/oauth2"
	"golang.org/x/oauth2/clientcredentials"
	"golang.org/x/sync/singleflight"
	"golang.org/x/time/rate"

	"github.com/mcp-sse/mcp-sse/internal/atomicfile"
	"github.com/mcp-sse/mcp-sse/internal/enum"
	"github.com/mcp-sse/mcp-sse/internal/hosts"
)

// Grant is how the endpoint grants a token.
//
//	ClientCredentials   "client-credentials": RFC 6749 section 4.4
//	RefreshToken        "refresh-token": RFC 6749 section 6
//	TokenExchange       "token-exchange": RFC 8693
type Grant uint8

// The values of Config.Grant, and their words in text.
const (
	ClientCredentials Grant = iota + 1 // "client-credentials"
	RefreshToken                       // "refresh-token"
	TokenExchange                      // "token-exchange"
)

// grantWords has the words of the grants, in the order of the constants.
var grantWords = enum.Words[Grant]{"client-credentials", "refresh-token", "token-exchange"}

// String returns the word of g; empty for the zero value.
func (g Grant) String() string { return grantWords.String(g) }

// MarshalText returns the word of g. It fails for a value that is none of the constants, nor zero.
func (g Grant) MarshalText() ([]byte, error) { return grantWords.Marshal(g) }

// UnmarshalText sets g to the value of a word; an empty one is the zero value. Its error lists the words.
func (g *Grant) UnmarshalText(word []byte) error { return grantWords.Unmarshal(word, g) }

// grantTypes has the parameter grant_type of a request for a token.
var grantTypes = map[Grant]string{
	ClientCredentials: "client_credentials",
	RefreshToken:      "refresh_token",
	TokenExchange:     "urn:ietf:params:oauth:grant-type:token-exchange",
}

// Config says how to get tokens. No log line or error shows a secret of it.
type Config struct {
	// TokenURL is the token endpoint, with https, or http on a loopback address. Its redirects
	// are not followed.
	TokenURL string
	// ClientID and ClientSecret are the gateway's own. A public client has no secret.
	ClientID, ClientSecret string
	// Scopes are those to ask for. Default none: the endpoint chooses.
	Scopes []string
	// Resource and Audience say what the token is for (RFC 8707, RFC 8693). Default none.
	Resource, Audience string
	// Grant is ClientCredentials, RefreshToken or TokenExchange. With the first two all clients share one
	// token. With TokenExchange each client has a token of its own: the endpoint gives it in exchange for the
	// bearer token of the client's newest request, or, if gateway.Options.Reauthenticate is off, of the request
	// that opened the connection. ForwardHeaders must name Authorization. The client's token goes to the
	// token endpoint, never to the server. Default ClientCredentials.
	Grant Grant
	// RefreshTokenFile has the refresh token. One that replaces it is written there, with
	// mode 0600.
	RefreshTokenFile string
}

// Check reports what is wrong with c, without asking the endpoint.
func (c Config) Check() error {
	at, err := url.Parse(c.TokenURL)
	_, unknownGrant := c.Grant.MarshalText()
	switch {
	case err != nil || !hosts.IsSecure(at):
		return errors.New("token-url: want the URL of the token endpoint, " +
			"with https:// unless it is on a loopback address")
	case c.ClientID == "":
		return errors.New("client-id: want the name of the gateway at the token endpoint")
	case unknownGrant != nil:
		return fmt.Errorf("grant: %w", unknownGrant)
	case (c.Grant == RefreshToken) != (c.RefreshTokenFile != ""):
		return fmt.Errorf("refresh-token-file: want the file of the token with the grant %s, and with no other",
			RefreshToken)
	}
	return nil
}

// Authorizer returns the function that authorizes requests for one client, or for all clients if client is nil: see
// upstream.Credentials.
func (c Config) Authorizer(
	client func() string, log *slog.Logger,
) func(ctx context.Context, refused string) (string, error) {
	return c.newSource(client, log).authorize
}

func (c Config) newSource(client func() string, log *slog.Logger) *source {
	s := &source{
		file: c.RefreshTokenFile, log: log, limit: rate.NewLimiter(rate.Every(2*time.Second), 5),
		endpoint: make(chan struct{}, 1),
		conf: clientcredentials.Config{
			ClientID: c.ClientID, ClientSecret: c.ClientSecret, TokenURL: c.TokenURL, Scopes: c.Scopes,
			EndpointParams: url.Values{},
		},
		client: &http.Client{
			Transport:     &http.Transport{Proxy: http.ProxyFromEnvironment, DisableKeepAlives: true},
			CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
		},
	}
	if c.ClientSecret == "" {
		s.conf.AuthStyle = oauth2.AuthStyleInParams
	}
	for name, value := range map[string]string{"grant_type": grantTypes[c.Grant], "resource": c.Resource,
		"audience": c.Audience} {
		if value != "" {
			s.conf.EndpointParams.Set(name, value)
		}
	}
	if c.Grant == TokenExchange {
		s.subject = client
		if client == nil {
			s.subject = func() string { return "" }
		}
		s.conf.EndpointParams.Set("subject_token_type", "urn:ietf:params:oauth:token-type:access_token")
	}
	return s
}

// timeout bounds one request to the token endpoint.
const timeout = 10 * time.Second

var (
	errNoToken  = errors.New("the client has sent no bearer token to exchange")
	errTooOften = errors.New("the token endpoint has been asked too often: the next time is in 2 s")

	// files has a *refreshFile by path: two sources may have one file, as those of a server
	// before and after a reload.
	files sync.Map
)

// refreshFile is the file of a refresh token.
type refreshFile struct {
	lock    chan struct{} // has one while a source uses the file
	unsaved string        // the token that is not in the file; guarded by lock
}

// Finish waits until no refresh token is on its way to its file, 10 s for each at most. A program
// calls it before it ends: a token that has been replaced is good for nothing.
func Finish() {
	files.Range(func(_, file any) bool {
		lock := file.(*refreshFile).lock
		select {
		case lock <- struct{}{}:
			<-lock
		case <-time.After(timeout):
		}
		return true
	})
}

// source gets the tokens of one client, or of all. It asks the endpoint once at a time.
type source struct {
	conf     clientcredentials.Config // its parameters make it any grant; guarded by endpoint
	client   *http.Client
	file     string        // of the refresh token; "": there is none
	subject  func() string // returns the client's header; nil: no token is exchanged
	log      *slog.Logger
	limit    *rate.Limiter                // of requests to the endpoint
	asking   singleflight.Group           // by the client's header
	endpoint chan struct{}                // has one while the endpoint is asked
	token    atomic.Pointer[oauth2.Token] // nil: there is none
}

// authorize returns the header with the token, and gets another if there is none, it is over,
// or the header is the refused one.
func (s *source) authorize(ctx context.Context, refused string) (string, error) {
	if header := s.current(refused); header != "" {
		return header, nil
	}
	// Requests with one header share an answer. A newer header does not: the endpoint may refuse the older one.
	subject := ""
	if s.subject != nil {
		subject = s.subject()
	}
	// It goes on if ctx ends before: a refresh token may be good only once.
	asked := s.asking.DoChan(subject, func() (any, error) { return s.ask(subject, refused) })
	select {
	case answer := <-asked:
		return answer.Val.(string), answer.Err
	case <-ctx.Done():
		return "", ctx.Err()
	}
}

// current returns the header, "" if another is due.
func (s *source) current(refused string) string {
	if token := s.token.Load(); token.Valid() && bearerHeader(token) != refused {
		return bearerHeader(token)
	}
	return ""
}

func bearerHeader(token *oauth2.Token) string { return "Bearer " + token.AccessToken }

// ask asks the endpoint for a token, unless another request has got one, or there were too many.
func (s *source) ask(subject, refused string) (string, error) {
	s.endpoint <- struct{}{}
	defer func() { <-s.endpoint }()
	if header := s.current(refused); header != "" {
		return header, nil
	}
	if s.subject != nil {
		scheme, token, _ := strings.Cut(subject, " ")
		if !strings.EqualFold(scheme, "Bearer") || token == "" {
			return "", errNoToken
		}
		s.conf.EndpointParams.Set("subject_token", token)
	}
	if !s.limit.Allow() {
		return "", errTooOften
	}
	token, err := s.request()
	if err != nil {
		return "", err
	}
	if !token.Valid() { // it is said to live for seconds, or less: only a 401 ends it
		token.Expiry = time.Time{}
	}
	s.token.Store(token)
	return bearerHeader(token), nil
}

// request asks the endpoint for a token, and keeps the refresh token that comes with it.
func (s *source) request() (*oauth2.Token, error) {
	kept, refresh := new(refreshFile), ""
	if s.file != "" {
		file, _ := files.LoadOrStore(s.file, &refreshFile{lock: make(chan struct{}, 1)})
		kept = file.(*refreshFile)
		kept.lock <- struct{}{}
		defer func() { <-kept.lock }()
		data, err := os.ReadFile(s.file) // each time: an operator, or another source, may have replaced it
		if err != nil && kept.unsaved == "" {
			return nil, err
		}
		refresh = cmp.Or(kept.unsaved, strings.TrimSpace(string(data)))
		s.conf.EndpointParams.Set("refresh_token", refresh)
	}
	ctx, cancel := context.WithTimeout(context.WithValue(context.Background(), oauth2.HTTPClient, s.client), timeout)
	defer cancel()
	token, err := s.conf.Token(ctx)
	if err != nil {
		if of, ok := errors.AsType[*oauth2.RetrieveError](err); ok && of.ErrorCode == "invalid_grant" {
			kept.unsaved = "" // an operator's new one may be in the file
		}
		return nil, withoutSecrets(err)
	}
	if s.file == "" || token.RefreshToken == refresh && kept.unsaved == "" {
		return token, nil
	}
	kept.unsaved = ""
	if err := atomicfile.Write(s.file, []byte(token.RefreshToken+"\n")); err != nil {
		kept.unsaved = token.RefreshToken
		s.log.Error("refresh token not saved: the next start has none", "err", err)
	}
	return token, nil
}

// withoutSecrets returns what an error of the endpoint says without its body, which may
// repeat a token, and without the URL.
func withoutSecrets(err error) error {
	if of, ok := errors.AsType[*oauth2.RetrieveError](err); ok {
		code := of.Response.StatusCode
		return fmt.Errorf("the token endpoint answered %d %.64q", code, cmp.Or(of.ErrorCode, http.StatusText(code)))
	}
	if of, ok := errors.AsType[*url.Error](err); ok {
		err = of.Err
	}
	return fmt.Errorf("the token endpoint gave no token: %w", err)
}
