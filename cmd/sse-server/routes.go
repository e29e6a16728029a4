package main

import (
	"cmp"
	"fmt"
	"net/http"
	"slices"
	"sync/atomic"

	"github.com/gorilla/mux"

	"github.com/mcp-sse/mcp-sse/internal/httpcheck"
	"github.com/mcp-sse/mcp-sse/internal/login"
	"github.com/mcp-sse/mcp-sse/metrics"
)

// isOnAdmin ends what the main address says of a route for operators that another address has.
const isOnAdmin = " is on the address of admin-addr"

// These are the paths for operators: those of the admin address alone, and those that the main address has too where
// it has the admin routes.
var (
	onAdminAlone = []string{"/connections", "/status", reloadPath}
	onEither     = []string{"/healthz", "/readyz", "/metrics"}
)

// routes are those of the main address, for clients, and of the admin address, for operators. Without
// a separate admin address, the main one has the admin routes that tell nothing about single
// connections. Health and readiness are open, because probes have no token.
func (d *daemon) routes(together bool) (clients, operators *mux.Router) {
	clients, operators = mux.NewRouter().SkipClean(true), mux.NewRouter().SkipClean(true)
	admin := d.gw.Admin()
	protected, scraped := protect(&d.guard, admin), protect(&d.scrapes, admin)
	open, absent, where := operators, slices.Concat(onAdminAlone, onEither), isOnAdmin
	if together {
		open, absent, where = clients, onAdminAlone, " is served with --admin-addr alone"
		clients.Handle("/metrics", scraped)
	}
	for _, path := range absent {
		clients.HandleFunc(path, func(w http.ResponseWriter, r *http.Request) {
			guard, text := d.guard.Load(), path+where
			if !together && guard.IsLocal(r) { // others need not know
				text += ": " + d.endpoints[1].URL() + path
			}
			guard.NotFound(w, r, text)
		})
	}
	open.Handle("/healthz", admin)
	open.Handle("/readyz", admin)
	operators.Handle("/metrics", scraped)
	operators.Handle("/status", forBrowser(protected))
	operators.PathPrefix("/status/").Handler(forBrowser(protected))
	operators.Handle(reloadPath, protect(&d.guard, http.HandlerFunc(d.serveReload)))
	operators.Path("/").Handler(http.RedirectHandler("/status", http.StatusFound)) // for people
	operators.PathPrefix("/").Handler(protected)
	const metadata = "/.well-known/oauth-protected-resource/"
	clients.PathPrefix(metadata).HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		cmp.Or(d.config.Load().Metadata[r.URL.EscapedPath()], http.NotFoundHandler()).ServeHTTP(w, r)
	})
	clients.PathPrefix("/").Handler(d.boundFields(d.withLogins(d.gw)))
	return clients, operators
}

// protect has guard check Host, Origin and token before a route.
func protect(guard *atomic.Pointer[httpcheck.Checker], route http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if _, ok := guard.Load().Admit(w, r, httpcheck.Route{}); ok {
			route.ServeHTTP(w, r)
		}
	})
}

// forBrowser takes a bearer token also as the password of HTTP Basic, and asks for that:
// people can give no other to a browser.
func forBrowser(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if _, password, ok := r.BasicAuth(); ok {
			r = r.Clone(r.Context())
			r.Header.Set("Authorization", "Bearer "+password)
		}
		next.ServeHTTP(asksForPassword{w}, r)
	})
}

// asksForPassword adds to a 401 that HTTP Basic will do.
type asksForPassword struct{ http.ResponseWriter }

func (w asksForPassword) WriteHeader(status int) {
	if status == http.StatusUnauthorized {
		w.Header().Add("WWW-Authenticate", `Basic realm="mcp-sse: any user name, and a token as the password"`)
	}
	w.ResponseWriter.WriteHeader(status)
}

// Unwrap is for http.ResponseController.
func (w asksForPassword) Unwrap() http.ResponseWriter { return w.ResponseWriter }

// maxFields bounds the header fields of a request to MCP: browsers and proxies send some 30.
const maxFields = 128

// boundFields refuses a request with more than maxFields header fields. net/http keeps the head
// of a request as long as its handler runs, and many short fields take some 15 times their own
// bytes there.
func (d *daemon) boundFields(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		n := 0
		for _, values := range r.Header {
			n += len(values) // a line each, whatever its name
		}
		if n > maxFields {
			text := fmt.Sprintf("the request has %d header fields: at most %d are served", n, maxFields)
			d.guard.Load().Refuse(w, r, http.StatusRequestHeaderFieldsTooLarge, metrics.RejectedBadRequest, text)
			return
		}
		next.ServeHTTP(w, r)
	})
}

// withLogins serves the pages at which principals log in at remote servers, and the documents that tell issuers of the
// clients of logins, before the routes of next. No token leads there: the pages have checks of their own, and the
// documents are for anybody.
func (d *daemon) withLogins(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		c := d.config.Load()
		document, isDocument := c.ClientDocument(r.URL.Path)
		page, sub := c.LoginPage(r.URL.Path)
		if page == nil && !isDocument {
			next.ServeHTTP(w, r)
			return
		}
		if !d.visitors.Load().PageAllowed(w, r) {
			return
		}
		if isDocument {
			document.ServeHTTP(w, r)
			return
		}
		page.Log = d.log
		page.MayUse = func(own login.Own) bool { // of now, also when a login ends later
			return d.config.Load().MayLogIn(own)
		}
		page.Serve(w, r, sub)
	})
}
