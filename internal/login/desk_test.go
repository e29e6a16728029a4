package login

import (
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/mcp-sse/mcp-sse/internal/ssetest"
)

// Five windows that ask at the same time make one login, whose link all have, and all go on when it is done.
func TestOneLoginForAll(t *testing.T) {
	w := newWorld(t, nil)
	o := w.options(t)
	c := Credentials{StateDir: filepath.Dir(o.Store.dir), Server: o.Server, Links: true}
	defer giveUpAll()
	var mu sync.Mutex
	links, opened := map[string]bool{}, 0
	var all sync.WaitGroup
	for range 5 {
		all.Go(func() {
			link, isNew, err := c.Begin(t.Context())
			if err != nil {
				t.Error(err)
			}
			mu.Lock()
			defer mu.Unlock()
			links[link] = true
			if isNew {
				opened++
			}
		})
	}
	all.Wait()
	ssetest.Want(t, "different links", len(links), 1)
	ssetest.Want(t, "browsers", opened, 1)
	ssetest.Want(t, "registrations", w.count("/register"), 1)
	// Another process has the same link, and begins nothing.
	s := c.source()
	here := s.attempt
	s.attempt = nil
	link, isNew, err := c.Begin(t.Context())
	ssetest.Must(t, err)
	ssetest.Want(t, "link in another process", links[link] && !isNew, true)
	s.attempt = here
	var waiting sync.WaitGroup
	for range 5 {
		waiting.Go(func() {
			if !c.AwaitLogin(t.Context()) {
				t.Error("nobody has logged in")
			}
		})
	}
	resp, err := http.Get(link)
	ssetest.Must(t, err)
	resp.Body.Close()
	waiting.Wait()
	text, _, done := c.Ask(t.Context())
	ssetest.Want(t, "done", done, true)
	ssetest.WantText(t, "text", text, "call again")
	ssetest.Want(t, "requests for tokens", w.count("/token"), 1)
}

// A login that was given up leaves nothing that keeps the next one.
func TestLoginThatWasGivenUp(t *testing.T) {
	w := newWorld(t, nil)
	o := w.options(t)
	c := Credentials{StateDir: filepath.Dir(o.Store.dir), Server: o.Server, Links: true, Command: "sse-server login X"}
	first, isNew, err := c.Begin(t.Context())
	ssetest.Must(t, err)
	ssetest.Want(t, "new", isNew, true)
	giveUpAll()
	if files, _ := filepath.Glob(filepath.Join(o.Store.dir, "*.link")); len(files) > 0 {
		t.Errorf("left: %v", files)
	}
	second, isNew, err := c.Begin(t.Context())
	ssetest.Must(t, err)
	defer giveUpAll()
	ssetest.Want(t, "another link", isNew && second != first, true)
	text, link, done := c.Ask(t.Context())
	ssetest.Want(t, "link", link, second)
	ssetest.Want(t, "done", done, false)
	ssetest.WantText(t, "text", text, second, "If the browser is on another machine, have the user run in a terminal here: sse-server login X")
	// Without links, those who ask may not know the command, which may have a path or a key.
	c.Links = false
	text, link, _ = c.Ask(t.Context())
	ssetest.Want(t, "link where there are none", link, "")
	ssetest.WantText(t, "text without links", text, "Ask its operator to log in")
	if strings.Contains(text, "http") || strings.Contains(text, c.Command) {
		t.Errorf("a link or the command is given: %s", text)
	}
	// An issuer of another site needs a terminal.
	w.issuer.URL = strings.Replace(w.issuer.URL, "127.0.0.1", "localhost", 1)
	giveUpAll()
	c.Links = true
	text, _, _ = c.Ask(t.Context())
	ssetest.WantText(t, "text for another site", text, "sse-server login X")
	if _, err := os.Stat(o.Store.dir); err != nil {
		t.Error(err)
	}
}

// A login with nothing to renew it is none once its token has expired, or the server has refused it. The next one is.
func TestLoginThatCannotBeRenewed(t *testing.T) {
	w := newWorld(t, func(w *world) { w.noRefresh = true })
	o := w.options(t)
	c := Credentials{StateDir: filepath.Dir(o.Store.dir), Server: o.Server}
	for name, spoil := range map[string]func(*Login){
		"expired": func(*Login) { change(t, o, expire) },
		"refused": func(l *Login) {
			change(t, o, func(l *Login) { l.Expiry = time.Time{} })
			_, _, err := header(t, c.source(), "Bearer "+l.Access)
			ssetest.Want(t, "error", err, errEnded)
		},
	} {
		l := w.mustLogIn(t, o)
		ssetest.Want(t, "logged in", c.LoggedIn(), true)
		spoil(l)
		ssetest.Want(t, "logged in, "+name, c.LoggedIn(), false)
	}
	w.mustLogIn(t, o)
	ssetest.Want(t, "logged in again", c.LoggedIn(), true)
}

// A server waits for a login once it has asked for one and nobody is logged in, and once a login has ended. It waits no
// more when it answers without one, and one tool that asks for a login says nothing of the server.
func TestLoginNeeded(t *testing.T) {
	w := newWorld(t, nil)
	o := w.options(t)
	c := Credentials{StateDir: filepath.Dir(o.Store.dir), Server: o.Server, Command: "sse-server login X"}
	needed := func(when string, want bool) {
		t.Helper()
		c.source().looked = time.Time{}
		command, got := c.LoginNeeded()
		ssetest.Want(t, when, got, want)
		ssetest.Want(t, "command", command, c.Command)
	}
	advise := func(challenge string, asks bool) {
		resp := &http.Response{StatusCode: http.StatusUnauthorized, Header: http.Header{"Www-Authenticate": {challenge}}}
		_, _, _, _ = c.Advise(t.Context(), resp, asks)
	}
	needed("before the first request", false)
	advise(`Basic realm="x"`, false)
	needed("for a password", false)
	const challenge = `Bearer resource_metadata="http://x"`
	advise(challenge, true)
	needed("after a 401 for one tool of a public server", false)
	advise(challenge, false)
	needed("after a 401", true)
	c.Accepted()
	needed("after a request without a login has succeeded", false)
	c.Opened(t.Context())
	needed("while there is no session", true)
	w.mustLogIn(t, o)
	needed("while somebody is logged in", false)
	change(t, o, func(l *Login) { l.Ended, l.Refresh = time.Now(), "" })
	needed("after the end of the login", true)
	c.Accepted()
	l, _, err := o.Store.Newest(o.Server)
	ssetest.Must(t, err)
	ssetest.Must(t, o.Store.Forget(l))
	needed("after a logout", false)
	advise(challenge, true)
	needed("after a 401 in a session that had a login", true)
}

// giveUpAll ends the logins of all programs.
func giveUpAll() {
	sources.Range(func(of, _ any) bool {
		GiveUp(of.(Credentials).StateDir)
		return true
	})
}
