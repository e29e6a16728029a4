package login

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"net/http"
	"os"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/modelcontextprotocol/go-sdk/oauthex"
	"golang.org/x/sync/singleflight"

	"github.com/mcp-sse/mcp-sse/internal/asker"
	"github.com/mcp-sse/mcp-sse/internal/clip"
	"github.com/mcp-sse/mcp-sse/internal/shellword"
)

const (
	// early is how long before its end a token is replaced.
	early = time.Minute
	// retryAfter is the pause after a refresh that has failed.
	retryAfter = 2 * time.Second
	// refreshTimeout bounds the wait for another process that refreshes. The request of this one has askTimeout after
	// that.
	refreshTimeout = 2*askTimeout + 5*time.Second
	// finishTimeout bounds a refresh, with that wait.
	finishTimeout = refreshTimeout + askTimeout + time.Second
	// noteUseEvery is how often the last use is written.
	noteUseEvery = time.Minute
	// anewWait is how long no other token is asked for in the place of one that the server refuses although it is new.
	anewWait = time.Minute
	// lookEvery is how often the folder is searched for a first login.
	lookEvery = time.Second
)

// Credentials are those of an upstream whose server a person has logged in to, if one has. They compare equal if they
// mean the same.
type Credentials struct {
	StateDir string
	Server   string // its URL
	// Command is what a person types to log in, such as: sse-server login https://…
	Command string
	// Header is the HeaderText of what each request to the server has.
	Header string
	// Links says that those who get an answer have their browser on this machine: it may have a link.
	Links bool
	// Own is whose login it is, where each principal of a gateway has one of its own; the zero Own: all share one.
	// Command and Links have no meaning then.
	Own Own
	// Seal says how the logins of principals are kept.
	Seal Seal
	// Client is the one that the operator has registered for the logins of principals at the issuer of the server,
	// whose name ClientIssuer is. The zero Client: one is registered for each login.
	Client       Client
	ClientIssuer string
	// Asker is the client of that principal: only it gets a link from here.
	Asker Asker
}

// HeaderText writes a header for Credentials.
func HeaderText(header http.Header) string {
	if len(header) == 0 {
		return ""
	}
	text, _ := json.Marshal(header) // never fails, and has the names in order
	return string(text)
}

// header returns what each request to the server has.
func (c Credentials) header() (header http.Header) {
	_ = json.Unmarshal([]byte(c.Header), &header) // fails without one
	return header
}

// sources has a *source by the Credentials with what says where the login is kept, and nothing else: all sessions of a
// process share one.
var sources sync.Map

// source returns the source of c.
func (c Credentials) source() *source {
	server := c.Server
	if at, err := Canonical(c.Server); err == nil {
		server = at.String()
	}
	store := NewStore(c.StateDir)
	if c.isOwn() {
		store = storeOf(c.StateDir, server, c.Own, c.Seal)
	}
	key := Credentials{StateDir: c.StateDir, Server: server, Own: c.Own, Seal: c.Seal}
	got, _ := sources.LoadOrStore(key, &source{store: store, server: server, wait: renewWait, refresh: refreshLogin,
		renewing: make(chan struct{}, 1), asked: make(chan struct{}, 1)})
	return got.(*source)
}

// Authorizer returns the function that authorizes requests: see upstream.Credentials. All clients share the login, or
// all of a principal.
func (c Credentials) Authorizer(_ func() string, log *slog.Logger) func(context.Context, string) (string, error) {
	s := c.source()
	s.configure(c)
	return func(ctx context.Context, refused string) (string, error) { return s.authorize(ctx, refused, log) }
}

// Advise says what to do about a response that refuses access: again, because somebody has logged in meanwhile; or what
// a person can do, for those who may know the server's address, and for all. The texts are empty if a login does not
// help. link is that in the texts; empty: they have none. asks says that it answers a client, who may get a link.
func (c Credentials) Advise(ctx context.Context, resp *http.Response, asks bool) (
	again bool, full, public, link string,
) {
	challenge := challengeOf(resp.Header)
	switch {
	case resp.StatusCode == http.StatusForbidden && challenge.Params["error"] == "insufficient_scope":
		full, public, link = c.adviseScopes(ctx, resp, strings.Fields(challenge.Params["scope"]), asks)
		return false, full, public, link
	case resp.StatusCode != http.StatusUnauthorized:
		return false, "", "", ""
	}
	s := c.source()
	if challenge.Scheme != "" { // else it may be of no server: a login that has ended is not tried
		s.noteChallenge(challenge)
	}
	before := s.held()
	now, err := s.look()
	stalled := s.hindranceOf(now)
	if challenge.Scheme != "" && s.isForSessions(asks) {
		s.noteWanted(true)
	}
	what := "nobody is logged in at the server"
	switch {
	case err != nil:
		what = err.Error()
	case now == nil && challenge.Scheme == "": // it may want something else than a token of OAuth
		return false, "", "", ""
	case now == nil && challenge.Params["resource_metadata"] == "" && !c.isOwn():
		return false, "the server needs a login: run in a terminal: " + c.Command + " and call again; or configure " +
			"the credentials that it wants, for example as an Authorization header", needsLogin, ""
	case now == nil:
	case before == nil || now.At.After(before.At):
		return true, "", "", ""
	case !now.Ended.IsZero():
		what = "the login at the server has ended"
	case stalled.isStall(): // nobody has to log in
		return false, stalled.full, stalled.public, ""
	default:
		what = "the server does not take the login any more"
		s.noteRefusedAnew(now, sentWith(resp))
	}
	if c.isOwn() {
		if err != nil { // it has the path of a file, and the log has it
			what = "your login at the server cannot be used"
		}
		full, link = c.adviceForOwn(what, asks, nil)
		return false, full, full, link
	}
	if asks && c.Links && err == nil {
		if link, _, err := c.Begin(ctx); err == nil {
			full = what + ". " + c.linkText(link)
			return false, full, full, link
		}
	}
	return false, what + ": run in a terminal: " + c.Command + " and call again", needsLogin, ""
}

// adviseScopes is Advise for a response that wants scopes which the login lacks. It notes a login that opens no session
// for want of them.
func (c Credentials) adviseScopes(ctx context.Context, resp *http.Response, scopes []string, asks bool) (
	full, public, link string,
) {
	s := c.source()
	what := fmt.Sprintf("the login lacks the scope %q", clip.Long(strings.Join(scopes, " "))) // the server's text
	all, l := s.scopesWith(scopes), s.held()
	opensNone := asker.IsOpening(ctx) && isPostWith(resp, l)
	if c.isOwn() {
		if opensNone {
			s.noteUseless(l, all)
		}
		full, link = c.adviceForOwn(what, asks, all)
		return full, full, link
	}
	full, public = what+": run in a terminal: "+c.Command+optionsOf(all), "the login at the server lacks a scope"
	if opensNone {
		s.hinder(&hindrance{token: l.Access, full: full, public: public + ": ask its operator"})
	}
	return full, public, ""
}

// sentWith returns the header that a response refuses; empty: none.
func sentWith(resp *http.Response) string {
	if resp.Request == nil { // it is of no server
		return ""
	}
	return resp.Request.Header.Get("Authorization")
}

// isPostWith reports whether a response refuses a POST that has the token of a login.
func isPostWith(resp *http.Response, l *Login) bool {
	return l != nil && resp.Request != nil && resp.Request.Method == http.MethodPost &&
		l.header(time.Now()) == sentWith(resp)
}

// scopesWith returns the scopes of a login with these scopes, and with those of the login of now: they replace what the
// server names.
func (s *source) scopesWith(scopes []string) (all []string) {
	if l, _ := s.look(); l != nil {
		all = slices.DeleteFunc(slices.Clone(l.Scopes), func(one string) bool { return one == offline }) // it is added
	}
	for _, scope := range scopes {
		if !slices.Contains(all, scope) {
			all = append(all, scope)
		}
	}
	return all
}

// optionsOf returns the options of the command for a login with these scopes.
func optionsOf(scopes []string) (options string) {
	for _, scope := range scopes {
		options += " --scope " + quoted(scope)
	}
	return options
}

// needsLogin is for those who may not know where the server is.
const needsLogin = "the server needs a login"

// quoted returns a word of another program as a shell takes it, cut if it is long.
func quoted(word string) string { return shellword.Quote(clip.Long(word)) }

// refreshLogin gets new tokens for a login of its issuer.
func refreshLogin(ctx context.Context, l *Login) error {
	return l.refresh(ctx, newGuard(nil, l.ServerAt))
}

// Finish waits until no refresh is under way, as long as one may take. A program calls it before it ends: a refresh
// token that has been replaced is good for nothing.
func Finish() {
	sources.Range(func(_, one any) bool {
		renewing := one.(*source).renewing
		select {
		case renewing <- struct{}{}:
			<-renewing
		case <-time.After(finishTimeout):
		}
		return true
	})
}

// source gives the header of the login at one server. It is safe for concurrent use.
type source struct {
	store    Store
	server   string
	asking   singleflight.Group
	renewing chan struct{} // has one while the token is renewed
	wait     time.Duration // bounds how long requests wait for a renewal
	asked    chan struct{} // has one while a login begins
	attempt  *Attempt      // the one that was begun last; nil: none. Guarded by asked
	over     chan struct{} // closed when nothing is left of attempt

	mu     sync.Mutex  // guards what follows
	login  *Login      // as it was read, which nobody changes; nil: there is none
	path   string      // its file
	file   os.FileInfo // as it was when it was read
	looked time.Time   // when the folder was last searched
	noted  time.Time   // when the last use was noted
	bad    string      // the header that the server has refused, with nothing to get another one; empty: none
	spent  string      // the refresh token whose client the issuer does not know; empty: none
	typed  string      // what a person types to log in; empty: each principal has a link
	client Client      // of Credentials, as clientIssuer
	wanted bool        // the server asks for a login before it opens a session, or in place of one that has ended
	had    bool        // somebody was logged in
	anew   string      // the header that was got because the server has refused another one; empty: none
	// useless is when the login was made that the server does not take, though its token is new, or that opens no
	// session for want of a scope. Zero: there is none, or the server has taken a request since.
	useless time.Time
	lacks   []string // the scopes to ask for in the place of the useless login; nil: those that the server names
	// clientIssuer is the name of the issuer of client.
	clientIssuer string
	// hindrance is why requests cannot use the login; nil: nothing is known to be.
	hindrance *hindrance
	renewal   time.Time // when the renewal began that is under way; zero: none is
	// challenge is that of the message that the server has refused last; without a scheme: there is none.
	challenge oauthex.Challenge

	refresh func(context.Context, *Login) error // gets new tokens

	// These are of who renews.
	unsaved *Login    // what could not be written
	failed  time.Time // when a refresh last failed
	why     error     // of that
}

// authorize returns the header with the token, other than the refused one; empty if nobody is logged in.
func (s *source) authorize(ctx context.Context, refused string, log *slog.Logger) (string, error) {
	l, err := s.current()
	if err != nil || l == nil {
		return "", err
	}
	now := time.Now()
	if header := l.header(now); header != "" && header != refused && !l.isDue(now) {
		s.noteUse(l, now)
		return header, nil
	}
	stalled := s.hindranceOf(l)
	waiting, stop := context.WithTimeout(ctx, s.patience(stalled))
	defer stop()
	// It goes on if ctx ends before: a refresh token may be good only once.
	asked := s.asking.DoChan(refused, func() (any, error) { return s.renew(refused, log) })
	select {
	case answer := <-asked:
		header := answer.Val.(string)
		if header != "" {
			s.noteUse(l, now)
		}
		return header, answer.Err
	case <-waiting.Done():
	}
	switch header := l.header(time.Now()); {
	case ctx.Err() != nil:
		return "", ctx.Err()
	case header != "" && header != refused: // it is renewed early
		return header, nil
	case stalled.isStall():
		return "", stalled.why
	}
	s.stall(l, refused, errSlow, log)
	return "", errSlow
}

// header returns the header with the access token, empty if there is none that can be good.
func (l *Login) header(now time.Time) string {
	if l.Access == "" || !l.Expiry.IsZero() && !now.Before(l.Expiry) {
		return ""
	}
	return "Bearer " + l.Access
}

// isDue reports whether the access token is to be replaced soon. One that lives for a moment is replaced in the last
// fifth of that.
func (l *Login) isDue(now time.Time) bool {
	if l.Expiry.IsZero() || l.Refresh == "" || !l.Ended.IsZero() {
		return false
	}
	return now.After(l.Expiry.Add(-min(early, l.Expiry.Sub(l.Refreshed)/5)))
}

// held returns the login as it was last read.
func (s *source) held() *Login {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.login
}

// current returns the login of now; nil if nobody is logged in. It reads the file if it has changed, and searches the
// folder once a second while there is none.
func (s *source) current() (*Login, error) {
	s.mu.Lock()
	if s.login != nil {
		info, err := os.Stat(s.path)
		if err == nil && os.SameFile(info, s.file) && info.ModTime().Equal(s.file.ModTime()) {
			defer s.mu.Unlock()
			return s.login, nil
		}
	} else if time.Since(s.looked) < lookEvery {
		defer s.mu.Unlock()
		return nil, nil
	}
	s.mu.Unlock()
	return s.look()
}

// look searches the folder for the newest login.
func (s *source) look() (*Login, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.looked = time.Now()
	l, path, err := s.store.Newest(s.server)
	if l == nil {
		s.login = nil
		return nil, err
	}
	info, err := os.Stat(path)
	if err != nil { // it has just been deleted
		s.login = nil
		return nil, nil
	}
	s.login, s.path, s.file, s.had = l, path, info, true
	return l, nil
}

// configure takes over what the configuration of now says, which is that of the newest session.
func (s *source) configure(c Credentials) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.typed, s.client, s.clientIssuer = c.Command, c.Client, c.ClientIssuer
}

// clientOf returns the client of a login, with the secret that it has now: the operator may have replaced it.
func (s *source) clientOf(l *Login) Client {
	s.mu.Lock()
	defer s.mu.Unlock()
	client := l.Client
	if s.client.ID != "" && s.client.ID == client.ID && sameIssuer(s.clientIssuer, l.Issuer) {
		client.Secret = s.client.Secret
	}
	return client
}

// remedy says what to do about a login that has ended; empty: principals get a link.
func (s *source) remedy() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.typed == "" {
		return ""
	}
	return "run in a terminal: " + s.typed
}

// tellSources has the sources of this process that wait for a first login at a server look for it at once.
func (s Store) tellSources(server string) {
	sources.Range(func(_, one any) bool {
		if of := one.(*source); of.server == server && of.store.dir == s.dir && of.store.key(server) == s.key(server) {
			of.mu.Lock()
			of.looked = time.Time{}
			of.mu.Unlock()
		}
		return true
	})
}

// noteUse notes the last use.
func (s *source) noteUse(l *Login, now time.Time) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if now.Sub(s.noted) >= noteUseEvery || s.noted.Before(l.At) {
		s.noted = now
		s.store.used(s.path, now)
	}
}

// noteChallenge notes the challenge of a message that the server has refused.
func (s *source) noteChallenge(challenge oauthex.Challenge) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.challenge = challenge
}

// challenged returns the challenge of the message that the server has refused last.
func (s *source) challenged() oauthex.Challenge {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.challenge
}

// noteRefused notes a header that the server has refused.
func (s *source) noteRefused(header string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.bad = header
}

// noteRefusedAnew notes that the server has refused a login, if the header is that of a token which is there because
// the server has refused the one before: another one would not help.
func (s *source) noteRefusedAnew(l *Login, header string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if header != "" && header == s.anew {
		s.useless, s.lacks = l.At, nil
	}
}

// errRefusedAnew reports a token that the server has refused although it is new: another one would not help.
var errRefusedAnew = errors.New("the server refuses a token that is new")

// isRefusedAnew reports whether a header is that of a token which is there because the server has refused another one.
func (s *source) isRefusedAnew(header string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return header != "" && header == s.anew
}

// noteUseless notes a login that opens no session, and the scopes to ask for in its place.
func (s *source) noteUseless(l *Login, scopes []string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.useless, s.lacks = l.At, scopes
}

// noteUseful notes that the server has taken a request.
func (s *source) noteUseful() {
	s.mu.Lock()
	s.useless, s.lacks = time.Time{}, nil
	s.mu.Unlock()
	s.endStall() // it has taken the token after all
}

// endStall notes that there is a token that may be good.
func (s *source) endStall() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.hindrance.isStall() {
		s.hindrance = nil
	}
}

// scopesInstead returns the scopes to ask for in the place of a useless login; nil: those that the server names.
func (s *source) scopesInstead() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.login == nil || !s.login.At.Equal(s.useless) {
		return nil
	}
	return s.lacks
}

// isForSessions reports whether a refusal is about the sessions with the server, and not about one tool of a server
// that is public. A request that asks for a client comes in a session that the server has opened: without a login, or
// with one that somebody has ended.
func (s *source) isForSessions(asks bool) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return !asks || s.had
}

// noteWanted notes whether the server asks for a login.
func (s *source) noteWanted(is bool) {
	if is {
		s.store.keepName(s.server)
	}
	s.mu.Lock()
	was := s.wanted
	s.wanted = is
	s.mu.Unlock()
	if was && !is {
		s.store.dropName(s.server)
	}
}

func (s *source) isWanted() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.wanted
}

// noteUnknownClient notes a login that cannot be renewed, and the header that the server has refused, if a refresh has
// failed because the issuer does not know the client.
func (s *source) noteUnknownClient(l *Login, refused string, err error) {
	if _, is := errors.AsType[unknownClientError](err); !is {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.spent = l.Refresh
	if refused != "" {
		s.bad = refused
	}
}

// isGood reports whether a login can authorize: the issuer has not ended it, it has a token that the server may take,
// or something to get one with, and the server has not refused it after that.
func (s *source) isGood(l *Login) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	header := l.header(time.Now())
	canRenew := l.Refresh != "" && l.Refresh != s.spent
	return l.Ended.IsZero() && !l.At.Equal(s.useless) && (canRenew || header != "" && header != s.bad)
}

// lockNewest locks the newest login, and returns it; nil, and no unlock, if nobody is logged in. While it waits for the
// lock, somebody may log in by another issuer: then it locks that login.
func (s *source) lockNewest(ctx context.Context) (l *Login, unlock func(), err error) {
	before, err := s.look()
	for err == nil && before != nil {
		path := s.store.path(before.Server, before.Issuer)
		if unlock, err = s.store.lock(ctx, path); err != nil {
			return nil, nil, err
		}
		if l, err = s.look(); err == nil && l != nil && s.store.path(l.Server, l.Issuer) == path {
			return l, unlock, nil
		}
		unlock()
		before = l
	}
	return nil, nil, err
}

// renew gets another token than the refused one: of another process, or of the issuer. It returns the header.
func (s *source) renew(refused string, log *slog.Logger) (string, error) {
	s.renewing <- struct{}{}
	defer func() { <-s.renewing }()
	s.noteRenewal(time.Now())
	defer s.noteRenewal(time.Time{})
	ctx, cancel := context.WithTimeout(context.Background(), refreshTimeout)
	defer cancel()
	l, unlock, err := s.lockNewest(ctx)
	switch {
	case errors.Is(err, errLocked):
		s.stall(s.held(), refused, err, log)
		return "", err
	case err != nil || l == nil:
		return "", err
	}
	defer unlock()
	if s.unsaved != nil && s.unsaved.At.Equal(l.At) { // the refresh token in the file is used up
		l = s.unsaved
		s.save(l, log)
	}
	now := time.Now()
	header := l.header(now)
	if header == refused {
		header = ""
	}
	switch {
	case header != "" && !l.isDue(now):
		s.endStall()
		return header, nil
	case !l.Ended.IsZero():
		return header, orNil(header, errEnded)
	case header == "" && s.isRefusedAnew(refused) && now.Sub(l.Refreshed) < anewWait:
		return "", errRefusedAnew
	case now.Sub(s.failed) < retryAfter:
		s.noteUnknownClient(l, refused, s.why)
		if header == "" && s.hindranceOf(l) == nil { // the token was good at the failure
			s.stall(l, refused, s.why, log)
		}
		return header, orNil(header, s.why)
	}
	return s.askIssuer(l, header, refused, log)
}

// askIssuer gets other tokens of the issuer, and notes what comes of that. header is what l has all the same; empty: it
// has none. The caller has the lock of the login, and is the only one who renews.
func (s *source) askIssuer(l *Login, header, refused string, log *slog.Logger) (string, error) {
	asking, stop := context.WithTimeout(context.Background(), askTimeout) // the wait for the lock takes nothing of it
	defer stop()
	fresh := *l
	fresh.Client = s.clientOf(l)
	err := s.refresh(asking, &fresh)
	switch {
	case errors.Is(err, errEnded) && l.Refresh == "": // nothing was asked: there is nothing to get another token with
		s.noteRefused(refused)
		return header, orNil(header, errEnded)
	case errors.Is(err, errEnded):
		attrs := []any{"url", l.Public(), "issuer", publicURL(l.Issuer)}
		if remedy := s.remedy(); remedy != "" {
			attrs = append(attrs, "remedy", remedy)
		}
		log.Warn("login ended by the issuer", attrs...)
		fresh.Ended, fresh.Refresh = time.Now(), ""
		s.save(&fresh, log)
		return header, orNil(header, errEnded)
	case err != nil:
		s.noteUnknownClient(l, refused, err)
		s.failed, s.why = time.Now(), err // the request may have taken longer than the pause
		log.Warn("login not refreshed", "url", l.Public(), "err", err)
		if header == "" {
			s.stall(l, refused, err, log)
		}
		return header, orNil(header, err)
	}
	s.failed = time.Time{}
	s.mu.Lock()
	s.spent, s.bad, s.hindrance = "", "", nil // the issuer knows the client again
	if refused != "" {
		s.anew = fresh.header(time.Now())
	}
	s.mu.Unlock()
	s.save(&fresh, log)
	return fresh.header(time.Now()), nil
}

// orNil returns err, or nil if there is a header all the same.
func orNil(header string, err error) error {
	if header != "" {
		return nil
	}
	return err
}

// save writes what an issuer has answered. What cannot be written is used, and written later.
func (s *source) save(l *Login, log *slog.Logger) {
	err := s.store.Save(l)
	if err != nil {
		log.Error("login not saved: the next start has none", "url", l.Public(), "err", err)
		s.unsaved = l
		return
	}
	s.unsaved = nil
	if _, err := s.look(); err != nil && !errors.Is(err, fs.ErrNotExist) {
		log.Warn("login cannot be read", "url", l.Public(), "err", err)
	}
}
