package login

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/modelcontextprotocol/go-sdk/oauthex"
	"golang.org/x/oauth2"
	"golang.org/x/oauth2/clientcredentials"
)

const (
	userAgent  = "mcp-sse"
	clientName = "sse-server"
)

// Client is what the issuer knows the program as.
type Client struct {
	ID     string `json:"id"`
	Secret string `json:"secret,omitempty"` // empty: it is a public client
	// InHeader says that the token endpoint takes the secret as HTTP Basic.
	InHeader bool `json:"inHeader,omitempty"`
	// ByHand says that a person has registered it at the issuer, and configured its id.
	ByHand bool `json:"byHand,omitempty"`
	// How says how it came to be, for people.
	How string `json:"how,omitempty"`
}

// configured returns the client of a configured id.
func configured(i *issuer, id, secret string) Client {
	methods := i.TokenEndpointAuthMethodsSupported
	return Client{ID: id, Secret: secret, ByHand: true, How: "the configured client id",
		InHeader: secret != "" && (len(methods) == 0 || slices.Contains(methods, "client_secret_basic"))}
}

// byHand says how to get a client without registration.
func (a *Attempt) byHand() string {
	if a.options.Redirect != "" {
		return "register one there by hand, with the redirect " + a.options.Redirect + ", and name it with login-client"
	}
	return "register one there by hand, with the redirect " + anyPort + ", and name it with --client-id ID --issuer " +
		quoted(a.Issuer())
}

// byKey says what to do about a server that shows nothing of a login but its 401.
func (a *Attempt) byKey() string {
	if a.options.Redirect != "" {
		return "give it one with header: in place of login: per-principal. If it has an issuer, name that and a " +
			"client there with login-client"
	}
	return "serve it with --header 'Authorization: Bearer KEY'. If it has an issuer: --issuer URL --client-id ID"
}

// registerClient registers a client (RFC 7591) for the redirect.
func (a *Attempt) registerClient(ctx context.Context) (Client, error) {
	p, kind := a.plan, "native"
	if a.options.Redirect != "" { // it is no address of the browser's machine
		kind = "web"
	}
	at := p.issuer.RegistrationEndpoint
	if at == "" {
		return Client{}, fmt.Errorf("the issuer %s registers no clients: %s", publicURL(p.issuer.Issuer), a.byHand())
	}
	method := "none"
	if methods := p.issuer.TokenEndpointAuthMethodsSupported; len(methods) > 0 && !slices.Contains(methods, method) {
		method = "client_secret_basic"
		if !slices.Contains(methods, method) {
			method = "client_secret_post"
		}
	}
	grants := []string{"authorization_code", "refresh_token"}
	if p.issuer.DeviceURL != "" {
		grants = append(grants, deviceGrant)
	}
	got, err := oauthex.RegisterClient(ctx, at, &oauthex.ClientRegistrationMetadata{
		RedirectURIs: []string{a.redirect}, TokenEndpointAuthMethod: method, GrantTypes: grants,
		ResponseTypes: []string{"code"}, ClientName: clientName, SoftwareID: clientName, ApplicationType: kind,
		Scope: strings.Join(a.scopes, " "),
	}, a.guard.writing())
	if err != nil && p.isGuessed && a.options.Issuer == "" {
		return Client{}, errors.New("the server names no issuer and has no registration: it probably wants a key: " +
			a.byKey())
	}
	if err != nil {
		return Client{}, fmt.Errorf("the issuer registers no client: %w: %s", withoutBody(err), a.byHand())
	}
	method = cmp.Or(got.TokenEndpointAuthMethod, method)
	return Client{ID: got.ClientID, Secret: got.ClientSecret, How: "a client registered for this login",
		InHeader: got.ClientSecret != "" && method == "client_secret_basic"}, nil
}

// withoutBody returns an error of a registration without what the issuer has written, but for its code.
func withoutBody(err error) error {
	if of, ok := errors.AsType[*oauthex.ClientRegistrationError](err); ok {
		return fmt.Errorf("it says %.64q", of.ErrorCode)
	}
	if of, ok := errors.AsType[*url.Error](err); ok {
		return plain(of)
	}
	if text, _, ok := strings.Cut(err.Error(), ": "); ok { // such as: registration failed with status 500 …
		return errors.New(text)
	}
	return err
}

const deviceGrant = "urn:ietf:params:oauth:grant-type:device_code"

// style returns how the token endpoint takes the secret.
func (c Client) style() oauth2.AuthStyle {
	if c.InHeader {
		return oauth2.AuthStyleInHeader
	}
	return oauth2.AuthStyleInParams
}

// withClient returns the context with which x/oauth2 asks an issuer.
func withClient(ctx context.Context, g *guard) context.Context {
	return context.WithValue(ctx, oauth2.HTTPClient, g.writing())
}

// errEnded reports that the issuer takes the refresh token no more.
var errEnded = errors.New("the issuer has ended the login")

// unknownClientError reports that the issuer does not know the client of a login, so that it renews nothing.
type unknownClientError struct{ error }

// ofIssuer returns what an error of a token endpoint says, without its body, which may repeat a token, and without the
// URL.
func ofIssuer(err error) error {
	if of, ok := errors.AsType[*oauth2.RetrieveError](err); ok {
		if of.ErrorCode == "invalid_grant" {
			return errEnded
		}
		code := of.Response.StatusCode
		err := fmt.Errorf("the token endpoint answered %d %.64q", code, cmp.Or(of.ErrorCode, http.StatusText(code)))
		if of.ErrorCode == "invalid_client" || of.ErrorCode == "unauthorized_client" {
			return unknownClientError{err}
		}
		return err
	}
	if of, ok := errors.AsType[*url.Error](err); ok {
		return fmt.Errorf("the token endpoint cannot be asked: %w", plain(of))
	}
	if errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded) {
		return err
	}
	return errors.New("the token endpoint gave no token that can be read") // x/oauth2 may quote the answer
}

// take sets the tokens of an answer of the token endpoint. It fails for a token that cannot be used.
func (l *Login) take(token *oauth2.Token, now time.Time) error {
	if kind := token.Type(); kind != "Bearer" {
		return fmt.Errorf("the token endpoint gave a token of the type %.32q, which is not known here", kind)
	}
	if !isHeaderValue(token.AccessToken) {
		return errors.New("the token endpoint gave a token that no header can have")
	}
	l.Access, l.Expiry, l.Refreshed, l.Ended = token.AccessToken, token.Expiry, now, time.Time{}
	if token.RefreshToken != "" { // else the one before stays
		l.Refresh = token.RefreshToken
	}
	if scope, ok := token.Extra("scope").(string); ok && scope != "" {
		l.Scopes = strings.Fields(scope)
	}
	return nil
}

// isHeaderValue reports whether a header can have a token as its value.
func isHeaderValue(token string) bool {
	return !strings.ContainsFunc(token, func(r rune) bool { return r <= ' ' || r >= 0x7f })
}

// refresh gets new tokens for l, and sets them.
func (l *Login) refresh(ctx context.Context, g *guard) error {
	if l.Refresh == "" {
		return errEnded
	}
	conf := clientcredentials.Config{ // its parameters make it any grant
		ClientID: l.Client.ID, ClientSecret: l.Client.Secret, TokenURL: l.TokenURL, AuthStyle: l.Client.style(),
		EndpointParams: url.Values{"grant_type": {"refresh_token"}, "refresh_token": {l.Refresh}},
	}
	if l.Resource != "" {
		conf.EndpointParams.Set("resource", l.Resource)
	}
	token, err := conf.Token(withClient(ctx, g))
	if err != nil {
		return ofIssuer(err)
	}
	return l.take(token, time.Now())
}

// revoke has the issuer end the login (RFC 7009). done is false if the issuer has no way to do so: many end no access
// tokens, such as JWTs, and that is all that is left of a login that has ended.
func (l *Login) revoke(ctx context.Context, g *guard) (done bool, err error) {
	if l.RevokeURL == "" || l.Access == "" && l.Refresh == "" {
		return false, nil
	}
	token, hint := l.Refresh, "refresh_token"
	if token == "" {
		token, hint = l.Access, "access_token"
	}
	form := url.Values{"token": {token}, "token_type_hint": {hint}}
	if !l.Client.InHeader {
		form.Set("client_id", l.Client.ID)
		if l.Client.Secret != "" {
			form.Set("client_secret", l.Client.Secret)
		}
	}
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, l.RevokeURL, strings.NewReader(form.Encode()))
	if err != nil {
		return false, err
	}
	request.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	request.Header.Set("User-Agent", userAgent)
	if l.Client.InHeader {
		request.SetBasicAuth(url.QueryEscape(l.Client.ID), url.QueryEscape(l.Client.Secret))
	}
	resp, err := g.writing().Do(request)
	if err != nil {
		return false, plain(err)
	}
	defer resp.Body.Close()
	body, _ := io.ReadAll(io.LimitReader(resp.Body, maxBody)) // what is cut is no error of RFC 7009
	var answer struct {
		Error string `json:"error"`
	}
	switch {
	case resp.StatusCode == http.StatusBadRequest && json.Unmarshal(body, &answer) == nil &&
		answer.Error == "unsupported_token_type":
		return false, nil
	case resp.StatusCode >= 300:
		return false, fmt.Errorf("the issuer answered %d", resp.StatusCode)
	}
	return true, nil
}
