package login

import (
	"context"
	"errors"
	"net/http"
	"net/netip"
	"time"
)

// TokenIssuer is where a person shows which principal that is: the issuer of the tokens with which clients use the
// gateway. The operator has configured it, so that it is asked wherever it is.
type TokenIssuer struct {
	URL string // as it names itself
	// ClientID is that of a public client, which the issuer lets redirect to the address of the page and /principal.
	ClientID string
	Resource string   // for which the token is
	Scopes   []string // that it needs
}

// proofPath is where the issuer of the gateway's tokens sends the browser back.
const proofPath = "/principal"

// begin asks the issuer for its metadata, and returns what shows who a person is, with the link to it.
func (i *TokenIssuer) begin(ctx context.Context, redirect string) (f *codeFlow, link string, err error) {
	f = &codeFlow{guard: newGuard(nil, netip.Addr{}), client: Client{ID: i.ClientID}, scopes: i.Scopes,
		resource: i.Resource, redirect: redirect,
		scopesBy: "name those that clients of the gateway need with scopes: in its file"}
	f.guard.isConfigured = true
	var found plan
	if err := found.readIssuer(ctx, f.guard, i.URL); err != nil {
		return nil, "", err
	}
	f.issuer = &found.issuer
	f.begin()
	link, err = f.makeLink()
	return f, link, err
}

// beginProof sends the browser of somebody who has agreed to a page to the issuer of the gateway's tokens.
func (p *Page) beginProof(w http.ResponseWriter, r *http.Request, t *ticket, issuer *TokenIssuer) {
	ctx, cancel := context.WithTimeout(r.Context(), beginTimeout)
	defer cancel()
	flow, link, err := issuer.begin(ctx, p.Credentials.Own.Page+proofPath)
	if err != nil {
		p.failed(w, err)
		return
	}
	word, isThere := visits.addProof(t, flow, time.Now())
	if !isThere {
		p.say(w, http.StatusNotFound, goneTicket)
		return
	}
	p.setCookie(w, proofCookie, word, int(Patience.Seconds()))
	site := siteOf(issuer.URL)
	p.leadOn(w, site, link, "First you log in at "+site+", as you do for this gateway: you go on there.")
}

// serveProof takes the answer of the issuer of the gateway's tokens, from the browser that has agreed to the page
// alone. If the token is that of the ticket's principal, the login begins.
func (p *Page) serveProof(w http.ResponseWriter, r *http.Request) {
	found, drop := p.proofOf(r)
	if found == nil {
		p.say(w, http.StatusForbidden, notBegun)
		return
	}
	got, err := found.flow.read(r.URL.Query())
	if errors.Is(err, errState) {
		p.say(w, http.StatusBadRequest, notOfThis)
		return
	}
	drop()
	if err != nil {
		p.failed(w, err)
		return
	}
	ctx, cancel := context.WithTimeout(r.Context(), beginTimeout)
	defer cancel()
	token, err := found.flow.exchange(ctx, got.code)
	if err != nil {
		p.failed(w, ofIssuer(err))
		return
	}
	t := found.ticket
	principal, err := p.Principal(token.AccessToken)
	if err != nil {
		p.failed(w, err)
		return
	}
	if principal != t.of.Own.Principal {
		visits.noteWrong(t)
		p.Log.Warn("login of a principal refused: somebody else is logged in at the gateway's issuer", "server", p.Name)
		p.say(w, http.StatusForbidden, "You are logged in at "+siteOf(found.flow.issuer.Issuer)+" as somebody else "+
			"than the user of the client that got this link. If it is your client, log out there, and open the link "+
			"again. If somebody else has sent you the link, close this page.")
		return
	}
	p.setCookie(w, proofCookie, "", -1) // it is used up
	p.beginLogin(w, r, t, func(a *Attempt) {
		w.Header().Set("Location", a.Link())
		w.WriteHeader(http.StatusSeeOther)
	})
}

// proofOf returns the person on the way whose browser sends a request; nil if there is none.
func (p *Page) proofOf(r *http.Request) (*proof, func()) {
	word := p.cookieOf(r, proofCookie)
	if word == "" {
		return nil, nil
	}
	return visits.proof(p.Credentials.Own.Page, word, time.Now())
}
