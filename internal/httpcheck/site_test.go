package httpcheck_test

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"net/url"
	"slices"
	"strings"
	"testing"

	"github.com/mcp-sse/mcp-sse/auth"
	"github.com/mcp-sse/mcp-sse/internal/httpcheck"
	"github.com/mcp-sse/mcp-sse/internal/ssetest"
)

// A Host that is no name of this machine is DNS rebinding, on a loopback address.
func TestHosts(t *testing.T) {
	for _, test := range []struct {
		local, host string
		allowed     []string
		want        int
	}{
		{"127.0.0.1:8080", "LocalHost:1", nil, 200},
		{"127.0.0.1:8080", "127.8.9.1:80", nil, 200},
		{"127.0.0.1:8080", "[::1]", nil, 200},
		{"[::1]:8080", "[::1]:8080", nil, 200},
		{"[::1]:8080", "evil.example", nil, 403},
		{"[::ffff:127.0.0.1]:8080", "evil.example", nil, 403},
		{"127.0.0.1:8080", "evil.example:8080", nil, 403},
		{"127.0.0.1:8080", "127.0.0.1.evil.example", nil, 403},
		{"127.0.0.1:8080", "localhost@evil.example", nil, 403},
		{"127.0.0.1:8080", "0.0.0.0:8080", nil, 403},
		{"127.0.0.1:8080", "", nil, 403}, // HTTP/1.0
		{"127.0.0.1:8080", ":8080", nil, 403},
		{"127.0.0.1:8080", "[", nil, 403},
		{"127.0.0.1:8080", "MCP.example:443", []string{"mcp.example"}, 200},
		{"127.0.0.1:8080", "evil.example", []string{"mcp.example"}, 403},
		{"127.0.0.1:8080", "evil.example", []string{"*"}, 200},
		{"10.0.0.1:8080", "evil.example", nil, 200}, // names of all kinds are in use
		{"10.0.0.1:8080", "evil.example", []string{"mcp.example"}, 403},
		{"10.0.0.1:8080", "mcp.example:8080", []string{"mcp.example"}, 200},
		{"10.0.0.1:8080", "10.0.0.1:8080", []string{"mcp.example"}, 200}, // a probe
		{"10.0.0.1:8080", "localhost:8080", []string{"mcp.example"}, 200},
		{"/run/gateway.sock", "evil.example", nil, 200},
		{"", "evil.example", nil, 200},
	} {
		h := newTransport(t, httpcheck.Options{AllowedHosts: test.allowed})
		for _, handler := range []http.Handler{h, h.Guard(http.NotFoundHandler())} {
			w := ask(handler, test.local, http.MethodGet, "/t", "", "Host", test.host)
			if refused := w.Code == 403; refused != (test.want == 403) {
				t.Errorf("Host %q on %s, allowed %q: got %d, want %d", test.host, test.local, test.allowed, w.Code, test.want)
			}
		}
	}
}

// A page of a name that resolves to this machine (DNS rebinding) shows itself by its Referer where
// a browser sends neither Origin nor Sec-Fetch-Site: with a GET over plain HTTP.
func TestRefererOfAForeignName(t *testing.T) {
	for _, test := range []struct {
		host, referer string
		allowed       []string
		want          int
	}{
		{"evil.example:8080", "http://evil.example:8080/", nil, 403},
		{"evil.example:8080", "http://EVIL.example:8080/status", nil, 403},
		{"mcp.example:8080", "http://mcp.example:8080/status", []string{"mcp.example"}, 200},
		{"mcp.example:8080", "http://wiki.example/", nil, 200}, // a link
		{"10.0.0.1:8080", "http://10.0.0.1:8080/status", nil, 200},
		{"localhost:8080", "http://localhost:8080/", nil, 200},
		{"mcp.example:8080", "", nil, 200},
		{"mcp.example:8080", "%", nil, 200},
		{"mcp.example:8080", "http://mcp.example:9090/targets", nil, 200}, // of another program there, such as Prometheus
		{"", "", nil, 200}, // HTTP/1.0, as load balancers look whether the gateway is there
	} {
		h := newTransport(t, httpcheck.Options{AllowedHosts: test.allowed})
		w := ask(h, "10.0.0.1:8080", http.MethodGet, "/t", "", "Host", test.host, "Referer", test.referer)
		if refused := w.Code == 403; refused != (test.want == 403) {
			t.Errorf("Host %q, Referer %q, allowed %q: got %d, want %d", test.host, test.referer, test.allowed, w.Code, test.want)
		}
	}
}

// A web page may use the gateway only from an origin that is its own or allowed. A
// browser sends no Origin with the GET of an image: Sec-Fetch-Site tells of the page.
func TestOrigins(t *testing.T) {
	app := []string{"https://app.example"}
	for _, test := range []struct {
		origins []string
		site    string
		allowed []string
		want    int
	}{
		{nil, "", nil, 200},
		{[]string{"HTTP://Gateway.Example:8080"}, "same-origin", nil, 200},
		{[]string{"http://gateway.example:8080"}, "", nil, 403}, // a name that a page has made resolve to us
		{[]string{"http://gateway.example"}, "", nil, 403},
		{[]string{"http://evil.example"}, "", nil, 403},
		{[]string{"http://gateway.example:8080@evil.example"}, "", nil, 403},
		{[]string{"http://evil.example/gateway.example:8080"}, "", nil, 403},
		{[]string{"null"}, "", nil, 403},
		{[]string{""}, "", nil, 403},
		{[]string{"gateway.example:8080"}, "", nil, 403},
		{[]string{"://"}, "", nil, 403},
		{[]string{"http://gateway.example:8080", "http://evil.example"}, "", nil, 403},
		{[]string{"https://APP.example"}, "", app, 200},
		{[]string{"https://app.example"}, "cross-site", app, 200},
		{[]string{"http://app.example"}, "", app, 403},
		{[]string{"https://app.example.evil.example"}, "", app, 403},
		{[]string{"null"}, "", []string{"null"}, 200},
		{[]string{"vscode-webview://abc"}, "", []string{"*"}, 200},
		{nil, "none", nil, 200}, // typed by the user
		{nil, "same-origin", nil, 200},
		{nil, "cross-site", nil, 403},
		{nil, "same-site", nil, 403}, // another port of this machine
		{nil, "cross-site", app, 403},
		{nil, "cross-site", []string{"*"}, 200},
	} {
		h := newTransport(t, httpcheck.Options{AllowedOrigins: test.allowed})
		for _, handler := range []http.Handler{h, h.Guard(http.NotFoundHandler())} {
			header := []string{"Host", "gateway.example:8080", "Sec-Fetch-Site", test.site}
			for _, origin := range test.origins {
				header = append(header, "Origin", origin)
			}
			w := ask(handler, "", http.MethodGet, "/t", "", header...)
			if refused := w.Code == 403; refused != (test.want == 403) {
				t.Errorf("Origin %q, site %q, allowed %q: got %d, want %d", test.origins, test.site, test.allowed, w.Code, test.want)
			}
			if got := w.Header().Get("Access-Control-Allow-Origin"); got != "" && (test.allowed == nil || test.want == 403) {
				t.Errorf("Origin %q, allowed %q: the answer allows %q", test.origins, test.allowed, got)
			}
		}
	}
}

// A page whose name resolves to this machine is no page of ours, unless that name is known or
// something shows that no stranger can have it.
func TestPagesOfForeignNames(t *testing.T) {
	signedIn := func(*http.Request) (string, error) { return "ann", nil }
	for _, test := range []struct {
		host string
		opts httpcheck.Options
		want int
	}{
		{"evil.example:8080", httpcheck.Options{}, 403},
		{"10.0.0.1:8080", httpcheck.Options{}, 200},
		{"[fd00::1]:8080", httpcheck.Options{}, 200},
		{"gateway.example:8080", httpcheck.Options{AllowedHosts: []string{"gateway.example"}}, 200},
		{"evil.example:8080", httpcheck.Options{AllowedHosts: []string{"gateway.example"}}, 403},
		{"Public.example:8080", httpcheck.Options{PublicHost: "public.example"}, 200},
		{"evil.example:8080", httpcheck.Options{PublicHost: "public.example"}, 403},
		{"public.example", httpcheck.Options{AllowedHosts: []string{"gateway.example"}, PublicHost: "public.example"}, 200},
		{"gateway.example:8080", httpcheck.Options{Authenticate: signedIn}, 200},
	} {
		w := ask(newTransport(t, test.opts), "10.0.0.1:8080", http.MethodPost, "/t", "", "Host", test.host, "Origin", "http://"+test.host)
		if refused := w.Code == 403; refused != (test.want == 403) {
			t.Errorf("a page of %s: got %d, want %d", test.host, w.Code, test.want)
		}
	}
}

func TestCORS(t *testing.T) {
	const app = "https://app.example"
	authenticate := func(*http.Request) (string, error) { return "", &auth.Error{Message: "no"} }
	h := newTransport(t, httpcheck.Options{AllowedOrigins: []string{app}, Authenticate: authenticate})
	preflight := func(h http.Handler, origin string) http.Header {
		w := ask(h, "", http.MethodOptions, "/t", "",
			"Origin", origin, "Access-Control-Request-Method", "POST", "Access-Control-Request-Headers", "authorization,mcp-param-x")
		if want := map[string]int{app: 204}[origin]; w.Code != want && (want == 204 || w.Code < 400) {
			t.Errorf("preflight from %s: got %d", origin, w.Code)
		}
		return w.Header()
	}
	got := preflight(h, app) // browsers send no credentials with it
	for name, want := range map[string]string{
		"Access-Control-Allow-Origin": app, "Access-Control-Allow-Methods": "GET, POST", "Vary": "Origin",
		"Access-Control-Allow-Headers": "authorization,mcp-param-x", "Access-Control-Allow-Credentials": "",
	} {
		ssetest.Want(t, name, got.Get(name), want)
	}
	if got := preflight(h, "https://evil.example"); got.Get("Access-Control-Allow-Origin") != "" {
		t.Errorf("another origin: got %v", got)
	}
	if got := preflight(newTransport(t, httpcheck.Options{}), "http://localhost"); got.Get("Access-Control-Allow-Origin") != "" || got.Get("Vary") != "" {
		t.Errorf("no origin is allowed: got %v", got)
	}
	// a page must be able to read refusals, and a cache to know that they depend on it
	w := ask(h, "", http.MethodGet, "/t", "", "Origin", app)
	if w.Code != 401 || w.Header().Get("Access-Control-Allow-Origin") != app ||
		!strings.Contains(w.Header().Get("Access-Control-Expose-Headers"), "WWW-Authenticate") {
		t.Errorf("got %d, %v", w.Code, w.Header())
	}
	if w := ask(h, "", http.MethodGet, "/t", ""); w.Header().Get("Access-Control-Allow-Origin") != "" || w.Header().Get("Vary") != "Origin" {
		t.Errorf("no page: got %v", w.Header())
	}
}

func TestClientAddr(t *testing.T) {
	proxies := []netip.Prefix{netip.MustParsePrefix("10.0.0.0/8"), netip.MustParsePrefix("127.0.0.0/8"), netip.MustParsePrefix("fe80::/10")}
	for _, test := range []struct {
		remote    string
		forwarded []string
		want      string
	}{
		{"192.0.2.1:5", []string{"198.51.100.1"}, "192.0.2.1"}, // no proxy of ours: it may say what it likes
		{"10.1.1.1:5", nil, "10.1.1.1"},
		{"10.1.1.1:5", []string{""}, "10.1.1.1"},
		{"10.1.1.1:5", []string{" 198.51.100.1 "}, "198.51.100.1"},
		{"10.1.1.1:5", []string{"198.51.100.1:4711"}, "198.51.100.1"},
		{"10.1.1.1:5", []string{"2001:db8::7"}, "2001:db8::7"},
		{"10.1.1.1:5", []string{"[2001:db8::7]:4711"}, "2001:db8::7"},
		{"10.1.1.1:5", []string{"::ffff:198.51.100.1"}, "198.51.100.1"},
		{"[::ffff:10.1.1.1]:5", []string{"198.51.100.1"}, "198.51.100.1"},
		{"[fe80::1%eth0]:5", []string{"198.51.100.1"}, "198.51.100.1"},
		// the client's own claims come first, the proxies' last
		{"10.1.1.1:5", []string{"127.0.0.1, 198.51.100.1"}, "198.51.100.1"},
		{"10.1.1.1:5", []string{"203.0.113.9", "198.51.100.1", "10.2.2.2, 10.3.3.3"}, "198.51.100.1"},
		{"10.1.1.1:5", []string{"10.9.9.9, 10.2.2.2"}, "10.9.9.9"},
		// at garbage the chain ends: the last hop that is known stands
		{"10.1.1.1:5", []string{"198.51.100.1, unknown"}, "10.1.1.1"},
		{"10.1.1.1:5", []string{"198.51.100.1, unknown, 10.2.2.2"}, "10.2.2.2"},
		{"10.1.1.1:5", []string{"198.51.100.1\x00"}, "10.1.1.1"},
		{"@", []string{"198.51.100.1"}, "invalid IP"},
	} {
		r := httptest.NewRequest(http.MethodGet, "/t", nil)
		r.RemoteAddr = test.remote
		r.Header["X-Forwarded-For"] = test.forwarded
		ssetest.Want(t, fmt.Sprintf("%s, %q", test.remote, test.forwarded), newTransport(t, httpcheck.Options{TrustedProxies: proxies}).ClientAddr(r).String(), test.want)
	}
}

// A client is local when it came from this machine to this machine, and no proxy says
// that it asks for somebody else. Of its headers, only those are kept that are named.
func TestClient(t *testing.T) {
	for _, test := range []struct {
		remote, local, header string
		proxies               []netip.Prefix
		want                  bool
	}{
		{"127.0.0.1:5", "127.0.0.1:80", "", nil, true},
		{"[::1]:5", "[::1]:80", "X-Request-Id", nil, true},
		{"192.0.2.1:5", "127.0.0.1:80", "", nil, false},
		{"127.0.0.1:5", "192.0.2.9:80", "", nil, false},
		{"", "@", "", nil, false},
		{"127.0.0.1:5", "127.0.0.1:80", "X-Forwarded-Host", nil, false},
		{"127.0.0.1:5", "127.0.0.1:80", "Via", nil, false},
		{"127.0.0.1:5", "127.0.0.1:80", "Cf-Connecting-Ip", nil, false},
		{"127.0.0.1:5", "127.0.0.1:80", "", []netip.Prefix{netip.MustParsePrefix("10.0.0.0/8")}, false},
	} {
		h := newTransport(t, httpcheck.Options{TrustedProxies: test.proxies, ForwardHeaders: []string{"x-tenant", "X-Missing"}})
		var got bool
		ask(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
			r.RemoteAddr = test.remote
			c := h.Client(r, "ada", "sse")
			if got = c.Local; c.Principal != "ada" || len(c.Header) != 1 || !slices.Equal(c.Header["X-Tenant"], []string{"a"}) {
				t.Errorf("got the client %+v", c)
			}
		}), test.local, http.MethodGet, "/t", "", "X-Tenant", "a", "Cookie", "secret", test.header, "192.0.2.7")
		ssetest.Want(t, fmt.Sprintf("from %q to %q with %q: local", test.remote, test.local, test.header), got, test.want)
	}
}

// The clients of an untrusted proxy share its address. If the proxy is on a private network,
// the log says once which option to set.
func TestProxyThatIsNotTrusted(t *testing.T) {
	for _, test := range []struct {
		remote, header string
		trusted        bool
		proxied, warns bool
	}{
		{"127.0.0.1:5", "X-Forwarded-For", false, true, true},
		{"[::1]:5", "Forwarded", false, true, true},
		{"10.0.0.1:5", "X-Forwarded-For", false, true, true},
		{"192.0.2.1:5", "X-Forwarded-For", false, true, false}, // a stranger's proxy
		{"127.0.0.1:5", "X-Forwarded-For", true, false, false},
		{"127.0.0.1:5", "X-Request-Id", false, false, false},
	} {
		o := httpcheck.Options{}
		if test.trusted {
			o.TrustedProxies = []netip.Prefix{netip.MustParsePrefix("127.0.0.0/8")}
		}
		h := newTransport(t, o)
		r := httptest.NewRequest(http.MethodGet, "/t", nil)
		r.RemoteAddr = test.remote
		r.Header.Set(test.header, "192.0.2.7")
		for range 2 {
			if got := h.Client(r, "", "sse"); got.Proxied != test.proxied {
				t.Errorf("%+v: got proxied %t", test, got.Proxied)
			}
		}
		ssetest.Want(t, fmt.Sprintf("%+v: warnings", test), strings.Count(h.log.String(), "set trusted-proxies"), map[bool]int{true: 1}[test.warns])
	}
}

// Whatever the request says, what clients are told is a path on the same host.
func TestOuterPrefixIsNeverAnotherHost(t *testing.T) {
	proxy := []netip.Prefix{netip.MustParsePrefix("192.0.2.0/24")} // that of httptest.NewRequest
	base, _ := url.Parse("http://gateway.example/x/t")
	for _, uri := range []string{
		"/t", "//evil.example/t", "///evil.example/t", "/\\evil.example/t", "http://evil.example/t", "http://evil.example/a/t?x",
		"*", "", "/a/../t", "/..//t", "/%2e%2e//t", "/t?x=/t", "/a\r\nb/t", "evil.example:443",
	} {
		for _, forwarded := range []string{
			"", "/", "gw", "//evil.example", `/\evil.example`, "http://evil.example", "javascript:alert(1)", "/../", "/a/../../b", "/%2e%2e/x",
			"/.%2E/x", "/%zz", "/a?b=c", "/a#b", "/a b", "/a\r\ndata: x", "/a\x00", "/a, /b", "/ü", "/" + strings.Repeat("x", 2000), "/ok",
		} {
			r := httptest.NewRequest(http.MethodGet, "/t", nil)
			r.RequestURI, r.Host = uri, "evil.example"
			r.Header.Set("X-Forwarded-Prefix", forwarded)
			got := newTransport(t, httpcheck.Options{TrustedProxies: proxy}).OuterPrefix(r) + "/t"
			u, err := base.Parse(got)
			if err != nil || u.Host != base.Host || u.Scheme != base.Scheme || len(got) > 1100 ||
				strings.ContainsAny(got, "\r\n\\ ") || strings.Contains(u.Path, "..") {
				t.Errorf("request line %q, forwarded prefix %q: got %q", uri, forwarded, got)
			}
		}
	}
}

func TestForwardedPrefix(t *testing.T) {
	proxy := []netip.Prefix{netip.MustParsePrefix("192.0.2.0/24")}
	for _, test := range []struct {
		forwarded string
		proxies   []netip.Prefix
		want      string
	}{
		{"/gw", nil, ""},
		{"/gw/", proxy, "/gw"},
		{"/gw/a%20b", proxy, "/gw/a%20b"},
		{"/", proxy, ""},
		{"//evil.example", proxy, ""},
	} {
		h := newTransport(t, httpcheck.Options{TrustedProxies: test.proxies})
		r := httptest.NewRequest(http.MethodGet, "/t", nil)
		r.Header.Set("X-Forwarded-Prefix", test.forwarded)
		ssetest.Want(t, "prefix of "+test.forwarded, h.OuterPrefix(r), test.want)
		ssetest.Want(t, "warning about "+test.forwarded, strings.Contains(h.log.String(), "header ignored: not a path"), strings.HasPrefix(test.forwarded, "//"))
	}
}
