package login

import (
	"context"
	"errors"
	"html/template"
	"log/slog"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/mcp-sse/mcp-sse/internal/clip"
	"github.com/mcp-sse/mcp-sse/internal/hosts"
)

// Page is where the principals of a gateway log in at one server: the page of a ticket, and the address at which the
// issuer sends the browser back. No bearer token leads there, because a browser has none; the checks of its own are in
// docs/design/login.md.
type Page struct {
	Credentials Credentials // Own.Page is the address of the page
	Name        string      // of the server, for people
	// Principal returns whose token of the gateway this is, if that principal may use the server.
	Principal func(token string) (principal string, err error)
	// TokenIssuer is where a principal shows that it is the one, if it is of the issuer of the gateway's tokens; nil:
	// there are none.
	TokenIssuer *TokenIssuer
	// MayUse reports whether the principal of an Own is still known to the gateway, and may use the server.
	MayUse func(Own) bool
	Log    *slog.Logger
}

// maxForm bounds the form of the page, in bytes.
const maxForm = 32 << 10

// Serve serves the page: sub is what follows its path.
func (p *Page) Serve(w http.ResponseWriter, r *http.Request, sub string) {
	header := w.Header()
	header.Set("Cache-Control", "no-store")
	header.Set("Content-Security-Policy",
		"default-src 'none'; "+lookSource+"; form-action 'self'; frame-ancestors 'none'; base-uri 'none'")
	header.Set("X-Content-Type-Options", "nosniff")
	// With no-referrer browsers would send "Origin: null" with the form.
	header.Set("Referrer-Policy", "same-origin")
	isRead := r.Method == http.MethodGet
	switch {
	case sub == "" && isRead:
		p.serveTicket(w, r, r.URL.Query().Get("ticket"))
	case sub == "" && r.Method == http.MethodPost:
		p.serveConsent(w, r)
	case sub == proofPath && isRead:
		p.serveProof(w, r)
	case sub == callbackPath && isRead:
		p.serveCallback(w, r)
	case sub == donePath && isRead:
		p.serveDone(w, r)
	default:
		header.Set("Allow", "GET, POST") // of the page itself
		p.say(w, http.StatusMethodNotAllowed, "There is nothing here for such a request.")
	}
}

// IsBelow reports whether Serve has something below the path of a page.
func IsBelow(sub string) bool {
	return sub == "" || sub == proofPath || sub == callbackPath || sub == donePath
}

// pageView is what the pages show. All texts are escaped.
type pageView struct {
	Title, Text string // of a page with nothing to do
	// Those of the page of a ticket.
	Name, Host, Issuer, Client, Principal, Elsewhere, Page, Ticket, Wrong string
	OtherSite                                                             bool
	// Shows is the issuer at which the person shows who that is; empty: the page asks for the token of the gateway.
	Shows string
	// Next is the address at the issuer to which the browser goes on; empty: it stays.
	Next string
}

var pageTemplate = template.Must(template.Must(noteTemplate.Clone()).Parse(`{{define "rest"}}{{if .Text}}<p>{{.Text}}
{{end}}{{if .Next}}<p>If the browser stays here, <a rel="noreferrer" href="{{.Next}}">go on to {{.Issuer}}</a>.
{{end}}{{if .Ticket}}<p>The client <strong>{{.Client}}</strong> of <strong>{{.Principal}}</strong>
needs your login at the server <strong>{{.Name}}</strong>, which is at <strong>{{.Host}}</strong>.
<p>You log in at <strong>{{.Issuer}}</strong>{{if .OtherSite}}, <strong>which is another site than the server</strong>{{end}}.
{{if .Elsewhere}}<p><strong>It names addresses of other sites, which get what you allow there: {{.Elsewhere}}</strong>
{{end}}<p>After that the clients of <strong>{{.Principal}}</strong> at this gateway act as you at this server. No other client does.
<p>Go on only if you are <strong>{{.Principal}}</strong>, this client has just given you this link, and you want that.
{{if .Wrong}}<p role="alert"><strong>{{.Wrong}}</strong>
{{end}}<form method="post" action="{{.Page}}">
<input type="hidden" name="ticket" value="{{.Ticket}}">
{{if .Shows}}<p>First you log in at <strong>{{.Shows}}</strong>, as you do for this gateway.
{{else}}<p><label>Your token of this gateway (in your client's settings, after Bearer):
<input type="password" name="token" autocomplete="off" required></label>
{{end}}<p><button>Allow, and log in</button>
</form>
{{end}}{{end}}`))

func (p *Page) show(w http.ResponseWriter, status int, view pageView) {
	w.Header().Set("Content-Type", "text/html; charset=utf-8")
	w.WriteHeader(status)
	_ = pageTemplate.Execute(w, view) // the browser has left
}

// say shows a page with nothing to do.
func (p *Page) say(w http.ResponseWriter, status int, text string) {
	p.show(w, status, pageView{Title: "Log in at " + p.Name, Text: text})
}

const goneTicket = "This link is not good any more: it is good once, for five minutes. Have the client call again; " +
	"its answer has a new one."

// serveTicket shows who asks for which login, and asks for the token of the ticket's principal: whoever has the link
// need not be that.
func (p *Page) serveTicket(w http.ResponseWriter, r *http.Request, word string) {
	t := visits.ticket(p.Credentials.Own.Page, word, time.Now())
	if t == nil || !p.MayUse(t.of.Own) {
		p.say(w, http.StatusNotFound, goneTicket)
		return
	}
	p.showTicket(w, r, t, http.StatusOK, "")
}

func (p *Page) showTicket(w http.ResponseWriter, r *http.Request, t *ticket, status int, wrong string) {
	if err := p.prepare(r.Context(), t); err != nil {
		p.failed(w, err)
		return
	}
	a, shows := t.attempt, ""
	if issuer := p.issuerOf(t); issuer != nil {
		shows = siteOf(issuer.URL)
	}
	p.show(w, status, pageView{Title: "Log in at " + p.Name, Name: p.Name, Host: a.plan.server.Host,
		Issuer: siteOf(a.Issuer()), Client: clientText(t.of.Asker), Principal: t.of.Own.Principal,
		Elsewhere: t.elsewhere, OtherSite: t.otherSite,
		Page: p.Credentials.Own.Page, Ticket: t.word, Wrong: wrong, Shows: shows})
}

// clientText names a client for people.
func clientText(a Asker) string {
	name := strings.TrimSpace(visible(clip.Long(a.Name)))
	if name == "" {
		name = "without a name"
	}
	return name + " (connection " + visible(a.Connection) + ")"
}

// siteOf returns the host of a URL, for people.
func siteOf(at string) string {
	if u, err := url.Parse(at); err == nil && u.Host != "" {
		return u.Host
	}
	return at
}

// failed says that a login cannot go on. The reason is for the operator, as it may have addresses.
func (p *Page) failed(w http.ResponseWriter, err error) {
	p.Log.Warn("login of a principal not begun", "err", err)
	p.say(w, http.StatusBadGateway, "The login cannot begin now. Ask the operator of the gateway, whose log says why, "+
		"or have the client call again later.")
}

// prepareAgain is how long the failure of prepare counts: who has a link cannot have the server asked all the time.
const prepareAgain = 10 * time.Second

// prepare finds out what the server wants, once for a ticket: the person agrees to what the page shows, and to nothing
// else.
func (p *Page) prepare(ctx context.Context, t *ticket) error {
	select {
	case t.opened <- struct{}{}:
		defer func() { <-t.opened }()
	case <-ctx.Done():
		return ctx.Err()
	}
	switch {
	case t.attempt != nil:
		return nil
	case t.failure != nil && time.Since(t.failed) < prepareAgain:
		return t.failure
	}
	asked := ctx
	ctx, cancel := context.WithTimeout(ctx, beginTimeout)
	defer cancel()
	s, own := t.of.source(), t.of.Own
	a, err := prepare(ctx, Options{
		Server: s.server, Header: t.of.header(), Challenge: s.challenged(), Store: s.store, Scopes: t.scopes,
		ClientID: p.Credentials.Client.ID, ClientSecret: p.Credentials.Client.Secret,
		Issuer:      p.Credentials.ClientIssuer,
		DocumentURL: Document{Page: own.Page}.URL(),
		Redirect:    own.Page + callbackPath, Permits: func() bool { return p.MayUse(own) },
		Confirm: func(_, _ string) bool { t.otherSite = true; return true },
		ConfirmElsewhere: func(_, addresses string) bool {
			t.elsewhere = addresses
			return true
		},
	})
	switch {
	case err == nil:
		t.attempt = a
	case asked.Err() == nil: // else the browser has left
		t.failure, t.failed = err, time.Now()
	}
	return err
}

// prepared returns what the page of a ticket has shown; nil if nobody has seen it.
func (t *ticket) prepared() *Attempt {
	select {
	case t.opened <- struct{}{}:
		defer func() { <-t.opened }()
		return t.attempt
	default:
		return nil
	}
}

// serveConsent takes the form of a ticket's page: the token of its principal is the consent for its client. It begins
// the login, and binds it to the browser.
func (p *Page) serveConsent(w http.ResponseWriter, r *http.Request) {
	if origins := r.Header["Origin"]; len(origins) != 1 || origins[0] != hosts.Origin(p.Credentials.Own.Page) {
		p.say(w, http.StatusForbidden, "Only the page of this login may send its form.")
		return
	}
	r.Body = http.MaxBytesReader(w, r.Body, maxForm)
	if err := r.ParseForm(); err != nil {
		p.say(w, http.StatusBadRequest, "The form cannot be read.")
		return
	}
	t := visits.ticket(p.Credentials.Own.Page, r.PostForm.Get("ticket"), time.Now())
	if t == nil || !p.MayUse(t.of.Own) {
		p.say(w, http.StatusNotFound, goneTicket)
		return
	}
	if issuer := p.issuerOf(t); issuer != nil {
		if t.prepared() == nil {
			p.showTicket(w, r, t, http.StatusOK, "Look at what the page says, and go on then.")
			return
		}
		p.beginProof(w, r, t, issuer)
		return
	}
	principal, err := p.Principal(pastedToken(r.PostForm.Get("token")))
	if err != nil || principal != t.of.Own.Principal {
		visits.noteWrong(t)
		p.Log.Warn("login of a principal refused: the token is not the principal's", "server", p.Name)
		p.showTicket(w, r, t, http.StatusForbidden, "This is not the token of the client that has given you this "+
			"link. If somebody else has sent it to you, close this page.")
		return
	}
	if t.prepared() == nil {
		p.showTicket(w, r, t, http.StatusOK, "Look at what the page says, and type your token again.")
		return
	}
	p.beginLogin(w, r, t, func(a *Attempt) {
		p.leadOn(w, siteOf(a.Issuer()), a.Link(), "You go on to "+siteOf(a.Issuer())+".")
	})
}

// pastedToken returns the token in what somebody has pasted, which may be the value of the header.
func pastedToken(text string) string {
	text = strings.TrimSpace(text)
	if kind, token, ok := strings.Cut(text, " "); ok && strings.EqualFold(kind, "Bearer") {
		return strings.TrimSpace(token)
	}
	return text
}

// issuerOf returns where the principal of a ticket shows that it is the one; nil: it types its token.
func (p *Page) issuerOf(t *ticket) *TokenIssuer {
	if !IsOfIssuer(t.of.Own.Principal) {
		return nil
	}
	return p.TokenIssuer
}

// beginLogin uses a ticket whose page has shown what the server wants, begins the login, and binds it to the browser,
// which goes on then. The principal of the ticket has agreed to it.
func (p *Page) beginLogin(w http.ResponseWriter, r *http.Request, t *ticket, goOn func(*Attempt)) {
	a := t.prepared()
	if a == nil || !p.MayUse(t.of.Own) {
		p.say(w, http.StatusNotFound, goneTicket)
		return
	}
	word, isThere := visits.begin(t, a) // before anything is asked: the end of a principal finds the one or the other
	if !isThere {
		p.say(w, http.StatusNotFound, goneTicket)
		return
	}
	ctx, cancel := context.WithTimeout(r.Context(), beginTimeout)
	defer cancel()
	if err := a.open(ctx); err != nil {
		visits.drop(word)
		p.failed(w, err)
		return
	}
	p.setCookie(w, loginCookie, word, int(Patience.Seconds()))
	w.Header().Set("Referrer-Policy", "no-referrer")
	goOn(a)
}

// leadOn shows a page that leads to an issuer. It is no redirect: browsers hold the form-action of a page against all
// redirects of its form, and an issuer has its own.
func (p *Page) leadOn(w http.ResponseWriter, issuer, link, text string) {
	w.Header().Set("Referrer-Policy", "no-referrer")
	p.show(w, http.StatusOK, pageView{Title: "Log in at " + p.Name, Issuer: issuer, Next: link, Text: text})
}

// These cookies bind what waits for a browser to the one that has begun it: a login, and a person on the way to the
// issuer of the gateway's tokens. The prefix has browsers take them with Secure, without Domain and for / alone.
const loginCookie, proofCookie = "__Host-login-", "__Host-proof-"

// cookieName is that of a cookie at this page. Cookies know no ports, so that two gateways of one host have others.
func (p *Page) cookieName(kind string) string { return kind + hash(p.Credentials.Own.Page) }

func (p *Page) setCookie(w http.ResponseWriter, kind, word string, seconds int) {
	// Lax: the issuer sends the browser back from another site.
	http.SetCookie(w, &http.Cookie{Name: p.cookieName(kind), Value: word, Path: "/", MaxAge: seconds, Secure: true,
		HttpOnly: true, SameSite: http.SameSiteLaxMode})
}

// cookieOf returns the word of the cookie of a request; empty if it has not one such cookie.
func (p *Page) cookieOf(r *http.Request, kind string) string {
	cookies := r.CookiesNamed(p.cookieName(kind))
	if len(cookies) != 1 {
		return ""
	}
	return cookies[0].Value
}

// visitOf returns the login that the browser of a request has begun here; nil if there is none.
func (p *Page) visitOf(r *http.Request) *visit {
	word := p.cookieOf(r, loginCookie)
	if word == "" {
		return nil
	}
	return visits.visit(p.Credentials.Own.Page, word)
}

const (
	notBegun = "This browser has begun no login here, or that was too long ago. Nothing was done: have the client " +
		"call again, and open its link."
	notOfThis = "This answer is not of the login that this browser has begun. Nothing was done."
)

// serveCallback takes the answer of the issuer, from the browser that has begun the login alone. The browser then goes
// on to an address without the code, which stays in its history.
func (p *Page) serveCallback(w http.ResponseWriter, r *http.Request) {
	v := p.visitOf(r)
	switch {
	case v == nil:
		p.say(w, http.StatusForbidden, notBegun)
		return
	case !p.MayUse(v.of.Own):
		v.attempt.Close()
		p.say(w, http.StatusForbidden, "You may not use this server any more.")
		return
	}
	if err := v.attempt.take(r.Context(), r.URL.Query(), false); errors.Is(err, errState) {
		p.say(w, http.StatusBadRequest, notOfThis)
		return
	}
	w.Header().Set("Referrer-Policy", "no-referrer")
	w.Header().Set("Location", p.Credentials.Own.Page+donePath)
	w.WriteHeader(http.StatusSeeOther)
}

// serveDone says how the login of the browser has ended. The page leads nowhere.
func (p *Page) serveDone(w http.ResponseWriter, r *http.Request) {
	v := p.visitOf(r)
	if v == nil {
		p.say(w, http.StatusNotFound, "This browser has no login here that goes on.")
		return
	}
	switch l, err := v.attempt.outcome(); {
	case err != nil:
		p.setCookie(w, loginCookie, "", -1)
		p.Log.Warn("login of a principal failed", "server", p.Name, "err", err) // it may have the words of the issuer
		p.say(w, http.StatusOK, "The login has failed. Have the client call again for another one; if that fails too, "+
			"ask the operator of the gateway, whose log says why.")
	case l == nil:
		p.say(w, http.StatusOK, "The login goes on.")
	default:
		p.setCookie(w, loginCookie, "", -1)
		p.say(w, http.StatusOK,
			"You are logged in. The clients of "+v.of.Own.Principal+" at this gateway act as you at "+p.Name+" now. "+
				"Go back to yours, which can call again; you can close this page.")
	}
}
