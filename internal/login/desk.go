package login

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/gofrs/flock"

	"github.com/mcp-sse/mcp-sse/internal/atomicfile"
)

// ErrAsked reports that another process has just begun to ask for the login.
var ErrAsked = errors.New("another program is asking for the login now")

// LoggedIn reports whether somebody is logged in at the server, as far as the files and its last answers say. A login
// with nothing to renew it is none once its token has expired, or the server has refused it; any other one once the
// server refuses a token that was renewed for that, until the server takes a request again.
func (c Credentials) LoggedIn() bool {
	s := c.source()
	l, err := s.look()
	return err == nil && l != nil && s.isGood(l)
}

// IsUsed reports whether requests carry the login of a person, or did until that has ended.
func (c Credentials) IsUsed() bool {
	l, err := c.source().current()
	return err != nil || l != nil
}

// LoginNeeded reports whether the server waits for a person: the login there has ended, or nobody is logged in and the
// server has asked for a login, and taken no request since. A tool that asks for one in a session without does not
// count. command is what the person types, which not all may know.
func (c Credentials) LoginNeeded() (command string, is bool) {
	if c.isOwn() { // not the server: each principal
		return "", false
	}
	s := c.source()
	if l, err := s.current(); err == nil && l != nil {
		return c.Command, !s.isGood(l)
	}
	return c.Command, s.isWanted()
}

// Opened is told that a client is there, and has no session with the server. A gateway waits until it is asked.
func (c Credentials) Opened(context.Context) {
	if !c.LoggedIn() {
		c.source().noteWanted(true)
	}
}

// Accepted is told that the server has answered a request with success.
func (c Credentials) Accepted() {
	s := c.source()
	s.noteWanted(false)
	s.noteUseful()
}

// Hindered reports whether requests cannot use the login that is there, and what clients are told then.
func (c Credentials) Hindered() (text string, is bool) {
	s := c.source()
	l, err := s.look()
	if err != nil || l == nil || !s.isGood(l) {
		return "", false
	}
	h := s.hindranceOf(l)
	switch {
	case h == nil:
		return "", false
	case c.Links && !c.isOwn(): // they are on this machine
		return h.full, true
	}
	return h.public, true
}

// IsStalled reports whether the issuer cannot renew the login that is there now.
func (c Credentials) IsStalled() bool {
	s := c.source()
	l := s.held()
	return l != nil && s.isGood(l) && s.hindranceOf(l).isStall()
}

// Ask returns what a person is told to do: a link or a command, where Links is set, else that the operator has to log
// in. link is that of the text; empty: it has none. done says that somebody has logged in meanwhile.
func (c Credentials) Ask(ctx context.Context) (text, link string, done bool) {
	c.source().retry(ctx)
	if text, is := c.Hindered(); is {
		return text, "", false
	}
	if c.LoggedIn() {
		return "Somebody has logged in: call again.", "", true
	}
	if link, _, err := c.Begin(ctx); err == nil {
		return c.linkText(link), link, false
	}
	if c.isOwn() {
		return "You are not logged in at this server, and cannot be now: ask its operator.", "", false
	}
	if !c.Links { // the command may have a path or a key, and not all clients may know that
		return "Nobody is logged in at this server. Ask its operator to log in, and then call again.", "", false
	}
	return "Nobody is logged in at this server. Ask the user to run in a terminal: " + c.Command + " and then call " +
		"again. If the server wants a key and no login, that has to be configured, for example as an Authorization " +
		"header.", "", false
}

func (c Credentials) linkText(link string) string {
	if c.isOwn() {
		asks := "The page asks for the user's token of this gateway; never ask for it yourself."
		if IsOfIssuer(c.Own.Principal) {
			asks = "The user logs in there as for this gateway."
		}
		return "Log in at " + link + " and then call again. Show this link to the user, and to nobody else: it is " +
			"for that user alone, and good for five minutes. " + asks
	}
	return "Log in at " + link + " and then call again. Show this link to the user: the login is done in a browser " +
		"on this machine. If the browser is on another machine, have the user run in a terminal here: " + c.Command
}

// Begin begins a login, unless one waits for its person already, here or in another process of this user, and returns
// the link. isNew says that nobody has got it yet. It fails where Links is not set. For a login of a principal's own
// the link is that of a page, and a login begins there.
func (c Credentials) Begin(ctx context.Context) (link string, isNew bool, err error) {
	if c.isOwn() {
		return c.takeTicket(c.source().scopesInstead())
	}
	if !c.Links {
		return "", false, errors.New("the link of a login is only good on this machine")
	}
	s := c.source()
	select {
	case s.asked <- struct{}{}:
		defer func() { <-s.asked }()
	case <-ctx.Done():
		return "", false, ctx.Err()
	}
	if a := s.attempt; a != nil && a.State() == Waiting {
		return a.Link(), false, nil
	}
	if err := s.store.open(); err != nil {
		return "", false, err
	}
	lock := flock.New(s.askFile(".asking"), flock.SetPermissions(0o600))
	locked, err := lock.TryLock()
	if err != nil {
		return "", false, err
	}
	if !locked {
		link, _ := s.askedElsewhere()
		if link == "" {
			return "", false, ErrAsked
		}
		return link, false, nil
	}
	if s.store.dropLink(s.server) { // of a process that was killed: its tab leads nowhere
		s.store.dropTab(s.server)
	}
	ctx, cancel := context.WithTimeout(ctx, beginTimeout) // others wait for it
	defer cancel()
	a, err := Begin(ctx, Options{Server: s.server, Header: c.header(), Challenge: s.challenged(), Store: s.store})
	if err == nil {
		err = atomicfile.Write(s.askFile(".link"), []byte(a.Link()+"\n"+a.BrowserAddress()+"\n"))
		if err != nil {
			a.Close()
		}
	}
	if err != nil {
		_ = lock.Close()
		return "", false, err
	}
	over := make(chan struct{})
	s.attempt, s.over = a, over
	go func() { // ends with the login, after Patience at the latest
		defer close(over)
		ctx, cancel := context.WithTimeout(context.Background(), Patience)
		defer cancel()
		_, _ = a.Wait(ctx)
		s.store.dropLink(s.server)
		_ = lock.Close()
		a.Close()
	}()
	return a.Link(), true, nil
}

// BeginAtPage is Begin for a browser that is at a page of the gateway, and comes back to that after the login. The page
// must be the gateway's own.
func (c Credentials) BeginAtPage(ctx context.Context, page string) (link string, err error) {
	link, _, err = c.Begin(ctx)
	if err != nil {
		return "", err
	}
	s := c.source()
	select {
	case s.asked <- struct{}{}:
		defer func() { <-s.asked }()
	case <-ctx.Done():
		return "", ctx.Err()
	}
	if s.attempt != nil && s.attempt.Link() == link { // else another process has the listener
		s.attempt.setBack(page)
	}
	return link, nil
}

// BeginsAtPage reports whether BeginAtPage may begin a login: the browser is on this machine.
func (c Credentials) BeginsAtPage() bool { return c.Links }

// askedElsewhere returns the link of the login for which another process asks, and the address with which a browser is
// started for it; empty if that is unknown.
func (s *source) askedElsewhere() (link, browser string) {
	data, err := os.ReadFile(s.askFile(".link"))
	if err != nil || !strings.HasPrefix(string(data), "http") {
		return "", ""
	}
	link, browser, _ = strings.Cut(string(data), "\n")
	return link, strings.TrimSpace(browser)
}

// TakeTab returns the address with which a browser is started for the login that waits, in this process or another one,
// as [Attempt.BrowserAddress] does, and notes that one is: the address is good once. It is empty if none waits, if
// another program of this user has opened a browser in the last five minutes, unless its login has been made or has
// ended with it, or if ctx ends before that is known.
func (c Credentials) TakeTab(ctx context.Context) (address string) {
	s := c.source()
	opening := flock.New(s.askFile(".opening"), flock.SetPermissions(0o600))
	if locked, err := opening.TryLock(); err != nil || !locked { // another program takes it
		return ""
	}
	defer opening.Close()
	at, now := s.store.tabFile(s.server), time.Now()
	var opened time.Time
	if data, err := os.ReadFile(at); err == nil && opened.UnmarshalText(data) == nil &&
		now.Sub(opened) < Patience && !opened.After(now) {
		return ""
	}
	// The tab of a login that is made is dropped after its address: see Attempt.finish.
	if address = s.browserAddress(ctx); address == "" {
		return ""
	}
	text, err := now.MarshalText()
	if err == nil {
		err = atomicfile.Write(at, text)
	}
	if err != nil {
		return ""
	}
	return address
}

// ReturnTab undoes TakeTab, if no browser has opened: another program may open one.
func (c Credentials) ReturnTab() {
	s := c.source()
	s.store.dropTab(s.server)
}

func (s *source) browserAddress(ctx context.Context) string {
	select {
	case s.asked <- struct{}{}:
		defer func() { <-s.asked }()
	case <-ctx.Done():
		return ""
	}
	if s.attempt != nil && s.attempt.State() == Waiting {
		return s.attempt.BrowserAddress()
	}
	_, browser := s.askedElsewhere()
	return browser
}

// LoggedInSince reports whether somebody has logged in since then.
func (c Credentials) LoggedInSince(then time.Time) bool {
	l, err := c.source().look()
	return err == nil && l != nil && l.At.After(then)
}

// tabFile returns the file that says when a browser was last opened for a login at a server that is not made yet.
func (s Store) tabFile(server string) string { return filepath.Join(s.dir, hash(server)+".tab") }

// dropTab lets the next login at a server open a browser.
func (s Store) dropTab(server string) {
	if s.dir != "" {
		_ = os.Remove(s.tabFile(server))
	}
}

// dropLink forgets the link of a login that waits at a server, and reports whether there was one.
func (s Store) dropLink(server string) bool {
	return s.dir != "" && os.Remove(filepath.Join(s.dir, hash(server)+".link")) == nil
}

// beginTimeout bounds what a login asks the server and its issuer before it has a link.
const beginTimeout = 20 * time.Second

// askFile returns a file of who asks for the login at the server: .asking is locked by the process that does, .link has
// the link and the address for a browser, and .opening is locked by the process that may open one.
func (s *source) askFile(suffix string) string {
	return filepath.Join(s.store.dir, hash(s.server)+suffix)
}

// AwaitLogin waits until somebody is logged in, and requests can use the login, or ctx ends. It reports whether that is
// so. All that wait at one server search the folder once a second together, and try a renewal that has failed again.
func (c Credentials) AwaitLogin(ctx context.Context) bool {
	s := c.source()
	isIn := func() bool {
		l, err := s.current()
		if err != nil || l == nil || !s.isGood(l) {
			return false
		}
		h := s.hindranceOf(l)
		s.beginRetry(h)
		return h == nil
	}
	ticker := time.NewTicker(awaitPoll)
	defer ticker.Stop()
	for !isIn() {
		select {
		case <-ticker.C:
		case <-ctx.Done():
			return false
		}
	}
	return true
}

// awaitPoll is how often a file of another process is looked for.
const awaitPoll = 250 * time.Millisecond

// GiveUp ends the logins that this process asks for, of those that are kept in a state directory, also those of
// principals. A program calls it before it ends.
func GiveUp(stateDir string) {
	visits.giveUp(func(c Credentials) bool { return c.StateDir == stateDir })
	sources.Range(func(of, one any) bool {
		if of.(Credentials).StateDir != stateDir {
			return true
		}
		s := one.(*source)
		s.asked <- struct{}{}
		defer func() { <-s.asked }()
		if s.attempt != nil {
			if s.attempt.State() == Waiting { // the browser would come back to nobody
				s.store.dropLink(s.server) // before the tab, as in Attempt.finish
				s.store.dropTab(s.server)
			}
			s.attempt.Close()
			<-s.over
		}
		return true
	})
}
