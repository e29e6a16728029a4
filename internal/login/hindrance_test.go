package login

import (
	"context"
	"fmt"
	"net/http"
	"path/filepath"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/mcp-sse/mcp-sse/internal/asker"
	"github.com/mcp-sse/mcp-sse/internal/ssetest"
)

// While an issuer cannot renew a login, nobody is asked to log in: those who may know hear why, all are told to call
// again later, and the login works as soon as the issuer does.
func TestIssuerThatIsDown(t *testing.T) {
	for name, spoil := range map[string]func(*testing.T, Options) (refused string){
		"expired": func(t *testing.T, o Options) string { change(t, o, expire); return "" },
		"refused by the server": func(t *testing.T, o Options) string {
			l, _, err := o.Store.Newest(o.Server)
			ssetest.Must(t, err)
			return "Bearer " + l.Access
		},
		"expired, after a failure while it was good": func(t *testing.T, o Options) string {
			change(t, o, soon)
			_, _, err := header(t, Credentials{StateDir: filepath.Dir(o.Store.dir), Server: o.Server}.source(), "")
			ssetest.Must(t, err)
			change(t, o, expire)
			return ""
		},
	} {
		t.Run(name, func(t *testing.T) {
			var isUp atomic.Bool
			w := newWorld(t, func(w *world) {
				w.token = afterLogin(func(rw http.ResponseWriter, r *http.Request) bool {
					return !isUp.Load() && answers(503, "text/plain", "x")(rw, r)
				})
			})
			o := w.options(t)
			w.mustLogIn(t, o)
			c := Credentials{StateDir: filepath.Dir(o.Store.dir), Server: o.Server, Command: "sse-server login X", Links: true}
			_, _, err := header(t, c.source(), spoil(t, o))
			ssetest.WantText(t, "error", err, "answered 503")

			again, full, public, link := c.Advise(t.Context(), &http.Response{StatusCode: http.StatusUnauthorized,
				Header: http.Header{"Www-Authenticate": {`Bearer resource_metadata="x"`}}}, true)
			ssetest.Want(t, "again", again, false)
			ssetest.Want(t, "link", link, "")
			ssetest.Want(t, "advice", full, `the issuer cannot renew the login now: the token endpoint answered 503 "Service Unavailable"; call again later`)
			ssetest.Want(t, "advice for all", public, "the login at the server cannot be renewed now: call again later")
			text, link, done := c.Ask(t.Context())
			ssetest.Want(t, "what a client on this machine is told", text, full)
			ssetest.Want(t, "link", link, "")
			ssetest.Want(t, "done", done, false)
			elsewhere := c
			elsewhere.Links = false
			text, _ = elsewhere.Hindered()
			ssetest.Want(t, "what another client is told", text, public)
			ssetest.Want(t, "somebody is logged in", c.LoggedIn(), true)
			_, needed := c.LoginNeeded()
			ssetest.Want(t, "a login is needed", needed, false)

			ctx, cancel := context.WithTimeout(t.Context(), time.Nanosecond)
			defer cancel()
			ssetest.Want(t, "requests can use it", c.AwaitLogin(ctx), false)
			isUp.Store(true)
			s := c.source() // 10 s later
			s.renewing <- struct{}{}
			s.failed = time.Time{}
			<-s.renewing
			s.mu.Lock()
			s.hindrance.tried = time.Time{}
			s.mu.Unlock()
			ssetest.Want(t, "requests can use it again", c.AwaitLogin(t.Context()), true)
			_, is := c.Hindered()
			ssetest.Want(t, "hindered", is, false)
			_, _, done = c.Ask(t.Context())
			ssetest.Want(t, "done", done, true)
		})
	}
}

// A login that lacks a scope without which the server opens no session is there, and says so, until there is another
// one. A call that lacks a scope says nothing of the others.
func TestLoginThatLacksAScopeForSessions(t *testing.T) {
	w := newWorld(t, func(w *world) { w.scopes = []string{"read"} })
	o := w.options(t)
	l := w.mustLogIn(t, o)
	c := Credentials{StateDir: filepath.Dir(o.Store.dir), Server: o.Server, Command: "sse-server login X"}
	_, _, err := header(t, c.source(), "")
	ssetest.Must(t, err)
	refuse := func(ctx context.Context, asks bool) (full string) {
		_, full, _, _ = c.Advise(ctx, &http.Response{StatusCode: http.StatusForbidden,
			Header:  http.Header{"Www-Authenticate": {`Bearer error="insufficient_scope", scope="write"`}},
			Request: &http.Request{Method: http.MethodPost, Header: http.Header{"Authorization": {"Bearer " + l.Access}}}}, asks)
		return full
	}
	full := refuse(t.Context(), true)
	ssetest.WantText(t, "advice", full, `lacks the scope "write": run in a terminal: sse-server login X --scope read --scope write`)
	_, is := c.Hindered()
	ssetest.Want(t, "hindered by a call", is, false)
	refuse(t.Context(), false)
	_, is = c.Hindered()
	ssetest.Want(t, "hindered by a call in a session without a client", is, false)
	refuse(asker.Opening(t.Context()), false)
	text, _, done := c.Ask(t.Context())
	ssetest.Want(t, "done", done, false)
	ssetest.Want(t, "what clients are told", text, "the login at the server lacks a scope: ask its operator")
	c.Links = true
	text, link, _ := c.Ask(t.Context())
	ssetest.Want(t, "what clients on this machine are told", text, full)
	ssetest.Want(t, "link", link, "")
	ssetest.Want(t, "somebody is logged in", c.LoggedIn(), true)
	w.mustLogIn(t, o)
	ssetest.Want(t, "another login", c.AwaitLogin(t.Context()), true)
}

// A token endpoint that hangs does not hold requests as long as it may take: those at the first renewal wait until that
// has taken four seconds, and later ones two. The pause begins when a renewal has failed. A token that is still good is used.
func TestIssuerThatHangs(t *testing.T) {
	w := newWorld(t, nil)
	o := w.options(t)
	w.mustLogIn(t, o)
	synctest.Test(t, func(t *testing.T) {
		change(t, o, func(l *Login) { expire(l); l.TokenURL = "http://127.0.0.1:1/token" })
		s, start := process(o), time.Now()
		s.wait = renewWait
		var asked atomic.Int32
		s.refresh = func(ctx context.Context, _ *Login) error {
			asked.Add(1)
			<-ctx.Done()
			return ctx.Err()
		}
		for _, one := range []struct {
			at, waits time.Duration
			asked     int32
			why       string
		}{
			{0, renewWait, 1, "no new token after 4s"}, {5, 0, 1, "no new token after 4s"}, // until 10
			{11, 0, 1, "deadline"},                                   // the pause
			{13, stalledWait, 2, "deadline"}, {16, 0, 2, "deadline"}, // until 23
			{24, 0, 2, "deadline"}, {26, stalledWait, 3, "deadline"},
		} {
			time.Sleep(time.Until(start.Add(one.at*time.Second + time.Millisecond)))
			began := time.Now()
			_, _, err := header(t, s, "")
			what := fmt.Sprintf("after %d s: ", one.at)
			ssetest.WantText(t, what+"error", err, one.why)
			ssetest.Want(t, what+"the wait", time.Since(began), one.waits)
			ssetest.Want(t, what+"requests for tokens", asked.Load(), one.asked)
		}
		time.Sleep(askTimeout) // the last one ends

		change(t, o, func(l *Login) { soon(l); l.Access = "another" })
		began := time.Now()
		got, _, err := header(t, s, "")
		ssetest.Must(t, err)
		ssetest.Want(t, "a token that is still good is used", got != "", true)
		ssetest.Want(t, "the wait for another one", time.Since(began), renewWait)
		time.Sleep(askTimeout)
	})
}

// A principal gets no link while the issuer cannot renew its login, and hears no details. Others are not concerned.
func TestIssuerOfAPrincipalIsDown(t *testing.T) {
	g := newGate(t, newWorld(t, nil))
	l := g.logIn("alice")
	g.w.token = answers(503, "text/plain", "x")
	alice := g.of("alice", "client")
	_, err := alice.source().authorize(t.Context(), "Bearer "+l.Access, g.page.Log)
	ssetest.WantText(t, "error", err, "answered 503")
	_, full, public, link := alice.Advise(t.Context(), &http.Response{StatusCode: http.StatusUnauthorized}, true)
	ssetest.WantText(t, "advice", full, "the issuer cannot renew the login now: the token endpoint answered 503")
	ssetest.Want(t, "advice for all", public, "the login at the server cannot be renewed now: call again later")
	ssetest.Want(t, "link", link, "")
	text, link, _ := alice.Ask(t.Context())
	ssetest.Want(t, "what the client is told", text, public)
	ssetest.Want(t, "link", link, "")
	_, link, _ = g.of("bob", "client").Ask(t.Context())
	ssetest.WantText(t, "link of another principal", link, ownPage)
}
