package login

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"net/http"
	"net/netip"
	"net/url"
	"os"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/modelcontextprotocol/go-sdk/oauthex"
	"golang.org/x/oauth2"
)

// Patience is how long a login waits for its person, and PatienceText says so.
const (
	Patience     = 5 * time.Minute
	PatienceText = "5 minutes"
)

// State is how far an Attempt is.
type State string

// The states of an Attempt, in their order: see docs/design/login.md.
const (
	Discovering State = "discovering"
	Confirming  State = "confirming"
	Registering State = "registering"
	Waiting     State = "waiting"
	Exchanging  State = "exchanging"
	Storing     State = "storing"
	Done        State = "done"
	Failed      State = "failed"
)

// Options say how to log in.
type Options struct {
	Server string      // its URL
	Header http.Header // that each request to it has; an Authorization is left out
	// ClientID and ClientSecret are those of a client that is registered at the issuer; empty: one is registered.
	ClientID, ClientSecret string
	// Issuer is the one that the person, or the configuration, has named; empty: the server names it. A client id
	// goes to no other.
	Issuer string
	// Challenge is that of a message that the server has refused. It counts where the server answers initialize.
	Challenge oauthex.Challenge
	// DocumentURL is the URL of a Document that others serve; empty: there is none.
	DocumentURL string
	// Scopes are those to ask for. nil: those that the challenge names, else those of the metadata of the server.
	Scopes []string
	// NoResource leaves the resource out: for issuers that refuse it.
	NoResource bool
	// Port is that of the redirect on 127.0.0.1; 0: a free one.
	Port int
	// Redirect is where the browser comes back, if the caller serves that; empty: a listener of this machine.
	Redirect string
	// Permits reports whether the login may still be kept, once it is made; nil: it may.
	Permits func() bool
	// Confirm asks whether to log in at an issuer of another site than the server's. nil: no.
	Confirm func(server, issuer string) bool
	// ConfirmElsewhere asks whether to log in with an issuer that names addresses of another site, such as
	// authorization_endpoint https://…: a code of that site may go to the issuer. It is asked for a named issuer
	// too, but not of EndpointHosts. nil: no.
	ConfirmElsewhere func(issuer, addresses string) bool
	// EndpointHosts are the hosts of other sites at which a person expects addresses of the issuer.
	EndpointHosts []string
	// Transport sends the requests to issuers. It is copied. nil: that of net/http.
	Transport *http.Transport
	Store     Store
}

// Attempt is one login, from the first request to the stored token. It is safe for concurrent use.
type Attempt struct {
	codeFlow
	options Options
	plan    *plan
	before  *Login // the login before, whose choices this one has; nil: there is none
	// confirmed are the hosts of other sites that the person has agreed to: for the next login.
	confirmed []string
	host      string // of the redirect
	server    *http.Server
	link      string
	start     string // the last part of BrowserAddress

	isStarted    atomic.Bool   // BrowserAddress was opened
	isRedirected atomic.Bool   // the browser is on its way to the last page
	wasShown     chan struct{} // closed when that has been sent
	shown        func()        // closes it

	// peer returns the user at the other end of a connection; false if that is unknown.
	peer func(local, remote netip.AddrPort) (uid int, ok bool)

	mu    sync.Mutex // guards what follows
	at    State
	login *Login
	err   error
	ended chan struct{} // closed when the state is Done or Failed
	// back is a page of this machine to which the browser goes after the login; empty: it is told that it is over.
	back string
}

// Begin finds out what the server wants, gets a client, and opens the address of the redirect. Then the Attempt waits
// for its person. The caller must call Close.
func Begin(ctx context.Context, o Options) (*Attempt, error) {
	a, err := prepare(ctx, o)
	if err != nil {
		return nil, err
	}
	if err := a.open(ctx); err != nil {
		return nil, err
	}
	return a, nil
}

// prepare finds out what the server wants, and has the person confirm that. It makes nothing. The Attempt goes on with
// open.
func prepare(ctx context.Context, o Options) (*Attempt, error) {
	a := &Attempt{options: o, at: Discovering, ended: make(chan struct{}),
		codeFlow: codeFlow{guard: newGuard(o.Transport, netip.Addr{})}, wasShown: make(chan struct{}), peer: peerUID}
	a.shown = sync.OnceFunc(func() { close(a.wasShown) })
	err := a.find(ctx)
	if err == nil {
		err = a.confirm()
	}
	if err != nil {
		a.end(nil, err)
		return nil, err
	}
	return a, nil
}

// open gets a client, and opens the address of the redirect.
func (a *Attempt) open(ctx context.Context) error {
	err := a.register(ctx)
	if err != nil {
		a.end(nil, err)
		a.Close()
	}
	return err
}

func (a *Attempt) find(ctx context.Context) error {
	if a.options.Store.dir == "" {
		return errNoPlace
	}
	server, err := Canonical(a.options.Server)
	if err != nil {
		return err
	}
	before, _, _ := a.options.Store.Newest(server.String()) // without it a person chooses again
	if before != nil && before.Client.ByHand && a.options.Redirect != "" {
		before = nil // the operator names the client of a page
	}
	if o := &a.options; before != nil && before.Client.ByHand && o.ClientID == "" && o.Issuer == "" {
		o.Issuer = before.Issuer // its id goes to no other one
	}
	if a.plan, err = discover(ctx, a.guard, server, a.options); err != nil {
		return err
	}
	a.issuer = &a.plan.issuer
	if before != nil && sameIssuer(before.Issuer, a.plan.issuer.Issuer) {
		a.inherit(before)
	}
	return nil
}

func (a *Attempt) register(ctx context.Context) (err error) {
	a.set(Registering)
	a.begin() // the listener reads what it sets
	a.start = rand.Text()
	if err := a.listen(a.options.Port); err != nil {
		return err
	}
	a.scopes, a.resource = a.chooseScopes(), a.chooseResource()
	a.scopesBy = "name those that it wants with --scope"
	if a.options.Redirect != "" {
		a.scopesBy = "the server names those that it needs"
	}
	if err := a.chooseClient(ctx); err != nil {
		return err
	}
	a.link, err = a.makeLink()
	a.set(Waiting)
	return err
}

// inherit takes what a person has chosen for the login before at the same issuer, unless the options say otherwise. A
// port may be registered with a client that was made by hand; any other client takes a free one.
func (a *Attempt) inherit(before *Login) {
	o := &a.options
	a.before = before
	if o.Port == 0 && before.Client.ByHand {
		o.Port = before.Port
	}
	if o.Scopes == nil {
		o.Scopes = before.Asked
	}
	o.NoResource = o.NoResource || before.Resource == ""
	o.EndpointHosts = slices.Concat(o.EndpointHosts, before.EndpointHosts)
}

// confirm has the person confirm an issuer of another site, as a server can name one whose page looks like another's;
// and an issuer with addresses of another site.
func (a *Attempt) confirm() error {
	if err := a.confirmIssuer(); err != nil {
		return err
	}
	a.set(Confirming)
	return a.confirmAddresses(a.plan.issuer.addresses())
}

func (a *Attempt) confirmIssuer() error {
	issuerURL, err := url.Parse(a.plan.issuer.Issuer)
	if err != nil {
		return err
	}
	isKnown := a.before != nil && sameIssuer(a.before.Issuer, a.plan.issuer.Issuer) // somebody has logged in there
	if a.options.Issuer != "" || isKnown || sameSite(a.plan.server, issuerURL) {
		return nil
	}
	a.set(Confirming)
	if a.options.Confirm != nil && a.options.Confirm(a.plan.server.Host, publicURL(a.plan.issuer.Issuer)) {
		return nil
	}
	return &OtherSiteError{Server: a.plan.server.Host, Issuer: publicURL(a.plan.issuer.Issuer)}
}

// confirmAddresses has the person confirm the addresses that are not of the issuer's site. An issuer that names the
// page of another one, and a token endpoint of its own, would get the codes of that other issuer.
func (a *Attempt) confirmAddresses(all []address) error {
	issuerURL, err := url.Parse(a.plan.issuer.Issuer)
	if err != nil {
		return err
	}
	var elsewhere, flags, names []string
	for _, one := range all {
		at, err := url.Parse(one.at)
		if one.at == "" || err == nil && (sameSite(issuerURL, at) || a.expects(at.Hostname())) {
			continue
		}
		elsewhere = append(elsewhere, one.name+" "+publicURL(one.at))
		if err == nil {
			flags = append(flags, "--endpoint-host "+quoted(at.Hostname()))
			names = append(names, at.Hostname())
		}
	}
	slices.Sort(flags)
	if len(elsewhere) == 0 {
		return nil
	}
	text := strings.Join(elsewhere, ", ")
	if a.options.ConfirmElsewhere != nil && a.options.ConfirmElsewhere(publicURL(a.plan.issuer.Issuer), text) {
		a.confirmed = append(a.confirmed, names...)
		return nil
	}
	return fmt.Errorf("the issuer %s names addresses of another site, and nobody has confirmed them: %s: "+
		"log in in a terminal, where you are asked, or, if they belong together, with %s",
		publicURL(a.plan.issuer.Issuer), text, strings.Join(slices.Compact(flags), " "))
}

// expects reports whether a person expects addresses of the issuer at a host.
func (a *Attempt) expects(host string) bool {
	return slices.ContainsFunc(a.options.EndpointHosts, func(one string) bool { return strings.EqualFold(one, host) })
}

// OtherSiteError reports that a person must confirm the issuer.
type OtherSiteError struct{ Server, Issuer string }

func (e *OtherSiteError) Error() string {
	return fmt.Sprintf("the server %s has its tokens from %s, which is another site, and nobody has confirmed that: "+
		"confirm it with --issuer %s", e.Server, e.Issuer, quoted(e.Issuer))
}

// offline is the scope with which OpenID Connect gives refresh tokens.
const offline = "offline_access"

// chooseScopes returns the scopes to ask for. The issuer's list is that of all its servers, and is not asked for; only
// offline is, beside others. Alone it would take the place of the scopes that the issuer chooses for a request without
// any (RFC 6749, 3.3).
func (a *Attempt) chooseScopes() []string {
	scopes := slices.Clone(a.plan.noted)
	if a.options.Scopes != nil {
		scopes = slices.Clone(a.options.Scopes)
	}
	if len(scopes) > 0 && slices.Contains(a.plan.issuer.ScopesSupported, offline) && !slices.Contains(scopes, offline) {
		scopes = append(scopes, offline)
	}
	return scopes
}

// chooseClient sets the client: the configured one, that of the document, or a new one.
func (a *Attempt) chooseClient(ctx context.Context) (err error) {
	switch i := &a.plan.issuer; {
	case a.options.ClientID != "":
		a.client = configured(i, a.options.ClientID, a.options.ClientSecret)
	case a.before != nil && a.before.Client.ByHand:
		a.client = a.before.Client
	case a.usesDocument(ctx):
		a.client = ofDocument(a.options.DocumentURL)
	default:
		a.client, err = a.registerClient(ctx)
	}
	return err
}

// chooseResource returns the resource that each request has, empty if none.
func (a *Attempt) chooseResource() string {
	if a.options.NoResource {
		return ""
	}
	return a.plan.resource
}

// Link returns the address that the person opens. It has no secret but the state, which is good for this login alone.
func (a *Attempt) Link() string { return a.link }

// BrowserAddress returns an address of this machine that leads to Link, once. The browser is started with it: all users
// of a machine can read the arguments of a program, and logs keep them. With the state in the link another user could
// have this login end in an account of that user.
func (a *Attempt) BrowserAddress() string { return "http://" + a.host + startPath + a.start }

// setBack has the browser go to a page after the login.
func (a *Attempt) setBack(page string) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.back = page
}

// backOf returns the page to which the browser goes once the login is made; else an empty text.
func (a *Attempt) backOf() string {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.at != Done {
		return ""
	}
	return a.back
}

// Issuer returns the issuer, for people.
func (a *Attempt) Issuer() string { return publicURL(a.plan.issuer.Issuer) }

// ClientText says which client logs in, for people.
func (a *Attempt) ClientText() string { return a.client.How }

// Redirect returns the address at which the browser comes back.
func (a *Attempt) Redirect() string { return a.redirect }

// State returns how far the login is.
func (a *Attempt) State() State {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.at
}

// set sets the state, unless there is an outcome.
func (a *Attempt) set(at State) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.at != Done && a.at != Failed {
		a.at = at
	}
}

// outcome returns the login, or why there is none; neither while the login goes on.
func (a *Attempt) outcome() (*Login, error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.login, a.err
}

// end sets the outcome, unless there is one.
func (a *Attempt) end(l *Login, err error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.at == Done || a.at == Failed {
		return
	}
	a.login, a.err, a.at = l, err, Done
	if err != nil {
		a.at = Failed
	}
	close(a.ended)
}

// errOpenedTwice reports that two programs have opened the address of the browser, of which one may be another user's.
var errOpenedTwice = errors.New("the address of the browser was opened twice: begin the login again")

// openedTwice ends the login, also if it is made.
func (a *Attempt) openedTwice() {
	a.end(nil, errOpenedTwice)
	a.mu.Lock()
	l := a.login
	if l != nil {
		a.login, a.err, a.at = nil, errOpenedTwice, Failed
	}
	a.mu.Unlock()
	if l != nil {
		a.undo(l)
	}
}

// undo has the issuer end a login, and forgets it, unless another one has taken its place.
func (a *Attempt) undo(l *Login) {
	ctx, cancel := context.WithTimeout(context.Background(), askTimeout)
	defer cancel()
	_, _ = logout(ctx, a.options.Store, l, func(now *Login) bool { return now.At.Equal(l.At) })
}

// Wait waits for the outcome, or the end of ctx, which is one.
func (a *Attempt) Wait(ctx context.Context) (*Login, error) {
	select {
	case <-a.ended:
	case <-ctx.Done():
		err := errors.New("the login was given up")
		if errors.Is(ctx.Err(), context.DeadlineExceeded) {
			err = errors.New("nobody has logged in within " + PatienceText)
		}
		a.end(nil, err)
	}
	return a.outcome()
}

// Ended returns a channel that is closed once there is an outcome.
func (a *Attempt) Ended() <-chan struct{} { return a.ended }

// Close gives up, unless there is an outcome, and closes the address of the redirect.
func (a *Attempt) Close() {
	a.end(nil, errors.New("the login was given up"))
	a.closeListener()
}

// waitsNoMore has the login wait for its person no more, and reports whether it has waited.
func (a *Attempt) waitsNoMore() bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	hasWaited := a.at == Waiting
	if hasWaited {
		a.at = Exchanging
	}
	return hasWaited
}

// take takes the answer of the issuer, once. It returns errState for one of another login, which goes on waiting.
// isHere says that the browser that brings it is there for the last page: closeListener, which the end of the login
// wakes, waits for it.
func (a *Attempt) take(ctx context.Context, query url.Values, isHere bool) error {
	got, err := a.read(query)
	if errors.Is(err, errState) {
		return err
	}
	if isHere {
		a.isRedirected.Store(true)
	}
	isFirst := a.waitsNoMore()
	switch {
	case !isFirst:
		return nil // the browser asks again: /done says how it is
	case err != nil:
		a.end(nil, err)
		return err
	}
	// The code is good once: the exchange goes on if the browser leaves.
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), askTimeout)
	defer cancel()
	return a.finish(a.exchange(ctx, got.code))
}

// finish stores the tokens of an answer, and ends the login.
func (a *Attempt) finish(token *oauth2.Token, err error) error {
	if err != nil {
		err = ofIssuer(err)
		if errors.Is(err, errEnded) {
			err = errors.New("the issuer does not take its own code any more: it is too old, or was used before")
		}
		a.end(nil, err)
		return err
	}
	a.set(Storing)
	i, now := &a.plan.issuer, time.Now()
	l := &Login{Server: a.plan.server.String(), Issuer: i.Issuer, ServerAt: a.guard.serverAddr(),
		TokenURL: i.TokenEndpoint, RevokeURL: i.RevocationEndpoint, Client: a.client, Resource: a.resource,
		Scopes: a.scopes, At: now, Asked: a.options.Scopes, Port: a.options.Port}
	expected := slices.Concat(a.options.EndpointHosts, a.confirmed)
	slices.Sort(expected)
	l.EndpointHosts = slices.Compact(expected)
	if err = l.take(token, now); err == nil {
		if err = a.save(l); err != nil { // nobody has the tokens
			revoking, cancel := context.WithTimeout(context.Background(), askTimeout)
			defer cancel()
			_, _ = l.revoke(revoking, a.guard)
		}
	}
	if err != nil {
		a.end(nil, err)
		return err
	}
	a.options.Store.dropName(l.Server)
	a.options.Store.dropLink(l.Server) // before the tab: else another program opens its address again
	a.options.Store.dropTab(l.Server)
	a.options.Store.tellSources(l.Server)
	a.end(l, nil)
	if _, err := a.outcome(); err != nil { // it was given up meanwhile, or its address was opened twice
		a.undo(l)
		return err
	}
	return nil
}

// errNotPermitted reports a login whose principal was removed before it was made.
var errNotPermitted = errors.New("this login may not be kept any more: whom it is for is not known here now")

// save saves the login under its lock: a refresh of the one before that is under way would overwrite it. It deletes
// what the server said to that one.
func (a *Attempt) save(l *Login) error {
	store := a.options.Store
	if err := store.open(); err != nil { // the lock is in the folder
		return err
	}
	ctx, cancel := context.WithTimeout(context.Background(), refreshTimeout)
	defer cancel()
	unlock, err := store.lock(ctx, store.path(l.Server, l.Issuer))
	if err != nil {
		return err
	}
	defer unlock()
	if _, err := a.outcome(); err != nil { // it was given up: another one may have been made since
		return err
	}
	if err := store.Save(l); err != nil {
		return err
	}
	store.unused(store.path(l.Server, l.Issuer), l.At)
	// ForgetPrincipals looks for the file after the permission has ended. So either it finds the file, or this finds
	// that the permission has ended.
	if a.options.Permits != nil && !a.options.Permits() {
		return errors.Join(errNotPermitted, store.Forget(l))
	}
	_ = store.forgetMemory(l) // of the login before, whose mark is another: nobody is told of it in any case
	return nil
}

// DeviceCode is what a person types on another device.
type DeviceCode struct {
	Address string // to open
	Code    string // to type there
	// Whole is the address with the code in it; empty: there is none.
	Whole string
	got   *oauth2.DeviceAuthResponse
}

// HasDevice reports whether the issuer has the device flow.
func (a *Attempt) HasDevice() bool { return a.plan.issuer.DeviceURL != "" }

// Device begins the device flow (RFC 8628).
func (a *Attempt) Device(ctx context.Context) (*DeviceCode, error) {
	options := a.resourceParam()
	if a.client.Secret != "" && !a.client.InHeader {
		options = append(options, oauth2.SetAuthURLParam("client_secret", a.client.Secret))
	}
	got, err := a.conf().DeviceAuth(withClient(ctx, a.guard), options...)
	if err != nil {
		return nil, ofIssuer(err)
	}
	pages := []address{
		{"verification_uri", got.VerificationURI}, {"verification_uri_complete", got.VerificationURIComplete},
	}
	for _, page := range pages {
		if u, err := url.Parse(page.at); page.at != "" && (err != nil || u.User != nil || a.guard.check(u) != nil) {
			return nil, errors.New("the issuer names an address for the code that no browser may open")
		}
	}
	if err := a.confirmAddresses(pages); err != nil {
		return nil, err
	}
	if got.UserCode == "" || got.VerificationURI == "" {
		return nil, errors.New("the issuer gave no code")
	}
	got.Interval = intervalOf(got.Interval)
	return &DeviceCode{Address: got.VerificationURI, Code: visible(got.UserCode), Whole: got.VerificationURIComplete,
		got: got}, nil
}

// intervalOf returns the seconds between two questions for the token: 5 if the issuer names none (RFC 8628, 3.2). A
// ticker takes no number below one, nor one too large.
func intervalOf(named int64) int64 {
	if named <= 0 {
		return 5
	}
	return min(named, 60)
}

// visible returns a text of an issuer without what a terminal does not show.
func visible(text string) string {
	return strings.Map(func(r rune) rune {
		if r < ' ' || r >= 0x7f {
			return -1
		}
		return r
	}, text)
}

// AwaitDevice asks the issuer until the person has typed the code, and ends the login then. If the code is good no
// more, it returns why, and the login waits for what comes back from Link.
func (a *Attempt) AwaitDevice(ctx context.Context, code *DeviceCode) error {
	options := a.resourceParam()
	token, err := a.conf().DeviceAccessToken(withClient(ctx, a.guard), code.got, options...)
	switch {
	case ctx.Err() != nil: // Wait says so
	case errors.Is(err, context.DeadlineExceeded):
		return errors.New("nobody has typed the code in time")
	case err != nil:
		return ofIssuer(err)
	case a.waitsNoMore():
		_ = a.finish(token, nil)
	}
	return nil
}

// LogoutUnusable has the issuer end a login whose file is not used, if what the file has can be trusted, and deletes
// the file and what the server said to the login, also where that fails.
func LogoutUnusable(ctx context.Context, one Unusable) (revoked bool, err error) {
	if one.Login != nil {
		revoked, err = one.Login.revoke(ctx, newGuard(nil, one.Login.ServerAt))
	}
	return revoked, errors.Join(err, os.Remove(one.Path), os.RemoveAll(memoryBeside(one.Path)))
}

// NotToldError reports a login that is forgotten here, and that the issuer could not be told to end.
type NotToldError struct {
	Issuer string // for people
	why    error
}

func (e *NotToldError) Error() string {
	return e.Issuer + " could not be told: " + e.why.Error() + ". Its token may stay good until it ends: end it in " +
		"your account there"
}

// Logout has the issuer end a login, and forgets it, also where that fails, which is a NotToldError then. revoked says
// whether the issuer has.
func Logout(ctx context.Context, store Store, l *Login) (revoked bool, err error) {
	return logout(ctx, store, l, func(*Login) bool { return true })
}

// logout is Logout, unless the file has another login that is not meant: then the issuer alone ends l.
func logout(ctx context.Context, store Store, l *Login, isMeant func(*Login) bool) (revoked bool, err error) {
	unlock, err := store.lock(ctx, store.path(l.Server, l.Issuer))
	if err != nil {
		return false, err
	}
	defer unlock()
	if now, err := store.read(store.path(l.Server, l.Issuer)); err == nil {
		if !isMeant(now) {
			return l.revoke(ctx, newGuard(nil, l.ServerAt))
		}
		l = now // it may have been refreshed
	}
	revoked, err = l.revoke(ctx, newGuard(nil, l.ServerAt))
	if left := store.Forget(l); left != nil {
		return revoked, errors.Join(err, left)
	}
	if err != nil {
		return false, &NotToldError{Issuer: publicURL(l.Issuer), why: err}
	}
	return revoked, nil
}
