package gateway_test

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/mcp-sse/mcp-sse/auth"
	"github.com/mcp-sse/mcp-sse/gateway"
	"github.com/mcp-sse/mcp-sse/internal/forprogram"
	"github.com/mcp-sse/mcp-sse/internal/ssetest"
)

// Browsers and clients send these as Accept, as recorded or as their code has it.
const (
	chrome  = "text/html,application/xhtml+xml,application/xml;q=0.9,image/avif,image/webp,image/apng,*/*;q=0.8,application/signed-exchange;v=b3;q=0.7"
	firefox = "text/html,application/xhtml+xml,application/xml;q=0.9,*/*;q=0.8"
	safari  = "text/html,application/xhtml+xml,application/xml;q=0.9,*/*;q=0.8"
	edge    = "text/html,application/xhtml+xml,application/xml;q=0.9,image/webp,image/apng,*/*;q=0.8,application/signed-exchange;v=b3;q=0.9"
)

// fromHere makes a request one of a client on this machine.
func fromHere(r *http.Request) *http.Request {
	at := &net.TCPAddr{IP: net.IPv4(127, 0, 0, 1), Port: 8080}
	r = r.WithContext(context.WithValue(r.Context(), http.LocalAddrContextKey, at))
	r.RemoteAddr, r.Host = "127.0.0.1:4711", "127.0.0.1:8080"
	return r
}

// get returns what a GET of a client on this machine gets.
func get(h http.Handler, path string, header ...string) *httptest.ResponseRecorder {
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	r := fromHere(ssetest.Request(ctx, http.MethodGet, path, "", header...))
	if r.Header.Get("Accept") == "" {
		r.Header.Del("Accept")
	}
	w := httptest.NewRecorder()
	h.ServeHTTP(leaving{w, cancel}, r)
	return w
}

// kindOf says what an answer is.
func kindOf(w *httptest.ResponseRecorder) string {
	kind, _, _ := strings.Cut(w.Header().Get("Content-Type"), ";")
	switch {
	case kind == "text/event-stream":
		return "stream"
	case kind == "text/html" && strings.Contains(w.Body.String(), "?page=script.js"):
		return "page"
	case kind == "text/html" && strings.Contains(w.Body.String(), "<ul class=\"servers\">"):
		return "list"
	case kind == "text/html":
		return "sentence"
	}
	return http.StatusText(w.Code)
}

// Browsers get the page, and everybody else what they got without it. No page opens a connection or
// starts a server.
func TestBrowsersGetThePage(t *testing.T) {
	for _, c := range []struct{ accept, mcp, sse string }{
		{chrome, "page", "page"},
		{firefox, "page", "page"},
		{safari, "page", "page"},
		{edge, "page", "page"},
		{"*/*", "Method Not Allowed", "stream"},                     // curl, Codex, fetch without more
		{"", "Method Not Allowed", "stream"},                        // curl -H Accept:
		{"text/event-stream", "stream", "stream"},                   // EventSource, the SDKs of TypeScript, Python, Java and C#, mcp-go
		{"application/json, text/event-stream", "stream", "stream"}, // go-sdk, the SDK of Rust
		{"text/event-stream, application/json", "stream", "stream"}, // the SDK of Kotlin
		{"text/event-stream, */*;q=0.1", "stream", "stream"},        // Dify
		{"text/event-stream, text/html", "stream", "stream"},        // whoever can read a stream wants one
		{"text/event-stream;q=0.1, text/html", "page", "page"},      // and who says so wants the page
		{"text/event-stream;q=0.9, text/html;q=0.5", "stream", "stream"},
		{"application/json", "Method Not Allowed", "Method Not Allowed"},         // uptime checks
		{"application/json, */*", "Method Not Allowed", "stream"},                // axios
		{"image/avif,image/webp,*/*;q=0.8", "Method Not Allowed", "stream"},      // an image of a page
		{"text/html;q=0, */*", "Method Not Allowed", "stream"},                   // everything else
		{"text/html, image/gif, image/jpeg, *; q=.2, */*; q=.2", "page", "page"}, // HttpURLConnection of Java without more
	} {
		u := &server{}
		inFakeTime(t, u, gateway.Options{}, func(t *testing.T, g *gateway.Gateway) {
			for path, want := range map[string]string{"/mcp": c.mcp, "/sse": c.sse, "/mcp/": c.mcp} {
				started := u.starts()
				if got := kindOf(get(g, path, "Accept", c.accept)); got != want {
					t.Errorf("GET %s, Accept %q: got %s, want %s", path, c.accept, got, want)
				}
				synctest.Wait()
				if n := u.starts() - started; want != "stream" && n != 0 {
					t.Errorf("GET %s, Accept %q: %d servers were started", path, c.accept, n)
				}
			}
			if c.mcp == "page" {
				equal(t, "connections", g.Connections(), 0)
			}
		})
	}
}

// The files of the page come from the same URL, at a single path and behind a prefix too, and
// start nothing.
func TestFilesOfThePage(t *testing.T) {
	for path, opts := range map[string]gateway.Options{
		"/mcp": {}, "/sse": {}, "/a/b/mcp": {Prefix: "/a/b"}, "/x": {SinglePath: true}, "/x/y": {SinglePath: true},
	} {
		u := &server{}
		inFakeTime(t, u, opts, func(t *testing.T, g *gateway.Gateway) {
			for file, kind := range map[string]string{"script.js": "text/javascript; charset=utf-8", "style.css": "text/css; charset=utf-8"} {
				w := get(g, path+"?page="+file, "Accept", "*/*")
				equal(t, "status of "+file, w.Code, 200)
				equal(t, "kind of "+file, w.Header().Get("Content-Type"), kind)
				again := get(g, path+"?page="+file, "Accept", "*/*", "If-None-Match", w.Header().Get("Etag"))
				equal(t, "status of "+file+" again", again.Code, http.StatusNotModified)
			}
			equal(t, "page of "+path, kindOf(get(g, path, "Accept", chrome)), "page")
			equal(t, "servers that were started", u.starts(), 0)
			equal(t, "connections", g.Connections(), 0)
			if got := kindOf(get(g, path+"?page=script.js", "Accept", "text/event-stream")); got != "stream" {
				t.Errorf("a client with a parameter like ours: got %s, want a stream", got)
			}
			for _, query := range []string{"", "?page=script.js"} { // as link previews look
				w := httptest.NewRecorder()
				g.ServeHTTP(w, fromHere(ssetest.Request(t.Context(), http.MethodHead, path+query, "", "Accept", chrome)))
				equal(t, "status of HEAD "+path+query, w.Code, 200)
			}
			// Any other value of the parameter is none of ours.
			if got := kindOf(get(g, path+"?page=2", "Accept", "text/event-stream")); got != "stream" {
				t.Errorf("another page: got %s, want a stream", got)
			}
		})
	}
}

// People call a single server by its title, and one of several by its name.
func TestPageHasTheTitle(t *testing.T) {
	for _, c := range []struct {
		opts gateway.Options
		want string
	}{
		{gateway.Options{Title: "My docs"}, "My docs"},
		{gateway.Options{Name: "docs", Title: "My docs"}, "docs"},
		{gateway.Options{}, ""},
	} {
		inFakeTime(t, &server{}, c.opts, func(t *testing.T, g *gateway.Gateway) {
			_, block, _ := strings.Cut(get(g, "/mcp", "Accept", chrome).Body.String(), `id="about">`)
			block, _, _ = strings.Cut(block, "</script>")
			var about struct{ Name string }
			must(t, json.Unmarshal([]byte(block), &about))
			equal(t, "the name on the page", about.Name, c.want)
			list := get(g, "/", "Accept", chrome).Body.String()
			if want := ">" + cmp.Or(c.want, "server") + "</a>"; !strings.Contains(list, want) {
				t.Errorf("%s is not in the list %s", want, list)
			}
		})
	}
}

// The page is for this machine by default, and for everybody where a token is needed.
func TestWhoGetsThePage(t *testing.T) {
	authenticate := func(*http.Request) (string, error) { return "", errors.New("no token") }
	for _, c := range []struct {
		name      string
		opts      gateway.Options
		here, far string
	}{
		{"by default", gateway.Options{}, "page", "sentence"},
		{"with tokens", gateway.Options{Authenticate: authenticate}, "page", "page"},
		{"on", gateway.Options{Page: gateway.PageOn}, "page", "page"},
		{"off", gateway.Options{Page: gateway.PageOff, Authenticate: authenticate}, "sentence", "sentence"},
	} {
		inFakeTime(t, &server{}, c.opts, func(t *testing.T, g *gateway.Gateway) {
			equal(t, c.name+", here", kindOf(get(g, "/mcp", "Accept", chrome)), c.here)
			equal(t, c.name+", by a proxy here", kindOf(get(g, "/mcp", "Accept", chrome, "X-Forwarded-For", "192.0.2.1")), c.far)
			r := ssetest.Request(t.Context(), http.MethodGet, "/mcp", "", "Accept", chrome)
			w := httptest.NewRecorder()
			g.ServeHTTP(w, r)
			equal(t, c.name+", elsewhere", kindOf(w), c.far)
			file := get(g, "/mcp?page=script.js", "Accept", "*/*")
			if served := file.Header().Get("Content-Type") == "text/javascript; charset=utf-8"; served != (c.here == "page") {
				t.Errorf("%s: the script is served: %t", c.name, served)
			}
			root := "Not Found"
			if c.here == "page" {
				root = "list"
			}
			equal(t, c.name+", the root", kindOf(get(g, "/", "Accept", chrome)), root)
		})
	}
}

// The page lets nobody else in: no frame, no script or style from elsewhere, and no link of a page tells
// where it comes from. A link of another site opens it, but no page reads it.
func TestHeadersOfThePage(t *testing.T) {
	inFakeTime(t, &server{}, gateway.Options{}, func(t *testing.T, g *gateway.Gateway) {
		for _, path := range []string{"/mcp", "/sse", "/", "/mcp?page=script.js", "/?page=style.css"} {
			equal(t, path+": openers, where a browser trusts nobody", get(g, path, "Accept", chrome).Header().Get("Cross-Origin-Opener-Policy"), "")
			header := get(g, path, "Accept", chrome, "Sec-Fetch-Mode", "navigate").Header()
			policy := header.Get("Content-Security-Policy")
			for _, want := range []string{"default-src 'none'", "script-src 'self'", "style-src 'self'", "connect-src 'self'", "frame-ancestors 'none'", "base-uri 'none'", "form-action 'none'", "require-trusted-types-for 'script'"} {
				if !strings.Contains(policy, want) {
					t.Errorf("%s: the policy %q has no %q", path, policy, want)
				}
			}
			if strings.Contains(policy, "unsafe") || strings.Contains(policy, "*") || strings.Contains(policy, "http") {
				t.Errorf("%s: the policy is weak: %s", path, policy)
			}
			equal(t, path+": openers", header.Get("Cross-Origin-Opener-Policy"), "same-origin")
			equal(t, path+": sniffing", header.Get("X-Content-Type-Options"), "nosniff")
			equal(t, path+": referrer", header.Get("Referrer-Policy"), "no-referrer")
			equal(t, path+": CORS", header.Get("Access-Control-Allow-Origin"), "")
		}
		linked := []string{"Accept", chrome, "Sec-Fetch-Site", "cross-site", "Sec-Fetch-Mode", "navigate"}
		equal(t, "by a link of another site", kindOf(get(g, "/mcp", append(linked, "Sec-Fetch-Dest", "document")...)), "page")
		equal(t, "in a frame of another site", get(g, "/mcp", append(linked, "Sec-Fetch-Dest", "iframe")...).Code, 403)
		equal(t, "fetched by another site", get(g, "/mcp", "Accept", chrome, "Sec-Fetch-Site", "cross-site", "Sec-Fetch-Mode", "cors").Code, 403)
		equal(t, "the script on another site", get(g, "/mcp?page=script.js", "Accept", "*/*", "Sec-Fetch-Site", "cross-site", "Sec-Fetch-Mode", "no-cors", "Sec-Fetch-Dest", "script").Code, 403)
		r := fromHere(ssetest.Request(t.Context(), http.MethodGet, "/mcp", "", append(linked, "Sec-Fetch-Dest", "document")...))
		r.Host = "rebound.example"
		w := httptest.NewRecorder()
		g.ServeHTTP(w, r)
		equal(t, "under a name that a stranger made resolve to us", w.Code, 403)
	})
}

// The host of the address that users type is allowed, and no other one for that.
func TestPublicHostIsAllowed(t *testing.T) {
	inFakeTime(t, &server{}, gateway.Options{PublicHost: "gw.example.com"}, func(t *testing.T, g *gateway.Gateway) {
		for host, want := range map[string]int{"gw.example.com": 200, "other.example.com": 403} {
			r := fromHere(ssetest.Request(t.Context(), http.MethodGet, "/mcp", "", "Accept", chrome))
			r.Host = host
			w := httptest.NewRecorder()
			g.ServeHTTP(w, r)
			equal(t, host, w.Code, want)
		}
	})
}

// The root lists the servers that can be opened, with relative links, because there may be a prefix
// before it. A client that is no browser gets what it got.
func TestRootListsTheServers(t *testing.T) {
	change := func(name string, o *gateway.Options) {
		if name == "b" {
			o.Page = gateway.PageOff
		}
	}
	inFakeTimeWithSeveral(t, change, func(t *testing.T, s *gateway.Servers, all []*gateway.Gateway) {
		w := get(s, "/", "Accept", chrome)
		equal(t, "the root", kindOf(w), "list")
		if body := w.Body.String(); !strings.Contains(body, `<a href="mcp/a/mcp">a</a>`) || strings.Contains(body, "mcp/b/mcp") {
			t.Errorf("got %s", body)
		}
		equal(t, "its style", get(s, "/?page=style.css", "Accept", "*/*").Header().Get("Content-Type"), "text/css; charset=utf-8")
		equal(t, "a server", kindOf(get(s, "/mcp/a/mcp", "Accept", chrome)), "page")
		equal(t, "a server without a page", kindOf(get(s, "/mcp/b/mcp", "Accept", chrome)), "sentence")
		for _, accept := range []string{"*/*", "", "application/json", "text/event-stream"} {
			equal(t, "the root, Accept "+accept, get(s, "/", "Accept", accept).Code, 404)
		}
		equal(t, "another path", get(s, "/elsewhere", "Accept", chrome).Code, 404)
	}, &server{}, &server{})
}

// Only clients that a restricted server lets in find it in lists: on the page, and in the answer to a path that does not
// exist. Each server is asked once who has sent a request, and not for a request of another site.
func TestListsOfRestrictedServers(t *testing.T) {
	asked := map[string]int{}
	change := func(name string, o *gateway.Options) {
		o.Authenticate = func(r *http.Request) (string, error) {
			asked[name]++
			if user := r.Header.Get("User"); user == "alice" || name == "a" && user != "" {
				return user, nil
			}
			return "", &auth.Error{Status: http.StatusForbidden}
		}
		forprogram.OptionsOf(o).Restricted = name == "b"
	}
	inFakeTimeWithSeveral(t, change, func(t *testing.T, s *gateway.Servers, _ []*gateway.Gateway) {
		for user, want := range map[string]string{"": "true false", "bob": "true false", "alice": "true true"} {
			for _, path := range []string{"/", "/elsewhere"} {
				body := get(s, path, "Accept", chrome, "User", user).Body.String()
				got := fmt.Sprint(strings.Contains(body, "mcp/a/mcp"), " ", strings.Contains(body, "mcp/b/mcp"))
				equal(t, path+" for "+user, got, want)
			}
		}
		for _, path := range []string{"/", "/?page=state.json", "/elsewhere"} {
			clear(asked)
			equal(t, path+" from another site", get(s, path, "Accept", chrome, "User", "alice", "Origin", "https://evil.example").Code, 403)
			equal(t, path+" from another site: who is asked for the sender", asked, map[string]int{})
		}
		equal(t, "the state", get(s, "/?page=state.json", "Accept", "application/json", "User", "alice").Code, 200)
		equal(t, "how often each is asked for the sender", asked, map[string]int{"a": 1, "b": 1})
	}, &server{}, &server{})
}

// The page of one of several servers leads to their list at the root. With a prefix before the names, the root may be
// somebody else's.
func TestPageLeadsToTheList(t *testing.T) {
	leads := func(s *gateway.Servers, path string) bool {
		return strings.Contains(get(s, path, "Accept", chrome).Body.String(), ` data-listed="/a"`)
	}
	short := func(name string, o *gateway.Options) { o.Prefix = "/" + name }
	inFakeTimeWithSeveral(t, short, func(t *testing.T, s *gateway.Servers, all []*gateway.Gateway) {
		for _, path := range []string{"/a/mcp", "/a/sse"} {
			equal(t, path+" leads to the list", leads(s, path), true)
		}
		must(t, s.Replace(all[0]))
		equal(t, "a single server leads to the list", leads(s, "/a/mcp"), false)
		must(t, s.Replace(all...))
	}, &server{}, &server{})
	inFakeTimeWithSeveral(t, nil, func(t *testing.T, s *gateway.Servers, _ []*gateway.Gateway) {
		if body := get(s, "/mcp/a/mcp", "Accept", chrome).Body.String(); strings.Contains(body, "data-listed") {
			t.Errorf("with a longer prefix the page leads to the root: %s", body)
		}
	}, &server{}, &server{})
}

// A login at no URL is refused at the start, not when somebody opens the page.
func TestPageWithAWrongIssuer(t *testing.T) {
	if _, err := gateway.New(&server{}, gateway.Options{PageLogin: &gateway.PageLogin{Issuer: "x"}}); err == nil || !strings.Contains(err.Error(), "issuer") {
		t.Errorf("got %v", err)
	}
	for _, c := range []struct {
		page gateway.Page
		ok   bool
	}{{0, true}, {gateway.PageAuto, true}, {gateway.PageOff + 1, false}} {
		if _, err := gateway.New(&server{}, gateway.Options{Page: c.page}); (err == nil) != c.ok {
			t.Errorf("page %q: got %v", c.page, err)
		}
	}
}

// A reload changes who gets the page.
func TestReconfigureThePage(t *testing.T) {
	inFakeTime(t, &server{}, gateway.Options{}, func(t *testing.T, g *gateway.Gateway) {
		for _, c := range []struct {
			page gateway.Page
			want string
		}{{gateway.PageOff, "sentence"}, {gateway.PageOn, "page"}, {0, "page"}} {
			must(t, g.Reconfigure(nil, gateway.Options{Page: c.page, Registry: nil}))
			equal(t, "page: "+c.page.String(), kindOf(get(g, "/mcp", "Accept", chrome)), c.want)
		}
	})
}

// A browser on another machine that gets no page, because there is no authentication, learns why and what to do, at the
// root too. Its style is the only one that the policy allows. Where the page is off, there is no reason to tell.
func TestOthersLearnWhyThereIsNoPage(t *testing.T) {
	for _, c := range []struct {
		page gateway.Page
		root int
		told bool
	}{{gateway.PageAuto, 200, true}, {gateway.PageOff, 404, false}} {
		inFakeTime(t, &server{}, gateway.Options{Page: c.page}, func(t *testing.T, g *gateway.Gateway) {
			for path, code := range map[string]int{"/mcp": 200, "/": c.root} {
				w := do(g, ssetest.Request(t.Context(), http.MethodGet, path, "", "Accept", chrome))
				equal(t, path, w.Code, code)
				equal(t, path+" says what to do", strings.Contains(w.Body.String(), "--auth-tokens-file FILE"), c.told)
				_, style, _ := strings.Cut(w.Body.String(), "<style>")
				style, _, isStyled := strings.Cut(style, "</style>")
				sum := sha256.Sum256([]byte(style))
				allowed := "style-src 'sha256-" + base64.StdEncoding.EncodeToString(sum[:]) + "'"
				if isStyled != (code == 200) || isStyled && !strings.Contains(w.Header().Get("Content-Security-Policy"), allowed) {
					t.Errorf("%s: styled %t, policy %s", path, isStyled, w.Header().Get("Content-Security-Policy"))
				}
			}
			equal(t, "a client at /", do(g, ssetest.Request(t.Context(), http.MethodGet, "/", "")).Code, 404)
		})
	}
}
