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
	"path/filepath"
	"strings"
	"sync"
	"time"

	"golang.org/x/oauth2"
	"golang.org/x/oauth2/clientcredentials"
	"golang.org/x/sync/singleflight"
	"golang.org/x/time/rate"
)

// timeout bounds one request to the token endpoint.
const timeout = 10 * time.Second

var (
	errNoToken = errors.New("the client has sent no bearer token to exchange")
	errRefused = errors.New("the server refuses each new token")

	// files has a lock for each file of a refresh token, a chan struct{}: two sources may have
	// one file, as those of a server before and after a reload.
	files sync.Map
)

// source gets the tokens of one client, or of all. It asks the endpoint once at a time.
type source struct {
	conf   clientcredentials.Config // its parameters make it any grant
	client *http.Client
	file   string // of the refresh token; "": there is none
	lacks  bool   // a token of the client to exchange
	log    *slog.Logger
	limit  *rate.Limiter // of requests to the endpoint
	asking singleflight.Group

	mu    sync.Mutex    // guards what follows
	token *oauth2.Token // nil: there is none
	err   error         // of the last request

	unsaved string // the refresh token that is not in file; belongs to ask
}

// authorize returns the header with the token, and gets another if there is none, it is over,
// or the header is the refused one.
func (s *source) authorize(ctx context.Context, refused string) (string, error) {
	if s.lacks {
		return "", errNoToken
	}
	if header := s.current(refused); header != "" {
		return header, nil
	}
	// It ends within timeout, also if ctx ends before: a refresh token may be good only once.
	asked := s.asking.DoChan("", func() (any, error) { return s.ask(refused) })
	select {
	case answer := <-asked:
		return answer.Val.(string), answer.Err
	case <-ctx.Done():
		return "", ctx.Err()
	}
}

// current returns the header, "" if another is due.
func (s *source) current(refused string) string {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.token.Valid() && bearer(s.token) != refused {
		return bearer(s.token)
	}
	return ""
}

func bearer(token *oauth2.Token) string { return "Bearer " + token.AccessToken }

// ask asks the endpoint for a token, unless another request has got one, or too many have
// failed.
func (s *source) ask(refused string) (string, error) {
	if header := s.current(refused); header != "" {
		return header, nil
	}
	if !s.limit.Allow() {
		s.mu.Lock()
		defer s.mu.Unlock()
		return "", cmp.Or(s.err, errRefused)
	}
	ctx, cancel := context.WithTimeout(context.WithValue(context.Background(), oauth2.HTTPClient, s.client), timeout)
	defer cancel()
	token, err := s.request(ctx)
	s.mu.Lock()
	defer s.mu.Unlock()
	s.token, s.err = token, err
	if err != nil {
		return "", err
	}
	if !token.Valid() { // it is said to live for seconds, or less: only a 401 ends it
		token.Expiry = time.Time{}
	}
	return bearer(token), nil
}

// request asks the endpoint for a token, and keeps the refresh token that comes with it.
func (s *source) request(ctx context.Context) (*oauth2.Token, error) {
	refresh := s.unsaved
	if s.file != "" {
		lock, _ := files.LoadOrStore(s.file, make(chan struct{}, 1))
		lock.(chan struct{}) <- struct{}{}
		defer func() { <-lock.(chan struct{}) }()
		data, err := os.ReadFile(s.file) // each time: an operator, or another source, may have replaced it
		if err != nil && refresh == "" {
			return nil, err
		}
		refresh = cmp.Or(refresh, strings.TrimSpace(string(data)))
		s.conf.EndpointParams.Set("refresh_token", refresh)
	}
	token, err := s.conf.Token(ctx)
	if err != nil {
		return nil, withoutSecrets(err)
	}
	if s.file == "" || token.RefreshToken == refresh && s.unsaved == "" {
		return token, nil
	}
	s.unsaved = ""
	if err := save(s.file, token.RefreshToken); err != nil {
		s.unsaved = token.RefreshToken
		s.log.Error("refresh token not saved: the next start has none", "err", err)
	}
	return token, nil
}

// save replaces a file by one with text, which only its owner can read.
func save(path, text string) error {
	file, err := os.CreateTemp(filepath.Dir(path), ".refresh-token-*")
	if err != nil {
		return err
	}
	_, err = file.WriteString(text + "\n")
	if err = cmp.Or(err, file.Sync(), file.Close()); err == nil {
		err = os.Rename(file.Name(), path)
	}
	if err != nil {
		_ = os.Remove(file.Name())
	}
	return err
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
