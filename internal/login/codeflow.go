package login

import (
	"context"
	"crypto/rand"
	"crypto/subtle"
	"errors"
	"fmt"
	"net/url"
	"slices"
	"strings"

	"golang.org/x/oauth2"

	"github.com/mcp-sse/mcp-sse/internal/clip"
	"github.com/mcp-sse/mcp-sse/internal/hosts"
)

// codeFlow is what a code needs (RFC 6749, section 4.1) with PKCE (RFC 7636): the link, the answer that the redirect
// brings, and the exchange. Its fields are set before that, and not changed after.
type codeFlow struct {
	guard    *guard
	issuer   *issuer
	client   Client
	scopes   []string // that are asked for
	scopesBy string   // how people choose these
	resource string   // for which the token is; empty: none is named
	redirect string   // where the browser comes back

	state    string // of the request: it is in the link, and comes back
	verifier string
}

// begin makes the state and the verifier.
func (f *codeFlow) begin() { f.state, f.verifier = rand.Text(), oauth2.GenerateVerifier() }

// makeLink returns the address at the issuer that the person opens.
func (f *codeFlow) makeLink() (string, error) {
	at, err := url.Parse(f.issuer.AuthorizationEndpoint)
	if err != nil || !hosts.IsSecure(at) || at.User != nil {
		return "", errors.New("the issuer's authorization_endpoint is no address that a browser may open")
	}
	if err := f.guard.check(at); err != nil {
		return "", fmt.Errorf("the issuer's authorization_endpoint: %w", err)
	}
	at.RawQuery, at.Fragment, at.RawFragment = at.Query().Encode(), "", "" // the parameters are put behind it
	conf := f.conf()
	conf.Endpoint.AuthURL = at.String()
	options := append(f.resourceParam(), oauth2.S256ChallengeOption(f.verifier))
	if slices.Contains(f.scopes, offline) { // otherwise OpenID Connect ignores it
		options = append(options, oauth2.SetAuthURLParam("prompt", "consent"))
	}
	return conf.AuthCodeURL(f.state, options...), nil
}

// resourceParam returns the resource as a parameter of a request.
func (f *codeFlow) resourceParam() []oauth2.AuthCodeOption {
	if f.resource != "" {
		return []oauth2.AuthCodeOption{oauth2.SetAuthURLParam("resource", f.resource)}
	}
	return nil
}

func (f *codeFlow) conf() *oauth2.Config {
	return &oauth2.Config{ClientID: f.client.ID, ClientSecret: f.client.Secret, Scopes: f.scopes,
		RedirectURL: f.redirect, Endpoint: oauth2.Endpoint{TokenURL: f.issuer.TokenEndpoint,
			DeviceAuthURL: f.issuer.DeviceURL, AuthStyle: f.client.style()}}
}

// answer is what the issuer has sent the browser back with.
type answer struct{ code string }

// errState reports an answer to another login, or to none.
var errState = errors.New("this address is not of the login that waits: open its link again")

// read returns the answer in the query of a redirect. It is of this login only if state is the one that was sent, and
// of its issuer only if iss is (RFC 9207).
func (f *codeFlow) read(query url.Values) (answer, error) {
	if state := query.Get("state"); f.state == "" ||
		subtle.ConstantTimeCompare([]byte(state), []byte(f.state)) != 1 {
		return answer{}, errState
	}
	iss, has := query.Get("iss"), query.Has("iss")
	switch {
	case has && iss != f.issuer.Issuer:
		return answer{}, fmt.Errorf("the answer is of another issuer, %.200q: nothing was sent there", iss)
	case !has && f.issuer.AuthorizationResponseIssParameterSupported:
		return answer{}, errors.New("the answer does not say of which issuer it is (iss), as the issuer promises")
	case query.Get("error") != "":
		text := fmt.Sprintf("the issuer refused the login: %.64q", query.Get("error"))
		if why := query.Get("error_description"); why != "" {
			text += fmt.Sprintf(" %.200q", why)
		}
		return answer{}, fmt.Errorf("%s; %s", text, f.askedFor())
	case query.Get("code") == "":
		return answer{}, errors.New("the answer has neither a code nor an error")
	}
	return answer{code: query.Get("code")}, nil
}

// askedFor says which scopes the issuer was asked for, and how people choose them.
func (f *codeFlow) askedFor() string {
	asked := "no scopes"
	if len(f.scopes) > 0 {
		asked = fmt.Sprintf("the scopes %q", clip.Long(strings.Join(f.scopes, " ")))
	}
	return "it was asked for " + asked + ": " + f.scopesBy
}

// exchange returns the tokens for a code.
func (f *codeFlow) exchange(ctx context.Context, code string) (*oauth2.Token, error) {
	options := append(f.resourceParam(), oauth2.VerifierOption(f.verifier))
	return f.conf().Exchange(withClient(ctx, f.guard), code, options...)
}
