package login

import (
	"context"
	"errors"
	"maps"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/mcp-sse/mcp-sse/internal/ssetest"
)

// process returns a source as another process has one.
func process(o Options) *source {
	return &source{store: o.Store, server: o.Server, wait: time.Minute, refresh: refreshLogin, renewing: make(chan struct{}, 1), asked: make(chan struct{}, 1)}
}

// header returns the header that a source gives, with what it logs.
func header(t *testing.T, s *source, refused string) (got, logged string, err error) {
	t.Helper()
	var lines ssetest.Output
	got, err = s.authorize(t.Context(), refused, ssetest.Logger(&lines))
	return got, lines.String(), err
}

// change changes the kept login.
func change(t *testing.T, o Options, set func(*Login)) {
	t.Helper()
	l, _, err := o.Store.Newest(o.Server)
	ssetest.Must(t, err)
	set(l)
	ssetest.Must(t, o.Store.Save(l))
}

func expire(l *Login) { l.Expiry = time.Now().Add(-time.Minute) }

func soon(l *Login) {
	l.Refreshed, l.Expiry = time.Now().Add(-time.Hour), time.Now().Add(20*time.Second)
}

func TestSource(t *testing.T) {
	const another = "another"
	for name, c := range map[string]struct {
		set     func(*world)
		change  func(*Login)
		refuses bool   // the server refuses the token of the file
		want    string // another: a new token; same: that of the file; else what the error says
		asked   int    // how often the token endpoint was asked after the login
		ended   bool
		logs    string
	}{
		"a good token":             {want: "same"},
		"no expires_in":            {set: func(w *world) { w.noExpiry = true }, want: "same"},
		"expired":                  {change: expire, want: another, asked: 1},
		"soon":                     {change: soon, want: another, asked: 1},
		"rotating":                 {set: func(w *world) { w.rotates = true }, change: expire, want: another, asked: 1},
		"a 401 before it expires":  {refuses: true, want: another, asked: 1},
		"no expires_in, and a 401": {set: func(w *world) { w.noExpiry = true }, refuses: true, want: another, asked: 1},
		"the clock of the issuer is an hour late": {change: func(l *Login) { l.Expiry = l.Expiry.Add(time.Hour) }, refuses: true, want: another, asked: 1},
		"no refresh token":                        {set: func(w *world) { w.noRefresh = true }, change: expire, want: errEnded.Error()},
		"the issuer fails, soon":                  {set: func(w *world) { w.token = afterLogin(answers(503, "text/plain", "x")) }, change: soon, want: "same", asked: 1, logs: "answered 503"},
		"the issuer fails, expired": {set: func(w *world) { w.token = afterLogin(answers(503, "text/html", "<p>no")) }, change: expire, want: `answered 503 "Service Unavailable"`, asked: 1,
			logs: "answered 503"},
		"the issuer answers HTML": {set: func(w *world) { w.token = afterLogin(answers(200, "text/html", "<p>no")) }, change: expire, want: "gave no token that can be read", asked: 1},
		"the issuer refuses the resource": {set: func(w *world) { w.token = afterLogin(answers(400, "application/json", `{"error":"invalid_target"}`)) }, change: expire,
			want: `answered 400 "invalid_target"`, asked: 1, logs: "invalid_target"},
		"the issuer refuses the resource, soon": {set: func(w *world) { w.token = afterLogin(answers(400, "application/json", `{"error":"invalid_target"}`)) }, change: soon,
			want: "same", asked: 1, logs: "invalid_target"},
		"the issuer takes no client":    {change: func(l *Login) { expire(l); l.Client.ID = "x" }, want: `answered 400 "invalid_client"`, asked: 1},
		"the issuer ends it":            {change: func(l *Login) { expire(l); l.Refresh = "x" }, want: errEnded.Error(), asked: 1, ended: true, logs: "login ended"},
		"the issuer ends it, soon":      {change: func(l *Login) { soon(l); l.Refresh = "x" }, want: "same", asked: 1, ended: true},
		"it has ended":                  {change: func(l *Login) { expire(l); l.Ended = time.Now() }, want: errEnded.Error(), ended: true},
		"it has ended, the token works": {change: func(l *Login) { l.Ended, l.Refresh = time.Now(), "" }, want: "same", ended: true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t, c.set)
			o := w.options(t)
			before := w.mustLogIn(t, o)
			if c.change != nil {
				change(t, o, c.change)
			}
			refused, s := "", process(o)
			if c.refuses {
				refused = "Bearer " + before.Access
			}
			got, logged, err := header(t, s, refused)
			switch c.want {
			case "same":
				ssetest.Must(t, err)
				ssetest.Want(t, "header", got == "Bearer "+before.Access, true)
			case another:
				ssetest.Must(t, err)
				ssetest.Want(t, "token is good", got != "Bearer "+before.Access && w.access[strings.TrimPrefix(got, "Bearer ")], true)
			default:
				ssetest.WantText(t, "error", err, c.want)
				ssetest.Want(t, "header", got, "")
			}
			asked := w.count("/token") - 1
			if w.token != nil {
				asked = c.asked // counted by what it logs
			}
			ssetest.Want(t, "requests for tokens", asked, c.asked)
			ssetest.WantText(t, "log", logged, c.logs)
			w.wantNoSecret(t, "the log", logged)
			l, _, problem := o.Store.Newest(o.Server)
			ssetest.Must(t, problem)
			ssetest.Want(t, "ended", !l.Ended.IsZero(), c.ended)
			if !c.ended && !w.noRefresh && l.Refresh == "" {
				t.Error("the refresh token is lost")
			}
			if c.want == another {
				again, _, err := header(t, process(o), "")
				ssetest.Must(t, err)
				ssetest.Want(t, "header in another process", again, got)
			}
			for _, resource := range w.resources {
				ssetest.Want(t, "resource", resource, o.Server)
			}
		})
	}
}

// The clock of this machine is decades late for a while. Tokens are renewed as the server and that clock say, each
// refresh token is used once, and when the clock is right again, the login is what it was.
func TestClockThatJumps(t *testing.T) {
	w := newWorld(t, func(w *world) { w.rotates = true })
	o := w.options(t)
	first := w.mustLogIn(t, o)
	want := func(when string, s *source, refused, before string, isNew bool) string {
		t.Helper()
		got, _, err := header(t, s, refused)
		ssetest.Must(t, err)
		ssetest.Want(t, when+": the token is another", got != before, isNew)
		ssetest.Want(t, when+": the token is good", w.access[strings.TrimPrefix(got, "Bearer ")], true)
		return got
	}
	got := "Bearer " + first.Access
	synctest.Test(t, func(t *testing.T) { // where it is the year 2000
		s := process(o)
		got = want("a token of the future", s, "", got, false)
		got = want("the server refuses it", s, got, got, true)
		got = want("a token of then", s, "", got, false)
		time.Sleep(59*time.Minute + 30*time.Second)
		got = want("a minute before its end", s, "", got, true)
		time.Sleep(2 * time.Hour)
		got = want("after its end", s, "", got, true)
	})
	got = want("the clock is right again", process(o), "", got, true)
	want("and goes on", process(o), "", got, false)
	ssetest.Want(t, "requests for tokens", w.count("/token"), 5)
	l, _, err := o.Store.Newest(o.Server)
	ssetest.Must(t, err)
	ssetest.Want(t, "the login goes on", l.Ended.IsZero() && w.renews(l.Refresh), true)
	ssetest.Want(t, "somebody has logged in then", l.At.Equal(first.At), true)
}

// An issuer that has forgotten the client renews nothing, and the server does not take the token: people are asked to log
// in, and nothing is deleted, as the issuer may remember. Then the login is as it was.
func TestClientsThatTheIssuerHasForgotten(t *testing.T) {
	w := newWorld(t, nil)
	o := w.options(t)
	before := w.mustLogIn(t, o)
	c := Credentials{StateDir: filepath.Dir(o.Store.dir), Server: o.Server}
	w.mu.Lock()
	clients := maps.Clone(w.clients)
	clear(w.clients)
	w.mu.Unlock()
	for range 2 { // the second time before the issuer is asked again
		_, _, err := header(t, c.source(), "Bearer "+before.Access)
		ssetest.WantText(t, "error", err, `answered 400 "invalid_client"`)
		ssetest.Want(t, "somebody is logged in", c.LoggedIn(), false)
	}
	l, _, err := o.Store.Newest(o.Server)
	ssetest.Must(t, err)
	ssetest.Want(t, "the refresh token is kept", l.Refresh == before.Refresh && l.Ended.IsZero(), true)

	w.mu.Lock()
	maps.Copy(w.clients, clients)
	w.mu.Unlock()
	got, _, err := header(t, process(o), "Bearer "+before.Access) // another program
	ssetest.Must(t, err)
	again, _, err := header(t, c.source(), "Bearer "+before.Access)
	ssetest.Must(t, err)
	ssetest.Want(t, "header", again, got)
	ssetest.Want(t, "somebody is logged in", c.LoggedIn(), true)
}

// afterLogin is a token endpoint that works for codes alone.
func afterLogin(then func(http.ResponseWriter, *http.Request) bool) func(http.ResponseWriter, *http.Request) bool {
	return func(rw http.ResponseWriter, r *http.Request) bool {
		return r.FormValue("grant_type") == "refresh_token" && then(rw, r)
	}
}

// Many requests in several processes make one refresh, although the issuer ends a login whose refresh token comes twice.
func TestOneRefresh(t *testing.T) {
	w := newWorld(t, func(w *world) { w.rotates = true })
	o := w.options(t)
	w.mustLogIn(t, o)
	for round := range 3 {
		change(t, o, expire)
		var all sync.WaitGroup
		var headers sync.Map
		for range 3 {
			s := process(o)
			for range 5 {
				all.Go(func() {
					got, _, err := header(t, s, "")
					if err != nil {
						t.Error(err)
					}
					headers.Store(got, true)
				})
			}
		}
		all.Wait()
		n := 0
		headers.Range(func(any, any) bool { n++; return true })
		ssetest.Want(t, "different headers", n, 1)
		ssetest.Want(t, "requests for tokens", w.count("/token"), round+2)
	}
}

// A refresh goes on if the request that asked for it ends, so that no rotated token is lost, and Finish waits for it.
func TestRefreshOutlivesItsRequest(t *testing.T) {
	w := newWorld(t, func(w *world) { w.rotates = true })
	o := w.options(t)
	w.mustLogIn(t, o)
	change(t, o, expire)
	asked, goOn := make(chan struct{}), make(chan struct{})
	w.token = func(http.ResponseWriter, *http.Request) bool { close(asked); <-goOn; return false }
	c := Credentials{StateDir: filepath.Dir(o.Store.dir), Server: o.Server}
	ctx, cancel := context.WithCancel(t.Context())
	go func() { <-asked; cancel() }()
	var lines ssetest.Output
	if _, err := c.Authorizer(nil, ssetest.Logger(&lines))(ctx, ""); !errors.Is(err, context.Canceled) {
		t.Errorf("got %v", err)
	}
	close(goOn)
	Finish()
	l, _, err := o.Store.Newest(o.Server)
	ssetest.Must(t, err)
	ssetest.Want(t, "the new refresh token is kept", w.refresh[l.Refresh], true)
}

// After a failure the issuer is not asked for each request.
func TestFailuresPause(t *testing.T) {
	var asked atomic.Int32
	w := newWorld(t, func(w *world) {
		w.token = afterLogin(func(rw http.ResponseWriter, _ *http.Request) bool { asked.Add(1); rw.WriteHeader(500); return true })
	})
	o := w.options(t)
	w.mustLogIn(t, o)
	change(t, o, expire)
	s := process(o)
	for range 5 {
		_, _, err := header(t, s, "")
		ssetest.WantText(t, "error", err, "answered 500")
	}
	ssetest.Want(t, "requests", int(asked.Load()), 1)
}

// The next request notices a login or logout of another process.
func TestLoginsElsewhereCount(t *testing.T) {
	w := newWorld(t, nil)
	o := w.options(t)
	s := process(o)
	got, _, err := header(t, s, "")
	ssetest.Must(t, err)
	ssetest.Want(t, "header of nobody", got, "")
	s.looked = time.Time{} // a second is over
	first := w.mustLogIn(t, o)
	got, _, err = header(t, s, "")
	ssetest.Must(t, err)
	ssetest.Want(t, "header", got == "Bearer "+first.Access, true)
	second := w.mustLogIn(t, o)
	got, _, err = header(t, s, "")
	ssetest.Must(t, err)
	ssetest.Want(t, "header of the second login", got == "Bearer "+second.Access, true)
	_, err = Logout(t.Context(), o.Store, second)
	ssetest.Must(t, err)
	got, _, err = header(t, s, "")
	ssetest.Must(t, err)
	ssetest.Want(t, "header after logout", got, "")
}

func TestAdvice(t *testing.T) {
	w := newWorld(t, nil)
	o := w.options(t)
	c := Credentials{StateDir: filepath.Dir(o.Store.dir), Server: o.Server, Command: "sse-server login X"}
	answer := func(status int, challenge string) *http.Response {
		return &http.Response{StatusCode: status, Header: http.Header{"Www-Authenticate": {challenge}}}
	}
	want := func(what string, resp *http.Response, again bool, parts ...string) {
		t.Helper()
		got, full, public, _ := c.Advise(t.Context(), resp, false)
		ssetest.Want(t, what+": again", got, again)
		ssetest.Want(t, what+": there is advice", full != "" && public != "", len(parts) > 0)
		ssetest.WantText(t, what, full, parts...)
		if strings.Contains(public, "X") {
			t.Errorf("all see the command: %s", public)
		}
	}
	want("a key", answer(401, `Basic realm="x"`), false)
	want("no token", answer(401, `Bearer resource_metadata="http://x"`), false, "nobody is logged in", "sse-server login X and call again")
	want("a token of any kind", answer(401, `Bearer`), false, "sse-server login X", "or configure the credentials")
	want("no way in", answer(403, `Bearer`), false)
	w.mustLogIn(t, o)
	want("a login meanwhile", answer(401, `Bearer`), true)
	want("a login that is refused", answer(401, `Bearer`), false, "does not take the login any more", "sse-server login X")
	want("a scope", answer(403, `Bearer error="insufficient_scope", scope="a:b c;d"`), false, `lacks the scope "a:b c;d"`, "sse-server login X --scope a:b --scope 'c;d'")
	change(t, o, func(l *Login) { l.Ended = time.Now() })
	want("an end", answer(401, `Bearer`), false, "has ended")
}

func TestFilesOfOthersAreRefused(t *testing.T) {
	w := newWorld(t, nil)
	o := w.options(t)
	l := w.mustLogIn(t, o)
	path := o.Store.path(l.Server, l.Issuer)
	info, err := os.Stat(path)
	ssetest.Must(t, err)
	ssetest.Want(t, "mode", info.Mode().Perm(), os.FileMode(0o600))
	folder, err := os.Stat(o.Store.dir)
	ssetest.Must(t, err)
	ssetest.Want(t, "mode of the folder", folder.Mode().Perm(), os.FileMode(0o700))
	whole, err := os.ReadFile(path)
	ssetest.Must(t, err)
	for name, c := range map[string]struct {
		mode os.FileMode
		data string
		want string
	}{
		"others can read it": {0o644, string(whole), "can be read by other users"},
		"the group can":      {0o640, string(whole), "can be read by other users"},
		"half a file":        {0o600, string(whole[:len(whole)/2]), "is no login"},
		"another name":       {0o600, strings.Replace(string(whole), w.issuer.URL, "http://127.0.0.1:1", 1), "of another name"},
	} {
		ssetest.Must(t, os.WriteFile(path, []byte(c.data), 0o600))
		ssetest.Must(t, os.Chmod(path, c.mode))
		_, _, err := o.Store.Newest(o.Server)
		ssetest.WantText(t, name, err, c.want)
		w.wantNoSecret(t, name, err.Error())
		_, _, err = header(t, process(o), "")
		ssetest.WantText(t, name, err, c.want)
	}
	ssetest.Must(t, os.Chmod(o.Store.dir, 0o755))
	ssetest.WantText(t, "an open folder", o.Store.Save(l), "chmod 700")
	ssetest.WantText(t, "no folder", Store{}.Save(l), "STATE_DIRECTORY")
}

// Of the logins at one server, by different issuers, the newest counts, and each stays.
func TestLoginsByIssuer(t *testing.T) {
	store := NewStore(ssetest.PrivateDir(t))
	now := time.Now()
	for i, issuer := range []string{"https://a.example/", "https://b.example", "https://a.example"} {
		ssetest.Must(t, store.Save(&Login{Server: "https://mcp.example/mcp", Issuer: issuer, Client: Client{ID: "c"}, Access: issuer, At: now.Add(time.Duration(i) * time.Second)}))
		l, _, err := store.Newest("https://mcp.example/mcp")
		ssetest.Must(t, err)
		ssetest.Want(t, "newest", l.Access, issuer)
	}
	all, err := store.All()
	ssetest.Must(t, err)
	ssetest.Want(t, "logins", len(all), 2) // a slash at the end is no other issuer
	l, _, err := store.Newest("https://mcp.example/other")
	ssetest.Must(t, err)
	if l != nil {
		t.Errorf("another server has %v", l)
	}
}

// A login by another issuer, while the lock of the one before is waited for, is the one that is locked.
func TestLockOfTheNewest(t *testing.T) {
	w := newWorld(t, nil)
	o := w.options(t)
	old := w.mustLogIn(t, o)
	unlock, err := o.Store.lock(t.Context(), o.Store.path(old.Server, old.Issuer))
	ssetest.Must(t, err)
	s := process(o)
	synctest.Test(t, func(t *testing.T) {
		got := make(chan *Login)
		go func() {
			l, unlock, err := s.lockNewest(t.Context())
			if err != nil {
				t.Error(err)
			} else {
				unlock()
			}
			got <- l
		}()
		synctest.Wait() // it has seen the old one, and waits for its lock
		fresh := *old
		fresh.Issuer, fresh.At = "https://another.example", old.At.Add(time.Second)
		ssetest.Must(t, o.Store.Save(&fresh))
		unlock()
		l := <-got
		ssetest.Want(t, "issuer", l.Issuer, fresh.Issuer)
	})
}

// A new login waits for a refresh of the one before, which would overwrite it.
func TestNewLoginDuringARefresh(t *testing.T) {
	w := newWorld(t, nil)
	o := w.options(t)
	old := w.mustLogIn(t, o)
	unlock, err := o.Store.lock(t.Context(), o.Store.path(old.Server, old.Issuer))
	ssetest.Must(t, err)
	a, err := Begin(t.Context(), o)
	ssetest.Must(t, err)
	defer a.Close()
	fresh := *old
	fresh.Access = "fresh"
	synctest.Test(t, func(t *testing.T) {
		got := make(chan error, 1)
		go func() { got <- a.save(&fresh) }()
		synctest.Wait()
		if len(got) > 0 {
			t.Error("the login was saved without its lock")
		}
		ssetest.Must(t, o.Store.Save(old)) // the refresh
		unlock()
		ssetest.Must(t, <-got)
	})
	kept, _, err := o.Store.Newest(o.Server)
	ssetest.Must(t, err)
	ssetest.Want(t, "kept token", kept.Access, "fresh")
}
