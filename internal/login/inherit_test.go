package login

import (
	"net/http"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/mcp-sse/mcp-sse/internal/ssetest"
)

// A login by a link has what a person has chosen for the one before, which has ended: nobody could say it again there.
func TestNextLoginHasTheChoicesOfTheOneBefore(t *testing.T) {
	for name, c := range map[string]struct {
		set     func(*world)
		options func(*world, *Options)
		then    func(*world) // before the next login
		want    func(*testing.T, *world, *Login)
	}{
		"a client that was registered by hand": {
			set: func(w *world) { w.noRegistration = true; w.clients["by-hand"] = "s" },
			options: func(w *world, o *Options) {
				o.ClientID, o.ClientSecret, o.Issuer = "by-hand", "s", w.issuer.URL
			},
			want: func(t *testing.T, w *world, l *Login) {
				ssetest.Want(t, "client", l.Client.ID, "by-hand")
				ssetest.Want(t, "registrations", w.count("/register"), 0)
			},
		},
		"scopes": {
			set:     func(w *world) { w.scopes = []string{"read", "write"} },
			options: func(_ *world, o *Options) { o.Scopes = []string{"read"} },
			want: func(t *testing.T, w *world, _ *Login) {
				ssetest.Want(t, "scopes", w.lastScopes, "read offline_access")
			},
		},
		"scopes of the server": {
			set:  func(w *world) { w.scopes = []string{"read"} },
			then: func(w *world) { w.scopes = []string{"read", "write"} },
			want: func(t *testing.T, w *world, _ *Login) {
				ssetest.Want(t, "scopes", w.lastScopes, "read write offline_access") // as the server names now
			},
		},
		"no resource": {
			set:     func(w *world) { w.refused = true },
			options: func(_ *world, o *Options) { o.NoResource = true },
			want:    func(t *testing.T, _ *world, l *Login) { ssetest.Want(t, "resource", l.Resource, "") },
		},
		"an issuer of another site": {
			set:     func(w *world) { w.issuer.URL = strings.Replace(w.issuer.URL, "127.0.0.1", "localhost", 1) },
			options: func(_ *world, o *Options) { o.Confirm = func(string, string) bool { return true } },
		},
		"addresses of another site": {
			set: func(w *world) {
				w.authorize = strings.Replace(w.issuer.URL, "127.0.0.1", "localhost", 1) + "/authorize"
			},
			options: func(_ *world, o *Options) {
				o.ConfirmElsewhere = func(string, string) bool { return true }
			},
			want: func(t *testing.T, _ *world, l *Login) {
				ssetest.Want(t, "hosts", l.EndpointHosts, []string{"localhost"})
			},
		},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, c.set)
			o := w.options(t)
			if c.options != nil {
				c.options(w, &o)
			}
			before := w.mustLogIn(t, o)
			change(t, o, func(l *Login) { l.Ended, l.Refresh = time.Now(), "" })
			if c.then != nil {
				c.then(w)
			}
			creds := Credentials{StateDir: filepath.Dir(o.Store.dir), Server: o.Server, Links: true}
			link, _, err := creds.Begin(t.Context())
			ssetest.Must(t, err)
			defer giveUpAll()
			ssetest.Want(t, "status of the last page", open(t, link), http.StatusOK)
			ssetest.Want(t, "logged in", creds.LoggedIn(), true)
			l, _, err := o.Store.Newest(o.Server)
			ssetest.Must(t, err)
			ssetest.Want(t, "the login is a new one", l.At.After(before.At), true)
			if c.want != nil {
				c.want(t, w, l)
			}
		})
	}
}

// A login at another issuer than the one before has nothing of that: a server that names an issuer of its own now would
// get what a person has confirmed for the one of before.
func TestLoginAtAnotherIssuerBeginsAnew(t *testing.T) {
	w := newWorld(t, func(w *world) {
		w.authorize = strings.Replace(w.issuer.URL, "127.0.0.1", "localhost", 1) + "/authorize"
	})
	o := w.options(t)
	for issuer, isRefused := range map[string]bool{"https://a.example": true, w.issuer.URL: false} {
		ssetest.Must(t, o.Store.Save(&Login{Server: o.Server, Issuer: issuer, Client: Client{ID: "c"}, Port: 1,
			EndpointHosts: []string{"localhost"}, At: time.Now(), Ended: time.Now()}))
		a, err := Begin(t.Context(), o)
		if (err != nil) != isRefused {
			t.Errorf("hosts that were confirmed for %s: got %v", issuer, err)
		}
		if err == nil {
			a.Close()
		}
		all, err := o.Store.All()
		ssetest.Must(t, err)
		for _, l := range all {
			ssetest.Must(t, o.Store.Forget(l))
		}
	}
}

// A login by a link asks the server with the header that its requests have.
func TestLoginByALinkHasTheHeader(t *testing.T) {
	w := newWorld(t, nil)
	var got []string
	serve := w.server.Config.Handler
	w.server.Config.Handler = http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/mcp" {
			got = append(got, r.Header.Get("X-Tenant"))
		}
		serve.ServeHTTP(rw, r)
	})
	o := w.options(t)
	header := HeaderText(http.Header{"X-Tenant": {"a"}})
	c := Credentials{StateDir: filepath.Dir(o.Store.dir), Server: o.Server, Header: header, Links: true}
	_, _, err := c.Begin(t.Context())
	ssetest.Must(t, err)
	defer giveUpAll()
	ssetest.Want(t, "headers", got, []string{"a"})
	ssetest.Want(t, "the text of none", HeaderText(nil), "")
}
