package sse_test

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/mcp-sse/mcp-sse/front"
	"github.com/mcp-sse/mcp-sse/metrics"
	"github.com/mcp-sse/mcp-sse/sse"
)

// ask sends a request to a handler as if it had come in on a local address, and
// ends a stream that it opens at once.
func ask(h http.Handler, local, method, target string, change func(*http.Request)) *httptest.ResponseRecorder {
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	if local != "" {
		addr, err := net.ResolveTCPAddr("tcp", local)
		if err != nil {
			panic(err)
		}
		ctx = context.WithValue(ctx, http.LocalAddrContextKey, addr)
	}
	r := httptest.NewRequestWithContext(ctx, method, target, nil)
	r.Host = "localhost"
	if change != nil {
		change(r)
	}
	w := httptest.NewRecorder()
	h.ServeHTTP(w, r)
	return w
}

func TestHostOnLoopback(t *testing.T) {
	for _, test := range []struct {
		local, host string
		allowed     []string
		want        int
	}{
		{"127.0.0.1:8080", "localhost", nil, 200},
		{"127.0.0.1:8080", "localhost:8080", nil, 200},
		{"127.0.0.1:8080", "LocalHost:1", nil, 200},
		{"127.0.0.1:8080", "127.0.0.1", nil, 200},
		{"127.0.0.1:8080", "127.0.0.1:8080", nil, 200},
		{"127.0.0.1:8080", "127.8.9.1:80", nil, 200},
		{"127.0.0.1:8080", "[::1]", nil, 200},
		{"127.0.0.1:8080", "[::1]:8080", nil, 200},
		{"[::1]:8080", "[::1]:8080", nil, 200},
		{"[::1]:8080", "localhost", nil, 200},
		{"[::1]:8080", "evil.example", nil, 403},
		{"[::ffff:127.0.0.1]:8080", "evil.example", nil, 403},
		{"127.0.0.1:8080", "evil.example", nil, 403},
		{"127.0.0.1:8080", "evil.example:8080", nil, 403},
		{"127.0.0.1:8080", "127.0.0.1.evil.example", nil, 403},
		{"127.0.0.1:8080", "localhost.evil.example:8080", nil, 403},
		{"127.0.0.1:8080", "evil.example#localhost", nil, 403},
		{"127.0.0.1:8080", "localhost@evil.example", nil, 403},
		{"127.0.0.1:8080", "10.0.0.1", nil, 403},
		{"127.0.0.1:8080", "0.0.0.0:8080", nil, 403},
		{"127.0.0.1:8080", "[::]:8080", nil, 403},
		{"127.0.0.1:8080", "", nil, 403},
		{"127.0.0.1:8080", ":8080", nil, 403},
		{"127.0.0.1:8080", "[", nil, 403},
		{"127.0.0.1:8080", "mcp.example", []string{"mcp.example"}, 200},
		{"127.0.0.1:8080", "MCP.example:443", []string{"mcp.example"}, 200},
		{"127.0.0.1:8080", "evil.example", []string{"mcp.example"}, 403},
		{"127.0.0.1:8080", "evil.example", []string{"*"}, 200},
		{"10.0.0.1:8080", "evil.example", nil, 200}, // no loopback: names of all kinds are in use
		{"", "evil.example", nil, 200},
	} {
		f := newFixture(t, config{sse: sse.Options{Options: front.Options{AllowedHosts: test.allowed}}})
		for _, request := range []struct {
			method, target string
			status         int
		}{{"GET", "/sse", 200}, {"POST", "/sse/x/message", 404}, {"PUT", "/sse", 405}} {
			w := ask(f, test.local, request.method, request.target, func(r *http.Request) { r.Host = test.host })
			want := request.status
			if test.want == 403 {
				want = 403
			}
			if w.Code != want || want != 200 && !isRefusal(w.Body.String()) {
				t.Errorf("%s %s with Host %q on %s: got %d %s, want %d", request.method, request.target, test.host, test.local, w.Code, w.Body, want)
			}
		}
	}
}

// namedAddr is an address of a listener that is not TCP's own.
type namedAddr string

func (namedAddr) Network() string  { return "wrapped" }
func (a namedAddr) String() string { return string(a) }

func TestHostOnOtherListeners(t *testing.T) {
	f := newFixture(t, config{})
	for local, want := range map[namedAddr]int{"127.0.0.1:80": 403, "[::1]:80": 403, "10.0.0.1:80": 200, "/run/gateway.sock": 200, "@": 200} {
		w := ask(f, "", http.MethodGet, "/sse", func(r *http.Request) {
			*r = *r.WithContext(context.WithValue(r.Context(), http.LocalAddrContextKey, local))
			r.Host = "evil.example"
		})
		if w.Code != want {
			t.Errorf("on %s: got %d, want %d", local, w.Code, want)
		}
	}
}

// HTTP/1.1 without a Host is net/http's to refuse; HTTP/1.0 without is ours.
func TestNoHostHeader(t *testing.T) {
	f := newFixture(t, config{})
	srv := start(t, f)
	conn, err := net.Dial("tcp", srv.Listener.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	fmt.Fprint(conn, "GET /sse HTTP/1.0\r\n\r\n")
	res, err := http.ReadResponse(bufio.NewReader(conn), nil)
	if err != nil {
		t.Fatal(err)
	}
	body, _ := io.ReadAll(res.Body)
	if res.StatusCode != http.StatusForbidden || !isRefusal(string(body)) {
		t.Errorf("got %d %s", res.StatusCode, body)
	}
	if n := f.count(t, "mcp_sse_connections_rejected_total", "reason", metrics.RejectedHost); n != 1 {
		t.Errorf("got %v rejections counted", n)
	}
}

func TestOrigins(t *testing.T) {
	for _, test := range []struct {
		origins []string
		allowed []string
		want    int
	}{
		{nil, nil, 200},
		{[]string{"http://gateway.example:8080"}, nil, 200},
		{[]string{"HTTP://Gateway.Example:8080"}, nil, 200},
		{[]string{"http://gateway.example"}, nil, 403},
		{[]string{"http://gateway.example:8081"}, nil, 403},
		{[]string{"http://evil.example"}, nil, 403},
		{[]string{"http://gateway.example:8080.evil.example"}, nil, 403},
		{[]string{"http://gateway.example:8080@evil.example"}, nil, 403},
		{[]string{"http://evil.example/gateway.example:8080"}, nil, 403},
		{[]string{"null"}, nil, 403},
		{[]string{""}, nil, 403},
		{[]string{"gateway.example:8080"}, nil, 403},
		{[]string{"://"}, nil, 403},
		{[]string{"http://gateway.example:8080 http://evil.example"}, nil, 403},
		{[]string{"http://gateway.example:8080", "http://gateway.example:8080"}, nil, 403},
		{[]string{"http://gateway.example:8080", "http://evil.example"}, nil, 403},
		{[]string{"https://app.example"}, []string{"https://app.example"}, 200},
		{[]string{"https://APP.example"}, []string{"https://app.example"}, 200},
		{[]string{"http://app.example"}, []string{"https://app.example"}, 403},
		{[]string{"https://app.example.evil.example"}, []string{"https://app.example"}, 403},
		{[]string{"https://app.example", "https://app.example"}, []string{"https://app.example"}, 403},
		{[]string{"null"}, []string{"null"}, 200},
		{[]string{"https://any.example"}, []string{"*"}, 200},
		{[]string{"null"}, []string{"*"}, 200},
		{[]string{"vscode-webview://abc"}, []string{"vscode-webview://abc"}, 200},
	} {
		f := newFixture(t, config{sse: sse.Options{Options: front.Options{AllowedOrigins: test.allowed}}})
		for target, status := range map[string]int{"/sse": 200, "/sse/x/message": 404} {
			method := "GET"
			if status == 404 {
				method = "POST"
			}
			w := ask(f, "", method, target, func(r *http.Request) {
				r.Host = "gateway.example:8080"
				r.Header["Origin"] = test.origins
			})
			want := status
			if test.want == 403 {
				want = 403
			}
			if w.Code != want || want != 200 && !isRefusal(w.Body.String()) {
				t.Errorf("%s, Origin %q, allowed %q: got %d %s, want %d", method, test.origins, test.allowed, w.Code, w.Body, want)
			}
			if got := w.Header().Get("Access-Control-Allow-Origin"); got != "" && (len(test.allowed) == 0 || want == 403) {
				t.Errorf("Origin %q, allowed %q: the answer allows %q", test.origins, test.allowed, got)
			}
		}
	}
}

func TestCORS(t *testing.T) {
	const app = "https://app.example"
	f := newFixture(t, config{sse: sse.Options{Options: front.Options{AllowedOrigins: []string{app}, ForwardHeaders: []string{"X-User"}, Authenticate: bearer(t)}}})
	preflight := func(origin string) *httptest.ResponseRecorder {
		return ask(f, "", http.MethodOptions, "/sse/x/message", func(r *http.Request) {
			r.Header.Set("Origin", origin)
			r.Header.Set("Access-Control-Request-Method", "POST")
			r.Header.Set("Access-Control-Request-Headers", "authorization,content-type")
		})
	}
	w := preflight(app) // browsers send no credentials with it
	if w.Code != http.StatusNoContent || w.Body.Len() != 0 {
		t.Errorf("got %d %s", w.Code, w.Body)
	}
	for name, want := range map[string]string{
		"Access-Control-Allow-Origin": app, "Access-Control-Allow-Methods": "GET, POST",
		"Vary": "Origin", "Access-Control-Allow-Credentials": "",
	} {
		if got := w.Header().Get(name); got != want {
			t.Errorf("%s: got %q, want %q", name, got, want)
		}
	}
	for _, name := range []string{"Authorization", "Content-Type", "Last-Event-ID", "MCP-Protocol-Version", "Cache-Control", "X-User"} {
		if !strings.Contains(w.Header().Get("Access-Control-Allow-Headers"), name) {
			t.Errorf("%s is not among the allowed headers", name)
		}
	}
	if w := preflight("https://evil.example"); w.Code != http.StatusForbidden || w.Header().Get("Access-Control-Allow-Origin") != "" {
		t.Errorf("another origin: got %d, %v", w.Code, w.Header())
	}
	// answers that a page must be able to read, refusals too
	w = ask(f, "", http.MethodGet, "/sse", func(r *http.Request) { r.Header.Set("Origin", app) })
	if w.Code != http.StatusUnauthorized || w.Header().Get("Access-Control-Allow-Origin") != app ||
		!strings.Contains(w.Header().Get("Access-Control-Expose-Headers"), "WWW-Authenticate") {
		t.Errorf("got %d, %v", w.Code, w.Header())
	}
	w = ask(f, "", http.MethodGet, "/sse", func(r *http.Request) {
		r.Header.Set("Origin", app)
		r.Header.Set("Authorization", "Bearer token")
	})
	if w.Code != 200 || w.Header().Get("Access-Control-Allow-Origin") != app || w.Header().Get("X-Connection-ID") == "" {
		t.Errorf("got %d, %v", w.Code, w.Header())
	}
	// no page: nothing to allow, but a cache must know that it depends on it
	w = ask(f, "", http.MethodPut, "/sse", nil)
	if w.Header().Get("Access-Control-Allow-Origin") != "" || w.Header().Get("Vary") != "Origin" {
		t.Errorf("got %v", w.Header())
	}
}

func TestPreflightWithoutCORS(t *testing.T) {
	f := newFixture(t, config{})
	w := ask(f, "", http.MethodOptions, "/sse", func(r *http.Request) {
		r.Header.Set("Origin", "http://localhost")
		r.Header.Set("Access-Control-Request-Method", "GET")
	})
	if w.Code != http.StatusMethodNotAllowed || w.Header().Get("Access-Control-Allow-Origin") != "" || w.Header().Get("Vary") != "" {
		t.Errorf("got %d, %v", w.Code, w.Header())
	}
}

// Routes that are not the transport's can have its checks.
func TestGuardChecksHostAndOrigin(t *testing.T) {
	f := newFixture(t, config{})
	served := f.Guard(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusTeapot) }))
	for _, tt := range []struct {
		name   string
		change func(*http.Request)
		want   int
	}{
		{"own", func(r *http.Request) { r.Host = "localhost:1" }, http.StatusTeapot},
		{"rebound", func(r *http.Request) { r.Host = "evil.example" }, http.StatusForbidden},
		{"from a page", func(r *http.Request) { r.Host = "localhost:1"; r.Header.Set("Origin", "https://evil.example") }, http.StatusForbidden},
	} {
		t.Run(tt.name, func(t *testing.T) {
			if got := ask(served, "127.0.0.1:1", http.MethodGet, "/metrics", tt.change).Code; got != tt.want {
				t.Errorf("status %d, want %d", got, tt.want)
			}
		})
	}
}

// A browser sends no Origin with the GET of an image or of a link: Sec-Fetch-Site
// tells where it comes from.
func TestGETsOfOtherSites(t *testing.T) {
	for _, test := range []struct {
		site, origin string
		allowed      []string
		want         int
	}{
		{"", "", nil, 200},
		{"none", "", nil, 200}, // typed by the user
		{"same-origin", "", nil, 200},
		{"cross-site", "", nil, 403},
		{"same-site", "", nil, 403}, // another port of this machine
		{"cross-site", "", []string{"https://app.example.com"}, 403},
		{"cross-site", "https://app.example.com", []string{"https://app.example.com"}, 200},
		{"cross-site", "https://other.example.com", []string{"https://app.example.com"}, 403},
		{"cross-site", "", []string{"*"}, 200},
	} {
		f := newFixture(t, config{sse: sse.Options{Options: front.Options{AllowedOrigins: test.allowed}}})
		guarded := f.Guard(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {}))
		for path, h := range map[string]http.Handler{"/sse": f, "/readyz": guarded} {
			w := ask(h, "127.0.0.1:8080", http.MethodGet, path, func(r *http.Request) {
				r.Header.Set("Sec-Fetch-Site", test.site)
				if test.origin != "" {
					r.Header.Set("Origin", test.origin)
				}
			})
			if w.Code != test.want {
				t.Errorf("%s from %q, origin %q, allowed %v: got %d, want %d", path, test.site, test.origin, test.allowed, w.Code, test.want)
			}
		}
		for f.registry.Len() > 0 {
			<-f.backend.closed
		}
	}
}
