package login

import (
	"context"
	"crypto/subtle"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"os"
	"strconv"
	"strings"
	"time"

	"github.com/mcp-sse/mcp-sse/internal/clip"
)

const (
	callbackPath = "/callback"
	donePath     = "/done"
	startPath    = "/start/" // and a random word
)

// listen opens the address of the redirect, unless somebody else serves it: a free port of this machine if port is 0.
func (a *Attempt) listen(port int) error {
	if a.options.Redirect != "" {
		a.redirect = a.options.Redirect
		return nil
	}
	listener, err := net.Listen("tcp", net.JoinHostPort("127.0.0.1", strconv.Itoa(port)))
	if err != nil {
		return fmt.Errorf("the address of the redirect: %w", err)
	}
	a.host = listener.Addr().String()
	a.redirect = "http://" + a.host + callbackPath
	a.server = &http.Server{Handler: http.HandlerFunc(a.serve), ReadTimeout: askTimeout, MaxHeaderBytes: 64 << 10}
	go func() { _ = a.server.Serve(listener) }() // ends with Close
	return nil
}

// serve takes the redirect. The browser then goes on to an address without the code, which stays in its history.
func (a *Attempt) serve(w http.ResponseWriter, r *http.Request) {
	header := w.Header()
	header.Set("Cache-Control", "no-store")
	header.Set("Referrer-Policy", "no-referrer")
	header.Set("Content-Security-Policy", "default-src 'none'; "+lookSource+"; frame-ancestors 'none'")
	switch {
	case r.Host != a.host, r.Method != http.MethodGet:
		http.Error(w, "not here", http.StatusBadRequest)
	case strings.HasPrefix(r.URL.Path, startPath):
		a.serveStart(w, r)
	case r.URL.Path == callbackPath:
		if err := a.take(r.Context(), r.URL.Query(), true); errors.Is(err, errState) {
			http.Error(w, err.Error(), http.StatusBadRequest)
			return
		}
		header.Set("Location", donePath)
		w.WriteHeader(http.StatusSeeOther)
	case r.URL.Path == donePath && a.backOf() != "":
		defer a.shown()
		header.Set("Location", a.backOf())
		w.WriteHeader(http.StatusSeeOther)
	case r.URL.Path == donePath:
		text := "You are logged in at " + publicURL(a.plan.server.String()) + ". You can close this page."
		switch l, err := a.outcome(); {
		case err != nil:
			text = "The login has failed: " + err.Error()
		case l == nil:
			text = "The login goes on."
		}
		defer a.shown()
		showNote(w, http.StatusOK, "sse-server", text)
	default:
		http.NotFound(w, r)
	}
}

// serveStart sends the browser of this machine to the issuer, once: see BrowserAddress. It does so for no other user,
// where the system tells who asks. The second opening ends the login, also one that is made, because the first may have
// been that of another user, who has the state then.
func (a *Attempt) serveStart(w http.ResponseWriter, r *http.Request) {
	word := strings.TrimPrefix(r.URL.Path, startPath)
	switch {
	case a.start == "" || subtle.ConstantTimeCompare([]byte(word), []byte(a.start)) != 1:
		http.NotFound(w, r)
	case a.isOfAnotherUser(r):
		http.Error(w, "this address is for the browser of another user of this machine", http.StatusForbidden)
	case a.isStarted.Swap(true):
		a.openedTwice()
		http.Error(w, "this address was opened before, and is good once: begin the login again", http.StatusGone)
	case a.State() != Waiting:
		http.NotFound(w, r)
	default:
		w.Header().Set("Location", a.link)
		w.WriteHeader(http.StatusFound)
	}
}

// isOfAnotherUser reports whether a request is known to be of another user of this machine than this program's, and not
// of root.
func (a *Attempt) isOfAnotherUser(r *http.Request) bool {
	local, _ := r.Context().Value(http.LocalAddrContextKey).(*net.TCPAddr)
	remote, err := netip.ParseAddrPort(r.RemoteAddr)
	if local == nil || err != nil {
		return false
	}
	uid, ok := a.peer(local.AddrPort(), remote)
	return ok && uid != 0 && uid != os.Getuid()
}

// Paste takes the address to which the issuer has sent a browser on another machine. A person may have copied it in
// part, or another one: then the login goes on.
func (a *Attempt) Paste(ctx context.Context, address string) error {
	page, query, _ := strings.Cut(strings.TrimSpace(address), "?")
	query, _, _ = strings.Cut(query, "#")
	values, err := url.ParseQuery(query)
	link, _, _ := strings.Cut(a.link, "?")
	switch {
	case page == link, values.Has("code_challenge"):
		return errors.New("that is the address to open: paste the one at which the browser ends, " +
			clip.Long(a.redirect) + "?…")
	case err != nil, !values.Has("state"), !values.Has("code") && !values.Has("error"):
		return errors.New("want the whole address that the browser shows at the end, which begins with " +
			clip.Long(a.redirect) + "?")
	}
	return a.take(ctx, values, false)
}

// closeListener closes the address of the redirect, once a browser that was there has the last page.
func (a *Attempt) closeListener() {
	if a.server == nil {
		return
	}
	ctx, cancel := context.WithTimeout(context.Background(), 2*time.Second)
	defer cancel()
	if a.isRedirected.Load() {
		select {
		case <-a.wasShown:
		case <-ctx.Done():
		}
	}
	if a.server.Shutdown(ctx) != nil {
		_ = a.server.Close()
	}
}
